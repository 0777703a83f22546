"""All exit rules, fixed depth, the full model and the oracle on one model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from de3bert.errors import UsageError
from de3bert.exits.curve import Curve, curve
from de3bert.exits.trace import Trace
from de3bert.exits.trade_off import NamedCurve
from de3lab.analysis.analysis import ANALYSES, Analysis
from de3lab.analysis.arguments import chosen_speeds
from de3lab.analysis.comparison_tables import SPEED
from de3lab.analysis.indicator import edr_label
from de3lab.analysis.subject import Subject
from de3lab.figures.lines import Panel, PlotLine, draw_lines
from de3lab.study.lines import BEYOND, speed_key
from de3lab.tabular import Grid

__all__ = ["families_for", "measure_strategies"]

STORED = 200  # points of a stored curve, enough to draw it again
GREY, BLACK = "#666666", "#000000"
ORACLE, FULL, FIXED = "oracle", "full model", "fixed depth"


def measure_strategies(subjects: Sequence[Subject], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The curve of every family of exit rules that the trace has the signals for."""
    (subject,) = subjects
    trace, metric = subject.labelled, settings["metric"]
    if trace.exits < 2:
        raise UsageError(
            f"{subject.path} has one exit, so there is no exit rule to choose. "
            "Give a model with exits inside."
        )
    speeds = chosen_speeds(subjects, settings["speeds"])
    weights = settings["lambdas"] or [subject.own_lambda]
    families = families_for(trace, sorted({float(weight) for weight in weights}))
    curves = {name: curve(trace, family, metric) for name, family in families.items()}
    span = (speeds[0], speeds[-1]) if len(speeds) > 1 else None
    full, oracle = curves[FIXED], curve(trace, ORACLE, metric)
    return {
        "label": subject.label,
        "metric": metric,
        "rows": trace.rows,
        "classes": trace.classes,
        "speeds": speeds,
        "area_over": None if span is None else list(span),
        "strategies": [_seen(name, one, speeds, span) for name, one in curves.items()],
        "points": [_point(FULL, full), _point(ORACLE, oracle)],
    }


def families_for(trace: Trace, weights: Sequence[float]) -> dict[str, str]:
    """Name -> policy family of every exit rule that goes with a trace, fixed depth last.

    With two classes the highest probability orders rows as entropy does, so it is left out; raw
    energy orders them as energy does.
    """
    found: dict[str, str] = {}
    if trace.distances is not None:
        found |= {edr_label(weight): f"edr(lambda={weight!r})" for weight in weights}
        found["distance ratio"] = "distance_ratio"
    found["entropy"] = "entropy"
    if trace.classes > 2:
        found["highest probability"] = "max_probability"
    found |= {
        "energy": "energy",
        "entropy, 2 in a row": "entropy x 2",
        "patience": "patience",
        "bandit": "bandit",
    }
    if trace.certainty is not None:
        found["router's certainty"] = "certainty"
    return {**found, FIXED: "layers"}


def _seen(
    name: str, one: Curve, speeds: Sequence[float], span: tuple[float, float] | None
) -> dict[str, Any]:
    line, stored = NamedCurve(name, one), one.to_json(max_points=STORED)
    reached = span is not None and all(line.score_at(end) is not None for end in span)
    return {
        "name": name,
        "family": one.family,
        "at": {speed_key(speed): line.score_at(speed) for speed in speeds},
        "area": one.area(*span) if span is not None and reached else None,
        "curve": {
            axis: [round(value, 6) for value in stored[axis]] for axis in ("layer_speedup", "score")
        },
    }


def _point(name: str, one: Curve) -> dict[str, Any]:
    """The slowest point: of fixed depth that is the full model, of the oracle all there is."""
    return {
        "name": name,
        "layer_speedup": float(one.layer_speedup[0]),
        "score": float(one.score[0]),
    }


def _tables(numbers: Mapping[str, Any]) -> list[Grid]:
    keys = [speed_key(speed) for speed in numbers["speeds"]]
    rows = tuple(
        (each["name"], *(_digits(each["at"][key]) for key in keys), _digits(each["area"]))
        for each in numbers["strategies"]
    )
    over = numbers["area_over"]
    mean = "mean" if over is None else f"mean {over[0]:g}x to {over[1]:g}x"
    columns = ("exit rule", *(f"{key}x" for key in keys), mean)
    note = (
        f"{numbers['label']}, n = {numbers['rows']} rows. Columns are layer speed-ups; - is out of "
        "reach."
    )
    if numbers["classes"] == 2:
        note += " With two classes the highest probability gives the curve of entropy."
    points = tuple(
        (each["name"], _digits(each["score"]), f"{each['layer_speedup']:.2f}x")
        for each in numbers["points"]
    )
    metric = numbers["metric"]
    return [
        Grid(f"{metric} by exit rule", columns, rows, note),
        Grid("Without a choice", ("model", metric, "layer speed-up"), points,
             "The oracle leaves at the first exit that is right; nobody can know which that is. "
             "No rule scores above it, but others may be faster: rows that no exit gets right go "
             "through all layers."),
    ]  # fmt: skip


def _digits(value: float | None) -> str | None:
    return None if value is None else f"{value:.4f}"


def _draw(path: Path, numbers: Mapping[str, Any]) -> None:
    lines = [_plot_line(each) for each in numbers["strategies"]]
    for each, marker in zip(numbers["points"], "D*", strict=True):
        x, y = [each["layer_speedup"]], [each["score"]]
        name = f"{ORACLE} (bounds the score, not speed)" if each["name"] == ORACLE else each["name"]
        lines.append(PlotLine(name, x, y, kind="points", colour=BLACK, marker=marker))
    fastest = max(BEYOND * numbers["speeds"][-1], 1.05 * numbers["points"][1]["layer_speedup"])
    slowest = numbers["points"][0]["layer_speedup"]
    panel = Panel(
        lines,
        SPEED,
        f"{numbers['metric']} (n = {numbers['rows']})",
        x_limits=(slowest - 0.03 * (fastest - slowest), fastest),
    )
    draw_lines(path, [panel], title=f"Exit rules on one model ({numbers['label']})", height=3.0)


def _plot_line(each: Mapping[str, Any]) -> PlotLine:
    x, y = each["curve"]["layer_speedup"], each["curve"]["score"]
    if each["name"] == FIXED:
        return PlotLine(FIXED, x, y, kind="points", colour=GREY, marker="s")
    return PlotLine(each["name"], x, y)


ANALYSES.add(
    "strategies",
    Analysis(
        name="strategies",
        title="Trade-offs of all exit rules on one model",
        summary="all exit rules, fixed depth, the full model and the oracle",
        paper="Fig. 2",
        measure=measure_strategies,
        tables=_tables,
        draw=_draw,
        settings={"lambdas": None, "speeds": None, "metric": "accuracy"},
        seeds=False,
    ),
)
