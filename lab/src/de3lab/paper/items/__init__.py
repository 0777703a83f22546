"""All tables and figures of the paper, one file each, by name and in its order.

A file has the published numbers, what makes ours, the table of both, and what is judged by it.
"""

from __future__ import annotations

from collections.abc import Mapping

from de3bert.errors import UsageError
from de3bert.registry import unknown
from de3lab.paper.item import Finding, Item
from de3lab.paper.items.alpha import ALPHA
from de3lab.paper.items.backbone import BACKBONE
from de3lab.paper.items.baselines import BASELINES
from de3lab.paper.items.chinese import CHINESE
from de3lab.paper.items.components import COMPONENTS
from de3lab.paper.items.correctness import CORRECTNESS, ONE_RATE_CORRECTNESS
from de3lab.paper.items.costs import COSTS
from de3lab.paper.items.dar_forms import DAR_FORMS
from de3lab.paper.items.data import DATA
from de3lab.paper.items.distillation import DISTILLATION
from de3lab.paper.items.exit_layers import EXIT_LAYERS
from de3lab.paper.items.homogeneity import HOMOGENEITY
from de3lab.paper.items.hyperparameters import HYPERPARAMETERS
from de3lab.paper.items.indicator import INDICATOR, ONE_RATE
from de3lab.paper.items.lambdas import LAMBDAS
from de3lab.paper.items.methods import METHODS
from de3lab.paper.items.overview import OVERVIEW
from de3lab.paper.items.sample import SAMPLE
from de3lab.paper.items.shift import SHIFT
from de3lab.paper.items.space import SPACE
from de3lab.paper.items.speed import SPEED
from de3lab.paper.items.strategies import STRATEGIES

__all__ = ["BY_VALUE", "FINDINGS", "ITEMS", "item_named", "runnable"]

_ORDERED = (
    SAMPLE, STRATEGIES, OVERVIEW, DATA, METHODS, DISTILLATION, INDICATOR, ONE_RATE, COMPONENTS,
    BACKBONE, BASELINES, EXIT_LAYERS, SPEED, SHIFT, CHINESE, LAMBDAS, ALPHA, CORRECTNESS,
    ONE_RATE_CORRECTNESS, COSTS, SPACE, HOMOGENEITY, HYPERPARAMETERS, DAR_FORMS,
)  # fmt: skip
ITEMS: Mapping[str, Item] = {item.name: item for item in _ORDERED}
FINDINGS: tuple[tuple[Item, Finding], ...] = tuple(
    (item, finding) for item in _ORDERED for finding in item.findings
)

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
