"""Table V: what the compared methods are made of."""

from __future__ import annotations

from de3bert.methods import METHODS
from de3lab.paper.item import Item
from de3lab.paper.stored import Stored
from de3lab.tabular import Grid

__all__ = ["BASELINES"]

PUBLISHED = {  # name, when it leaves, exit, training objective
    "deebert": ("DeeBERT", "entropy < tau", "linear", "CE"),
    "pabee": ("PABEE", "patience >= tau", "linear", "CE"),
    "berxit": ("BERxiT", "correctness > tau", "linear", "CE, MSE"),
    "pcee": ("PCEE-BERT", "patience >= tau", "linear", "CE"),
    "gpfee": ("GPFEE", "entropy < tau", "enhanced", "CE, imitation"),
    "leebert": ("LeeBERT", "patience >= tau", "linear", "CE, distillation"),
    "cosee": ("COSEE", "energy < tau", "linear", "CE, signal calibration"),
}


def baseline_tables(stored: Stored) -> list[Grid]:
    """What the methods declare here beside the paper's summary of them."""
    rows = []
    for name, (shown, criterion, head, objective) in PUBLISHED.items():
        method = METHODS[name]
        training = METHODS[method.training or name]
        losses = dict.fromkeys(term.loss for phase in training.phases for term in phase.terms)
        leaves, ours = ", ".join(method.families), ", ".join(x.replace("_", " ") for x in losses)
        rows.append((f"{shown} ({name})", leaves, criterion, training.heads, head, ours, objective))
    columns = ("method", "leaves by, ours", "paper", "exit, ours", "paper", "losses, ours", "paper")
    return [Grid("Methods", columns, tuple(rows), "`de3 methods NAME` says more about each.")]


BASELINES = Item(
    name="baselines",
    references=("Table V",),
    labels=("tab:early_exit_baselines",),
    title="What the compared methods are made of",
    shows="Exit rule, exit and training objective of every early-exit method.",
    published=PUBLISHED,
    tables=baseline_tables,
)
