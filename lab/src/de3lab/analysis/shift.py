"""Exit rules side by side on data of another kind than the models were trained on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from de3bert.errors import UsageError
from de3bert.exits.calibrate import full_score
from de3bert.registry import unknown
from de3lab.analysis.analysis import ANALYSES, Analysis
from de3lab.analysis.formatting import runs, with_spread
from de3lab.analysis.shift_rules import Seen, ShiftRule, read_rule
from de3lab.analysis.subject import Subject, grouped
from de3lab.figures.lines import Panel, PlotLine, draw_lines
from de3lab.statistics import described, paired_test
from de3lab.study.lines import speed_key
from de3lab.tabular import Grid

__all__ = ["measure_shift"]

GRID = 60  # points of a mean curve
BEYOND = 1.5  # how far the figure goes on behind the fastest speed of the table


def measure_shift(subjects: Sequence[Subject], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Scores of every rule at the reference's layer speed-ups, and differences to it.

    The i-th runs of all labels are a pair: give the seeds of every label in the same order.
    """
    groups, metric = grouped(subjects), settings["metric"]
    reference = _reference(list(groups), settings["reference"])
    seeds = _paired_runs(groups)
    rules = {
        label: read_rule(group, settings["lambdas"], metric) for label, group in groups.items()
    }
    return {
        "metric": metric,
        "rows": subjects[0].trace.rows,
        "runs": seeds,
        "reference": reference,
        "rules": {
            label: {
                "families": [str(family) for family in rule.families],
                "methods": [subject.method for subject in groups[label]],
                "full": described([full_score(each.labelled, metric) for each in groups[label]]),
            }
            for label, rule in rules.items()
        },
        "at": {speed_key(s): _compared(rules, reference, s, seeds) for s in settings["speeds"]},
        "curves": {label: _mean_curve(rule) for label, rule in rules.items()},
    }


def _reference(labels: list[str], asked: str | None) -> str:
    if asked is not None and asked not in labels:
        raise UsageError(unknown("reference", asked, labels))
    return asked or labels[0]


def _paired_runs(groups: Mapping[str, Sequence[Subject]]) -> int:
    counts = {label: len(group) for label, group in groups.items()}
    if len(set(counts.values())) > 1:
        listed = ", ".join(f"{label} {count}" for label, count in counts.items())
        raise UsageError(
            f"`shift` compares run by run, so all labels need as many runs; got {listed}. "
            "Give the same seeds in the same order under every label."
        )
    return next(iter(counts.values()))


def _compared(
    rules: Mapping[str, ShiftRule], reference: str, asked: float, seeds: int
) -> dict[str, Any]:
    """All labels at the speeds that the reference has where `asked` is wanted."""
    base = rules[reference].at([asked] * seeds)
    if base is None:
        fastest = min(float(each.layer_speedup[-1]) for each in rules[reference].curves)
        raise UsageError(
            f"{reference} does not reach a layer speed-up of {asked:g}, only {fastest:.4g}. "
            "Choose others with --speed."
        )
    speeds = [speed for speed, _ in base.runs]
    return {
        label: _beside(base if label == reference else rule.at(speeds), base)
        for label, rule in rules.items()
    }


def _beside(seen: Seen | None, base: Seen) -> dict[str, Any] | None:
    """One rule in numbers, and its difference to the reference where it is not that itself."""
    if seen is None:
        return None
    ours = [score for _, score in seen.runs]
    found: dict[str, Any] = {
        "score": described(ours),
        "layer_speedup": described([speed for speed, _ in seen.runs]),
        "policy": None if seen.policy is None else str(seen.policy),
    }
    if seen is base:
        return found
    theirs = [score for _, score in base.runs]
    gains = [mine - other for mine, other in zip(ours, theirs, strict=True)]
    test = paired_test(ours, theirs, "seeds")
    return {**found, "difference": described(gains), "test": test}


