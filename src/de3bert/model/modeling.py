"""The one model class of all methods: an encoder with a classifier and prototypes per exit."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast, get_args

import torch
from torch import Tensor, nn
from transformers import AutoConfig, AutoModel, AutoModelForSequenceClassification, PreTrainedModel
from transformers import initialization as init

from de3bert.errors import UsageError
from de3bert.methods import METHODS, Method
from de3bert.methods.method import OptionValue
from de3bert.model.backbone import load_backbone
from de3bert.model.chunks import length_chunks
from de3bert.model.config import EarlyExitConfig, PrototypeKind
from de3bert.model.encoder import Encoder, check_same_as_backbone
from de3bert.model.layout import Layout, find_layout
from de3bert.model.outputs import EarlyExitOutput
from de3bert.model.pooling import POOLINGS, OwnPooler
from de3bert.model.prototypes import PrototypeBank
from de3bert.objective import ExitBatch, Objective
from de3bert.objective.distance import DAR_FORMS
from de3bert.registry import unknown

__all__ = ["EarlyExitForSequenceClassification"]


class EarlyExitForSequenceClassification(PreTrainedModel):
    """A text classifier with an exit after every layer.

    `forward` runs full depth and returns every exit; with labels it also updates the prototypes (in
    training mode) and returns the method's whole loss, so any Hugging Face training loop trains the
    method. Real stopping is the engine's job: `de3bert.load(folder).predict(texts)`.

    Example:
        >>> model = EarlyExitForSequenceClassification.from_backbone(
        ...     "google-bert/bert-base-uncased", num_labels=2, method="de3")
        >>> model(**tokenizer(["a joy"], return_tensors="pt")).exit_logits.shape
        torch.Size([1, 12, 2])
    """

    config_class = EarlyExitConfig
    base_model_prefix = "encoder"
    supports_gradient_checkpointing = True
    accepts_loss_kwargs = False  # the loss is a mean: the Trainer must divide when it accumulates
    # Strict: the plain list protects from fp16 only, and bf16 is too coarse for a moving mean.
    # The vectors alone: named as a whole, the bank's flags and counts would become floats too.
    _keep_in_fp32_modules_strict = ["prototypes.vectors"]  # noqa: RUF012
    _supports_sdpa = True
    _supports_flash_attn = True

    def __init__(self, config: EarlyExitConfig, encoder: Encoder | None = None) -> None:
        super().__init__(config)
        if encoder is None:
            backbone = AutoModel.from_config(config.backbone_config)
            layout = Layout(**config.layout) if config.layout else find_layout(backbone)
            encoder = Encoder(backbone, layout)
        self.encoder = encoder
        layers, options = config.exit_layers or [], config.method_options or {}
        exits, hidden, classes = len(layers), config.hidden_size, len(config.label_names)
        self.pooling = POOLINGS[config.pooling](hidden, exits)
        self.dropout = nn.Dropout(_dropout(config.backbone_config))
        self.classifiers = nn.ModuleList(nn.Linear(hidden, classes) for _ in range(exits))
        self.projectors: nn.ModuleList | None = None
        self.prototypes: PrototypeBank | None = None
        if config.prototypes == "linear":
            self.projectors = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(exits - 1))
        if config.prototypes != "none":
            gamma = float(options.get("gamma", 0.5))
            self.prototypes = PrototypeBank(exits - 1, classes, hidden, gamma)
        self.objective = Objective(METHODS[config.method].terms, options, layers)
        self.post_init()

    @classmethod
    def from_backbone(
        cls,
        backbone: str | Path | nn.Module,
        *,
        num_labels: int | None = None,
        labels: list[str] | tuple[str, ...] | None = None,
        method: str = "de3",
        pooling: str | None = None,
        prototypes: str | None = None,
        exit_layers: list[int] | None = None,
        max_length: int = 128,
        **options: float | str,
    ) -> EarlyExitForSequenceClassification:
        """Puts fresh exits on a pretrained encoder.

        Args:
            backbone: hub id, folder or module; a module's layers are taken over, not copied.
            num_labels: number of classes, unless `labels` names them.
            method: a declaration from `de3bert.methods`; `**options` are its options.
            pooling: None takes what fits the backbone.
            prototypes: `linear`, `identity` or `none`; None takes the method's.
            exit_layers: layers with an exit, counted from 1; None puts one after every layer.

        Returns:
            The model in evaluation mode, as `from_pretrained` gives it.
        """
        # All names are checked before the backbone is fetched or taken apart.
        names = _label_names(labels, num_labels)
        declared = METHODS[method]
        resolved = _checked_options(declared, options)
        kind = _checked_prototypes(prototypes or declared.prototypes)
        if pooling is not None:
            POOLINGS[pooling]
        loaded = load_backbone(backbone)
        encoder = check_same_as_backbone(loaded.module, find_layout(loaded.module))
        if not declared.internal_exits:
            exit_layers = [encoder.depth]
        config = EarlyExitConfig(
            # A copy: the new config resets the attention implementation of the one it is given.
            backbone_config=copy.deepcopy(loaded.module.config),
            layout=encoder.layout.to_json(),
            method=method,
            method_options=resolved,
            pooling=pooling or declared.pooling or loaded.default_pooling,
            prototypes=kind,
            exit_layers=exit_layers,
            max_length=_fitting_length(max_length, loaded.module.config),
            id2label=dict(enumerate(names)),
            label2id={name: index for index, name in enumerate(names)},
        )
        if declared.internal_exits and kind != "none" and len(config.exit_layers or ()) < 2:
            raise UsageError(
                f"Method {method} needs an exit before the last layer, "
                f'got exit_layers={exit_layers}. Name one, or use the method "full".'
            )
        for part in (*encoder.modules(), *encoder.parameters(), *encoder.buffers()):
            part._is_hf_initialized = True  # type: ignore[attr-defined]  # post_init lets it be
        model = cls(config, encoder)
        if loaded.pooler is not None:
            model.pooling.start_from(loaded.pooler)
        return model.eval()

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if isinstance(module, PrototypeBank):
            for buffer in module.buffers():
                init.zeros_(buffer)

    def forward(
        self,
        input_ids: Tensor,
        attention_mask: Tensor | None = None,
        token_type_ids: Tensor | None = None,
        position_ids: Tensor | None = None,
        labels: Tensor | None = None,
        return_dict: bool | None = None,
    ) -> EarlyExitOutput | tuple[Tensor, ...]:
        """Runs all layers and every exit."""
        mask = torch.ones_like(input_ids) if attention_mask is None else attention_mask
        inputs = {
            "input_ids": input_ids,
            "attention_mask": mask,
            "token_type_ids": token_type_ids,
            "position_ids": position_ids,
        }
        chunks = length_chunks(mask) if position_ids is None else None
        if chunks is None:
            exit_logits, projected = self._all_exits(inputs)
        else:
            exit_logits, projected = self._all_exits_in_chunks(inputs, chunks)
        distances = loss = None
        if self.prototypes is not None and projected is not None:
            if self.training and labels is not None:
                self.prototypes.update(projected, labels)
            distances = self.prototypes(projected)
        if labels is not None:
            batch = ExitBatch(exit_logits, labels, distances, self.objective.options)
            loss = self.objective(batch)
        # Made in one go: as a tuple, an output keeps the order in which its fields were set.
        output = EarlyExitOutput(loss, exit_logits[:, -1], exit_logits, distances, projected)
        return output if return_dict is not False else output.to_tuple()

    def _all_exits(self, inputs: dict[str, Tensor | None]) -> tuple[Tensor, Tensor | None]:
        """Logits (rows, exits, classes) and projected vectors (rows, exits - 1, hidden)."""
        prepared = self.encoder.prepare(**inputs)  # type: ignore[arg-type]
        hidden, logits, projected = prepared.embedded, [], []
        for number in range(1, self.encoder.depth + 1):
            hidden = self.encoder.layer(prepared, number, hidden)
            if number in self.config.exit_layers:
                pooled = self.pooled(hidden, prepared.mask, number)
                logits.append(self.classify(pooled, number))
                if self.prototypes is not None and number < self.encoder.depth:
                    projected.append(self.project(pooled, number))
        return torch.stack(logits, 1), torch.stack(projected, 1) if projected else None

    def _all_exits_in_chunks(
        self, inputs: dict[str, Tensor | None], chunks: list[tuple[Tensor, int]]
    ) -> tuple[Tensor, Tensor | None]:
        """The same as `_all_exits`, chunk by chunk, back in the order of the batch."""
        parts = []
        for rows, longest in chunks:
            cut = {k: None if v is None else v[rows, :longest] for k, v in inputs.items()}
            parts.append(self._all_exits(cut))
        back = torch.argsort(torch.cat([rows for rows, _ in chunks]))
        logits = torch.cat([part[0] for part in parts])[back]
        projected = [part[1] for part in parts if part[1] is not None]
        return logits, torch.cat(projected)[back] if projected else None

    def pooled(self, hidden: Tensor, mask: Tensor, layer: int) -> Tensor:
        """The vector that the exit at `layer` reads, (rows, hidden)."""
        return self.pooling(self.encoder.readable(hidden), mask, self.exit_index(layer))

    def classify(self, pooled: Tensor, layer: int) -> Tensor:
        """Logits of the exit at `layer`, (rows, classes)."""
        return self.classifiers[self.exit_index(layer)](self.dropout(pooled))

    def project(self, pooled: Tensor, layer: int) -> Tensor:
        """h' = PN_m(s), (rows, hidden); no dropout on this path."""
        return (
            pooled if self.projectors is None else self.projectors[self.exit_index(layer)](pooled)
        )

    def distances(self, pooled: Tensor, layer: int) -> Tensor:
        """Cosine distances to the prototypes of the exit at `layer`, (rows, classes)."""
        projected = self.project(pooled, layer).unsqueeze(1)
        if self.prototypes is None:
            raise UsageError('This model has no distances: it was built with prototypes="none".')
        return self.prototypes(projected, self.exit_index(layer)).squeeze(1)

    def exit_index(self, layer: int) -> int:
        return self.config.exit_layers.index(layer)

    def get_input_embeddings(self) -> nn.Module:
        return self.encoder.backbone.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.encoder.backbone.set_input_embeddings(value)

    def exit_parameters(self) -> dict[str, int]:
        """Parameters that the internal exits add to the backbone with its final head."""
        parts = {"classifiers": self.classifiers[:-1], "prototypical networks": self.projectors}
        counts = {k: sum(p.numel() for p in v.parameters()) for k, v in parts.items() if v}
        if isinstance(self.pooling, OwnPooler):
            poolers = self.pooling.dense[:-1]
            counts["poolers"] = sum(p.numel() for p in poolers.parameters())
        return counts


