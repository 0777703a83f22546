"""What a classifier must know of its model, read from `config.json` without any model library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from de3bert.errors import De3Error

__all__ = ["Facts"]


@dataclass(frozen=True)
class Facts:
    """The parts of a model's config that do not concern its layers."""

    label_names: tuple[str, ...]
    exit_layers: tuple[int, ...]  # the last one is the full depth
    max_length: int
    method: str
    method_options: Mapping[str, Any]
    pooling: str
    prototypes: str
    prototype_means: str
    metric: str
    operating_points: Mapping[str, Any]
    default_point: str | None
    family: str
    hidden_size: int
    base_depth: int  # layers that speed-ups refer to: of the backbone, where the model is not whole
    router: str = "none"  # what says by itself how sure an exit is
    adapted_to: Mapping[str, Any] | None = None  # the unlabelled rows prototypes were moved to
    numbered_labels: bool = False  # a number in rows of its data is the place of a class
    text_pairs: bool | None = None  # whether a row is a pair of texts; None: not known

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> Facts:
        """Reads a config as JSON has it; De3Error names what is missing."""
        try:
            names = {int(key): str(name) for key, name in config["id2label"].items()}
            backbone = config["backbone_config"]
            layers = tuple(int(layer) for layer in config["exit_layers"])
            return cls(
                label_names=tuple(names[index] for index in range(len(names))),
                exit_layers=layers,
                max_length=int(config["max_length"]),
                method=str(config["method"]),
                method_options=dict(config.get("method_options") or {}),
                pooling=str(config["pooling"]),
                prototypes=str(config["prototypes"]),
                prototype_means=str(config.get("prototype_means", "moving")),
                metric=str(config.get("metric", "accuracy")),
                operating_points=dict(config.get("operating_points") or {}),
                default_point=config.get("default_point"),
                family=str(backbone.get("model_type", "unknown")),
                hidden_size=int(backbone.get("hidden_size") or backbone.get("dim") or 0),
                base_depth=int(config.get("base_depth") or layers[-1]),
                router=str(config.get("router") or "none"),
                adapted_to=config.get("adapted_to"),
                numbered_labels=bool(config.get("numbered_labels", False)),
                text_pairs=config.get("text_pairs"),
            )
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise De3Error(f"The model's config is damaged or incomplete: {error!r}.") from error
