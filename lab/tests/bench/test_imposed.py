"""Rows leave exactly where they are told, and the real test is made all the same."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

import de3bert
from de3bert.exits import Policy
from de3bert.runtime.engine import run_batch
from de3lab.bench.imposed import Imposed, spread

NEVER = Policy.parse("edr(lambda=1.0) < 0.0")


@pytest.fixture(scope="module")
def backend(trained_model):
    return de3bert.load(trained_model, device="cpu").backend


def test_a_batch_leaves_where_it_is_told(backend, texts):
    rows = backend.encoder(texts[:24]).rows
    for seed in range(4):
        layers = np.random.default_rng(seed).integers(1, 5, len(rows))
        together = run_batch(backend, rows, Imposed.on(NEVER, layers))
        np.testing.assert_array_equal(together.exit_layers, layers)
        for index, row in enumerate(rows[:6]):
            alone = run_batch(backend, [row], Imposed.on(NEVER, layers[index : index + 1]))
            assert alone.exit_layers.tolist() == [layers[index]]
            np.testing.assert_allclose(alone.logits[0], together.logits[index], atol=1e-4)


def test_the_logits_are_those_of_the_layer(backend, texts):
    rows = backend.encoder(texts[:8]).rows
    imposed = run_batch(backend, rows, Imposed.on(NEVER, [2] * 8))
    fixed = run_batch(backend, rows, Policy.parse("layer(2)"))
    np.testing.assert_allclose(imposed.logits, fixed.logits, atol=1e-5)


@pytest.mark.parametrize(("policy", "asked"), [(NEVER, [1, 2, 3]), ("entropy < 0.0", [])])
def test_the_real_test_is_made(backend, texts, monkeypatch, policy, asked):
    seen = []
    real = backend.distances
    monkeypatch.setattr(backend, "distances", lambda s, n: (seen.append(n), real(s, n))[1])
    test = policy if isinstance(policy, Policy) else Policy.parse(policy)
    run_batch(backend, backend.encoder(texts[:3]).rows, Imposed.on(test, [2, 3, 4]))
    assert seen == asked


def test_what_cannot_be_imposed(backend, texts):
    rows = backend.encoder(texts[:2]).rows
    with pytest.raises(ValueError, match="3 layers were imposed on 2 rows"):
        run_batch(backend, rows, Imposed.on(NEVER, [1, 2, 3]))
    with pytest.raises(ValueError, match=r"without an exit: \[7\]"):
        run_batch(backend, rows, Imposed.on(NEVER, [1, 7]))


def test_spread_keeps_the_shares():
    histogram = {2: 0.25, 4: 0.5, 12: 0.25}
    assert Counter(spread(histogram, 40)) == {2: 10, 4: 20, 12: 10}
    assert sorted(spread(histogram, 4, seed=9)) == [2, 4, 4, 12]
    assert spread(histogram, 40) == spread(histogram, 40)
    assert spread(histogram, 40) != spread(histogram, 40, seed=1)
    assert Counter(spread({3: 5, 9: 15}, 8)) == {3: 2, 9: 6}  # counts do as well as shares
