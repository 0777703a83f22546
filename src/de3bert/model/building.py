"""What must be checked or found out before a model is built on a backbone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, cast, get_args

from torch import nn
from transformers import AutoModel, AutoModelForSequenceClassification, PreTrainedModel

from de3bert.errors import De3Error, UsageError
from de3bert.methods import Method
from de3bert.methods.method import OptionValue
from de3bert.model.attached_head import OriginalHead, taken_apart
from de3bert.model.cascade import SmallModel, first_layers, make_encoder
from de3bert.model.config import EarlyExitConfig, PrototypeKind
from de3bert.model.encoder import Encoder
from de3bert.model.layout import Layout, find_layout
from de3bert.model.pretrained import from_config
from de3bert.objective.distance import DAR_FORMS
from de3bert.plugins import check_imported
from de3bert.registry import unknown

__all__ = [
    "checked_options",
    "checked_prototypes",
    "chosen_exits",
    "dropout_of",
    "empty_parts",
    "fitting_length",
    "label_names",
    "leave_weights",
]


def empty_parts(config: EarlyExitConfig) -> tuple[Encoder, OriginalHead | None]:
    """The encoder that a config describes, and the foreign head behind it if there is one.

    Their weights are still to be loaded.
    """
    check_imported(config.plugins or (), f"The model of method {config.method}")
    final = None
    if config.heads == "attached":
        whole = from_config(AutoModelForSequenceClassification, config.backbone_config)
        backbone, final = taken_apart(whole)
    else:
        backbone = from_config(AutoModel, config.backbone_config)
    layout = Layout(**config.layout) if config.layout else find_layout(backbone)
    return make_encoder(backbone, layout, _empty_small(config, backbone, layout)), final


def _empty_small(
    config: EarlyExitConfig, backbone: PreTrainedModel, layout: Layout
) -> SmallModel | None:
    """The small model of a cascade: by its own config, else the backbone's first layers."""
    if not config.cascade:
        return None
    if config.small_config is None:
        return first_layers(backbone, layout, {"small": float(config.cascade)})
    module = from_config(AutoModel, config.small_config)
    own = Layout(**config.small_layout) if config.small_layout else find_layout(module)
    return SmallModel(module, own, config.cascade)


def leave_weights(part: nn.Module) -> None:
    """What is trained already is not initialised by the model that takes it over."""
    for each in (*part.modules(), *part.parameters(), *part.buffers()):
        each._is_hf_initialized = True  # type: ignore[attr-defined]  # transformers asks for it


def label_names(labels: Any, num_labels: int | None) -> list[str]:
    names = (
        [str(name) for name in labels] if labels else [f"LABEL_{i}" for i in range(num_labels or 0)]
    )
    if num_labels is not None and len(names) != num_labels:
        raise UsageError(f"num_labels={num_labels}, but {len(names)} labels were named.")
    if len(names) < 2:
        raise UsageError(f"A classifier needs at least two classes, got {len(names)}.")
    return names


def checked_options(method: Method, options: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
    resolved = method.resolve(options)
    if "dar" in resolved:
        DAR_FORMS[str(resolved["dar"])]
    return resolved


def checked_prototypes(kind: str) -> PrototypeKind:
    if kind not in get_args(PrototypeKind):
        raise UsageError(unknown("kind of prototypes", kind, get_args(PrototypeKind)))
    return cast(PrototypeKind, kind)


# Where families keep the dropout of their own classification head, before the general one.
DROPOUTS = (
    "classifier_dropout",
    "classifier_dropout_prob",
    "seq_classif_dropout",
    "cls_dropout",
    "hidden_dropout_prob",
    "dropout",
)


def dropout_of(backbone_config: Any) -> float:
    """The share of a head's inputs to leave out; De3Error when the config has none of sense."""
    for name in DROPOUTS:
        value = getattr(backbone_config, name, None)
        if value is None:
            continue
        if not isinstance(value, int | float) or not 0 <= value <= 1:
            raise De3Error(
                f"The backbone's config is damaged: {name} is a fraction from 0 to 1, got "
                f"{value!r:.60}."
            )
        return float(value)
    return 0.1


def chosen_exits(
    method: Method, depth: int, cascade: int, asked: list[int] | None
) -> list[int] | None:
    """The layers with an exit; None stands for every layer.

    Args:
        depth: of the encoder.
        cascade: what the small model of a cascade costs in layers, or 0. The exits of a cascade are
            at the end of each model; others are refused.
    """
    if cascade:
        own = [cascade, depth]
        if asked is not None and sorted({*asked, depth}) != own:
            raise UsageError(
                f"A cascade of {cascade} and {depth - cascade} layers has its exits at the end of "
                f"each model, exit_layers={own}; got {asked}. Leave exit_layers out."
            )
        return own
    if not method.internal_exits:
        return [depth]
    if asked is None and method.exits_at:
        return [math.ceil(share * depth) for share in method.exits_at]
    return asked


def fitting_length(max_length: int, *backbone_configs: Any) -> int:
    """`max_length`, or the limit of a backbone when that is shorter."""
    return min(_fitting_length(max_length, config) for config in backbone_configs)


def _fitting_length(max_length: int, backbone_config: Any) -> int:
    positions = getattr(backbone_config, "max_position_embeddings", None)
    if positions is None or positions < 1:
        return max_length
    # RoBERTa and its kin begin counting positions behind the padding index, 1 unless changed.
    offset = 0
    if backbone_config.model_type in OFFSET_POSITIONS:
        offset = max(2, (getattr(backbone_config, "pad_token_id", None) or 0) + 1)
    return min(max_length, positions - offset)


OFFSET_POSITIONS = {
    "camembert",
    "data2vec-text",
    "ibert",
    "luke",
    "mpnet",
    "roberta",
    "xlm-roberta",
    "xlm-roberta-xl",
    "xmod",
}
