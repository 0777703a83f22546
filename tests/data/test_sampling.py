"""Rows drawn from a table: from all over it, in its order, the same for the same seed."""

from __future__ import annotations

import pytest

from de3bert.data.sampling import draw_rows
from de3bert.data.table import Table
from de3bert.errors import UsageError

TABLE = Table([str(number) for number in range(100)])


def test_rows_come_from_all_over_in_the_order_of_the_table():
    drawn = [int(text) for text in draw_rows(TABLE, 30, seed=1).texts]
    assert len(drawn) == len({*drawn}) == 30
    assert drawn == sorted(drawn)
    assert min(drawn) < 20
    assert max(drawn) > 80


def test_the_seed_decides():
    first, again, other = (draw_rows(TABLE, 30, seed).texts for seed in (1, 1, 2))
    assert first == again != other


def test_a_small_table_is_taken_whole():
    assert draw_rows(TABLE, 100, seed=0) is TABLE
    assert draw_rows(TABLE, 1000, seed=0) is TABLE


def test_no_rows_are_refused():
    with pytest.raises(UsageError, match="At least one row must be drawn, got 0"):
        draw_rows(TABLE, 0, seed=0)
