import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from de3bert.data.split import drop_repeats, split_rows
from de3bert.data.table import Table
from de3bert.errors import UsageError


@st.composite
def requests(draw):
    """Class counts with a few rare classes, and part sizes that have room for every class."""
    counts = draw(st.lists(st.integers(3, 60), min_size=1, max_size=6))
    labels = np.repeat(np.arange(len(counts)) * 10, counts)
    order = draw(st.permutations(range(len(labels))))
    fewest = len(counts)
    spare = len(labels) - 3 * fewest
    cuts = sorted(draw(st.lists(st.integers(0, spare), min_size=3, max_size=3)))
    sizes = {
        "train": fewest + cuts[0],
        "calibration": fewest + cuts[1] - cuts[0],
        "test": fewest + cuts[2] - cuts[1],
    }
    return labels[list(order)], sizes, draw(st.integers(0, 2**32))


@settings(max_examples=80, deadline=None)
@given(requests())
def test_parts_are_disjoint_exact_stratified_and_repeatable(request_):
    labels, sizes, seed = request_
    parts = split_rows(labels, sizes, seed)
    assert list(parts) == list(sizes)
    assert {name: len(rows) for name, rows in parts.items()} == sizes
    together = np.concatenate(list(parts.values()))
    assert len(set(together.tolist())) == len(together)
    for rows in parts.values():
        assert set(labels[rows]) == set(labels)
    again = split_rows(labels, sizes, seed)
    assert all(np.array_equal(parts[name], again[name]) for name in parts)


@settings(max_examples=60, deadline=None)
@given(
    counts=st.lists(st.integers(30, 200), min_size=2, max_size=5),
    share=st.floats(0.1, 0.5),
    seed=st.integers(0, 99),
)
def test_shares_use_every_row_and_keep_the_balance(counts, share, seed):
    labels = np.repeat(np.arange(len(counts)), counts)
    parts = split_rows(labels, {"train": 1 - share, "calibration": share}, seed)
    assert np.array_equal(np.sort(np.concatenate(list(parts.values()))), np.arange(len(labels)))
    for rows in parts.values():
        ideal = np.array(counts) * len(rows) / len(labels)
        assert np.abs(np.bincount(labels[rows], minlength=len(counts)) - ideal).max() < 1


def test_three_shares_and_another_seed():
    labels = np.repeat([0, 1], [70, 30])
    parts = split_rows(labels, {"train": 0.7, "calibration": 0.1, "test": 0.2}, seed=1)
    assert {name: len(rows) for name, rows in parts.items()} == {
        "train": 70,
        "calibration": 10,
        "test": 20,
    }
    assert np.bincount(labels[parts["calibration"]]).tolist() == [7, 3]
    other = split_rows(labels, {"train": 0.7, "calibration": 0.1, "test": 0.2}, seed=2)
    assert not np.array_equal(parts["test"], other["test"])


def test_a_large_part_leaves_rare_rows_for_the_small_ones():
    labels = np.repeat([0, 1], [97, 3])
    parts = split_rows(labels, {"train": 94, "calibration": 3, "test": 3}, seed=0)
    found = {name: np.bincount(labels[rows]).tolist() for name, rows in parts.items()}
    assert found == {"train": [93, 1], "calibration": [2, 1], "test": [2, 1]}


def test_counts_and_shares_together():
    parts = split_rows(np.repeat([0, 1], 50), {"test": 20, "calibration": 0.1}, seed=0)
    assert [len(rows) for rows in parts.values()] == [20, 10]


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({}, "Parts are"),
        ({"a": 0}, "Parts are"),
        ({"a": 1.5}, "Parts are"),
        ({"a": -0.1}, "Parts are"),
        ({"a": 0.8, "b": 0.8}, "more rows than there are"),
        ({"a": 11}, "more rows than there are"),
        ({"a": 2, "b": 2, "c": 2}, r"class 1 \(only 2\)"),
        ({"a": 1, "b": 5}, r"Too few rows in a \(1\)"),
    ],
)
def test_what_is_refused(parts, words):
    with pytest.raises(UsageError, match=words):
        split_rows(np.repeat([0, 1], [8, 2]), parts, seed=0)


def test_classes_are_called_by_their_names_and_long_lists_are_cut():
    labels = np.arange(40)
    names = [f"kind {number}" for number in range(40)]
    with pytest.raises(UsageError) as error:
        split_rows(labels, {"train": 0.5, "calibration": 0.5}, seed=0, names=names)
    assert 'Too few rows of "kind 0" (only 1), "kind 1" (only 1)' in str(error.value)
    assert "and 30 more: each of the 2 parts (train, calibration) needs" in str(error.value)


def test_repeats_are_dropped_whatever_their_case_spacing_or_label():
    table = Table(["A joy", "a  JOY ", "a bore", "a joy"], labels=[1, 1, 0, 0])
    kept, dropped = drop_repeats(table)
    assert (kept.texts, kept.labels, dropped) == (["A joy", "a bore"], [1, 0], 2)


def test_pairs_are_compared_as_pairs():
    table = Table(["a", "a", "a"], pairs=["x", "y", " X"])
    kept, dropped = drop_repeats(table)
    assert (kept.pairs, dropped) == (["x", "y"], 1)
    assert drop_repeats(kept) == (kept, 0)
