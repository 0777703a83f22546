"""Trainings that end where the first step would begin: everything before it is checked for real."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from de3bert.errors import De3Error

__all__ = ["stopped_before_training"]


def _stop(*_: Any, **__: Any) -> None:
    raise De3Error("The training would begin here.")


@contextmanager
def stopped_before_training() -> Iterator[None]:
    from de3bert.training.schedule import Schedule

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Schedule, "run", _stop)
        yield
