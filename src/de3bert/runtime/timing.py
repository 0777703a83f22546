"""Jobs timed in turn, so that noise of the machine hits all of them alike: the one loop for it."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = ["Job", "Seconds", "in_turn"]

Job: TypeAlias = Callable[[int], object]  # is given the number of an item
Seconds: TypeAlias = NDArray[np.float64]  # (items, rounds)


def in_turn(
    jobs: Mapping[str, Job],
    items: int,
    rounds: int = 1,
    *,
    order: Callable[[list[str]], Sequence[str]] = lambda names: names,
    before: Callable[[str], object] = lambda name: None,
    now: Callable[[], float] = time.perf_counter,
) -> dict[str, Seconds]:
    """Seconds of every job on every item: all jobs take an item before the next one comes.

    Args:
        order: in which the jobs take an item, asked for each anew.
        before: called before each job, and not timed.
        now: the clock.
    """
    times = {name: np.zeros((items, rounds)) for name in jobs}
    for turn in range(rounds):
        for item in range(items):
            for name in order(list(jobs)):
                before(name)
                start = now()
                jobs[name](item)
                times[name][item, turn] = now() - start
    return times
