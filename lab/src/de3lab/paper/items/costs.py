"""Tables IX and X: parameters, training time and operations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from de3lab.analysis.costs import PAPER_MINUTES, PAPER_MODULES, PAPER_PARAMETERS
from de3lab.analysis.costs_tables import short
from de3lab.paper.item import Finding, Item, Measurement, Training
from de3lab.paper.judging import Verdict, by_construction, decided, not_measured, unmeasured
from de3lab.paper.settings import named_row
from de3lab.paper.stored import Stored
from de3lab.paper.tasks import DEV
from de3lab.tabular import Grid

__all__ = ["COSTS"]

METHODS = {"full": "BERT-base", "deebert": "DeeBERT", "de3": "DE3-BERT"}
CLASSES = (2, 3)
MORE = {2: 5.95, 3: 5.96}  # percent of BERT-base that DE3 adds, as published
WIDTH, DEPTH, BACKBONE_SIZE = 768, 12, 109_482_240  # BERT-base with its pooler
SLOWER = 1.10  # a step that takes no more than this is about as fast


def cost_tables(stored: Stored) -> list[Grid]:
    """The paper's two tables, with what the same models cost here."""
    document = next(iter(stored.results(COSTS).values()), None)
    numbers = None if document is None else document.numbers
    backbone = None if document is None else document.backbone
    timed = _minutes(stored, numbers, backbone)
    return [_parameters(numbers, backbone), timed, _modules(numbers)]


def parameters(count: float, added: bool) -> str:
    """As the paper prints them: `109.48M`, `+16.92K`."""
    sign = "+" if added else ""
    return f"{sign}{count / 1e3:.2f}K" if count < 1e6 else f"{sign}{count / 1e6:.2f}M"


def _parameters(numbers: Mapping[str, Any] | None, backbone: str | None) -> Grid:
    rows = []
    for method, shown in METHODS.items():
        kind = _kind(numbers, method)
        theirs = (PAPER_PARAMETERS[shown][k] for k in CLASSES)
        name = named_row(backbone, method, shown)
        rows.append((name, _own(kind), _percent(kind), *theirs))
    columns = ("model", "ours", "more, ours", "paper, 2 classes", "paper, 3 classes")
    note = "Of the full model all but its head, of the others what they add to it."
    return Grid("Parameters", columns, tuple(rows), note)


def _minutes(stored: Stored, numbers: Mapping[str, Any] | None, backbone: str | None) -> Grid:
    rows = []
    for method, shown in METHODS.items():
        kind = _kind(numbers, method)
        seconds = None if kind is None else kind["training"]["seconds_per_step"]
        cell = None if seconds is None else f"{seconds:.2f}"
        theirs = (f"{minutes:g}" for minutes in PAPER_MINUTES[shown].values())
        rows.append((named_row(backbone, method, shown), cell, *theirs))
    tasks = (f"minutes, {task}, paper" for task in PAPER_MINUTES["BERT-base"])
    note = (
        "The paper: minutes until the best checkpoint. Ours: wall-clock time of trainings at "
        "different times of a shared machine, so that they compare roughly at best."
    )
    timed = stored.document("training-time.json")
    if timed is not None:
        low, high = timed["interval"]
        note += (
            f" Measured in turn, a step of DE3 takes {timed['ratio']:.2f} times "
            f"one of plain fine-tuning (95 %: {low:.2f} to {high:.2f}; `{timed['command']}`)."
        )
    return Grid("Training time", ("model", "seconds a step, ours", *tasks), tuple(rows), note)


def _modules(numbers: Mapping[str, Any] | None) -> Grid:
    kind, rows = _kind(numbers, "de3"), []
    for module, paper in PAPER_MODULES.items():
        cells: list[str | None] = [None, None, None, None]
        if numbers is not None:
            recounted = numbers["paper"]["recounted"]
            cells[:2] = [short(recounted[str(k)][module]) for k in CLASSES]
        if kind is not None:
            counts = (kind["flops"][how].get(module) for how in ("convention", "counted"))
            cells[2:] = [None if count is None else short(count) for count in counts]
        rows.append((module, paper[2], cells[0], paper[3], cells[1], *cells[2:]))
    columns = ("module", "paper, 2 classes", "recounted", "paper, 3 classes", "recounted",
               "ours, the paper's way", "ours, all products")  # fmt: skip
    length = "" if numbers is None else f" Texts of {numbers['length']} tokens."
    note = (
        "Recounted: BERT-base by the paper's way of counting, which leaves out the products of "
        f"attention. All products has them.{length}"
    )
    return Grid("Operations of each module", columns, tuple(rows), note)


