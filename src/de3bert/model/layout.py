"""Where an encoder keeps its stack of layers, and which families cannot be cut at a layer."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any, NoReturn

from torch import nn
from transformers import PreTrainedModel

from de3bert.errors import UsageError

__all__ = ["ONE_WAY", "Layout", "find_layout", "refuse"]


@dataclass(frozen=True)
class Layout:
    """The few facts about a family that are not visible from outside its `forward`.

    Args:
        stack: path of the `ModuleList` with the layers.
        tuple_output: layers return a tuple instead of a tensor.
        final_norm: path of the norm after the last layer (pre-norm families); exits read through
            it, so that every head sees states of the same scale.
        first_convolution: path of a convolution that belongs to layer 1 (DeBERTa).
    """

    stack: str
    tuple_output: bool = False
    final_norm: str | None = None
    first_convolution: str | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


FAMILIES = {
    "albert": Layout("encoder.albert_layer_groups"),
    "bert": Layout("encoder.layer"),
    "deberta": Layout("encoder.layer", tuple_output=True),
    "deberta-v2": Layout("encoder.layer", tuple_output=True, first_convolution="encoder.conv"),
    "distilbert": Layout("transformer.layer"),
    "electra": Layout("encoder.layer"),
    "modernbert": Layout("layers", final_norm="final_norm"),
    "mpnet": Layout("encoder.layer", tuple_output=True),
    "roberta": Layout("encoder.layer"),
    "xlm-roberta": Layout("encoder.layer"),
}

SHORTENS = (
    "it shortens or pads the sequence between layers, so an intermediate state does not represent "
    "the text"
)
ONE_WAY = "as in a causal decoder; early exits need an encoder that reads both ways"
REFUSED = {
    "big_bird": SHORTENS,
    "canine": SHORTENS,
    "funnel": SHORTENS,
    "longformer": SHORTENS,
    "perceiver": "its layers read latent vectors, not the text's tokens",
    "reformer": "its reversible layers carry two streams",
    "xlnet": "its layers carry two streams, sequence first",
}


def find_layout(backbone: PreTrainedModel) -> Layout:
    """The layout of a known family, or one found by looking; unsuitable families are refused."""
    family = _family(backbone)
    _refuse_unsuitable(backbone)
    layout = FAMILIES.get(family) or _look(backbone, family)
    if layout.first_convolution and getattr(backbone.encoder, "conv", None) is None:
        layout = replace(layout, first_convolution=None)
    return layout


def refuse(backbone: PreTrainedModel, reason: str) -> NoReturn:
    """Raises the error for a family that cannot carry exits."""
    raise UsageError(
        f'The family "{_family(backbone)}" cannot carry early exits: {reason}.\n'
        f"Tested families: {', '.join(sorted(FAMILIES))}."
    )


def _family(backbone: PreTrainedModel) -> str:
    return str(getattr(backbone.config, "model_type", "") or type(backbone).__name__)


def _refuse_unsuitable(backbone: PreTrainedModel) -> None:
    family, config = _family(backbone), backbone.config
    reason = REFUSED.get(family)
    if getattr(config, "is_encoder_decoder", False):
        reason = "it is an encoder-decoder; early exits need an encoder alone"
    elif getattr(config, "is_decoder", False) or family.startswith(
        ("gpt", "llama", "qwen", "mistral")
    ):
        reason = f"it reads one way, {ONE_WAY}"
    if reason:
        refuse(backbone, reason)


def _look(backbone: PreTrainedModel, family: str) -> Layout:
    depth = getattr(backbone.config, "num_hidden_layers", None)
    stacks = [
        name
        for name, module in backbone.named_modules()
        if isinstance(module, nn.ModuleList) and len(module) == depth
    ]
    if len(stacks) != 1:
        found = ", ".join(stacks) or "none"
        raise UsageError(
            f'The family "{family}" is unknown and its stack of {depth} layers could not be found '
            f"(candidates: {found}).\nTested families: {', '.join(sorted(FAMILIES))}."
        )
    norms = [name for name in ("final_norm", "norm", "ln_f") if hasattr(backbone, name)]
    return Layout(stacks[0], final_norm=norms[0] if norms else None)
