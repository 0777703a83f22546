"""Fresh exits on a classifier that is trained already; its final answers stay unchanged."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import AutoModelForSequenceClassification, PreTrainedModel

from de3bert.errors import De3Error, UsageError
from de3bert.model.attached_head import AttachedHeads, taken_apart
from de3bert.model.building import fitting_length, leave_weights
from de3bert.model.config import EarlyExitConfig
from de3bert.model.early_exit import EarlyExitModel
from de3bert.model.encoder import check_same_as_backbone
from de3bert.model.failures import failures_told
from de3bert.model.layout import find_layout
from de3bert.model.modeling import EarlyExitForSequenceClassification
from de3bert.model.pooling import OwnPooler
from de3bert.model.pretrained import read_whole
from de3bert.printable import cut_list

__all__ = ["from_classifier", "with_exits"]

Model = EarlyExitModel
# Three rows with padding, of ids that every vocabulary has.
TOY_IDS = ((5, 6, 7, 8), (7, 6, 5, 5), (6, 5, 5, 5))
TOY_LENGTHS = (4, 3, 2)


def from_classifier(
    source: str | Path | nn.Module,
    *,
    method: str = "full+attached",
    pooling: str = "mean",
    exit_layers: list[int] | None = None,
    max_length: int = 128,
    trust_remote_code: bool = False,
) -> Model:
    """A transformers classifier with untrained exits before its own head.

    The head, its pooler and the names of the classes stay; on a toy batch its logits are compared
    with the original's, and must be the same to the last bit.

    Args:
        source: hub id or folder of a model for sequence classification, or such a module, whose
            parts are taken over, not copied.
        method: the name that the model goes by.
        pooling: what the exits before the last read.

    Raises:
        UsageError: it has no trained head, or one for several labels at once or for values.
    """
    classifier = source if isinstance(source, nn.Module) else _read(str(source), trust_remote_code)
    _check_task(classifier, source)
    classifier = cast(PreTrainedModel, classifier).eval()
    config = copy.deepcopy(classifier.config)
    expected = _toy_logits(classifier)
    if not torch.isfinite(expected).all():
        raise De3Error(
            "The classifier's outputs for a toy text are not finite: its weights are damaged, or "
            "too large for the precision they run in."
        )
    backbone, final = taken_apart(classifier)
    encoder = check_same_as_backbone(backbone, find_layout(backbone))
    names = [str(config.id2label[index]) for index in range(config.num_labels)]
    own = EarlyExitConfig(
        backbone_config=config,
        layout=encoder.layout.to_json(),
        method=method,
        pooling=pooling,
        prototypes="linear",
        heads="attached",
        exit_layers=exit_layers,
        max_length=fitting_length(max_length, config),
        id2label=dict(enumerate(names)),
        label2id={name: index for index, name in enumerate(names)},
    )
    _check_exits(own)
    for part in (encoder, final):
        leave_weights(part)
    model = EarlyExitForSequenceClassification(own, encoder, final).eval()
    _check_same(model, expected)
    return model


def with_exits(trained: Model, *, method: str, exit_layers: list[int] | None = None) -> Model:
    """The same model with untrained exits before its final one, which answers as before.

    Encoder, pooling and final head are taken over, not copied: `trained` is used up.

    Args:
        method: the name that the new model goes by.
        exit_layers: None keeps those that there are, or puts one after every layer where there is
            only the final one.
    """
    old = trained.config
    if old.heads not in ("linear", "attached") or old.task != "text-classification" or old.cascade:
        raise UsageError(
            f"A model of the method {old.method} cannot be given other exits: its heads "
            f"({old.heads}) are not linear heads of a text classifier."
        )
    if exit_layers is None and len(old.exit_layers or ()) > 1:
        exit_layers = old.exit_layers
    config = copy.deepcopy(old)
    changed: dict[str, Any] = {
        "method": method,
        "method_options": dict(old.method_options or {}),
        "prototypes": "linear",
        "router": "none",
        "temperatures": None,
        "prototype_means": "moving",
        "adapted_to": None,
        "fitted": None,
        "operating_points": {},
        "default_point": None,
        "exit_layers": sorted({*(exit_layers or range(1, old.depth + 1)), old.depth}),
    }
    for name, value in changed.items():
        setattr(config, name, value)
    config = EarlyExitConfig.from_dict(config.to_dict())  # checked as a whole
    _check_exits(config)
    leave_weights(trained.encoder)
    final = trained.heads.final if isinstance(trained.heads, AttachedHeads) else None
    if final is not None:
        leave_weights(final)
    model = EarlyExitForSequenceClassification(config, trained.encoder, final)
    _take_over(model, trained)
    return model.train(trained.training)


@torch.no_grad()
def _take_over(model: Model, trained: Model) -> None:
    """Pooling and final head of the trained model."""
    if isinstance(trained.pooling, OwnPooler) and isinstance(model.pooling, OwnPooler):
        last = trained.pooling.dense[-1]
        old = dict(zip(trained.config.exit_layers, trained.pooling.dense, strict=True))
        for layer, dense in zip(model.config.exit_layers, model.pooling.dense, strict=True):
            dense.load_state_dict(old.get(layer, last).state_dict())
    else:
        model.pooling.load_state_dict(trained.pooling.state_dict())
    if not isinstance(model.heads, AttachedHeads):
        model.heads.exits[-1].load_state_dict(trained.heads.exits[-1].state_dict())


def _read(name: str, trust_remote_code: bool) -> PreTrainedModel:
    classifier, info = read_whole(
        AutoModelForSequenceClassification, name, trust_remote_code,
        called="classifier", kind="a text classifier",
    )  # fmt: skip
    missing = sorted(key for key in info["missing_keys"] if "position_ids" not in key)
    if missing:
        raise UsageError(
            f"{name} has no trained classification head: {cut_list(missing)} would be randomly "
            "initialised. Exits go on a classifier that is fine-tuned already; to train one, use: "
            f"de3 train --backbone {name} --data FILE --out DIR"
        )
    return classifier


def _check_task(classifier: nn.Module, source: object) -> None:
    """Refuses heads that do not choose one class of several."""
    config = getattr(classifier, "config", None)
    named = source if isinstance(source, str | Path) else type(source).__name__
    if config is None or not hasattr(classifier, "base_model_prefix"):
        raise UsageError(
            f"A {type(classifier).__name__} is not a transformers classifier: pass a model for "
            "sequence classification, a folder or a hub id."
        )
    kind = getattr(config, "problem_type", None)
    labels = int(getattr(config, "num_labels", 0) or 0)
    if kind == "multi_label_classification":
        raise UsageError(
            f"{named} is multi-label (a yes or no per class), and exits choose one class of "
            "several. Such a model cannot be given exits."
        )
    if kind == "regression" or labels == 1:
        raise UsageError(
            f"{named} predicts a value (regression), and exits choose among classes. Such a model "
            "cannot be given exits."
        )
    if labels < 2:
        raise UsageError(f"{named} has {labels} classes; a classifier has at least two.")


def _check_exits(config: EarlyExitConfig) -> None:
    if len(config.exit_layers or ()) < 2:
        raise UsageError(
            f"There is no exit before the last layer, exit_layers={config.exit_layers} of "
            f"{config.depth} layers. Name one."
        )


@torch.no_grad()
def _toy_logits(classifier: nn.Module) -> Tensor:
    """What the classifier says of the toy batch. (rows, classes)"""
    with failures_told():
        output = classifier(**_toy(next(classifier.parameters()).device))
    return cast(Tensor, output.logits)


def _toy(device: torch.device) -> dict[str, Tensor]:
    lengths = torch.tensor(TOY_LENGTHS, device=device)
    mask = (torch.arange(4, device=device) < lengths[:, None]).long()
    return {"input_ids": torch.tensor(TOY_IDS, device=device), "attention_mask": mask}


@torch.no_grad()
def _check_same(model: Model, expected: Tensor) -> None:
    given = _toy(expected.device)
    found = model(**given).logits
    if not torch.equal(found, expected):
        most = float((found - expected).abs().max()) if found.shape == expected.shape else None
        raise De3Error(
            f"The head of this {model.config.encoder_config.model_type} classifier does more than "
            f"read its encoder's last states (logits differ by {most}); this family is not "
            "supported."
        )