def _kind(numbers: Mapping[str, Any] | None, method: str) -> Mapping[str, Any] | None:
    kinds = [] if numbers is None else numbers["kinds"]
    return next((kind for kind in kinds if kind["method"] == method), None)


def _own(kind: Mapping[str, Any] | None) -> str | None:
    if kind is None:
        return None
    added = kind["method"] != "full"
    return parameters(kind["parameters"]["added" if added else "backbone"], added)


def _percent(kind: Mapping[str, Any] | None) -> str | None:
    if kind is None or kind["method"] == "full":
        return None
    return f"{kind['parameters']['added_percent']:.2f} %"


def overheads(stored: Stored) -> Verdict:
    """The paper's counts, recomputed; and what the same parts cost here."""
    document = next(iter(stored.results(COSTS).values()), None)
    if document is None:
        return unmeasured("costs")
    numbers = document.numbers
    wrong = _wrong_modules(numbers) + _wrong_parameters()
    kind, said = _kind(numbers, "de3"), ""
    if kind is not None:
        said = (
            f"Here DE3 adds {kind['parameters']['added_percent']:.2f} % parameters and "
            f"{_decision(kind['flops']['convention']):.3f} % operations to a layer. "
        )
    checked = "all of the paper's counts come out" if not wrong else f"differ: {', '.join(wrong)}"
    test = "exact counts, nothing left to chance: BERT-base recounted the paper's way"
    statement = f"{said}Recounted, {checked}."
    return by_construction(not wrong, test, {"wrong": wrong}).saying(statement)


def training_time(stored: Stored) -> Verdict:
    """A training step of DE3 against plain fine-tuning, timed in turn."""
    document = stored.document("training-time.json")
    if document is None:
        said = "`python benchmarks/training.py --json > results/training-time.json` measures it."
        return not_measured().saying(said)
    low, high = document["interval"]
    said = f"A step of DE3 takes {document['ratio']:.2f} times one of plain fine-tuning."
    test = (
        f"95 % interval over {document['rounds']} rounds in turn, [{low:.2f}, {high:.2f}], "
        f"below {SLOWER:g}"
    )
    numbers = {"ratio": document["ratio"], "interval": [low, high]}
    return Verdict(decided(yes=high < SLOWER, no=low > SLOWER), test, numbers, said)


def _wrong_modules(numbers: Mapping[str, Any]) -> list[str]:
    """The published operations that the recount does not give, digit by digit."""
    return [
        f"{module} ({classes} classes)"
        for module, row in PAPER_MODULES.items()
        for classes in CLASSES
        if short(numbers["paper"]["recounted"][str(classes)][module]) != row[classes]
    ]


def _wrong_parameters() -> list[str]:
    """The published parameters that arithmetic does not give, digit by digit."""
    wrong = []
    for classes in CLASSES:
        heads = (DEPTH - 1) * (WIDTH * classes + classes)
        networks = (DEPTH - 1) * (WIDTH * WIDTH + WIDTH)
        counts = {
            "full": parameters(BACKBONE_SIZE, added=False),
            "deebert": parameters(heads, added=True),
            "de3": parameters(heads + networks, added=True),
        }
        wrong += [
            f"{name} ({classes} classes)"
            for name, count in counts.items()
            if count != PAPER_PARAMETERS[METHODS[name]][classes]
        ]
    return wrong


def _decision(modules: Mapping[str, float]) -> float:
    """Operations of deciding at an exit, in percent of a layer."""
    parts = ("prototypical network", "internal classifier", "EDR")
    return 100 * sum(modules.get(part, 0.0) for part in parts) / modules["encoder layer"]


COSTS = Item(
    name="costs",
    references=("Table IX", "Table X"),
    labels=("tab:storage_training_costs", "tab:flops_analysis"),
    title="Parameters, training time and operations",
    shows="DE3 adds 6 % parameters to BERT-base, 0.067 % operations to every layer, and trains "
    "about as fast.",
    setting="BERT-base, 128 tokens; minutes until the best checkpoint on one RTX 3090",
    published={"more": MORE},
    training=Training("paper_methods", ("de3", "full", "deebert"), ("sst2",)),
    measurement=Measurement(
        "costs", {"full": "full", "deebert": "deebert", "de3": "de3"}, rows=DEV, of="models"
    ),
    tables=cost_tables,
    findings=(
        Finding(
            "overheads",
            "DE3 adds about 6 % parameters and 0.067 % operations to a layer.",
            overheads,
        ),
        Finding(
            "training-time", "Training takes about as long as plain fine-tuning.", training_time
        ),
    ),
)
