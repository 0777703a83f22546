"""All contenders on the same texts: one at a time, and as fast as a whole list can go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de3bert.bench.contender import Contender
from de3bert.bench.timing import SYSTEM, Seconds, TimeSource, alternate

__all__ = ["BATCH_SIZES", "Measured", "Note", "best_batch_size", "measure"]

BATCH_SIZES = (1, 8, 16, 32, 64)
PROBE_TEXTS = 64  # a short look is enough to choose the batch size

Note = Callable[[str], None]


@dataclass(frozen=True)
class Measured:
    """What one contender said and how long it took.

    Attributes:
        answers: each text alone.
        batched: the whole list in batches of `batch_size`.
        seconds: each text alone, tokenising included, (texts, rounds).
        tokenising: each text alone, (texts, 1).
        list_seconds: the whole list, tokenising included, (rounds,).
    """

    contender: Contender
    answers: list[Any]
    batched: list[Any]
    seconds: Seconds
    tokenising: Seconds
    batch_size: int
    list_seconds: NDArray[np.float64]


def measure(
    contenders: Sequence[Contender],
    texts: Sequence[Any],
    rounds: int,
    *,
    seed: int = 0,
    clock: TimeSource = SYSTEM,
    note: Note = lambda _: None,
) -> list[Measured]:
    """Times all contenders in turn, after an untimed pass that warms up and gives the answers.

    That pass sees every text, because some runtimes compile again for each length they meet.
    """
    note(f"warming up: {len(texts)} texts, {len(contenders)} contenders")
    answers = {each.name: [each.predict([text], 1)[0] for text in texts] for each in contenders}
    note(f"one text at a time, {rounds} rounds")
    pools = {each.name: each.pool for each in contenders}
    alone = {each.name: _alone(each, texts) for each in contenders}
    seconds = alternate(alone, len(texts), rounds, pools=pools, seed=seed, clock=clock)
    reading = {each.name: _reading(each, texts) for each in contenders}
    nobody = dict.fromkeys(pools, "none")  # one thread, one text: no pool is left spinning
    tokenising = alternate(reading, len(texts), 1, pools=nobody, seed=seed, clock=clock)
    lists = _whole_lists(contenders, texts, rounds, seed=seed, clock=clock, note=note)
    return [
        Measured(
            contender=each,
            answers=answers[each.name],
            seconds=seconds[each.name],
            tokenising=tokenising[each.name],
            **lists[each.name],
        )
        for each in contenders
    ]


def _whole_lists(
    contenders: Sequence[Contender],
    texts: Sequence[Any],
    rounds: int,
    *,
    seed: int,
    clock: TimeSource,
    note: Note,
) -> dict[str, dict[str, Any]]:
    """The second half of `Measured`: each contender at the batch size that suits it best."""
    note("choosing batch sizes")
    sizes = {each.name: best_batch_size(each, texts, clock) for each in contenders}
    batched = {each.name: each.predict(texts, sizes[each.name]) for each in contenders}
    note(f"the whole list in batches, {rounds} rounds")
    jobs = {each.name: _whole(each, texts, sizes[each.name]) for each in contenders}
    pools = {each.name: each.pool for each in contenders}
    times = alternate(jobs, 1, rounds, pools=pools, seed=seed, clock=clock)
    return {
        name: {"batch_size": sizes[name], "batched": batched[name], "list_seconds": times[name][0]}
        for name in jobs
    }


def best_batch_size(contender: Contender, texts: Sequence[Any], clock: TimeSource = SYSTEM) -> int:
    """The batch size at which some texts take the least time; the first of two runs warms up."""
    some = list(texts[:PROBE_TEXTS])
    jobs = {
        str(size): _whole(contender, some, size)
        for size in BATCH_SIZES
        if size == 1 or size < 2 * len(some)
    }
    times = alternate(jobs, 1, 2, pools=dict.fromkeys(jobs, contender.pool), clock=clock)
    return int(min(times, key=lambda size: times[size][0, 1]))


def _alone(contender: Contender, texts: Sequence[Any]) -> Callable[[int], object]:
    return lambda item: contender.predict([texts[item]], 1)


def _reading(contender: Contender, texts: Sequence[Any]) -> Callable[[int], object]:
    return lambda item: contender.tokenise([texts[item]])


def _whole(contender: Contender, texts: Sequence[Any], batch_size: int) -> Callable[[int], object]:
    return lambda _: contender.predict(texts, batch_size)
