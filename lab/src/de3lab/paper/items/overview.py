"""Fig. 3: a drawing of the method."""

from __future__ import annotations

from de3lab.paper.item import Item

__all__ = ["OVERVIEW"]

OVERVIEW = Item(
    name="overview",
    references=("Fig. 3",),
    labels=("fig:overview",),
    title="Early exits by entropy, and DE3's",
    shows="A drawing of the method; there is nothing to measure. `docs/architecture.md` says how "
    "the parts are laid out here.",
)
