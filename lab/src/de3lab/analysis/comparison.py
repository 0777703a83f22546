"""Exit rules or kinds of models side by side: curves, scores at equal speed, differences."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de3bert.exits.calibrate import full_score
from de3bert.exits.curve import Curve, curve
from de3bert.exits.family import Family
from de3bert.exits.trace import Trace
from de3bert.exits.trade_off import NamedCurve
from de3lab.analysis.bootstrap import resampled_scores
from de3lab.analysis.differences import difference
from de3lab.statistics import described
from de3lab.study.lines import speed_grid, speed_key

__all__ = ["Compared", "compare"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Compared:
    """What is compared: one policy family on the traces of one or several runs."""

    label: str
    traces: Sequence[Trace]
    family: Family


def compare(
    contenders: Sequence[Compared],
    pairs: Iterable[tuple[str, str]],
    reference: str,
    speeds: Sequence[float],
    settings: Mapping[str, Any],
) -> dict[str, Any]:
    """The numbers of a comparison, as JSON.

    Args:
        pairs: labels of (ours, theirs), whose differences are wanted. The first run of one is
            paired with the first run of the other, and so on as far as both have runs.
        reference: the label that the figure shows differences to.
        speeds: layer speed-ups that all of them reach.
        settings: metric, resamples, seed.

    Returns:
        lines: for each contender label, family, runs, the score at full depth, `at` (speed -> mean,
        sd, n, values) and a curve over the runs' mean; differences: for each pair, what
        `difference` gives at each speed, and how it grows from the lowest speed to the highest.
    """
    metric = settings["metric"]
    drawn = {
        each.label: [
            resampled_scores(
                trace, each.family, speeds, metric, settings["resamples"], settings["seed"]
            )
            for trace in each.traces
        ]
        for each in contenders
    }
    lines = {each.label: _line(each, speeds, metric) for each in contenders}
    return {
        "metric": metric,
        "rows": contenders[0].traces[0].rows,
        "speeds": list(speeds),
        "resamples": settings["resamples"],
        "reference": reference,
        "lines": list(lines.values()),
        "differences": [
            _pair(lines[ours], lines[theirs], drawn[ours], drawn[theirs], speeds)
            for ours, theirs in pairs
        ],
    }


def _line(each: Compared, speeds: Sequence[float], metric: str) -> dict[str, Any]:
    curves = [curve(trace, each.family, metric) for trace in each.traces]
    return {
        "label": each.label,
        "family": str(each.family),
        "runs": len(curves),
        "full": described([full_score(trace, metric) for trace in each.traces]),
        "at": {speed_key(s): described([one.at(s) for one in curves]) for s in speeds},
        "curve": _mean_curve(curves, speed_grid(speeds)),
    }


def _mean_curve(curves: Sequence[Curve], grid: Sequence[float]) -> dict[str, Any]:
    """Mean and deviation over the runs at every speed of the grid that all of them reach."""
    seen = {s: [NamedCurve("", one).score_at(s) for one in curves] for s in grid}
    reached = {
        s: np.asarray(scores, dtype=np.float64)
        for s, scores in seen.items()
        if all(score is not None for score in scores)
    }
    spread = [round(float(v.std(ddof=1)), 6) for v in reached.values()] if len(curves) > 1 else None
    means = [round(float(values.mean()), 6) for values in reached.values()]
    return {"layer_speedup": list(reached), "score": means, "sd": spread}


def _pair(
    ours: Mapping[str, Any],
    theirs: Mapping[str, Any],
    our_draws: Sequence[Floats],
    their_draws: Sequence[Floats],
    speeds: Sequence[float],
) -> dict[str, Any]:
    count = min(len(our_draws), len(their_draws))
    # (runs, speeds) and (resamples, speeds): the mean over the pairs, resampled with common rows.
    a, b = (_values(line, speeds)[:count] for line in (ours, theirs))
    drawn = np.mean(our_draws[:count], axis=0) - np.mean(their_draws[:count], axis=0)
    at = {
        speed_key(speed): difference(a[:, k].tolist(), b[:, k].tolist(), drawn[:, k])
        for k, speed in enumerate(speeds)
    }
    growth = None
    if len(speeds) > 1:
        last, first = (a - b)[:, -1].tolist(), (a - b)[:, 0].tolist()
        growth = {"from": speeds[0], "to": speeds[-1]}
        growth |= difference(last, first, drawn[:, -1] - drawn[:, 0])
    return {"ours": ours["label"], "theirs": theirs["label"], "pairs": count, "at": at,
            "growth": growth}  # fmt: skip


def _values(line: Mapping[str, Any], speeds: Sequence[float]) -> Floats:
    """The scores of a line, (runs, speeds)."""
    return np.asarray([line["at"][speed_key(speed)]["values"] for speed in speeds]).T