def _label_names(labels: Any, num_labels: int | None) -> list[str]:
    names = (
        [str(name) for name in labels] if labels else [f"LABEL_{i}" for i in range(num_labels or 0)]
    )
    if num_labels is not None and len(names) != num_labels:
        raise UsageError(f"num_labels={num_labels}, but {len(names)} labels were named.")
    if len(names) < 2:
        raise UsageError(f"A classifier needs at least two classes, got {len(names)}.")
    return names


def _checked_options(method: Method, options: Mapping[str, OptionValue]) -> dict[str, OptionValue]:
    resolved = method.resolve(options)
    if "dar" in resolved:
        DAR_FORMS[str(resolved["dar"])]
    return resolved


def _checked_prototypes(kind: str) -> PrototypeKind:
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


def _dropout(backbone_config: Any) -> float:
    for name in DROPOUTS:
        value = getattr(backbone_config, name, None)
        if value is not None:
            return float(value)
    return 0.1


def _fitting_length(max_length: int, backbone_config: Any) -> int:
    """`max_length`, or the backbone's limit when that is shorter."""
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

AutoConfig.register(EarlyExitConfig.model_type, EarlyExitConfig)
AutoModelForSequenceClassification.register(EarlyExitConfig, EarlyExitForSequenceClassification)
