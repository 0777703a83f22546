"""All tables and figures of the paper, by name, in its order."""

from __future__ import annotations

from collections.abc import Mapping

from de3bert.errors import UsageError
from de3bert.registry import unknown
from de3lab.paper.item import Item
from de3lab.paper.items_appendix import APPENDIX
from de3lab.paper.items_main import MAIN

__all__ = ["ITEMS", "item_named", "runnable"]

ITEMS: Mapping[str, Item] = {item.name: item for item in (*MAIN, *APPENDIX)}

# What is worth most for the time it takes comes first: all that one training of DE3 on each task
# gives, then its variants, then everything else.
BY_VALUE = (
    "indicator", "strategies", "lambda", "correctness", "exit-layers", "sample", "speed",
    "one-rate", "one-rate-correctness", "components", "homogeneity", "space", "costs", "alpha",
    "shift", "backbone", "chinese", "dar-forms", "distillation", "methods",
)  # fmt: skip


def item_named(name: str) -> Item:
    """An item; UsageError names the near ones."""
    if name not in ITEMS:
        raise UsageError(unknown("item of the paper", name, ITEMS))
    return ITEMS[name]


def runnable() -> list[Item]:
    """The items that something is trained for, in the order of their value."""
    return [ITEMS[name] for name in BY_VALUE]
