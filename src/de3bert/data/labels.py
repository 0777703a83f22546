"""Class names and their numbers."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from de3bert.errors import UsageError

__all__ = ["LabelSet", "label_value"]

# At most 18 digits, so that the value fits 64 bits; no leading zeros, so that "007" stays a name.
INTEGER = re.compile(r"0|-?[1-9][0-9]{0,17}")


def label_value(value: object, where: str = "") -> str | int:
    """One raw label as a string or an integer; whole floats and booleans become integers."""
    prefix = f"{where}: " if where else ""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if value.is_integer():
            return int(value)
        raise UsageError(
            f"{prefix}label {value} is not a whole number: regression is not supported. "
            "Give classes, as words or whole numbers."
        )
    if isinstance(value, list | tuple | set | np.ndarray):
        raise UsageError(
            f"{prefix}label {value} holds several values: rows with more than one label "
            "(multi-label) are not supported. Give one class per row."
        )
    raise UsageError(f"{prefix}a label is a word or a whole number, got {type(value).__name__}.")


@dataclass(frozen=True)
class LabelSet:
    """The classes in the order of their numbers.

    Attributes:
        names: One name per class; class k is `names[k]`.
        positions: Integers among raw labels are class numbers, whatever the names look like.
            Without it they match names that are numbers, and are class numbers only if no name is.

    Example:
        >>> classes = LabelSet.from_values(["pos", "neg", "pos"])
        >>> classes.names, classes.encode(["pos", "neg"]).tolist()
        (('neg', 'pos'), [1, 0])
    """

    names: tuple[str, ...]
    positions: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        if len(set(self.names)) < len(self.names):
            raise UsageError(f"Class names must differ, got {', '.join(self.names)}.")

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def from_values(cls, raw: Iterable[object], names: Sequence[str] | None = None) -> LabelSet:
        """The classes that occur in `raw`; with `names`, integers are positions in that list."""
        seen = {str(value): value for value in map(label_value, raw)}
        if len(seen) < 2:
            only = f'only the class "{next(iter(seen))}"' if seen else "no labels"
            raise UsageError(
                f"The rows hold {only}: a classifier needs at least two classes to tell apart. "
                "Check the label column, and that the rows are not sorted and cut by class."
            )
        if names is not None:
            given = cls(tuple(str(name) for name in names), positions=True)
            given.encode(seen.values())
            return given
        if all(INTEGER.fullmatch(name) for name in seen):
            return cls(tuple(sorted(seen, key=int)))
        return cls(tuple(sorted(seen)))

    def encode(
        self, raw: Iterable[object], names: Sequence[str] | None = None
    ) -> NDArray[np.int64]:
        """Class numbers, shape (rows,).

        Args:
            raw: Labels as read.
            names: What integers in `raw` mean, if another data set numbers its classes otherwise.
        """
        values = [label_value(value) for value in raw]
        if names is not None:
            values = [_named(value, names) for value in values]
        numbers = self._numbers()
        unseen = Counter(str(value) for value in values if value not in numbers)
        if unseen:
            raise UsageError(_unseen_message(unseen, self.names))
        return np.array([numbers[value] for value in values], dtype=np.int64)

    def _numbers(self) -> dict[str | int, int]:
        """Class number by every accepted spelling; later entries win over earlier ones."""
        numbers: dict[str | int, int] = {}
        by_position = self.positions or not any(INTEGER.fullmatch(name) for name in self.names)
        for number, name in enumerate(self.names):
            if by_position:
                numbers |= {number: number}
                numbers.setdefault(str(number), number)
            elif INTEGER.fullmatch(name):
                numbers[int(name)] = number
        return numbers | {name: number for number, name in enumerate(self.names)}


def _named(value: str | int, names: Sequence[str]) -> str | int:
    return names[value] if isinstance(value, int) and 0 <= value < len(names) else value


def _unseen_message(unseen: Counter[str], known: tuple[str, ...], shown: int = 10) -> str:
    listed = ", ".join(f'"{name}" ({count}x)' for name, count in unseen.most_common(shown))
    more = f" and {len(unseen) - shown} more" if len(unseen) > shown else ""
    names = ", ".join(known[:shown]) + (" ..." if len(known) > shown else "")
    return (
        f"Labels that are not among the classes: {listed}{more}. Known classes: {names}. "
        "Rename these labels, remove their rows, or train with them."
    )
