"""Replacing the modules of a fine-tuned model by single layers, one after another, by chance.

BERT-of-Theseus, Xu et al., 2020: Compressing BERT by Progressive Module Replacing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from de3bert.errors import UsageError
from de3bert.methods.method import OptionValue
from de3bert.model import EarlyExitModel
from de3bert.model.encoder import Encoder, Prepared
from de3bert.objective import Clock
from de3bert.objective.needs import number, word
from de3bert.training.batch_hook import PerPass
from de3bert.training.distillation import check_labels
from de3bert.training.hook import HOOKS

__all__ = ["Replacing", "constant_rate", "linear_rate", "module_layers", "replacing_rate"]


def linear_rate(step: int, start: float, slope: float) -> float:
    """p_t = min(1, k t + b), the chance that a module is replaced."""
    return min(1.0, slope * step + start)


def constant_rate(step: int, rate: float, steps: float) -> float:
    """The same chance for some steps, then 1."""
    return rate if step < steps else 1.0


def replacing_rate(clock: Clock, options: Mapping[str, OptionValue]) -> float:
    """The chance of this step.

    Options: `schedule`, `linear` or `constant`; `rate`, the chance at the start; `replacing`, the
    share of all steps after which it is 1. The slope follows from these, k = (1 - b) / (share of
    the steps), so that a short training gets through as well: the paper's b = 0.3, k = 0.0006 are
    1167 steps, whatever comes after.
    """
    schedule = word(options, "schedule", ("linear", "constant"))
    rate, share = number(options, "rate", 0.3, positive=True), number(options, "replacing", 0.5)
    if rate > 1 or share > 1:
        raise UsageError(f"Options rate and replacing are at most 1, got {rate:g} and {share:g}.")
    steps = share * clock.total
    if schedule == "constant" or steps == 0:
        return constant_rate(clock.step, rate, steps)
    return linear_rate(clock.step, rate, (1 - rate) / steps)


def module_layers(module: int, modules: int, depth: int) -> range:
    """The predecessor's layers in a module, both counted from 1: 2 each for 6 modules of 12 layers.

    Where the depth does not divide, later modules take one more: 5 layers in 2 modules are 2 and 3.
    """
    return range((module - 1) * depth // modules + 1, module * depth // modules + 1)


@HOOKS.register("replacing")
class Replacing(PerPass):
    """In every forward pass each layer runs itself by chance, else the teacher's module does.

    The model starts as the teacher without its upper layers: embeddings, pooling and head are the
    teacher's, to be frozen by the phase, and layers begin as the teacher's first ones. One draw
    holds for the whole batch, chunks included.
    """

    salt = 6
    predecessor: Encoder

    def check(self) -> None:
        check_labels(self.context)
        replacing_rate(Clock(), self.context.options)

    def before(self) -> None:
        super().before()
        teacher, model = self.context.teacher_model(), self.context.model
        _take_over(model, teacher)
        self.predecessor = teacher.encoder
        self.predecessor.layers.train()  # with its dropout, as in the authors' code
        self.drawn = torch.ones(model.encoder.depth, dtype=torch.bool)
        self.asked: tuple[Prepared, Prepared] | None = None
        model.encoder.stand_in = self.run

    def step(self, clock: Clock) -> None:
        super().step(clock)
        # A step may draw no layer at all, and there must be a gradient then as well.
        for parameter in self.context.model.encoder.layers.parameters():
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)

    def before_pass(self, given: dict[str, Any], generator: torch.Generator) -> None:
        rate = replacing_rate(self.clock, self.context.options)
        self.drawn = torch.rand(len(self.drawn), generator=generator) < rate

    def run(self, prepared: Prepared, layer: int, hidden: Tensor) -> Tensor:
        """What comes out of layer `layer`, or of the teacher's module in its place."""
        encoder = self.context.model.encoder
        if self.drawn[layer - 1]:
            return encoder.own_layer(prepared, layer, hidden)
        if not hidden.requires_grad:  # nothing below learns in this pass; see `step`
            hidden = hidden.detach().requires_grad_()
        calls = self._predecessors(prepared)
        for own in module_layers(layer, encoder.depth, self.predecessor.depth):
            hidden = self.predecessor.own_layer(calls, own, hidden)
        return hidden

    def after(self) -> None:
        super().after()
        self.context.model.encoder.stand_in = None

    def _predecessors(self, prepared: Prepared) -> Prepared:
        """How the predecessor would call its layers on this batch or chunk."""
        if self.asked is None or self.asked[0] is not prepared:
            self.predecessor.to(prepared.embedded.device)
            self.asked = prepared, self.predecessor.prepare(**prepared.inputs)
        return self.asked[1]


def _take_over(model: EarlyExitModel, teacher: EarlyExitModel) -> None:
    """Makes the model the teacher without its upper layers."""
    layers = teacher.encoder.layers[: len(model.encoder.layers)]
    parts: list[tuple[nn.Module, nn.Module]] = [
        (model.encoder.layers, layers),
        (model.encoder.backbone, teacher.encoder.backbone),
        (model.pooling, teacher.pooling),
        (model.heads, teacher.heads),
    ]
    try:
        for own, theirs in parts:
            own.load_state_dict(theirs.state_dict())
    except RuntimeError as error:
        raise UsageError(
            "This method takes over the teacher's embeddings, layers, pooling and head, and they "
            f"do not fit: {str(error).splitlines()[-1].strip()}\n"
            'Take a teacher of method "full" with the same backbone and pooling.'
        ) from error
