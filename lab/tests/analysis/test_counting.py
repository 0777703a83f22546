"""Operations: torch's counter is the oracle of the formula."""

from __future__ import annotations

import pytest
import torch

import de3bert
from de3lab.analysis import Subject
from de3lab.analysis.counting import (
    COUNTER,
    FORMULA,
    Operations,
    count_by_formula,
    count_by_torch,
    counted,
)
from de3lab.study.flops import Anatomy, count_work

KINDS = [
    ("de3", "mean"),
    ("de3", "shared_pooler"),
    ("de3-no-pn", "cls"),
    ("joint-entropy", "own_pooler"),
    ("berxit", None),
    ("consistentee", "cls"),
    ("full", "mean"),
]


def token_row(tokens: int) -> dict[str, list[int]]:
    return {
        "input_ids": [2, *[6] * (tokens - 2), 3],
        "token_type_ids": [0] * tokens,
        "attention_mask": [1] * tokens,
    }


@pytest.mark.parametrize(("method", "pooling"), KINDS)
def test_the_formula_is_what_torch_counts(untrained, method, pooling):
    folder = untrained(method, pooling=pooling)
    backend = de3bert.load(folder).backend
    for tokens in (3, 17):
        counted = count_by_torch(backend, token_row(tokens))
        assert counted == count_by_formula(Anatomy.of_folder(folder), tokens)


def test_three_classes(untrained):
    folder = untrained("de3", labels=["a", "b", "c"])
    row = token_row(9)
    found = count_by_torch(de3bert.load(folder).backend, row)
    assert found.layers == (2 * 9 * (4 * 32**2 + 2 * 32 * 64) + 4 * 9**2 * 32,) * 4
    assert found.exits[0]["distances"] == found.exits[0]["head"] == 2 * 32 * 3
    assert found.exits[0]["projection"] == 2 * 32 * 32
    assert set(found.exits[-1]) == {"pooling", "head"}
    assert found == count_by_formula(Anatomy.of_folder(folder), 9)


def test_distances_are_counted_as_products(untrained):
    model = de3bert.load(untrained("de3-no-pn", labels=["a", "b", "c"])).backend.model
    _, counted = count_work(model.distances, torch.zeros(1, 32), 1)
    assert counted == 2 * 32 * 3


@pytest.mark.parametrize("method", ["gpfee", "righttool", "fastbert", "cascade-truncated"])
def test_heads_of_other_kinds_are_counted_too(untrained, method):
    """By running them: those that look back need the vectors of the exits before."""
    found = count_by_torch(de3bert.load(untrained(method)).backend, token_row(7))
    assert all(parts["head"] > 0 for parts in found.exits)
    assert all(layer > 0 for layer in found.layers)
    assert len(found.layers) == found.exit_layers[-1]


def test_up_to_a_layer():
    found = Operations(
        5.0, (10.0, 20.0, 40.0), ({"head": 1.0, "router": 2.0}, {"head": 7.0}), (2, 3)
    )
    assert found.until(2) == 5 + 30 + 3
    assert found.until(3) == 5 + 70 + 3 + 7
    assert found.until(3, tested=False) == 5 + 70 + 7
    assert found.until(1) == 5 + 10  # nobody leaves there


def test_a_bundle_counts_as_its_model(trained_bundle, pointed_model):
    rows = [token_row(5), token_row(8), token_row(5)]
    ours, who = counted(Subject("b", str(trained_bundle)), rows)
    theirs, counter = counted(Subject("m", str(pointed_model)), rows)
    assert (who, counter) == (FORMULA, COUNTER)
    assert list(ours) == [5, 8]
    assert ours == theirs
