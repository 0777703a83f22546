"""What a model is, in a few facts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from de3bert.runtime.classifier import Classifier

__all__ = ["read_config", "summarise"]


def read_config(folder: str | Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((Path(folder) / "config.json").read_text("utf-8"))
    return document


def summarise(classifier: Classifier) -> dict[str, Any]:
    """Facts for people and scripts, plain JSON values."""
    config, model = classifier.config, classifier.backend.model
    total = sum(parameter.numel() for parameter in model.parameters())
    added = model.exit_parameters()
    return {
        "family": config.backbone_config.model_type,
        "layers": classifier.depth,
        "hidden_size": config.hidden_size,
        "exits": list(classifier.backend.exit_layers),
        "labels": list(classifier.label_names),
        "method": config.method,
        "method_options": dict(config.method_options),
        "pooling": config.pooling,
        "prototypes": config.prototypes,
        "prototypes_set": _prototypes_set(model),
        "max_length": config.max_length,
        "metric": config.metric,
        "parameters": total,
        "exit_parameters": added,
        "exit_parameter_share": round(sum(added.values()) / (total - sum(added.values())), 6),
        "default_point": config.default_point or "full",
        "points": dict(config.operating_points),
    }


def _prototypes_set(model: Any) -> str:
    if model.prototypes is None:
        return "none"
    done = model.prototypes.initialised
    means = model.config.prototype_means
    return f"{int(done.sum())} of {len(done)} classes, means: {means}"
