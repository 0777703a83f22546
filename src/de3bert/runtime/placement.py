"""Exit placement for a folder: its profile and a trace of its weights."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from de3bert.errors import UsageError
from de3bert.exits import Trace
from de3bert.exits.placement import Placement, place_exits
from de3bert.runtime.facts import Facts
from de3bert.runtime.load import read_config
from de3bert.runtime.profile import known_profile

__all__ = ["place_for"]


def place_for(
    folder: str | Path,
    trace: str | Path,
    target: str,
    *,
    family: str | Sequence[str] | None = None,
    keep: Iterable[int] = (),
    metric: str | None = None,
) -> Placement:
    """The exits that give the least expected time on the machine the folder was profiled on.

    The trace may be of the bundle or of the model it was exported from: what each exit says is the
    same, and the costs of a layer and of a test are the bundle's.
    """
    cost = known_profile(folder)
    recorded = Trace.load(str(trace))
    facts = Facts.of(read_config(folder))
    if recorded.depth != facts.exit_layers[-1]:
        raise UsageError(
            f"The trace is of a model with {recorded.depth} layers, {folder} has "
            f"{facts.exit_layers[-1]}."
        )
    if facts.keeps_memory:
        raise UsageError(
            f"Exits of the method {facts.method} build on the exits before them, so none can "
            "be left out."
        )
    chosen = metric or facts.metric
    return place_exits(recorded, cost, target, family=family, metric=chosen, keep=keep)
