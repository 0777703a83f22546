"""The parts of a model that a phase of training may leave unchanged."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from torch import nn

from de3bert.model.early_exit import EarlyExitModel
from de3bert.model.encoder import Encoder
from de3bert.registry import Registry

__all__ = ["GROUPS", "train_only"]

Model = EarlyExitModel
Group = Callable[[Model], Iterable[nn.Module]]
GROUPS: Registry[Group] = Registry("group of parameters")


@GROUPS.register("encoder")
def encoder(model: Model) -> Iterable[nn.Module]:
    return [model.encoder]


@GROUPS.register("layers")
def layers(model: Model) -> Iterable[nn.Module]:
    """The encoder's layers without its embeddings; in a cascade those of both models."""
    return [part.layers for part in model.encoder.modules() if isinstance(part, Encoder)]


@GROUPS.register("pooling")
def pooling(model: Model) -> Iterable[nn.Module]:
    return [model.pooling]


@GROUPS.register("heads")
def heads(model: Model) -> Iterable[nn.Module]:
    return [model.heads]


@GROUPS.register("internal")
def internal(model: Model) -> Iterable[nn.Module]:
    """Everything that belongs to an exit before the last one alone."""
    parts = (model.heads, model.pooling, model.encoder)
    return [own for part in parts for own in part.internal_parts()]


@GROUPS.register("router")
def router(model: Model) -> Iterable[nn.Module]:
    return [model.router] if model.router is not None else []


@GROUPS.register("objective")
def objective(model: Model) -> Iterable[nn.Module]:
    """What losses learn themselves."""
    return [model.objective]


def train_only(model: Model, groups: Sequence[str]) -> None:
    """Only these groups learn from now on; no groups: everything does."""
    model.requires_grad_(not groups)
    for name in groups:
        for part in GROUPS[name](model):
            part.requires_grad_(True)
    model.train(model.training)  # a frozen encoder loses its dropout, a thawed one gets it back
