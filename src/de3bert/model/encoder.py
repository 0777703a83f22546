"""Any encoder as a plain loop over layers.

The backbone's own `forward` knows how to embed, how to build masks, rotary tables and position
biases. It is run once with its layers taken out: recorders stand instead of them that note the
arguments each layer would have got. What is left is a loop that can stop anywhere, the same one
for training, tracing and inference. When rows leave a batch, the backbone is simply asked again
with the rows that stay, so no code here has to know the shape of a mask.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from de3bert.errors import De3Error
from de3bert.model.layout import ONE_WAY, Layout, refuse
from de3bert.model.token_exits import TokenTable

__all__ = ["Encoder", "Prepared", "check_same_as_backbone"]


@dataclass
class Call:
    """One layer call that the backbone would have made."""

    index: int  # of the module in the stack; ALBERT calls one module many times
    arguments: tuple[Any, ...]
    keywords: dict[str, Any]


@dataclass
class Prepared:
    """The embedded batch and the layer calls that await it."""

    embedded: Tensor  # (rows, tokens, hidden)
    mask: Tensor  # (rows, tokens), 1 where there is a token
    calls: list[Call]
    # (rows, tokens), the last layer that changes each token, where tokens stop one by one
    token_layers: Tensor | None = None
    inputs: dict[str, Any] = field(default_factory=dict)  # what `prepare` was given

    @property
    def context(self) -> Any:
        """All that the layers need besides the states: tensors in tuples, lists and dicts."""
        return [(call.arguments, call.keywords) for call in self.calls], self.token_layers

    @context.setter
    def context(self, tree: Any) -> None:
        calls, self.token_layers = tree
        for call, (arguments, keywords) in zip(self.calls, calls, strict=True):
            call.arguments, call.keywords = arguments, keywords


_RECORDED: ContextVar[list[tuple[Tensor, Call]]] = ContextVar("recorded_layer_calls")


class Recorder(nn.Module):
    """Stands in a backbone where a layer was: notes the call and passes the states through."""

    def __init__(self, layer: nn.Module, index: int, tuple_output: bool) -> None:
        super().__init__()
        # Kept out of the module tree: the encoder owns the layer, this only answers for it.
        object.__setattr__(self, "layer", layer)
        self.index = index
        self.tuple_output = tuple_output

    def __getattr__(self, name: str) -> Any:
        # Some backbones read facts off their layers (ModernBERT: `attention_type`).
        try:
            return super().__getattr__(name)
        except AttributeError:
            if "layer" not in self.__dict__:  # while being unpickled
                raise
            return getattr(self.__dict__["layer"], name)

    def forward(self, hidden: Tensor, *arguments: Any, **keywords: Any) -> Any:
        _RECORDED.get().append((hidden, Call(self.index, arguments, keywords)))
        return (hidden, None) if self.tuple_output else hidden


class Encoder(nn.Module):
    """A backbone whose layers are called one by one, counted from 1."""

    def __init__(self, backbone: PreTrainedModel, layout: Layout) -> None:
        super().__init__()
        self.layers = cast(nn.ModuleList, backbone.get_submodule(layout.stack))
        recorders = nn.ModuleList(
            Recorder(layer, index, layout.tuple_output) for index, layer in enumerate(self.layers)
        )
        backbone.set_submodule(layout.stack, recorders)
        if hasattr(backbone, "pooler"):
            # Pooling is a part of its own, and an unused pooler breaks DDP.
            backbone.pooler = None  # type: ignore[assignment]
        self.backbone = backbone
        self.layout = layout
        self.depth = int(backbone.config.num_hidden_layers)
        self.accepted = set(inspect.signature(backbone.forward).parameters)
        # For the time of a training phase something else may run instead of a layer.
        self.stand_in: Callable[[Prepared, int, Tensor], Tensor] | None = None
        # Where tokens stop one by one: which layer is the last for each.
        self.token_exits: TokenTable | None = None

    def prepare(self, input_ids: Tensor, attention_mask: Tensor | None, **inputs: Any) -> Prepared:
        """Embeds a batch and collects the arguments of every layer call."""
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        given = {k: v for k, v in inputs.items() if k in self.accepted and v is not None}
        recorded: list[tuple[Tensor, Call]] = []
        token = _RECORDED.set(recorded)
        try:
            self.backbone(input_ids=input_ids, attention_mask=mask, **given)
        finally:
            _RECORDED.reset(token)
        if len(recorded) != self.depth:
            raise De3Error(
                f"{type(self.backbone).__name__} made {len(recorded)} layer calls where its config "
                f"says {self.depth}; this encoder cannot be cut at a layer."
            )
        last = None if self.token_exits is None else self.token_exits(input_ids)
        calls = [call for _, call in recorded]
        asked = {"input_ids": input_ids, "attention_mask": mask, **inputs}
        return Prepared(recorded[0][0], mask, calls, last, asked)

    def layer(self, prepared: Prepared, number: int, hidden: Tensor) -> Tensor:
        """The states after layer `number` (1..depth), (rows, tokens, hidden)."""
        if self.stand_in is not None and self.training:
            output = self.stand_in(prepared, number, hidden)
        else:
            output = self.own_layer(prepared, number, hidden)
        if prepared.token_layers is None:
            return output
        # A token that has stopped keeps its state, and the others go on reading it.
        return torch.where((prepared.token_layers >= number).unsqueeze(-1), output, hidden)

    def own_layer(self, prepared: Prepared, number: int, hidden: Tensor) -> Tensor:
        """The same by the model's own layer, whatever stands in for it."""
        call = prepared.calls[number - 1]
        output = self.layers[call.index](hidden, *call.arguments, **call.keywords)
        output = output[0] if isinstance(output, tuple) else output
        if number == 1 and self.layout.first_convolution:
            convolution = self.backbone.get_submodule(self.layout.first_convolution)
            output = convolution(prepared.embedded, output, prepared.mask)
        return output

    def internal_parts(self) -> list[nn.Module]:
        """The parts that belong to one exit before the last alone."""
        return []

    def set_embeddings(self, embeddings: nn.Module) -> None:
        """Takes over other word embeddings, such as those of a vocabulary that has grown."""
        self.backbone.set_input_embeddings(embeddings)
        if self.token_exits is not None:
            self.token_exits.resize(cast(nn.Embedding, embeddings).num_embeddings)

    def readable(self, hidden: Tensor, number: int | None = None) -> Tensor:
        """The states as an exit should read them: through the final norm where there is one.

        Args:
            number: the layer they come from; only a cascade, which has several norms, asks.
        """
        if self.layout.final_norm is None:
            return hidden
        return self.backbone.get_submodule(self.layout.final_norm)(hidden)


