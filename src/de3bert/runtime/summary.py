"""What a model is, in a few values."""

from __future__ import annotations

from typing import Any

from de3bert.exits import OperatingPoint
from de3bert.runtime.classifier import Classifier

__all__ = ["summarise"]


def summarise(classifier: Classifier[Any]) -> dict[str, Any]:
    """A summary for people and scripts, in plain JSON values."""
    config = classifier.info
    return {
        "task": config.task,
        "family": config.family,
        "layers": classifier.depth,
        "base_depth": config.base_depth,
        "hidden_size": config.hidden_size,
        "exits": list(classifier.backend.exit_layers),
        "labels": list(classifier.label_names),
        "numbered_labels": config.numbered_labels,
        "text_pairs": config.text_pairs,
        "method": config.method,
        "method_options": dict(config.method_options),
        "pooling": config.pooling,
        "router": config.router,
        "prototypes": config.prototypes,
        "prototypes_set": _prototypes_set(classifier),
        "max_length": config.max_length,
        "metric": config.metric,
        "backend": classifier.opening.backend if classifier.opening else None,
        **classifier.backend.size(),
        "default_point": config.default_point or "full",
        "points": {
            name: OperatingPoint.from_json(point).to_json()
            for name, point in config.operating_points.items()
        },
    }


def _prototypes_set(classifier: Classifier) -> str:
    if not classifier.has_prototypes:
        return "none"
    classes = len(classifier.label_names)
    done = classes - len(classifier.backend.prototypes_unset)
    means = classifier.info.prototype_means
    if (adapted := classifier.info.adapted_to) is not None:
        means = f"adapted to {adapted.get('rows')} rows of {adapted.get('source')}"
    return f"{done} of {classes} classes, means: {means}"
