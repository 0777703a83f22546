"""What is made when it is first asked for, once, whichever thread asks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["Later"]

Made = TypeVar("Made")


class Later(Generic[Made]):
    """Makes something at the first call and gives it at every one; what failed is tried again."""

    def __init__(self, make: Callable[[], Made]) -> None:
        self._make = make
        self._made: list[Made] = []
        self._alone = threading.Lock()

    def __call__(self) -> Made:
        if not self._made:
            with self._alone:
                if not self._made:
                    self._made.append(self._make())
        return self._made[0]

    @property
    def made(self) -> bool:
        return bool(self._made)
