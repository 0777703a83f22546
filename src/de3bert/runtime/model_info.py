"""What a classifier must know of its model, read from `config.json` without any model library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from de3bert.errors import De3Error, UsageError
from de3bert.limits import check_sizes
from de3bert.printable import cut_list, printable
from de3bert.tasks import task_of

__all__ = ["ModelInfo"]


@dataclass(frozen=True)
class ModelInfo:
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
    router: str = "none"  # what estimates how sure an exit is
    adapted_to: Mapping[str, Any] | None = None  # the unlabelled rows prototypes were moved to
    numbered_labels: bool = False  # a number in rows of its data is a class index
    fitted: Mapping[str, Any] | None = None  # the rows that exits were fitted to, and how
    text_pairs: bool | None = None  # whether a row is a pair of texts; None: not known
    plugins: tuple[str, ...] = ()  # modules outside this package whose parts the model has
    task: str = "text-classification"
    keeps_memory: bool = False  # an exit reads the exits before it: none can be left out

    @classmethod
    def of(cls, config: Mapping[str, Any]) -> ModelInfo:
        """Reads a config as JSON has it; De3Error names what is missing or invalid."""
        check_sizes(config, "The model's config")
        try:
            info = cls(
                label_names=_label_names(config["id2label"]),
                exit_layers=_exit_layers(config["exit_layers"]),
                max_length=_whole(config, "max_length"),
                method=_word(config, "method"),
                method_options=_mapping(config, "method_options"),
                pooling=_word(config, "pooling"),
                prototypes=_word(config, "prototypes"),
                prototype_means=_word(config, "prototype_means", "moving"),
                metric=_word(config, "metric", "accuracy"),
                operating_points=_mapping(config, "operating_points"),
                default_point=_word(config, "default_point", "") or None,
                family=_word(config["backbone_config"], "model_type", "unknown"),
                hidden_size=_hidden_size(config["backbone_config"]),
                base_depth=_whole(config, "base_depth", config["exit_layers"][-1]),
                router=_word(config, "router", "none"),
                adapted_to=_mapping(config, "adapted_to") or None,
                fitted=_mapping(config, "fitted") or None,
                numbered_labels=config.get("numbered_labels") is True,
                text_pairs=_truth(config, "text_pairs"),
                plugins=_names(config, "plugins"),
                task=_task(config),
                keeps_memory=_keeps_memory(config),
            )
        except KeyError as error:
            raise _damaged(f"{error} is missing") from error
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise _damaged(str(error)) from error
        return info


def _damaged(reason: str) -> De3Error:
    return De3Error(f"The model's config is damaged or incomplete: {printable(reason)[:300]}.")


def _label_names(given: Mapping[str, Any]) -> tuple[str, ...]:
    names = {int(key): str(name) for key, name in given.items()}
    if len(names) < 2 or sorted(names) != list(range(len(names))):
        raise ValueError(
            f"id2label names the classes {cut_list(sorted(names))}; they must count from 0 without "
            "gaps, and there must be at least two"
        )
    if len(set(names.values())) < len(names):
        raise ValueError("id2label gives two classes the same name")
    return tuple(names[index] for index in range(len(names)))


def _exit_layers(given: Any) -> tuple[int, ...]:
    layers = tuple(given)
    sound = bool(layers) and all(type(layer) is int for layer in layers)
    if not sound or any(low >= high for low, high in pairwise((0, *layers))):
        raise ValueError(f"exit_layers are whole numbers from 1 up, each above the one before, got "
                         f"{cut_list(layers)}")  # fmt: skip
    return layers


def _whole(config: Mapping[str, Any], key: str, default: int | None = None) -> int:
    value = config[key] if default is None else config.get(key) or default
    if type(value) is not int or value < 1:
        raise ValueError(f"{key} is a whole number from 1 up, got {value!r:.60}")
    return value


def _word(config: Mapping[str, Any], key: str, default: str | None = None) -> str:
    value = config[key] if default is None else config.get(key)
    value = default if value is None else value
    if not isinstance(value, str):
        raise TypeError(f"{key} is a word, got {value!r:.60}")
    return value


def _mapping(config: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = config.get(key) or {}
    if not isinstance(value, Mapping):
        raise TypeError(f"{key} is an object, got {value!r:.60}")
    return dict(value)


def _truth(config: Mapping[str, Any], key: str) -> bool | None:
    value = config.get(key)
    if value is not None and not isinstance(value, bool):
        raise TypeError(f"{key} is true, false or null, got {value!r:.60}")
    return value


def _names(config: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = config.get(key) or ()
    if not isinstance(value, list | tuple) or not all(isinstance(name, str) for name in value):
        raise TypeError(f"{key} is a list of names, got {value!r:.60}")
    return tuple(value)


def _task(config: Mapping[str, Any]) -> str:
    try:
        return task_of(config).name
    except UsageError as error:
        raise ValueError(str(error)) from error


def _keeps_memory(config: Mapping[str, Any]) -> bool:
    told = _truth(config, "keeps_memory")
    if told is None:  # a config from before heads said so themselves
        told = config.get("heads") in ("fused", "mixed")
    return told or bool(config.get("cascade"))


def _hidden_size(backbone: Mapping[str, Any]) -> int:
    for key in ("hidden_size", "dim", "d_model"):
        if key in backbone:
            return _whole(backbone, key)
    return 0
