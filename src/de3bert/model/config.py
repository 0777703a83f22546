"""The config of an early-exit classifier: the backbone's config and everything about its exits."""

from __future__ import annotations

import math
from typing import Any, Literal, cast, get_args

from transformers import AutoConfig
from transformers.configuration_utils import PreTrainedConfig

from de3bert.errors import UsageError
from de3bert.tasks import task_of

__all__ = ["EarlyExitConfig", "PrototypeKind"]

PrototypeKind = Literal["linear", "identity", "none"]
KINDS = {"prototypes": get_args(PrototypeKind), "token_exits": ("none", "hash")}


class EarlyExitConfig(PreTrainedConfig):
    """Config of `EarlyExitForSequenceClassification` and `EarlyExitForTokenClassification`.

    Args:
        backbone_config: the encoder's own config.
        layout: where the encoder keeps its layers (see `de3bert.model.layout.Layout`).
        task: what the model is asked, by its Hugging Face name: `text-classification` or
            `token-classification`.
        method: the declaration the model was built from.
        method_options: its resolved options (alpha, dar, gamma, lambda ...).
        pooling: what an exit reads, see `de3bert.methods.poolings`.
        prototypes: `linear` (the paper's), `identity` ("w/o PN") or `none`.
        heads: how logits come from the states: `linear`, `fused`, `attention`, `mixed`, or
            `attached` where the last is that of a classifier from elsewhere.
        router: a part that decides when to leave: `lte`, `policy` or `none`.
        base_depth: layers of the backbone that speed-ups refer to; more than the model's own when
            it was cut, less when it is a cascade.
        cascade: what a small complete model that stands before the backbone costs, in layers of the
            backbone; 0: there is none.
        small_config: that model's own config; None where it is the backbone's first layers.
        small_layout: where it keeps its layers.
        keeps_memory: whether an exit reads the exits before it, so that none can be left out.
        token_exits: how single tokens stop: `hash` (a table of layers) or `none`.
        temperatures: what the logits of each exit are divided by, if anything.
        prototype_means: `moving` (the paper's), `all rows` when refreshed or fitted after training,
            or `adapted` when moved to unlabelled rows of other data.
        fitted: of exits that were fitted after training, to which rows and with which strengths.
        adapted_to: those rows: how many, of which source, and its hash.
        exit_layers: layers with an exit, counted from 1; the last one is the full depth.
        max_length: longest input in tokens; longer texts are cut.
        metric: what the task is scored by, unless a verb is told otherwise.
        numbered_labels: the training rows numbered their classes as `id2label` does, so that a
            number in other rows of that data means the class of that number. Otherwise classes are
            known by name alone.
        text_pairs: whether a row is a pair of texts; None when that is not known.
        operating_points: name -> policy, target and what was measured.
        default_point: the point used when none is asked for; full depth when unset.
        plugins: modules outside this package whose parts the model has; found when it is made.
    """

    model_type = "de3bert"
    sub_configs = {"backbone_config": AutoConfig, "small_config": AutoConfig}  # noqa: RUF012
    keys_to_ignore_at_inference = ["projected", "certainty"]  # noqa: RUF012

    backbone_config: dict[str, Any] | PreTrainedConfig | None = None
    layout: dict[str, Any] | None = None
    task: str = "text-classification"
    method: str = "de3"
    method_options: dict[str, Any] | None = None
    pooling: str = "mean"
    prototypes: PrototypeKind = "linear"
    heads: str = "linear"
    router: str = "none"
    base_depth: int | None = None
    cascade: int = 0
    small_config: dict[str, Any] | PreTrainedConfig | None = None
    small_layout: dict[str, Any] | None = None
    keeps_memory: bool | None = None
    token_exits: str = "none"
    temperatures: list[float] | None = None
    prototype_means: Literal["moving", "all rows", "adapted"] = "moving"
    adapted_to: dict[str, Any] | None = None
    fitted: dict[str, Any] | None = None
    exit_layers: list[int] | None = None
    max_length: int = 128
    metric: str = "accuracy"
    numbered_labels: bool = False
    text_pairs: bool | None = None
    operating_points: dict[str, Any] | None = None
    default_point: str | None = None
    plugins: list[str] | None = None

    def __post_init__(self, **kwargs: Any) -> None:
        if self.backbone_config is None:
            self.backbone_config = AutoConfig.for_model("bert")
        elif isinstance(self.backbone_config, dict):
            self.backbone_config = AutoConfig.for_model(**self.backbone_config)
        if isinstance(self.small_config, dict):
            self.small_config = AutoConfig.for_model(**self.small_config)
        super().__post_init__(**kwargs)
        self.task = task_of({"task": self.task, "token_exits": self.token_exits}).name
        if self.token_exits == "words":  # how older configs said that words are tagged
            self.token_exits = "none"
        self.method_options = dict(self.method_options or {})
        self.operating_points = dict(self.operating_points or {})
        self.exit_layers = _checked_layers(self.exit_layers, self.depth)
        self.base_depth = self.base_depth or self.depth
        for name, kinds in KINDS.items():
            if getattr(self, name) not in kinds:
                raise UsageError(
                    f"{name} must be one of {', '.join(kinds)}, got {getattr(self, name)!r:.60}."
                )
        _check_temperatures(self.temperatures, len(self.exit_layers))
        if self.plugins is None:
            from de3bert.model.plugin_parts import plugins_of  # the parts themselves read a config

            self.plugins = plugins_of(self) or None

    @property
    def encoder_config(self) -> PreTrainedConfig:
        """The backbone's config, as an object."""
        assert isinstance(self.backbone_config, PreTrainedConfig)  # see __post_init__
        return self.backbone_config

    @property
    def encoder_configs(self) -> list[PreTrainedConfig]:
        """The backbone's config, and that of a small model of its own."""
        small = self.small_config
        return [self.encoder_config, *([small] if isinstance(small, PreTrainedConfig) else [])]

    @property
    def depth(self) -> int:
        """The number of layers: M of the backbone, and before them the cost of a small model."""
        return int(self.encoder_config.num_hidden_layers) + self.cascade

    @property
    def hidden_size(self) -> int:
        return int(self.encoder_config.hidden_size)

    @property
    def vocab_size(self) -> int:
        return int(self.encoder_config.vocab_size)

    @vocab_size.setter
    def vocab_size(self, value: int) -> None:  # resize_token_embeddings writes it
        for config in self.encoder_configs:
            config.vocab_size = value

    @property
    def label_names(self) -> tuple[str, ...]:
        names = cast("dict[int, str]", self.id2label)
        return tuple(str(names[index]) for index in range(len(names)))


def _checked_layers(layers: list[int] | None, depth: int) -> list[int]:
    if layers is None:
        return list(range(1, depth + 1))
    if not isinstance(layers, list | tuple | range) or any(
        type(layer) is not int for layer in layers
    ):
        raise UsageError(f"exit_layers must be a list of whole numbers, got {layers!r:.60}.")
    wanted = sorted(set(layers) | {depth})
    if wanted[0] < 1 or wanted[-1] > depth:
        raise UsageError(f"exit_layers must lie in 1..{depth} for this backbone, got {layers}.")
    return wanted


def _check_temperatures(temperatures: object, exits: int) -> None:
    if temperatures is None or temperatures == []:
        return
    sound = isinstance(temperatures, list | tuple) and len(temperatures) == exits
    if not sound or not all(
        isinstance(value, int | float) and math.isfinite(value) and value > 0
        for value in cast("list[object]", temperatures)
    ):
        raise UsageError(
            f"temperatures must be {exits} numbers above 0, one for each exit; got "
            f"{temperatures!r:.60}."
        )
