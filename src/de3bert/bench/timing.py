"""Times that can be compared: taken in turn, so that noise of the machine hits all alike.

Thread pools spin after their work, in the hope of more: torch's for some 10 ms, ONNX Runtime's for
50 ms and longer. The next contender with another pool has a core less, and torch after ONNX Runtime
was measured ten times slower for it. So no contender starts before the other pools are idle.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from de3bert.runtime.timing import Job, Seconds, in_turn

__all__ = [
    "PAUSE",
    "Interval",
    "Seconds",
    "TimeSource",
    "alternate",
    "bootstrap",
    "over_rounds",
    "settle",
]

PAUSE = 0.003  # between two turns on the same pool
WINDOW = 0.002  # how long the process is watched at a time
QUIET, IN_A_ROW = 0.1, 2  # so little of a core, and in so many windows, is quiet
LONGEST = 1.0  # then it is something else that keeps the process busy, and it will go on
CONFIDENCE = 0.95
RESAMPLES = 2000
BLOCK = 50  # resamples drawn at once: bounds the memory, not the result


@dataclass(frozen=True)
class TimeSource:
    """Where times come from; tests bring their own.

    Attributes:
        now: seconds that have passed.
        sleep: lets seconds pass.
        used: seconds that all threads of this process have worked.
    """

    now: Callable[[], float] = time.perf_counter
    sleep: Callable[[float], None] = time.sleep
    used: Callable[[], float] = time.process_time


SYSTEM = TimeSource()


@dataclass(frozen=True)
class Interval:
    """A value and its 95 % interval; no bounds where one round cannot give any."""

    value: float
    low: float | None
    high: float | None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        if self.low is None or self.high is None:
            return f"{self.value:.2f}"
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


def settle(clock: TimeSource = SYSTEM) -> None:
    """Waits until no thread of this process spins any more."""
    waited, quiet = 0.0, 0
    while waited < LONGEST and quiet < IN_A_ROW:
        before = clock.used()
        clock.sleep(WINDOW)
        waited += WINDOW
        quiet = quiet + 1 if clock.used() - before < QUIET * WINDOW else 0


def alternate(
    jobs: Mapping[str, Job],
    items: int,
    rounds: int,
    *,
    pools: Mapping[str, str],
    seed: int = 0,
    clock: TimeSource = SYSTEM,
) -> dict[str, Seconds]:
    """Seconds of every job on every item, (items, rounds) each.

    All jobs take an item before the next one comes, each time in another order: nobody always
    follows the same neighbour. Nothing else runs meanwhile, not even a progress bar.

    Args:
        pools: the threads each job runs on. Jobs of one pool come one after another, for the
            wait between pools is long.
    """
    rng, last = np.random.default_rng(seed), ""

    def wait(name: str) -> None:
        nonlocal last
        if pools[name] == last:
            clock.sleep(PAUSE)
        else:
            settle(clock)
        last = pools[name]

    return in_turn(
        jobs, items, rounds,
        order=lambda names: _order(names, pools, rng), before=wait, now=clock.now,
    )  # fmt: skip


def _order(names: list[str], pools: Mapping[str, str], rng: np.random.Generator) -> list[str]:
    """All names in random order, those of one pool together."""
    place = {pool: rng.random() for pool in dict.fromkeys(pools[name] for name in names)}
    shuffled = [names[number] for number in rng.permutation(len(names))]
    return sorted(shuffled, key=lambda name: place[pools[name]])


def bootstrap(
    theirs: Seconds,
    ours: Seconds,
    statistic: Callable[..., Any] = np.mean,
    *,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """statistic(theirs) / statistic(ours): above 1, ours is the faster one.

    The interval comes from resampling items, the same ones on both sides, with all their rounds.

    Args:
        theirs, ours: (items, rounds).
        statistic: `np.mean` or `np.median`.
    """
    from scipy import stats  # slow to import

    def ratio(items: NDArray[np.int64], axis: int) -> Any:
        both = (statistic(each[items], axis=(axis - 1, axis)) for each in (theirs, ours))
        return np.divide(*both)

    value = float(statistic(theirs) / statistic(ours))
    if len(ours) < 2:
        return Interval(value, value, value)  # every resample is the same
    found = stats.bootstrap(
        (np.arange(len(ours)),), ratio, n_resamples=resamples, batch=BLOCK, vectorized=True,
        confidence_level=CONFIDENCE, method="percentile", random_state=np.random.default_rng(seed),
    ).confidence_interval  # fmt: skip
    return Interval(value, float(found.low), float(found.high))


def over_rounds(values: NDArray[np.float64]) -> Interval:
    """The geometric mean of one positive value per round, (rounds,), with Student's interval.

    Rounds are few, and resampling few values gives intervals that are too narrow.
    """
    logs = np.log(values)
    middle, rounds = float(logs.mean()), len(values)
    if rounds < 2:
        return Interval(math.exp(middle), None, None)
    reach = float(stdtrit(rounds - 1, (1 + CONFIDENCE) / 2) * logs.std(ddof=1) / math.sqrt(rounds))
    return Interval(math.exp(middle), math.exp(middle - reach), math.exp(middle + reach))
