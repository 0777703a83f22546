"""The config of an early-exit classifier: the backbone's config and everything about its exits."""

from __future__ import annotations

from typing import Any, Literal

from transformers import AutoConfig
from transformers.configuration_utils import PreTrainedConfig

from de3bert.errors import UsageError

__all__ = ["EarlyExitConfig"]


class EarlyExitConfig(PreTrainedConfig):
    """Config of `EarlyExitForSequenceClassification`.

    Args:
        backbone_config: the encoder's own config.
        layout: where the encoder keeps its layers (see `de3bert.model.layout.Layout`).
        method: the declaration the model was built from.
        method_options: its resolved options (alpha, dar, gamma, lambda ...).
        pooling: `cls`, `mean`, `shared_pooler` or `own_pooler`.
        prototypes: `linear` (the paper's), `identity` ("w/o PN") or `none`.
        exit_layers: layers with an exit, counted from 1; the last one is the full depth.
        max_length: longest input in tokens; longer texts are cut.
        operating_points: name -> policy, target and what was measured.
        default_point: the point used when none is asked for; full depth when unset.
    """

    model_type = "de3bert"
    sub_configs = {"backbone_config": AutoConfig}  # noqa: RUF012
    keys_to_ignore_at_inference = ["projected"]  # noqa: RUF012

    backbone_config: dict[str, Any] | PreTrainedConfig | None = None
    layout: dict[str, Any] | None = None
    method: str = "de3"
    method_options: dict[str, Any] | None = None
    pooling: str = "mean"
    prototypes: Literal["linear", "identity", "none"] = "linear"
    exit_layers: list[int] | None = None
    max_length: int = 128
    operating_points: dict[str, Any] | None = None
    default_point: str | None = None

    def __post_init__(self, **kwargs: Any) -> None:
        if self.backbone_config is None:
            self.backbone_config = AutoConfig.for_model("bert")
        elif isinstance(self.backbone_config, dict):
            self.backbone_config = AutoConfig.for_model(**self.backbone_config)
        super().__post_init__(**kwargs)
        self.method_options = dict(self.method_options or {})
        self.operating_points = dict(self.operating_points or {})
        self.exit_layers = _checked_layers(self.exit_layers, self.depth)

    @property
    def depth(self) -> int:
        """The number of layers of the backbone, M."""
        return int(self.backbone_config.num_hidden_layers)  # type: ignore[union-attr]

    @property
    def hidden_size(self) -> int:
        return int(self.backbone_config.hidden_size)  # type: ignore[union-attr]

    @property
    def vocab_size(self) -> int:
        return int(self.backbone_config.vocab_size)  # type: ignore[union-attr]

    @property
    def label_names(self) -> tuple[str, ...]:
        return tuple(str(self.id2label[index]) for index in range(self.num_labels))


def _checked_layers(layers: list[int] | None, depth: int) -> list[int]:
    if layers is None:
        return list(range(1, depth + 1))
    wanted = sorted(set(layers) | {depth})
    if wanted[0] < 1 or wanted[-1] > depth:
        raise UsageError(f"exit_layers must lie in 1..{depth} for this backbone, got {layers}.")
    return wanted
