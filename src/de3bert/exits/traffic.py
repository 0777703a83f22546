"""Thresholds for the texts that really come: speed from unlabelled traffic, scores from labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de3bert.exits.choose import Candidate, fast_enough
from de3bert.exits.curve import Curve
from de3bert.exits.layer_speedup import layer_speedup
from de3bert.exits.metrics import score
from de3bert.exits.points import Target
from de3bert.exits.policy import Policy
from de3bert.exits.replay import replay
from de3bert.exits.trace import Trace

__all__ = ["Traffic", "choose_on_traffic", "traffic_of"]

NORMAL = 1.96  # two-sided 95 %


@dataclass(frozen=True)
class Traffic:
    """What a policy does to unlabelled texts, and what it is likely to score there.

    Labelled rows that leave at an exit stand for the texts of the traffic that leave there too; the
    shares are the traffic's. That is right as far as texts that leave at the same exit are alike.

    Attributes:
        rows: texts of the traffic.
        layer_speedup: on them.
        on_calibration: on the labelled rows.
        agreement: share of the texts that are answered as at full depth.
        score: accuracy, estimated; None without labelled rows, and where no labelled row leaves at
            an exit that more than a hundredth of the traffic uses.
        interval: 95 %, of the estimate under that assumption.
        shift: how differently the two leave, from 0 (alike) to 1 (nothing in common): the total
            variation between their shares of exits.
        effective_rows: so many of the labelled rows the estimate is worth.
    """

    rows: int
    layer_speedup: float
    on_calibration: float | None
    agreement: float
    score: float | None
    interval: tuple[float, float] | None
    shift: float | None
    effective_rows: float | None

    def to_json(self) -> dict[str, Any]:
        document = asdict(self)
        document["interval"] = None if self.interval is None else list(self.interval)
        return document


def choose_on_traffic(
    curves: Sequence[Curve],
    labelled: Trace | None,
    target: Target,
    metric: str,
    full_ms: float = 0.0,
) -> Policy:
    """Of each curve's first point that is fast enough on the traffic, the best on labelled rows.

    Args:
        curves: of the traffic, whose scores are agreement with full depth.
        labelled: rows to score on; without them agreement decides.
    """
    reach = fast_enough(curves, target, full_ms)

    def goodness(each: Candidate) -> tuple[float, float, tuple[float, float]]:
        if labelled is None:
            return each.score, each.speed, each.tie_break
        said = replay(labelled, each.policy).labels
        right = score(metric, labelled.known_labels, said, labelled.classes)
        return right, each.score, each.tie_break

    return max(reach, key=goodness).policy


def traffic_of(policy: Policy, texts: Trace, labelled: Trace | None) -> Traffic:
    """What a policy gives on texts, and what labelled rows say about it."""
    seen = replay(texts, policy)
    agreed = float((seen.labels == texts.predictions[:, -1]).mean())
    speed = layer_speedup(seen.exit_layers, texts.base)
    if labelled is None:
        return Traffic(texts.rows, speed, None, agreed, None, None, None, None)
    known = replay(labelled, policy)
    right = known.labels == labelled.known_labels
    mine, theirs = (_shares(each.exit_index, texts.exits) for each in (known, seen))
    estimate, interval, rows = _weighted(known.exit_index, right, mine, theirs)
    return Traffic(
        rows=texts.rows,
        layer_speedup=speed,
        on_calibration=layer_speedup(known.exit_layers, labelled.base),
        agreement=agreed,
        score=estimate,
        interval=interval,
        shift=float(np.abs(mine - theirs).sum() / 2),
        effective_rows=rows,
    )


def _shares(index: NDArray[np.int64], exits: int) -> NDArray[np.float64]:
    return np.bincount(index, minlength=exits) / len(index)


def _weighted(
    index: NDArray[np.int64],
    right: NDArray[np.bool_],
    mine: NDArray[np.float64],
    theirs: NDArray[np.float64],
) -> tuple[float | None, tuple[float, float] | None, float | None]:
    """Accuracy by exit in the traffic's shares, its interval, and the rows that weights leave."""
    covered = mine > 0
    if theirs[~covered].sum() > 0.01:
        return None, None, None
    shares = theirs[covered] / theirs[covered].sum()
    counts = mine[covered] * len(index)
    hits = np.array([right[index == number].mean() for number in np.flatnonzero(covered)])
    estimate = float(shares @ hits)
    # One more right and one more wrong at each exit, lest an exit without errors is taken as sure.
    smoothed = (hits * counts + 1) / (counts + 2)
    error = NORMAL * float(np.sqrt((shares**2 * smoothed * (1 - smoothed) / counts).sum()))
    weights = shares / mine[covered]
    effective = float(len(index) * (mine[covered] @ weights) ** 2 / (mine[covered] @ weights**2))
    return estimate, (max(0.0, estimate - error), min(1.0, estimate + error)), effective
