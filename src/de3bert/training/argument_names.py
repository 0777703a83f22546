"""The names that `transformers.TrainingArguments` has for settings of a recipe.

Who comes from there writes `num_train_epochs` or `per_device_train_batch_size`; a recipe takes
these as well, in files and with `--set`, and so does the file of a study.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from de3bert.errors import UsageError

__all__ = ["our_name", "with_our_names"]

# In [train]: theirs -> ours.
NAMES = {
    "num_train_epochs": "epochs",
    "per_device_train_batch_size": "batch_size",
    "train_batch_size": "batch_size",
    "gradient_accumulation_steps": "gradient_accumulation",
    "warmup_ratio": "warmup",
    "warmup_steps": "warmup",
    "early_stopping_patience": "early_stopping",
}
PRECISIONS = ("bf16", "fp16")


def our_name(path: list[str], value: Any) -> tuple[list[str], Any]:
    """A dotted setting and its value as a recipe has them.

    Example:
        >>> our_name(["train", "num_train_epochs"], 2)
        (['train', 'epochs'], 2)
    """
    if path[:1] != ["train"] or len(path) != 2:
        return path, value
    name = path[1]
    if name in PRECISIONS:
        return ["train", "mixed_precision"], _precision(name, value)
    if name == "train_sampling_strategy":
        return ["train", "group_by_length"], _grouped(value)
    if name == "warmup_steps" and isinstance(value, int | float) and value >= 1:
        raise UsageError(
            f"train.warmup_steps is a fraction of all steps here, below 1, got {value:g}. Divide "
            "by the number of steps, or leave it out."
        )
    return ["train", NAMES.get(name, name)], value


def with_our_names(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a recipe whose section [train] has names of ours alone.

    Raises:
        UsageError: one setting stands there by two names.
    """
    train = settings.get("train")
    if not isinstance(train, Mapping):
        return dict(settings)
    made: dict[str, Any] = {}
    said_as: dict[str, str] = {}
    for name, value in train.items():
        (_, ours), found = our_name(["train", str(name)], value)
        if ours in made and {name, said_as[ours]} != set(PRECISIONS):
            raise UsageError(
                f"train.{said_as[ours]} and train.{name} are the same setting. Leave one out."
            )
        if ours in made and found == "no":  # bf16 = true, fp16 = false
            continue
        made[ours], said_as[ours] = found, str(name)
    return {**settings, "train": made}


def _precision(name: str, value: Any) -> Any:
    return name if value is True else "no" if value is False else value


def _grouped(value: Any) -> Any:
    return {"group_by_length": True, "random": False}.get(str(value), value)
