"""Some rows of a table, drawn with a seed."""

from __future__ import annotations

import numpy as np

from de3bert.data.table import Table
from de3bert.errors import UsageError

__all__ = ["draw_rows"]


def draw_rows(table: Table, rows: int, seed: int) -> Table:
    """At most `rows` rows from all over the table, in its order: files are often sorted."""
    if rows < 1:
        raise UsageError(f"At least one row must be drawn, got {rows} (--rows).")
    if len(table) <= rows:
        return table
    chosen = np.random.default_rng(seed).permutation(len(table))[:rows]
    return table.take(np.sort(chosen).tolist())
