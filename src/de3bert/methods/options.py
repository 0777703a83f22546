"""What the options of methods may be, by name; checked before anything is read or trained."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from de3bert.errors import UsageError
from de3bert.exits.token_hash import HASHES
from de3bert.registry import unknown

__all__ = ["OPTIONS", "OneOf", "OptionValue", "Range", "check_option"]

OptionValue = float | str
MOST_LAYERS = 1000.0  # the limit on an encoder's layers, see `limits`


@dataclass(frozen=True)
class Range:
    """Numbers from `least` to `most`.

    Args:
        above: `least` itself is not among them.
        whole: only whole numbers.
    """

    least: float
    most: float
    above: bool = False
    whole: bool = False

    def check(self, name: str, value: OptionValue) -> None:
        number = float(value)
        low = number <= self.least if self.above else number < self.least
        # NaN compares as false with everything, so it has to be asked for by name.
        if low or math.isnan(number) or (self.whole and number % 1):
            raise UsageError(f"Option {name} must be {self._accepted()}, got {number:g}.")
        if number > self.most:
            raise UsageError(f"Option {name} must be at most {self.most:g}, got {number:g}.")

    def _accepted(self) -> str:
        if self.whole:
            return f"a whole number from {self.least:g} on"
        return f"a number {'above' if self.above else 'at least'} {self.least:g}"


@dataclass(frozen=True)
class OneOf:
    """One of a few words.

    Args:
        kind: what the words are, in messages; by default values of the option.
    """

    words: Collection[str]
    kind: str = ""

    def check(self, name: str, value: OptionValue) -> None:
        if value not in self.words:
            kind = self.kind or f"value of option {name}"
            raise UsageError(unknown(kind, str(value), self.words))


WEIGHT = Range(0.0, 1000.0)  # of a term of the loss
SHARE = Range(0.0, 1.0)
EPOCHS = Range(0.0, 1000.0)  # as a multiple of the recipe's; 0 leaves the phase out
MULTIPLE = Range(0.0, 1000.0, above=True)  # of a setting of the recipe
LEARNING_RATE = Range(0.0, 1.0, above=True)
SWITCH = Range(0.0, 1.0, whole=True)

OPTIONS: dict[str, Range | OneOf] = {
    "a": WEIGHT,
    "alpha": WEIGHT,
    "b0": WEIGHT,
    "beta": WEIGHT,
    "buckets": Range(1.0, MOST_LAYERS, whole=True),
    "calibration": WEIGHT,
    "dar": OneOf(("center", "alienation", "combined", "none"), "form of dar"),
    "difficulty": WEIGHT,
    "difficulty_epochs": MULTIPLE,
    "direction": OneOf(("teacher", "student")),
    "directions": WEIGHT,
    "fine_tune": EPOCHS,
    "folds": Range(2.0, 1000.0, whole=True),
    "from": OneOf(("all", "later")),
    "full_share": Range(0.0, 0.8),
    "future": SWITCH,
    "gamma": SHARE,
    "halves": OneOf(("crossed", "fixed", "none")),
    "hard": WEIGHT,
    "hash": OneOf(HASHES, HASHES.kind),
    "head_size": Range(1.0, 65_536.0, whole=True),
    "inner_rate": LEARNING_RATE,
    "joint_epochs": EPOCHS,
    "kd": WEIGHT,
    "lambda": WEIGHT,
    "last": Range(0.0, MOST_LAYERS, whole=True),
    "layers": Range(0.0, MOST_LAYERS, whole=True),
    "margin": WEIGHT,
    "match": OneOf(("skip", "last")),
    "patience": Range(0.0, 100_000.0),  # a weight; its default is 100
    "poolers": OneOf(("copied", "fresh", "none"), "start of poolers"),
    "policy_epochs": EPOCHS,
    "policy_rate": LEARNING_RATE,
    "rate": Range(0.0, 1.0, above=True),
    "replacing": SHARE,
    "rho": WEIGHT,
    "rollouts": Range(2.0, 10_000.0, whole=True),
    "sampling": EPOCHS,
    "schedule": OneOf(("linear", "constant")),
    "small": Range(1.0, MOST_LAYERS, whole=True),
    "soft": WEIGHT,
    "soft_words": OneOf(("all", "masked")),
    "temperature": Range(0.0, 1000.0, above=True),
    "thaw": Range(0.0, MOST_LAYERS, whole=True),
    "thresholds": Range(1.0, 10_000.0, whole=True),
    "unroll": SWITCH,
    "weights_rate": LEARNING_RATE,
    "word_epochs": EPOCHS,
    "word_rate": MULTIPLE,
    "words": WEIGHT,
}


def check_option(
    method: str, name: str, value: OptionValue, defaults: Mapping[str, OptionValue]
) -> None:
    """UsageError when a method has no such option, or when its value is out of range.

    Args:
        defaults: all options of the method.
    """
    if name not in defaults:
        raise UsageError(unknown(f"option of method {method}", name, defaults))
    if isinstance(defaults[name], str) != isinstance(value, str):
        kind = "a word" if isinstance(defaults[name], str) else "a number"
        raise UsageError(f"Option {name} of method {method} is {kind}, got {value!r}.")
    if name in OPTIONS:  # a method from elsewhere may have options of its own
        OPTIONS[name].check(name, value)
