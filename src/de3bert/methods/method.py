"""What a method is: the names of its parts and its default settings. Data, no code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from de3bert.methods.options import OptionValue, check_option
from de3bert.registry import Registry

__all__ = ["METHODS", "Group", "Method", "MethodRegistry", "OptionValue", "Phase", "Term"]

Group = Literal["reference", "ours", "baseline", "early exit", "distillation", "tokens"]
Weighting = Literal["depth", "uniform", "last", "internal", "mean"]
NUMBERED = re.compile(r"layers-(?P<layers>[1-9]\d*)")


@dataclass(frozen=True)
class Term:
    """One summand of the training loss: a registered loss, its weight and how exits are weighted.

    Args:
        loss: name of a loss in `de3bert.objective`.
        weight: a number, or the name of the method option that holds it.
        exits: weights over the exits: `depth` (m / sum of m, the paper's), `uniform` (1 each),
            `last` (final head only), `internal` (1 each, without the final head), `mean` (1 over
            their number). A loss that gives a single number is not weighted over exits.
        steps: `all`, or only those with an `even` or `odd` number, counted from 0.
        needs: the names of what it reads per row besides the label (a teacher's logits, say). Rows
            that are only evaluated have no such thing; the term is left out there.
    """

    loss: str
    weight: float | str = 1.0
    exits: Weighting = "depth"
    steps: Literal["all", "even", "odd"] = "all"
    needs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Phase:
    """A stretch of training: what is minimised, which parts learn, for how long.

    Args:
        terms: the loss.
        trains: the groups of parameters that learn (`de3bert.model.groups`); the others stay bit
            for bit. Empty: all of them.
        epochs: times the recipe's epochs; a number, or the name of the option that holds it.
        learning_rate: times the recipe's; a number, or the name of an option.
        hook: a registered step hook (`de3bert.training.hooks`) that takes part in every step.
        judge: which exits choose the best checkpoint: their `mean` accuracy, or the `last` one's.
        rows: `labelled`, or `unlabelled` for a phase that reads text alone.
    """

    terms: tuple[Term, ...]
    name: str = "train"
    trains: tuple[str, ...] = ()
    epochs: float | str = 1.0
    learning_rate: float | str = 1.0
    hook: str | None = None
    judge: Literal["mean", "last"] = "mean"
    rows: Literal["labelled", "unlabelled"] = "labelled"


@dataclass(frozen=True)
class Method:
    """A training and exit method as a declaration over shared parts.

    Args:
        phases: the schedule, one phase after the other.
        families: the policy families it may use (`entropy`, `edr`, `patience`, `entropy x 2` ...);
            calibration chooses among them. The first is the declared one.
        heads: how logits come from the states (`de3bert.model.heads`).
        router: a part that says by itself whether to leave (`de3bert.model.routers`), or `none`.
        internal_exits: False for models with one head after the last layer.
        exits_at: where exits are, as shares of the depth (rounded up); empty: after every layer.
        depth: how many layers the model has: `all` of the backbone's, or those that a registered
            start keeps (`de3bert.model.depth`).
        teacher: the method of a model that is trained first and taught from, or None.
        training: the method whose training this one shares: the two differ in policy alone.
        finish: a registered step after training (`de3bert.training.finish`), such as
            `temperatures`.
        token_exits: `none` for methods that stop whole texts; `hash` where tokens stop by a fixed
            table; `words` for methods that label the words of sentences.
    """

    name: str
    summary: str
    citation: str
    group: Group
    phases: tuple[Phase, ...]
    families: tuple[str, ...]
    prototypes: Literal["linear", "identity", "none"] = "none"
    heads: str = "linear"
    router: str = "none"
    internal_exits: bool = True
    exits_at: tuple[float, ...] = ()
    pooling: str | None = None  # None: what fits the backbone
    depth: str = "all"
    teacher: str | None = None
    training: str | None = None
    finish: str | None = None
    token_exits: str = "none"
    options: Mapping[str, OptionValue] = field(default_factory=dict)

    @property
    def terms(self) -> tuple[Term, ...]:
        """The loss of the last phase, which `model(..., labels=...)` returns."""
        return self.phases[-1].terms

    @property
    def signal(self) -> str:
        """The declared policy family."""
        return self.families[0]

    def resolve(self, given: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
        """The defaults with the given options in their place; unknown ones and values out of range
        (`de3bert.methods.options`) are errors.
        """
        for key, value in given.items():
            check_option(self.name, key, value, self.options)
        return {**self.options, **given}

    def number(self, value: float | str, options: Mapping[str, OptionValue]) -> float:
        """A number given as such, or by the name of an option."""
        return float(options[value] if isinstance(value, str) else value)


class MethodRegistry(Registry[Method]):
    """All methods by name; `layers-6` is `layers-k` with its option set."""

    def __getitem__(self, name: str) -> Method:
        numbered = NUMBERED.fullmatch(name)
        if numbered is None or "layers-k" not in self:
            return super().__getitem__(name)
        method = super().__getitem__("layers-k")
        return replace(method, name=name, options={"layers": float(numbered["layers"])})

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (
            isinstance(name, str) and NUMBERED.fullmatch(name) is not None
        )


METHODS = MethodRegistry("method")