def _mean_curve(rule: ShiftRule) -> dict[str, Any]:
    """The mean over runs: at the same speeds, or member by member."""
    if rule.has_own_speeds:
        members = np.asarray(list(rule.members().values()))  # (members, runs, 2)
        speeds, scores = members[..., 0].mean(1), members[..., 1].T
    else:
        slowest = max(float(each.layer_speedup[0]) for each in rule.curves)
        fastest = min(float(each.layer_speedup[-1]) for each in rule.curves)
        speeds = 1.0 / np.linspace(1.0 / slowest, 1.0 / fastest, GRID)
        scores = np.asarray([[each.at(float(speed)) for speed in speeds] for each in rule.curves])
    return {
        "kind": "points" if rule.has_own_speeds else "line",
        "layer_speedup": [round(float(speed), 6) for speed in speeds],
        "score": [round(float(value), 6) for value in scores.mean(0)],
        "sd": scores.std(0, ddof=1).round(6).tolist() if len(scores) > 1 else None,
    }


def _tables(numbers: Mapping[str, Any]) -> list[Grid]:
    rows = tuple(
        (label, *(_cell(seen[label], label, numbers) for seen in numbers["at"].values()))
        for label in numbers["rules"]
    )
    note = (
        f"100 x {numbers['metric']} (layer speed-up), n = {numbers['rows']}, "
        f"{runs(numbers['runs'])}. All but {numbers['reference']} as differences to it, at its "
        "layer speed-up."
    )
    heads = [f"wanted {key}x" for key in numbers["at"]]
    rules = tuple(
        (label, "; ".join(dict.fromkeys(rule["families"])), with_spread(rule["full"]))
        for label, rule in numbers["rules"].items()
    )
    return [
        Grid("Shifted data", ("rule", *heads), rows, note),
        _details(numbers),
        Grid("Rules", ("rule", "leaves by", f"{numbers['metric']} at full depth"), rules),
    ]


def _cell(seen: Mapping[str, Any] | None, label: str, numbers: Mapping[str, Any]) -> str | None:
    """`81.0 (2.95x)` of the reference, `-0.4 (2.95x)` of the others."""
    if seen is None:
        return None
    speed = f"({seen['layer_speedup']['mean']:.2f}x)"
    if label == numbers["reference"]:
        return f"{100 * seen['score']['mean']:.1f} {speed}"
    return f"{100 * seen['difference']['mean']:+.1f} {speed}"


def _details(numbers: Mapping[str, Any]) -> Grid:
    rows = []
    for key, seen in numbers["at"].items():
        for label, each in seen.items():
            if each is None:
                rows.append((f"{key}x", label, *[None] * 4))
                continue
            speed = f"{each['layer_speedup']['mean']:.2f}x"
            gain = with_spread(each.get("difference"), sign="+")
            p = (each.get("test") or {}).get("p")
            rows.append((f"{key}x", label, speed, with_spread(each["score"]), gain, p))
    heads = ("wanted", "rule", "layer speed-up", numbers["metric"], "difference", "one-tailed p")
    note = (
        f"One-tailed p: of a paired t-test over runs of the rule being above "
        f"{numbers['reference']}; not corrected for several tests; "
        "a bandit meets the rows in the order of the file. -: out of reach, or no test."
    )
    return Grid("In detail", heads, tuple(rows), note)


def _draw(path: Path, numbers: Mapping[str, Any]) -> None:
    lines = []
    for label, seen in numbers["curves"].items():
        spread = seen["sd"]
        low = high = None
        if spread is not None:
            low = [mean - sd for mean, sd in zip(seen["score"], spread, strict=True)]
            high = [mean + sd for mean, sd in zip(seen["score"], spread, strict=True)]
        kind = seen["kind"]
        lines.append(PlotLine(label, seen["layer_speedup"], seen["score"], low, high, kind=kind))
    reached = [
        each["layer_speedup"]["mean"] for seen in numbers["at"].values() for each in seen.values()
        if each is not None
    ]  # fmt: skip
    end = BEYOND * max(reached + [float(key) for key in numbers["at"]])
    score = f"{numbers['metric']}\nn = {numbers['rows']}, {runs(numbers['runs'])}"
    panel = Panel(lines, "layer speed-up (layers / mean layers executed)", score,
                  x_limits=(1.0, end))  # fmt: skip
    draw_lines(path, [panel])


ANALYSES.add(
    "shift",
    Analysis(
        name="shift",
        title="Exit rules on shifted data",
        summary="rules side by side on data of another kind than the models were trained on",
        paper="Table VII",
        measure=measure_shift,
        tables=_tables,
        draw=_draw,
        settings={
            "speeds": [2.0, 3.0],
            "reference": None,
            "lambdas": None,
            "metric": "accuracy",
        },
        labels=(2, None),
    ),
)
