"""A recipe says everything about a training. It is a TOML file, checked before anything starts."""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_core import ErrorDetails

from de3bert.data.label_names import names_by_number
from de3bert.errors import UsageError
from de3bert.files import read_toml
from de3bert.printable import printable
from de3bert.registry import unknown
from de3bert.tasks import known_task
from de3bert.training.argument_names import our_name, with_our_names

__all__ = [
    "DataRecipe",
    "Recipe",
    "TrainRecipe",
    "load_recipe",
    "recipe_from",
    "recipe_text",
    "resolve",
]


HEAD_LEARNING_RATE = 1e-3  # what AdamW is usually given for small layers that start from nothing
# Upper bounds leave room for all that has ever helped; what lies beyond is a typing error.
MOST_RATE = 1.0  # learning rate; AdamW moves each weight by about as much in a step
MOST_EPOCHS = 10_000
MOST_ROWS = 10**12
LAST_SEED = 2**32 - 1  # numpy takes no other
RECIPES = Path(__file__).parents[1] / "recipes"  # those that ship with the package
SHOWN = 60  # characters of a value that is not valid


class RecipeSection(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


class DataRecipe(RecipeSection):
    """Where rows come from. Without a calibration file, a share of train is kept back.

    With the task `token-classification` a row is a sentence: `text` and `label` name its columns of
    word and tag lists, and the metric is `accuracy` (of words) or `span_f1`.
    """

    task: str = "text-classification"
    train: str
    config: str | None = None
    train_split: str | None = None
    calibration: str | None = None
    calibration_split: str | None = None
    calibration_share: float = Field(default=0.1, gt=0, lt=1)
    unlabelled: str | None = None  # more text for phases that need no labels
    test: str | None = None
    test_split: str | None = None
    text: str | None = None
    text_pair: str | None = None
    label: str | None = None
    # What numbers in the label column stand for: the names of 0, 1, 2 ..., or a name by number.
    label_names: list[str] | dict[str, str] | None = None
    max_length: int = Field(default=128, ge=8, le=1_000_000)
    metric: str = "accuracy"
    limit: int | None = Field(default=None, ge=2, le=MOST_ROWS)

    @field_validator("task")
    @classmethod
    def _task_is_known(cls, name: str) -> str:
        try:
            return known_task(name)
        except UsageError as error:
            raise ValueError(str(error)) from error

    @property
    def numbered_names(self) -> dict[int, str] | None:
        """`label_names` by number."""
        return None if self.label_names is None else names_by_number(self.label_names)


class TrainRecipe(RecipeSection):
    """Optimisation: AdamW with linear decay.

    The names of `transformers.TrainingArguments` are taken as well (`argument_names`).
    """

    epochs: float = Field(default=3.0, gt=0, le=MOST_EPOCHS)
    batch_size: int = Field(default=32, ge=1, le=65_536)
    learning_rate: float = Field(default=2e-5, gt=0, le=MOST_RATE)
    # Learning rate of heads and routers, as a multiple; None raises it to HEAD_LEARNING_RATE where
    # the encoder's is lower. In a few hundred steps at an encoder's rate the weights of a linear
    # head move by about their start values, and shallow exits, which the encoder does not come to
    # meet, stay near chance. 1 is the paper's, which has many thousand steps.
    head_rate: float | None = Field(default=None, gt=0)
    weight_decay: float = Field(default=0.0, ge=0, le=10)
    warmup: float = Field(default=0.0, ge=0, lt=1)  # share of all steps
    max_grad_norm: float = Field(default=1.0, gt=0, le=1e9)
    gradient_accumulation: int = Field(default=1, ge=1, le=65_536)
    mixed_precision: Literal["auto", "no", "bf16", "fp16"] = "auto"
    # Epochs without improvement; 0: off.
    early_stopping: int = Field(default=0, ge=0, le=MOST_EPOCHS)
    # Extra checkpoints within an epoch.
    save_steps: int | None = Field(default=None, ge=1, le=MOST_ROWS)
    # Batches of one length each. Off by default: prototypes follow the last batches, see the docs.
    group_by_length: bool = False
    # After training, prototypes become class means over all training rows (not in the paper).
    refresh_prototypes: bool = False
    seed: int = Field(default=42, ge=0, le=LAST_SEED)
    # Where losses and scores are sent while it trains: `tensorboard`, `wandb`, `trackio` ...
    report_to: str | list[str] = "none"

    @model_validator(mode="after")
    def _head_rate_is_sound(self) -> TrainRecipe:
        if self.head_learning_rate > MOST_RATE:
            raise ValueError(
                f"learning_rate times head_rate is {self.head_learning_rate:g}; it should be at "
                f"most {MOST_RATE:g}"
            )
        return self

    @property
    def head_learning_rate(self) -> float:
        """The learning rate of heads and routers."""
        if self.head_rate is None:
            return max(self.learning_rate, HEAD_LEARNING_RATE)
        return self.learning_rate * self.head_rate


class Recipe(RecipeSection):
    """One training.

    Whether a backbone's own code may be run is not a setting of a recipe: recipes are shared.
    """

    # Options that are no numbers are refused by name and range: `de3bert.methods.options`.
    model_config = ConfigDict(allow_inf_nan=True)

    backbone: str
    small_backbone: str | None = None  # the small encoder that a cascade begins with
    method: str = "de3-fitted"
    pooling: str | None = None
    prototypes: Literal["linear", "identity", "none"] | None = None
    exit_layers: list[int] | None = None
    data: DataRecipe
    train: TrainRecipe = TrainRecipe()
    method_options: dict[str, float | str] = {}
    search: dict[str, list[float | str]] = {}

    @model_validator(mode="before")
    @classmethod
    def _exits_are_part_of_the_method(cls, settings: Any) -> Any:
        """`exits = "fitted"` with a method is the method with `+fitted`, by which it is known."""
        if not isinstance(settings, dict) or "exits" not in settings:
            return settings
        settings = dict(settings)
        exits = settings.pop("exits")
        if exits not in ("trained", "fitted"):
            raise ValueError(f'exits is "trained" or "fitted", got {exits!r:.60}')
        method = settings.get("method")
        if exits == "fitted" and isinstance(method, str) and not method.endswith("fitted"):
            settings["method"] = f"{method}+fitted"
        if exits == "trained" and (method is None or str(method).endswith("fitted")):
            raise ValueError(
                f"the exits of {method or cls.model_fields['method'].default} are fitted; name a "
                "method with trained exits, such as de3"
            )
        return settings

    def fingerprint(self) -> str:
        """Changes with anything that changes the result; names an unfinished training."""
        settings = self.model_dump(exclude={"search"})
        del settings["train"]["report_to"]  # who listens changes nothing
        if self.small_backbone is None:
            del settings["small_backbone"]  # as before there was such a setting
        text = json.dumps(settings, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def load_recipe(source: str | Path) -> dict[str, Any]:
    """The settings of a recipe file, or of a recipe that ships with the package ("sst2")."""
    path = Path(source)
    try:
        file = path if path.is_file() else _shipped(str(source))
    except OSError as error:  # no name of a file
        raise UsageError(f"The recipe {source} cannot be read: {error.strerror}.") from error
    return with_our_names(read_toml(file, "The recipe"))


def recipe_from(settings: dict[str, Any], overrides: Sequence[str] = ()) -> Recipe:
    """Checks settings, with `key.path=value` overrides on top (TOML values or bare words)."""
    copied = json.loads(json.dumps(settings, default=str))  # TOML has dates, a recipe none
    merged = with_our_names(copied)
    for override in overrides:
        key, separator, value = override.partition("=")
        if not separator or not key.strip():
            raise UsageError(f'--set takes key=value, such as train.epochs=2; got "{override}".')
        _assign(merged, *our_name(key.strip().split("."), _value(value.strip())))
    try:
        return Recipe.model_validate(merged)
    except ValidationError as error:
        lines = [f"  {_named(each)}" for each in error.errors()]
        raise UsageError("The recipe is not valid:\n" + "\n".join(lines)) from error


def resolve(
    source: str | Path | None, given: Mapping[str, Any], overrides: Sequence[str] = ()
) -> Recipe:
    """A recipe from a file or shipped name, command-line settings over it, `--set` over both.

    Args:
        source: file or name; None starts from nothing, then backbone and data must be given.
        given: dotted setting -> value; None means not given.
        overrides: `key.path=value` lines.
    """
    settings = load_recipe(source) if source is not None else {}
    for key, value in given.items():
        if value is not None:
            _assign(settings, key.split("."), value)
    named = {line.partition("=")[0].strip() for line in overrides}
    for key, option in (("backbone", "--backbone"), ("data.train", "--data")):
        present: Any = settings
        for part in key.split("."):
            present = present.get(part) if isinstance(present, dict) else present
        if present is None and key not in named:
            raise UsageError(
                f"The setting {key} is missing: pass {option}, or a --recipe that has it."
            )
    return recipe_from(settings, overrides)


def recipe_text(recipe: Recipe) -> str:
    """The recipe as TOML, with every default spelled out."""
    import tomli_w

    return tomli_w.dumps(recipe.model_dump(exclude_none=True))


def _named(found: ErrorDetails) -> str:
    """One thing that is not valid: where, what is accepted, what came."""
    line = f"{'.'.join(map(str, found['loc']))}: {found['msg']}"
    if found["type"] == "missing" or isinstance(found["input"], dict):
        return line
    came = printable(repr(found["input"]))
    return f"{line}, got {came if len(came) <= SHOWN else came[:SHOWN] + ' ...'}"


def _shipped(name: str) -> Path:
    shipped = {path.stem: path for path in RECIPES.glob("*.toml")}
    if name not in shipped:
        raise UsageError(unknown("recipe (and no such file)", name, shipped))
    return shipped[name]


def _assign(settings: dict[str, Any], path: list[str], value: Any) -> None:
    for part in path[:-1]:
        settings = settings.setdefault(part, {})
        if not isinstance(settings, dict):
            raise UsageError(f"--set {'.'.join(path)}: {part} is a value, not a section.")
    settings[path[-1]] = value


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text
