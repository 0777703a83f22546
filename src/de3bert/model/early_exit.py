"""The one model of all methods and tasks: an encoder with a classifier and prototypes per exit."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar, NamedTuple

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers import initialization as init

from de3bert.errors import UsageError
from de3bert.methods import METHODS
from de3bert.methods.poolings import chosen_pooling, pooler_start
from de3bert.model.attached_head import OriginalHead
from de3bert.model.backbone import load_backbone
from de3bert.model.building import (
    checked_options,
    checked_prototypes,
    chosen_exits,
    dropout_of,
    empty_parts,
    fitting_length,
    label_names,
    leave_weights,
)
from de3bert.model.cascade import Cascade, make_encoder
from de3bert.model.chunks import length_chunks
from de3bert.model.config import EarlyExitConfig
from de3bert.model.depth import DEPTHS, keep_layers
from de3bert.model.encoder import Encoder
from de3bert.model.full_depth import tell_full_depth
from de3bert.model.heads import HEADS, HeadSettings, Reading
from de3bert.model.layout import find_layout
from de3bert.model.outputs import EarlyExitOutput
from de3bert.model.pooling import POOLINGS
from de3bert.model.prototypes import PrototypeBank
from de3bert.model.routers import ROUTERS, Router
from de3bert.model.small_backbone import chosen_small
from de3bert.model.token_exits import TokenTable
from de3bert.model.words import check_pooling, word_numbers, word_states
from de3bert.objective import ExitBatch, Objective
from de3bert.registry import Registry

__all__ = ["MODELS", "EarlyExitModel"]


class EarlyExitModel(PreTrainedModel):
    """A classifier of texts or words with an exit after every layer, whatever its task.

    `forward` runs full depth and returns every exit; with labels it also updates the prototypes (in
    training mode) and returns the method's whole loss, so any Hugging Face training loop trains the
    method. Real stopping is the engine's job: `de3bert.load(folder).predict(texts)`.
    """

    task: ClassVar[str | None] = None  # the subclass's
    config_class = EarlyExitConfig
    base_model_prefix = "encoder"
    supports_gradient_checkpointing = True
    accepts_loss_kwargs = False  # the loss is a mean: the Trainer must divide when it accumulates
    # Strict: the plain list protects from fp16 only, and bf16 is too coarse for a moving mean.
    # The vectors alone: named as a whole, the bank's flags and counts would become floats too.
    _keep_in_fp32_modules_strict = ["prototypes.vectors"]  # noqa: RUF012
    knows_full_depth = False  # whoever calls it was told, or is this package
    _supports_sdpa = True
    _supports_flash_attn = True

    def __init__(
        self,
        config: EarlyExitConfig,
        encoder: Encoder | None = None,
        final: OriginalHead | None = None,
    ) -> None:
        super().__init__(config)
        _check_task(type(self), config.task, "This model")
        if encoder is None:
            encoder, final = empty_parts(config)
        self.encoder = encoder
        layers, options = config.exit_layers or [], config.method_options or {}
        if config.token_exits == "hash":
            encoder.token_exits = TokenTable(config.vocab_size, encoder.depth, options)
        exits, hidden, classes = len(layers), config.hidden_size, len(config.label_names)
        self.pooling = POOLINGS[config.pooling](hidden, exits)
        dropout = dropout_of(config.backbone_config)
        self.heads = HEADS[config.heads](HeadSettings(hidden, classes, exits, dropout, options))
        config.keeps_memory = self.heads.keeps_memory
        if final is not None:
            self.heads.final = final
        self.router: Router | None = None
        if config.router != "none":
            self.router = ROUTERS[config.router](hidden, exits - 1, options)
        self.projectors: nn.ModuleList | None = None
        self.prototypes: PrototypeBank | None = None
        if config.prototypes == "linear":
            self.projectors = nn.ModuleList(nn.Linear(hidden, hidden) for _ in range(exits - 1))
        if config.prototypes != "none":
            gamma = float(options.get("gamma", 0.5))
            self.prototypes = PrototypeBank(exits - 1, classes, hidden, gamma)
        phases = METHODS[config.method].phases
        every = [term for phase in phases for term in phase.terms]
        self.objective = Objective(phases[-1].terms, options, layers, every)
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
        small_backbone: str | Path | nn.Module | None = None,
        trust_remote_code: bool = False,
        **options: float | str,
    ) -> EarlyExitModel:
        """Puts fresh exits on a pretrained encoder.

        Args:
            backbone: hub id, folder or module; a module's layers are taken over, not copied.
            num_labels: number of classes, unless `labels` names them.
            method: a declaration from `de3bert.methods`; `**options` are its options.
            pooling: what is read; None takes what fits the backbone (`methods.poolings`).
            prototypes: `linear`, `identity` or `none`; None takes the method's.
            exit_layers: layers with an exit, counted from 1; None puts one after every layer.
            small_backbone: the small encoder that a cascade begins with, as `backbone` is given.
            trust_remote_code: runs Python code that comes with the backbone.

        Returns:
            The model in evaluation mode, as `from_pretrained` gives it, of the class for the task.
        """
        # All names are checked before the backbone is fetched or taken apart.
        names = label_names(labels, num_labels)
        declared = METHODS[method]
        _check_task(cls, declared.task, f"Method {method}")
        resolved = checked_options(declared, options)
        kind = checked_prototypes(prototypes or declared.prototypes)
        if pooling is not None:
            POOLINGS[pooling]
        check_pooling(declared, pooling)
        declared.check_small_backbone(small_backbone is not None)
        loaded = load_backbone(backbone, trust_remote_code=trust_remote_code)
        layout = find_layout(loaded.module)
        base_depth = int(loaded.module.config.num_hidden_layers)
        keep_layers(loaded.module, layout, DEPTHS[declared.depth](base_depth, resolved))
        small = chosen_small(
            declared, resolved, loaded, (backbone, small_backbone), layout,
            trust_remote_code=trust_remote_code,
        )  # fmt: skip
        both = [loaded] if small is None else [loaded, small.backbone]
        configs = [each.module.config for each in both]
        usual = {each.default_pooling for each in both}
        fitting = "mean" if "mean" in usual else loaded.default_pooling
        encoder = make_encoder(loaded.module, layout, small.part if small else None, check=True)
        cascade = encoder.units if isinstance(encoder, Cascade) else 0
        exit_layers = chosen_exits(declared, encoder.depth, cascade, exit_layers)
        config = EarlyExitConfig(
            # A copy: the new config resets the attention implementation of the one it is given.
            backbone_config=copy.deepcopy(loaded.module.config),
            layout=encoder.layout.to_json(),
            task=declared.task,
            method=method,
            method_options=resolved,
            pooling=chosen_pooling(declared, resolved, fitting, pooling),
            prototypes=kind,
            heads=declared.heads,
            router=declared.router,
            base_depth=base_depth,
            cascade=cascade,
            **(small.in_config(encoder) if small else {}),
            token_exits=declared.token_exits,
            exit_layers=exit_layers,
            max_length=fitting_length(max_length, *configs),
            id2label=dict(enumerate(names)),
            label2id={name: index for index, name in enumerate(names)},
        )
        if declared.internal_exits and len(config.exit_layers or ()) < 2:
            raise UsageError(
                f"Method {method} needs an exit before the last layer, "
                f'got exit_layers={exit_layers}. Name one, or use the method "full".'
            )
        leave_weights(encoder)
        model = MODELS[declared.task](config, encoder)
        if loaded.pooler is not None and pooler_start(declared, resolved) != "fresh":
            model.pooling.start_from(loaded.pooler)
        if small is not None:
            small.start_pooler(model.pooling)
        return model.eval()

    @torch.no_grad()
    def _init_weights(self, module: nn.Module) -> None:
        super()._init_weights(module)
        if isinstance(module, PrototypeBank):
            for buffer in module.buffers():
                init.zeros_(buffer)
        elif callable(reset := getattr(module, "reset", None)):
            reset()  # parts with parameters or buffers of their own kind

    def train(self, mode: bool = True) -> EarlyExitModel:
        """As usual, but an encoder that does not learn has no dropout: it is a fixed reader."""
        super().train(mode)
        if mode and not any(parameter.requires_grad for parameter in self.encoder.parameters()):
            self.encoder.eval()
        return self

    def _run(
        self,
        inputs: dict[str, Tensor | None],
        labels: Tensor | None,
        extras: dict[str, Tensor],
        *,
        labelled: Tensor | None = None,
        whole: bool = False,
    ) -> EarlyExitOutput:
        """All layers, every exit, and with labels the loss. What is said of rows is of units here.

        Args:
            inputs: (rows, tokens) each; `word_ids` among them where units are words.
            extras: what losses read besides the labels, one entry per row.
            labelled: which rows the labels are of, (rows,); None: all.
            whole: not to be run in chunks of similar length.
        """
        if labels is None:
            tell_full_depth(self)
        mask = inputs["attention_mask"]
        assert mask is not None
        whole = whole or inputs["position_ids"] is not None or self.objective.reads_tokens
        chunks = None if whole else length_chunks(mask)
        exits = self._all_exits(inputs) if chunks is None else self._in_chunks(inputs, chunks)
        projected = certainty = distances = loss = None
        internal = exits.states[:, :-1]
        if self.router is not None:
            certainty = _each_exit(self.router, internal)
        if self.prototypes is not None and internal.shape[1]:
            projected = _each_exit(self.project, internal)
            if self.training and labels is not None:
                self.prototypes.update(_chosen(projected, labelled), labels)
            distances = self.prototypes(projected)
        if labels is not None:
            first = _chosen(exits.first_tokens, labelled)
            batch = ExitBatch(
                _chosen(exits.logits, labelled),
                labels,
                None if distances is None else _chosen(distances, labelled),
                self.objective.options,
                certainty=None if certainty is None else _chosen(certainty, labelled),
                states=_chosen(exits.states, labelled),
                heads=self.heads,
                clock=self.objective.clock,
                extras={**extras, "first_tokens": first},
                training=self.training,
                tokens=exits.tokens if self.objective.reads_tokens else None,
            )
            loss = self.objective(batch)
        # Made in one go: as a tuple, an output keeps the order in which its fields were set.
        return EarlyExitOutput(
            loss, exits.logits[:, -1], exits.logits, distances, projected, certainty
        )

    def _all_exits(self, inputs: dict[str, Tensor | None]) -> Exits:
        """One pass through all layers, reading at every exit."""
        prepared = self.encoder.prepare(**inputs)  # type: ignore[arg-type]
        word_ids = inputs.get("word_ids")
        if inputs.get("token_layers") is not None:
            prepared.token_layers = inputs["token_layers"]
        hidden, logits, first = prepared.embedded, [], []
        states: list[Tensor] = []
        for number in range(1, self.encoder.depth + 1):
            hidden = self.encoder.layer(prepared, number, hidden)
            if self.training:
                hidden = self.heads.handed_on(hidden, number, self.objective.clock)
            seen, mask = hidden, prepared.mask
            if word_ids is not None:
                seen, mask = word_states(hidden, word_ids)
            first.append(seen[:, 0])
            if number in self.config.exit_layers:
                memory = torch.stack(states, 1) if states and self.heads.keeps_memory else None
                pooled, score = self.read(seen, mask, number, memory)
                states.append(pooled)
                logits.append(score)
        tokens = self.encoder.readable(hidden)
        return Exits(torch.stack(logits, 1), torch.stack(states, 1), torch.stack(first, 1), tokens)

    def _in_chunks(
        self, inputs: dict[str, Tensor | None], chunks: list[tuple[Tensor, int]]
    ) -> Exits:
        """The same as `_all_exits`, chunk by chunk, back in the order of the batch."""
        parts = []
        ids = inputs.get("word_ids")
        numbers = [rows if ids is None else word_numbers(ids, rows) for rows, _ in chunks]
        for rows, longest in chunks:
            cut = {k: None if v is None else v[rows, :longest] for k, v in inputs.items()}
            parts.append(self._all_exits(cut))
        back = torch.argsort(torch.cat(numbers))
        return Exits(
            torch.cat([part.logits for part in parts])[back],
            torch.cat([part.states for part in parts])[back],
            torch.cat([part.first_tokens for part in parts])[back],
            tokens=None,
        )

    def read(
        self, hidden: Tensor, mask: Tensor, layer: int, memory: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """What the exit at `layer` makes of the states: its vector and its logits.

        Args:
            hidden: (rows, tokens, hidden).
            memory: the vectors of the exits before, (rows, exits before, hidden); only for heads
                that keep them.

        Returns:
            (rows, hidden) and (rows, classes).
        """
        readable = self.encoder.readable(hidden, layer)
        pooled = self.pooling(readable, mask, self.exit_index(layer))
        return pooled, self.classify(Reading(pooled, memory, readable, mask), layer)

    def classify(self, reading: Reading, layer: int) -> Tensor:
        """Logits of the exit at `layer`, divided by its temperature if it has one."""
        index = self.exit_index(layer)
        logits = self.heads(reading, index)
        temperatures = self.config.temperatures
        return logits / temperatures[index] if temperatures else logits

    def certainty(self, pooled: Tensor, layer: int) -> Tensor:
        """How sure the router is that rows may leave at `layer`, (rows,)."""
        if self.router is None:
            raise UsageError("This model has no router that could say when to leave.")
        return self.router(pooled, self.exit_index(layer))

    def project(self, pooled: Tensor, index: int) -> Tensor:
        """h' = PN(s) of exit number `index`, from 0, (rows, hidden); no dropout on this path."""
        return pooled if self.projectors is None else self.projectors[index](pooled)

    def distances(self, pooled: Tensor, layer: int) -> Tensor:
        """Cosine distances to the prototypes of the exit at `layer`, (rows, classes)."""
        projected = self.project(pooled, self.exit_index(layer)).unsqueeze(1)
        if self.prototypes is None:
            raise UsageError('This model has no distances: it was built with prototypes="none".')
        return self.prototypes(projected, self.exit_index(layer)).squeeze(1)

    def exit_index(self, layer: int) -> int:
        return self.config.exit_layers.index(layer)

    def get_input_embeddings(self) -> nn.Module:
        return self.encoder.backbone.get_input_embeddings()

    def set_input_embeddings(self, value: nn.Module) -> None:
        self.encoder.set_embeddings(value)

    def exit_parameters(self) -> dict[str, int]:
        """Parameters that the internal exits add to the backbone with its final head."""
        counts = {"classifiers": self.heads.internal_parameters()}
        parts: dict[str, list[nn.Module]] = {
            "prototypical networks": [self.projectors] if self.projectors is not None else [],
            "router": [self.router] if self.router is not None else [],
            "poolers": self.pooling.internal_parts(),
            "small model": self.encoder.internal_parts(),
        }
        for name, modules in parts.items():
            counts[name] = sum(p.numel() for part in modules for p in part.parameters())
        return {name: count for name, count in counts.items() if count}


class Exits(NamedTuple):
    """What one pass gives, rows first."""

    logits: Tensor  # (rows, exits, classes)
    states: Tensor  # (rows, exits, hidden), the vectors that the exits read
    first_tokens: Tensor  # (rows, layers, hidden), the first token after every layer
    tokens: Tensor | None  # (rows, tokens, hidden), the last states; not of a batch in chunks


def _each_exit(part: Callable[[Tensor, int], Tensor], states: Tensor) -> Tensor:
    """A part at every exit, on its own vector. (rows, exits, hidden) -> (rows, exits, ...)"""
    return torch.stack([part(states[:, index], index) for index in range(states.shape[1])], 1)


def _chosen(values: Tensor, rows: Tensor | None) -> Tensor:
    return values if rows is None else values[rows]


def _check_task(kind: type[EarlyExitModel], task: str, what: str) -> None:
    """UsageError where a class is asked for a model of another task."""
    if kind.task not in (None, task):
        raise UsageError(
            f"{what} is for {task}, and {kind.__name__} for {kind.task}. Use "
            f"{MODELS[task].__name__}."
        )


MODELS: Registry[type[EarlyExitModel]] = Registry("task")  # the class of each