@torch.no_grad()
def check_same_as_backbone(backbone: PreTrainedModel, layout: Layout) -> Encoder:
    """Takes the layers out and proves, on a padded toy batch, that the loop changes nothing."""
    device = next(backbone.parameters()).device
    if device.type == "meta":
        return Encoder(backbone, layout)
    was_training = backbone.training
    backbone.eval()
    ids = torch.tensor([[5, 6, 7, 8], [7, 6, 5, 5], [6, 5, 5, 5]], device=device)
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 1, 0], [1, 1, 0, 0]], device=device)
    expected, layout = _reference(backbone, layout, ids, mask)
    encoder = Encoder(backbone, layout)
    try:
        same = _agrees(encoder, ids, mask, expected)
    except Exception as error:  # whatever a forward raises when its layers are gone
        raise De3Error(
            f"{type(backbone).__name__} does not run without its layers ({error}); "
            "this family is not supported."
        ) from error
    if not same:
        raise De3Error(
            f"{type(backbone).__name__} does more than run its layers one after another, so its "
            "intermediate states cannot be trusted; this family is not supported."
        )
    return encoder.train(was_training)


def _reference(
    backbone: PreTrainedModel, layout: Layout, ids: Tensor, mask: Tensor
) -> tuple[Tensor, Layout]:
    """The backbone's own last states, and the layout with what its layers really return."""
    returned: list[Any] = []
    layer = next(backbone.get_submodule(layout.stack).children())
    watch = layer.register_forward_hook(lambda _module, _inputs, output: returned.append(output))
    try:
        expected: Tensor = backbone(input_ids=ids, attention_mask=mask)[0]
    finally:
        watch.remove()
    changed = ids.clone()
    changed[:, 1] += 4
    other: Tensor = backbone(input_ids=changed, attention_mask=mask)[0]
    if torch.equal(expected[:, 0], other[:, 0]):
        refuse(backbone, f"its first token does not see the second, {ONE_WAY}")
    return expected, replace(layout, tuple_output=isinstance(returned[0], tuple))


def _agrees(encoder: Encoder, ids: Tensor, mask: Tensor, expected: Tensor) -> bool:
    prepared = encoder.prepare(ids, mask)
    hidden = prepared.embedded
    for number in range(1, encoder.depth + 1):
        hidden = encoder.layer(prepared, number, hidden)
    seen = mask.bool()
    return torch.allclose(encoder.readable(hidden)[seen], expected[seen], atol=1e-4, rtol=1e-3)
