"""The paper's table of operations, to the last digit; and what exits of other kinds take."""

from __future__ import annotations

import pytest

from de3lab.study.flops import Sizes, edr, embedding, exit_costs, flops_at, flops_of, layer, linear

TWELVE = tuple(range(1, 13))


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
    costs = exit_costs(Sizes(768, 3072, 2, TWELVE, prototypes="linear"), 128)
    assert costs[:-1] == [1_191_936] * 11  # projection, head, distances
    assert costs[-1] == 3_072  # the final head decides nothing
    assert costs[0] / layer(768, 3072, 128) == pytest.approx(0.000657, abs=1e-6)


@pytest.mark.parametrize(
    ("changes", "first", "last"),
    [
        ({}, 2 * 8 * 2, 2 * 8 * 2),
        ({"pooling": "own_pooler"}, 2 * 8 * 2 + 2 * 64, 2 * 8 * 2 + 2 * 64),
        ({"pooling": "shared_pooler"}, 2 * 8 * 2 + 2 * 64, 2 * 8 * 2 + 2 * 64),
        ({"prototypes": "identity"}, 2 * 8 * 2 + 12 * 8, 2 * 8 * 2),
        ({"router": "lte"}, 2 * 8 * 2 + 2 * 8, 2 * 8 * 2),
        ({"router": "policy"}, 2 * 8 * 2 + 2 * 8 * 32 + 2 * 32, 2 * 8 * 2),
        ({"heads": "mixed"}, 2 * 8 * 2 + 2 * 8, 2 * 8 * 2 + 2 * 8 * 3),
        # two vectors predicted at the first of three exits, none at the last; all projected to 4
        ({"heads": "fused"}, 2 * 2 * 64 + 3 * 2 * 8 * 4 + 8, 3 * 2 * 8 * 4 + 8),
        # 5 tokens: narrowed 8 -> 4; 10 + 3 products of 4 x 4; two products; 4 -> 2
        (
            {"heads": "attention", "head_size": 4},
            5 * 2 * 8 * 4 + 13 * 2 * 16 + 4 * 5 * 4 + 2 * 4 * 2,
            5 * 2 * 8 * 4 + 13 * 2 * 16 + 4 * 5 * 4 + 2 * 4 * 2,
        ),
    ],
)
def test_exits_of_every_kind(changes, first, last):
    costs = exit_costs(Sizes(8, 32, 2, (1, 2, 3), **changes), tokens=5)
    assert (costs[0], costs[-1]) == (first, last)


def test_operations_at_a_depth():
    counts = flops_of(Sizes(8, 32, 2, (1, 2, 3, 4)), tokens=5)
    one = counts.layer_with_attention
    assert flops_at(counts, (1, 2, 3, 4), 4.0) == counts.embedding + 4 * one + 4 * 32
    assert flops_at(counts, (1, 2, 3, 4), 1.5) == counts.embedding + 1.5 * one + 1.5 * 32
    single = flops_of(Sizes(8, 32, 2, (4,)), tokens=5)
    assert flops_at(single, (4,), 4.0) == counts.embedding + 4 * one + 32


def test_unknown_heads_are_owned_up_to():
    counts = flops_of(Sizes(8, 32, 2, (1, 2), heads="something new"), tokens=5)
    assert not counts["heads_known"]
    assert counts["exits"] == [32, 32]
