"""What a method is: the names of its parts and its default settings. Data, no code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from de3bert.errors import UsageError
from de3bert.registry import Registry, unknown

__all__ = ["METHODS", "Method", "OptionValue", "Term"]

OptionValue = float | str


@dataclass(frozen=True)
class Term:
    """One summand of the training loss: a registered loss, its weight and how exits are weighted.

    Args:
        loss: name of a loss in `de3bert.objective`.
        weight: a number, or the name of the method option that holds it.
        exits: weights over exits: `depth` (m / sum of m, the paper's) or `last` (final head only).
    """

    loss: str
    weight: float | str = 1.0
    exits: Literal["depth", "last"] = "depth"


@dataclass(frozen=True)
class Method:
    """A training and exit method as a declaration over shared parts."""

    name: str
    summary: str
    citation: str
    terms: tuple[Term, ...]
    prototypes: Literal["linear", "identity", "none"]
    signal: str
    internal_exits: bool = True
    pooling: str | None = None  # None: what fits the backbone
    options: Mapping[str, OptionValue] = field(default_factory=dict)

    def resolve(self, given: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
        """The defaults with the given options in their place; an unknown option is an error."""
        for key, value in given.items():
            if key not in self.options:
                raise UsageError(unknown(f"option of method {self.name}", key, self.options))
            if isinstance(self.options[key], str) != isinstance(value, str):
                kind = "a word" if isinstance(self.options[key], str) else "a number"
                raise UsageError(f"Option {key} of method {self.name} is {kind}, got {value!r}.")
        return {**self.options, **given}


METHODS: Registry[Method] = Registry("method")
