"""Token rows straight into the layers, tokenising left out: jobs to be timed in turn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from de3bert.bench.contender import ORT_POOL, Static
from de3bert.bench.timing import SYSTEM, TimeSource, alternate
from de3bert.data.tokens import TokenRow
from de3bert.exits import Policy
from de3bert.runtime.bundle_backend import BundleBackend
from de3bert.runtime.engine import Backend, in_batches, run_batch
from de3lab.bench.imposed import Imposed

__all__ = ["Job", "median_seconds", "our_job", "static_job"]

Job: TypeAlias = Callable[[int], object]


def static_job(static: Static, rows: Sequence[TokenRow], batch_size: int = 1) -> Job:
    """All rows through a model without exits, in batches of similar length."""
    batches = [[rows[index] for index in chosen] for chosen, _ in in_batches(rows, batch_size)]

    def job(_: int) -> None:
        for batch in batches:
            static.logits(batch)

    return job


def our_job(
    backend: Backend,
    rows: Sequence[TokenRow],
    policy: Policy,
    leave_at: Sequence[int] | None = None,
    batch_size: int = 1,
) -> Job:
    """All rows through the engine, in the same batches.

    Args:
        policy: makes the test at every exit.
        leave_at: the layer at which each row leaves, whatever the test says.
    """
    if batch_size == 1 and isinstance(backend, BundleBackend) and backend.alone(policy):
        return _alone(backend, rows, policy, leave_at)
    chosen = [numbers for numbers, _ in in_batches(rows, batch_size)]
    batches = [[rows[index] for index in each] for each in chosen]
    policies = [
        policy if leave_at is None else Imposed.on(policy, [leave_at[index] for index in each])
        for each in chosen
    ]

    def job(_: int) -> None:
        for batch, rule in zip(batches, policies, strict=True):
            run_batch(backend, batch, rule)

    return job


def _alone(
    backend: BundleBackend, rows: Sequence[TokenRow], policy: Policy, leave_at: Sequence[int] | None
) -> Job:
    """Row by row through the graph that has the rule in it: imposed layers are its limits."""
    limits = [None] * len(rows) if leave_at is None else leave_at

    def job(_: int) -> None:
        for row, limit in zip(rows, limits, strict=True):
            backend.answer_one(row, policy, limit)

    return job


def median_seconds(
    jobs: Mapping[str, Job],
    rounds: int,
    *,
    pools: Mapping[str, str] | None = None,
    clock: TimeSource = SYSTEM,
) -> dict[str, float]:
    """What each job takes, by the median over rounds, after one run each that warms up.

    Args:
        pools: whose threads a job runs on, unless those of ONNX Runtime.
    """
    for job in jobs.values():
        job(0)
    threads = {name: (pools or {}).get(name, ORT_POOL) for name in jobs}
    times = alternate(jobs, 1, rounds, pools=threads, clock=clock)
    return {name: float(np.median(seen)) for name, seen in times.items()}
