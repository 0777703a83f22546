"""What exits read, by names of poolings (`de3bert.model.pooling`), and what methods get."""

from __future__ import annotations

from collections.abc import Mapping

from de3bert.methods.method import Method, OptionValue

__all__ = ["chosen_pooling", "pooler_start", "pooling_words"]

# With a pooler for each exit on top: tanh(W_m s + b_m) of the vector s that is read without it.
WITH_OWN = {"cls": "own_pooler", "shared_pooler": "own_pooler", "mean": "mean_own_pooler"}
WORDS = {
    "cls": "first token",
    "mean": "mean of the tokens",
    "shared_pooler": "first token + one dense for all exits",
    "own_pooler": "first token + own dense per exit",
    "mean_own_pooler": "mean of the tokens + own dense per exit",
}


def pooling_words(name: str) -> str:
    """A pooling in words; one from elsewhere has its name alone."""
    return WORDS.get(name, name)


def pooler_start(method: Method, options: Mapping[str, OptionValue]) -> str:
    """How the pooler begins that each exit has for itself, by the option `poolers` if there is one.

    `copied`: as the backbone's, where that was trained; `fresh`: from nothing; `none`: there is
    none. A method without that option has copied ones where its pooling is one with own poolers.
    """
    declared = "copied" if method.pooling in WITH_OWN.values() else "none"
    return str(options.get("poolers", declared))


def chosen_pooling(
    method: Method, options: Mapping[str, OptionValue], fitting: str, asked: str | None = None
) -> str:
    """The pooling that a method gets.

    Args:
        options: of the method, resolved.
        fitting: what fits the backbone: `mean`, or `shared_pooler` where it has a trained pooler.
        asked: what a recipe, a study or a caller asks for. It says which states are read; a method
            with poolers of its own has them on top, unless its option `poolers` is `none`.
    """
    own = pooler_start(method, options) != "none"
    # A declared pooling reads the first token, which says little where the mean fits.
    declared = None if fitting == "mean" or method.pooling in WITH_OWN.values() else method.pooling
    read = asked or declared or fitting
    return WITH_OWN.get(read, read) if own else read
