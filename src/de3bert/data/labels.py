"""Class names and their numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from de3bert.data.label_names import INTEGER, LabelNames, names_by_number
from de3bert.errors import UsageError
from de3bert.printable import cut_list

__all__ = ["INTEGER", "LabelSet", "label_value"]

LONGEST = 60  # characters of a label that are shown


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

    A number in data is taken as a class only where that is known to be right: the names are
    numbers themselves, the classes were numbered like this when they were learned, or somebody
    says what the numbers stand for. Two data sets number the same names in different orders.

    Attributes:
        names: One name per class; class k is `names[k]`.
        positions: Integers among raw labels are class numbers, whatever the names look like.
            Without it they only match names that are numbers.

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
            raise UsageError(f"Class names must differ, got {cut_list(self.names)}.")

    def __len__(self) -> int:
        return len(self.names)

    @classmethod
    def from_values(cls, raw: Iterable[object], names: LabelNames | None = None) -> LabelSet:
        """The classes that occur in `raw`; with `names`, all that are named, by their numbers."""
        seen = {str(value): value for value in map(label_value, raw)}
        if len(seen) < 2:
            only = f'only the class "{_shown(next(iter(seen)))}"' if seen else "no labels"
            raise UsageError(
                f"The rows hold {only}: a classifier needs at least two classes to tell apart. "
                "Check the label column, and that the rows are not sorted and cut by class."
            )
        if names is not None:
            by_number = names_by_number(names)
            counted = list(by_number) == list(range(len(by_number)))
            given = cls(tuple(by_number.values()), positions=counted)
            given.encode(seen.values(), names)
            return given
        if all(INTEGER.fullmatch(name) for name in seen):
            return cls(tuple(sorted(seen, key=int)))
        return cls(tuple(sorted(seen)))

    def encode(self, raw: Iterable[object], names: LabelNames | None = None) -> NDArray[np.int64]:
        """Class numbers, shape (rows,).

        Args:
            raw: Labels as read.
            names: What integers in `raw` stand for. The other way round it serves classes that
                are numbers, where `raw` has names.
        """
        values = [label_value(value) for value in raw]
        by_number = {} if names is None else names_by_number(names)
        if names is None:
            self._check_readings({value for value in values if isinstance(value, int)})
        numbers = self._numbers() if names is None else self._numbers_of(by_number)
        unseen = Counter(
            str(by_number.get(value, value) if isinstance(value, int) else value)
            for value in values
            if value not in numbers
        )
        if unseen:
            raise UsageError(self._refusal(unseen, named=names is not None))
        return np.array([numbers[value] for value in values], dtype=np.int64)

    @property
    def numeric(self) -> bool:
        """Whether the names are numbers, or the default names of numbers."""
        return all(INTEGER.fullmatch(name) for name in self.names) or self._unnamed

    @property
    def _unnamed(self) -> bool:
        return all(name == f"LABEL_{number}" for number, name in enumerate(self.names))

    def _numbers(self) -> dict[str | int, int]:
        """Class number by every accepted spelling; later entries win over earlier ones."""
        numbers: dict[str | int, int] = {}
        for number, name in enumerate(self.names):
            if self.positions or self._unnamed:
                numbers |= {number: number, str(number): number}
            elif INTEGER.fullmatch(name):
                numbers[int(name)] = number
        return numbers | self._by_name

    def _check_readings(self, found: set[int]) -> None:
        """Refuses numbers that are class indices and, all of them, names of other classes too."""
        if not (self.positions and found and {str(number) for number in found} <= set(self.names)):
            return
        if any(self._by_name[str(number)] != number for number in found):
            raise UsageError(
                f"The rows have the numbers {cut_list(sorted(found))}, which are class names here "
                f"({cut_list(self.names)}) and class indices as well. Say which with "
                "--label-names: 0=NAME,1=NAME ... for each number in the rows."
            )

    def _numbers_of(self, by_number: dict[int, str]) -> dict[str | int, int]:
        """The same where it is said what numbers stand for, and nothing else holds for them."""
        own: dict[str | int, int] = {**self._by_name}
        if self.numeric and not own.keys() & set(by_number.values()):
            own = self._numbers()
            return own | {name: own[key] for key, name in by_number.items() if key in own}
        known: dict[str | int, int] = {}
        for key, name in by_number.items():
            if name in own:
                known |= {key: own[name], str(key): own[name]}
        return known | own

    @property
    def _by_name(self) -> dict[str | int, int]:
        return {name: number for number, name in enumerate(self.names)}

    def _refusal(self, unseen: Counter[str], named: bool) -> str:
        """Both vocabularies, and what to do."""
        numbers = all(INTEGER.fullmatch(value) for value in unseen)
        known = cut_list(map(_shown, self.names))
        found = cut_list(map(_shown, sorted(unseen, key=int if numbers else str)))
        if numbers and not (self.numeric or self.positions or named):
            return (
                f"The rows have the numbers {found}; the model knows {known}, but not which number "
                "stands for which. Say so with --label-names, the name of 0 first, then of 1 and "
                "so on (or 0=NAME,1=NAME ...), or give rows with the names."
            )
        if self.numeric and not numbers and not named:
            return (
                f"The rows have the names {found}; the model knows the numbers {known}, but not "
                "which name stands for which. Say so with --label-names, the name of 0 first, then "
                "of 1 and so on (or 0=NAME,1=NAME ...), or give rows with the numbers."
            )
        listed = cut_list(self._counted(value, count) for value, count in unseen.most_common())
        return (
            f"Labels that are not among the classes: {listed}. Known classes: {known}. "
            "Rename these labels, remove their rows, or train with them."
        )

    def _counted(self, value: str, count: int) -> str:
        """A label with how often it occurs, and the class that is spelled nearly like it."""
        alike = next((name for name in self.names if _folded(name) == _folded(value)), None)
        hint = "" if alike is None else f'; did you mean "{_shown(alike)}"?'
        return f'"{_shown(value)}" ({count}x{hint})'


def _folded(name: str) -> str:
    """The same for names that differ in case, spaces, hyphens and underscores only."""
    return "".join(name.casefold().replace("-", " ").replace("_", " ").split())


def _shown(label: str) -> str:
    return label if len(label) <= LONGEST else f"{label[:LONGEST]}..."
