"""The tables of the analysis `costs`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from de3lab.tabular import Grid

__all__ = ["costs_tables", "short"]

DECISION = ("prototypical network", "internal classifier", "EDR", "router")


def costs_tables(numbers: Mapping[str, Any]) -> list[Grid]:
    """Parameters, operations of every kind, training, and the paper's own table recounted."""
    operations = [_operations(numbers, kind) for kind in numbers["kinds"]]
    return [_parameters(numbers), *operations, _training(numbers), _recounted(numbers)]


def short(value: float) -> str:
    """A count as the paper prints it: one decimal, with M from a million up, else with K."""
    return f"{value / 1e6:.1f}M" if value >= 1e6 else f"{value / 1e3:.1f}K"


def _parameters(numbers: Mapping[str, Any]) -> Grid:
    parts = list(
        dict.fromkeys(name for kind in numbers["kinds"] for name in kind["parameters"]["parts"])
    )
    columns = ("model", "backbone", *parts, "added", "added, %", "final head", "all learned",
               "prototypes")  # fmt: skip
    rows = []
    for kind in numbers["kinds"]:
        found = kind["parameters"]
        rows.append(
            (
                kind["label"],
                _whole(found["backbone"]),
                *(_whole(found["parts"].get(name, 0)) for name in parts),
                _whole(found["added"]),
                f"{found['added_percent']:.2f}",
                _whole(found["final head"]),
                _whole(found["total"]),
                _whole(found["prototypes"]),
            )
        )
    paper = numbers["paper"]["parameters"]
    published = "; ".join(
        f"{name} {row['2']} (K = 2), {row['3']} (K = 3)" for name, row in paper.items()
    )
    note = (
        "The paper's count: the backbone with its pooler and without a classifier, and what exits "
        "before the last add to it, in percent of it. All learned numbers include the final head. "
        "Prototypes are stored and not learned, and are in no sum. "
        f"Published for BERT-base: {published}."
    )
    return Grid("Parameters", columns, tuple(rows), note)


def _operations(numbers: Mapping[str, Any], kind: Mapping[str, Any]) -> Grid:
    convention, counted = kind["flops"]["convention"], kind["flops"]["counted"]
    rows: list[tuple[Any, ...]] = [
        (name, _maybe(convention.get(name)), _maybe(counted.get(name)))
        for name in dict.fromkeys([*convention, *counted])
    ]
    sums = [sum(parts.get(part, 0.0) for part in DECISION) for parts in (convention, counted)]
    layers = (convention["encoder layer"], counted["encoder layer"])
    rows.append(("decision per exit", *(_whole(each) for each in sums)))
    shares = (f"{100 * own / one:.3f}" for own, one in zip(sums, layers, strict=True))
    rows.append(("decision, % of a layer", *shares))
    rows.append(("whole pass, all exits", None, _whole(kind["flops"]["pass"])))
    rows.append(("whole pass, final exit alone", None, _whole(kind["flops"]["pass_without_exits"])))
    note = (
        f"One text of {numbers['length']} tokens, {kind['hidden']} wide, {kind['classes']} "
        "classes. The paper counts linear layers and norms, and distances to two prototypes; the "
        "other column has all matrix products, attention's included, and distances to all "
        f"prototypes, and no norms ({kind['flops']['counted_by']})."
    )
    columns = ("module", "FLOPs as the paper counts", "FLOPs counted")
    return Grid(f"Operations of {kind['label']}", columns, tuple(rows), note)


def _training(numbers: Mapping[str, Any]) -> Grid:
    columns = ("model", "runs", "steps", "seconds", "seconds per step", "time per step, ratio",
               "FLOPs of a pass, ratio")  # fmt: skip
    rows = tuple(
        (
            kind["label"],
            found["runs"],
            None if found["steps"] is None else f"{found['steps']:.0f}",
            None if found["seconds"] is None else f"{found['seconds']:.0f}",
            None if found["seconds_per_step"] is None else f"{found['seconds_per_step']:.3f}",
            None if found["time_ratio"] is None else f"{found['time_ratio']:.2f}",
            None if found["flops_ratio"] is None else f"{found['flops_ratio']:.4f}",
        )
        for kind in numbers["kinds"]
        for found in [kind["training"]]
    )
    plain = numbers["plain"]
    against = f"Ratios are to plain fine-tuning ({plain})."
    if plain is None:
        against = "No model of plain fine-tuning (method full) was given, so there are no ratios."
    minutes = numbers["paper"]["minutes"]
    published = "; ".join(
        f"{task} {minutes['BERT-base'][task]:g} and {minutes['DE3-BERT'][task]:g}"
        for task in minutes["BERT-base"]
    )
    note = (
        f"{against} Times are wall times as each training noted them: on a machine that is shared "
        "they say more about its other work than about the method, and steps of methods with "
        "several phases differ. The ratio of FLOPs (a pass through all layers and exits, which a "
        "training step makes) is free of that. Published minutes until the best checkpoint, "
        f"BERT-base and DE3-BERT: {published}."
    )
    return Grid("Training", columns, rows, note)


def _recounted(numbers: Mapping[str, Any]) -> Grid:
    paper = numbers["paper"]
    rows = tuple(
        (
            module,
            *(
                text
                for classes in ("2", "3")
                for text in (
                    _whole(paper["recounted"][classes][module]),
                    short(paper["recounted"][classes][module]),
                    published[classes],
                )
            ),
        )
        for module, published in paper["modules"].items()
    )
    columns = ("module", "K = 2", "rounded", "paper", "K = 3", "rounded", "paper")
    note = f"BERT-base, {paper['length']} tokens: our count in the paper's way, and the paper's."
    return Grid("The paper's table, recounted", columns, rows, note)


def _whole(value: float) -> str:
    return f"{value:,.0f}"


def _maybe(value: float | None) -> str | None:
    return None if value is None else _whole(value)
