"""The paper's table of operations, to the last digit; and what exits of other kinds take."""

from __future__ import annotations

from typing import Any

import pytest

from de3bert.errors import UsageError
from de3lab.study.flops import (
    Anatomy,
    edr,
    embedding,
    exit_costs,
    flops_at,
    flops_of,
    layer,
    linear,
)


def anatomy(hidden: int, inner: int, exits: int, **changes: Any) -> Anatomy:
    """Two classes, an exit after every layer; mean pooling, linear heads and nothing else."""
    backbone = {
        "model_type": "bert", "hidden_size": hidden, "intermediate_size": inner,
        "num_hidden_layers": exits, "num_attention_heads": 1, "vocab_size": 20,
    }  # fmt: skip
    usual = {
        "backbone_config": backbone, "exit_layers": list(range(1, exits + 1)),
        "id2label": {"0": "a", "1": "b"}, "method": "joint-entropy", "pooling": "mean",
        "prototypes": "none", "heads": "linear", "router": "none",
    }  # fmt: skip
    return Anatomy.of_config({**usual, **changes})


def test_the_table_of_the_paper():
    assert embedding(768, 128) == 786_432
    assert layer(768, 3072, 128) == 1_813_512_192
    assert linear(768, 768) == 1_179_648  # pooler, and projection
    assert linear(768, 2) == 3_072
    assert linear(768, 3) == 4_608
    assert edr(768) == 9_216


def test_attention_adds_its_two_products():
    norms = 2 * 8 * 128 * 768
    assert layer(768, 3072, 128, attention=True) - norms == 1_862_270_976


def test_the_overhead_of_a_de3_exit():
    costs = exit_costs(anatomy(768, 3072, 12, prototypes="linear"), 128)
    assert costs[:-1] == [1_191_936] * 11  # projection, head, distances
    assert costs[-1] == 3_072  # the final head decides nothing
    assert costs[0] / layer(768, 3072, 128) == pytest.approx(0.000657, abs=1e-6)


@pytest.mark.parametrize(
    ("changes", "first", "last"),
    [
        ({}, 2 * 8 * 2, 2 * 8 * 2),
        ({"pooling": "own_pooler"}, 2 * 8 * 2 + 2 * 64, 2 * 8 * 2 + 2 * 64),
        ({"pooling": "shared_pooler"}, 2 * 8 * 2 + 2 * 64, 2 * 8 * 2 + 2 * 64),
        ({"pooling": "mean_own_pooler"}, 2 * 8 * 2 + 2 * 64, 2 * 8 * 2 + 2 * 64),
        ({"prototypes": "identity"}, 2 * 8 * 2 + 12 * 8, 2 * 8 * 2),
        ({"router": "lte"}, 2 * 8 * 2 + 2 * 8, 2 * 8 * 2),
        ({"router": "policy"}, 2 * 8 * 2 + 2 * 8 * 32 + 2 * 32, 2 * 8 * 2),
        # its weighted sum of the vectors so far is no product
        ({"heads": "mixed"}, 2 * 8 * 2, 2 * 8 * 2),
        # two vectors predicted at the first of three exits, none at the last; all projected to 4
        ({"heads": "fused"}, 2 * 2 * 64 + 3 * 2 * 8 * 4 + 8, 3 * 2 * 8 * 4 + 8),
        # 5 tokens: narrowed 8 -> 4; 10 + 3 products of 4 x 4; two products; 4 -> 2
        (
            {"heads": "attention", "method_options": {"head_size": 4.0}},
            5 * 2 * 8 * 4 + 13 * 2 * 16 + 4 * 5 * 4 + 2 * 4 * 2,
            5 * 2 * 8 * 4 + 13 * 2 * 16 + 4 * 5 * 4 + 2 * 4 * 2,
        ),
    ],
)
def test_exits_of_every_kind(changes, first, last):
    costs = exit_costs(anatomy(8, 32, 3, **changes), tokens=5)
    assert (costs[0], costs[-1]) == (first, last)


def test_operations_at_a_depth():
    counts = flops_of(anatomy(8, 32, 4), tokens=5)
    one = counts.layer_with_attention
    assert flops_at(counts, (1, 2, 3, 4), 4.0) == counts.embedding + 4 * one + 4 * 32
    assert flops_at(counts, (1, 2, 3, 4), 1.5) == counts.embedding + 1.5 * one + 1.5 * 32
    single = flops_of(anatomy(8, 32, 4, exit_layers=[4]), tokens=5)
    assert flops_at(single, (4,), 4.0) == counts.embedding + 4 * one + 32


def test_lengths_between_whole_ones():
    """Mean lengths are rarely whole; only heads that read all tokens depend on them."""
    read = {"heads": "attention", "method_options": {"head_size": 4.0}}
    low, between, high = (exit_costs(anatomy(8, 32, 2, **read), n)[0] for n in (5, 5.25, 6))
    assert between == pytest.approx(low + 0.25 * (high - low))
    assert low < between < high


def test_unknown_heads_are_refused():
    with pytest.raises(UsageError, match="something new"):
        anatomy(8, 32, 2, heads="something new")
