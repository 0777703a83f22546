"""The speed/score curve of a policy family on a trace: every point that can be reached, exactly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de3bert.errors import UsageError
from de3bert.exits.family import Family
from de3bert.exits.policy import Policy
from de3bert.exits.replay import replay
from de3bert.exits.scoring import scorer_of
from de3bert.exits.signals.parse import Signal
from de3bert.exits.sweep import Sweep, sweep_thresholds
from de3bert.exits.trace import Trace

__all__ = ["Curve", "curve"]

Floats = NDArray[np.float64]
ROUNDING = 1e-9  # two layer ratios nearer than this are the same


@dataclass(frozen=True, eq=False)
class Curve:
    """What a family of policies gives on a trace, sorted by increasing layer speed-up.

    Attributes:
        family: the family, such as `edr(lambda=1.0)`.
        metric: what `score` is.
        rows: number of rows of the trace: texts, or words.
        depth: layers of the full model.
        thresholds: the number that makes each point's policy: a threshold, a patience, a layer or
            mu of a bandit.
        layers_mean: mean layers executed by a text, or by a mean piece of a word, (points,).
        score: the metric, (points,).
        milliseconds: mean predicted time per text or sentence, (points,); None without costs.
            Unlike layers it need not fall along the curve: testing an exit costs time as well.
        base_depth: layers of the model that speed-ups refer to, where that is not the depth: the
            backbone that a cut model or a cascade is compared with.
    """

    family: str
    metric: str
    rows: int
    depth: int
    thresholds: Floats
    layers_mean: Floats
    score: Floats
    milliseconds: Floats | None = None
    base_depth: int | None = None

    def __len__(self) -> int:
        return len(self.thresholds)

    @property
    def base(self) -> int:
        """Number of layers that speed-ups refer to."""
        return self.base_depth or self.depth

    @property
    def layer_speedup(self) -> Floats:
        """Layers of the model compared with over mean layers executed, (points,)."""
        return self.base / self.layers_mean

    def policy(self, index: int) -> Policy:
        """The policy of one point; replaying it gives exactly that point."""
        return Family.parse(self.family).policy(float(self.thresholds[index]))

    def at(self, layer_speedup: float) -> float:
        """The score at a layer speed-up, linear in mean layers between neighbouring points.

        Choosing at random between the two neighbouring policies, row by row, really gives such a
        point: mean layers and accuracy both mix linearly. (For F1 and the like it is very close.)
        """
        self._check_range(layer_speedup)
        return float(self._score_at(np.asarray(self.base / layer_speedup)))

    def index_at(self, layer_speedup: float) -> int:
        """The first point that is at least this fast in layers."""
        enough = np.flatnonzero(self.layer_speedup >= layer_speedup - ROUNDING)
        if not enough.size:
            self._check_range(layer_speedup)
        return int(enough[0])

    def area(self, low: float, high: float) -> float:
        """The mean score over the layer speed-ups from `low` to `high`.

        Exact for the interpolated curve: between two points the score is a + b M / r in the
        speed-up r, whose integral is a r + b M log r, with M = `base`.
        """
        if not low < high:
            raise UsageError(f"The range must be increasing, got {low} to {high}.")
        self._check_range(low)
        self._check_range(high)
        ratios = np.unique(self.layer_speedup)
        inside = (ratios > low + ROUNDING) & (ratios < high - ROUNDING)
        edges = np.concatenate([[low], ratios[inside], [high]])
        layers = self.base / edges
        scores = self._score_at(layers)
        slope = np.diff(scores) / np.diff(layers)
        level = scores[:-1] - slope * layers[:-1]
        total = level * np.diff(edges) + slope * self.base * np.diff(np.log(edges))
        return float(total.sum() / (high - low))

    def to_json(self, max_points: int | None = None) -> dict[str, Any]:
        """The curve as JSON; thinned to points evenly spaced in mean layers, both ends kept."""
        kept = self._thinned(max_points)
        document = {
            "family": self.family,
            "metric": self.metric,
            "rows": self.rows,
            "depth": self.depth,
            "base": self.base,
            "thresholds": self.thresholds[kept].tolist(),
            "layers_mean": self.layers_mean[kept].tolist(),
            "layer_speedup": self.layer_speedup[kept].tolist(),
            "score": self.score[kept].tolist(),
        }
        if self.milliseconds is not None:
            document["milliseconds"] = self.milliseconds[kept].tolist()
        return document

    def _score_at(self, layers: Floats) -> Floats:
        # np.interp wants rising x, and mean layers fall along the curve.
        return np.interp(layers, self.layers_mean[::-1], self.score[::-1])

    def _thinned(self, max_points: int | None) -> NDArray[np.int64]:
        points = len(self)
        if max_points is None or points <= max_points:
            return np.arange(points)
        if max_points < 2:
            raise UsageError(f"A thinned curve keeps at least 2 points, got {max_points}.")
        wanted = np.linspace(self.layers_mean[0], self.layers_mean[-1], max_points)
        found = np.searchsorted(-self.layers_mean, -wanted)
        found[0], found[-1] = 0, points - 1
        return np.unique(np.clip(found, 0, points - 1))

    def _check_range(self, layer_speedup: float) -> None:
        low, high = float(self.layer_speedup[0]), float(self.layer_speedup[-1])
        if not low - ROUNDING <= layer_speedup <= high + ROUNDING:
            raise UsageError(
                f"`{self.family}` reaches a layer speed-up of {low:.4g} to {high:.4g} here, "
                f"not {layer_speedup:.4g}."
            )


def curve(
    trace: Trace,
    family: str | Signal | Family,
    metric: str = "accuracy",
    count: int = 1,
    *,
    costs: Floats | None = None,
) -> Curve:
    """Every distinct point that a family of policies reaches on a labelled trace.

    Args:
        trace: with labels.
        family: a signal (`entropy`, `edr(lambda=1.0)`, `entropy x 2`), `patience`, `layers` or
            `oracle`; `bandit` is one bandit for each of some values of mu, `bandit(mu=0.1)` just
            that one.
        metric: accuracy, f1, macro_f1 or matthews; for taggers accuracy or span_f1.
        count: how many exits in a row must pass the threshold; the same as ` x count` in the text.
        costs: milliseconds of each text or sentence leaving at each exit, (sentences, exits), such
            as `CostModel.row_costs(trace)`; gives the curve its `milliseconds`.

    For taggers it is the curve of sentences that leave as a whole. Words that halt one by one have
    none: a halted word changes what its neighbours read, so each threshold has to be run.

    Example:
        >>> points = curve(trace, "edr(lambda=1.0)")
        >>> points.policy(points.index_at(layer_speedup=2.0))
    """
    family = Family.of(family, count)
    if costs is not None and costs.shape != (trace.sentences, trace.exits):
        raise UsageError(f"costs must be {(trace.sentences, trace.exits)}, got {costs.shape}.")
    if family.kind == "threshold":
        sweep = sweep_thresholds(trace, family, metric, costs)
    else:
        sweep = _one_by_one(trace, family, metric, costs)
    weight = int(trace.weights.sum())
    return Curve(
        str(family),
        metric,
        trace.rows,
        trace.depth,
        sweep.numbers,
        sweep.layers / weight,
        sweep.scores,
        None if sweep.milliseconds is None else sweep.milliseconds / trace.sentences,
        trace.base_depth,
    )


def _one_by_one(trace: Trace, family: Family, metric: str, costs: Floats | None) -> Sweep:
    """Families with a handful of members: replay each, and sort from the slowest."""
    numbers = _members(trace, family)
    answers = [replay(trace, family.policy(number)) for number in numbers]
    scored, rows = scorer_of(trace, metric), np.arange(trace.sentences)
    scores = [scored.score(answer.labels) for answer in answers]
    spent = None
    if costs is not None:
        spent = np.asarray(
            [costs[rows, trace.last_exits(answer.exit_index)].sum() for answer in answers]
        )
    weights = trace.weights
    layers = np.asarray([int((weights * answer.exit_layers).sum()) for answer in answers])
    order = np.lexsort((-np.asarray(scores), -layers))  # of equally slow ones the better first
    return Sweep(
        np.asarray(numbers, dtype=np.float64)[order],
        layers[order],
        np.asarray(scores)[order],
        None if spent is None else spent[order],
    )


def _members(trace: Trace, family: Family) -> Sequence[float]:
    if family.kind == "oracle":
        return [0]
    if family.kind == "bandit":
        return family.mus
    if family.kind == "layers":
        return list(reversed(trace.exit_layers))
    # With I internal exits at most I - 1 agreements fit, so patience(I) is the full model.
    return list(range(max(1, trace.exits - 1), 0, -1))
