"""What a method is: the names of its parts and its default settings. Data, no code."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from de3bert.errors import UsageError
from de3bert.methods.options import OptionValue, check_option
from de3bert.registry import Registry

__all__ = [
    "METHODS",
    "Group",
    "Method",
    "MethodRegistry",
    "OptionValue",
    "Phase",
    "Term",
    "with_fitted_exits",
]

Group = Literal["reference", "ours", "baseline", "early exit", "distillation", "tokens"]
Weighting = Literal["depth", "uniform", "last", "internal", "mean"]
NUMBERED = re.compile(r"layers-(?P<layers>[1-9]\d*)")
FITTED = re.compile(r"(?P<base>[^+]+)\+(?P<how>fitted|attached)")
# With entropy alone (0) among them, a method never ends below its own ablation.
FITTED_LAMBDAS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)


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
        own_rate: the learning rate itself of all that learns here, heads and routers too, whatever
            the recipe says; a number, or the name of an option. None: the recipe's rates.
        hook: a registered step hook (`de3bert.training.hooks`) that takes part in every step.
        judge: what chooses the best checkpoint, on calibration rows: the exits' `mean` accuracy,
            that of the `last` one, or the phase's own `loss`, for phases that change more than what
            exits answer.
        rows: `labelled`, or `unlabelled` for a phase that reads text alone.
    """

    terms: tuple[Term, ...]
    name: str = "train"
    trains: tuple[str, ...] = ()
    epochs: float | str = 1.0
    learning_rate: float | str = 1.0
    own_rate: float | str | None = None
    hook: str | None = None
    judge: Literal["mean", "last", "loss"] = "mean"
    rows: Literal["labelled", "unlabelled"] = "labelled"


@dataclass(frozen=True)
class Method:
    """A training and exit method as a declaration over shared parts.

    Args:
        phases: the schedule, one phase after the other.
        families: the policy families it may use (`entropy`, `edr`, `patience`, `entropy x 2` ...);
            calibration chooses among them. The first is the declared one.
        heads: how logits come from the states (`de3bert.model.heads`).
        router: a part that itself decides whether to leave (`de3bert.model.routers`), or `none`.
        internal_exits: False for models with one head after the last layer.
        exits_at: where exits are, as shares of the depth (rounded up); empty: after every layer.
        depth: how many layers the model has: `all` of the backbone's, or those that a registered
            start keeps (`de3bert.model.depth`).
        cascade: a small complete model that stands before the backbone: `none`, an encoder of its
            `own` (the recipe's `small_backbone`), or a copy of the first layers (`truncated`).
        teacher: the method of a model that is trained first and taught from, or None.
        training: the method whose training this one shares: the two differ in policy alone.
        finish: a registered step after training (`de3bert.training.finish`), such as
            `temperatures`.
        task: what its models are asked (`de3bert.tasks`).
        token_exits: `none`, or `hash` where single tokens stop by a fixed table.
        exits: how exits before the last come about: `trained` in the phases, or `fitted` after them
            in closed form (`de3bert.training.fitted`), to labels or to the final exit's `answers`.
        base: of a method with fitted exits the one whose phases come first, under its own name.
        lambdas: the weights that calibration tries for `edr`; None: 0 and the paper's.
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
    cascade: Literal["none", "own", "truncated"] = "none"
    teacher: str | None = None
    training: str | None = None
    finish: str | None = None
    task: str = "text-classification"
    token_exits: str = "none"
    exits: Literal["trained", "fitted", "answers"] = "trained"
    base: str | None = None
    lambdas: tuple[float, ...] | None = None
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

    def check_small_backbone(self, given: bool) -> None:
        """UsageError where a small encoder is missing, or given to a method without use for it."""
        if given and self.cascade != "own":
            taking = ", ".join(name for name in METHODS if METHODS[name].cascade == "own")
            raise UsageError(
                f"Method {self.name} has no use for a small_backbone; leave it out, or use a "
                f"method that begins with one: {taking}."
            )
        if not given and self.cascade == "own":
            raise UsageError(
                f"Method {self.name} begins with a small pre-trained encoder of its own: name one "
                "with the backbone's tokenizer, small_backbone = FOLDER or hub id "
                "(--small-backbone). Without one there is the method cascade-truncated, whose "
                "small model is a copy of the backbone's first layers."
            )

    def number(self, value: float | str, options: Mapping[str, OptionValue]) -> float:
        """A number given as such, or by the name of an option."""
        return float(options[value] if isinstance(value, str) else value)


def with_fitted_exits(base: Method, *, labels: bool = True, name: str | None = None) -> Method:
    """A method trained as `base` is, whose exits before the last are fitted afterwards.

    Args:
        labels: fitted to the labels of the training rows; else to what the final exit says of them.
        name: by default that of `base` with `+fitted`, or `+attached` without labels.

    Raises:
        UsageError: exits of `base` cannot be fitted, because they are not linear, say.
    """
    reason = _unfit(base)
    if reason:
        raise UsageError(f"Exits of the method {base.name} cannot be fitted: {reason}.")
    return replace(
        base,
        name=name or f"{base.name}+{'fitted' if labels else 'attached'}",
        summary=f"{base.summary}; then exits fitted in closed form"
        + ("" if labels else " to the final exit's own answers"),
        families=("edr",),
        prototypes="linear",
        router="none",
        internal_exits=True,
        finish=None,
        exits="fitted" if labels else "answers",
        base=base.name,
        lambdas=FITTED_LAMBDAS,
    )


def _unfit(method: Method) -> str | None:
    """Why the exits of a method cannot be fitted after its training; None where they can."""
    if method.exits != "trained":
        return "they are fitted already"
    if method.training is not None:
        return f"it shares the training of {method.training}; write {method.training}+fitted"
    if method.token_exits != "none" or method.task != "text-classification":
        return "it stops single tokens, not texts"
    if method.cascade != "none":
        return "its exits are whole models"
    if method.heads != "linear":
        return f"its heads ({method.heads}) are not linear, and the final one is one of them"
    return None


class MethodRegistry(Registry[Method]):
    """All methods by name; `layers-6` is `layers-k` with its option set.

    `NAME+fitted` is NAME with exits fitted to labels after its training, `NAME+attached` with exits
    fitted to the final exit's answers.
    """

    def __getitem__(self, name: str) -> Method:
        if fitted := FITTED.fullmatch(name):
            return with_fitted_exits(self[fitted["base"]], labels=fitted["how"] == "fitted")
        numbered = NUMBERED.fullmatch(name)
        if numbered is None or "layers-k" not in self:
            return super().__getitem__(name)
        method = super().__getitem__("layers-k")
        return replace(method, name=name, options={"layers": float(numbered["layers"])})

    def __contains__(self, name: object) -> bool:
        if isinstance(name, str) and (fitted := FITTED.fullmatch(name)):
            return fitted["base"] in self
        return super().__contains__(name) or (
            isinstance(name, str) and NUMBERED.fullmatch(name) is not None
        )

    def origin(self, name: str) -> str | None:
        fitted = FITTED.fullmatch(name)
        return super().origin(fitted["base"] if fitted else name)


METHODS = MethodRegistry("method")
