"""Layer counts and ratios, with the golden numbers of the paper."""

from __future__ import annotations

import pytest

from de3bert.errors import UsageError
from de3bert.exits.layer_speedup import exit_histogram, layer_speedup, layers_mean


@pytest.mark.parametrize(
    ("histogram", "depth", "expected"),
    [
        ({12: 5}, 12, 1.0),
        ({1: 5}, 12, 12.0),
        ({6: 5}, 12, 2.0),
        ({1: 10, 2: 20, 3: 30, 4: 40}, 4, 4 / 3),
        (dict.fromkeys(range(1, 13), 3), 12, 24 / 13),
        ({1: 100, 4: 50, 12: 50}, 12, 2400 / 900),
        ({4: 609, 5: 263}, 12, 10464 / 3751),  # the totals of the SST-2 table
    ],
)
def test_layer_speedup(histogram, depth, expected):
    layers = [layer for layer, count in histogram.items() for _ in range(count)]
    assert layer_speedup(layers, depth) == pytest.approx(expected, rel=1e-12)
    assert layers_mean(layers) == pytest.approx(depth / expected, rel=1e-12)
    assert exit_histogram(layers, range(1, depth + 1)) == {
        layer: histogram.get(layer, 0) for layer in range(1, depth + 1)
    }


def test_no_rows_no_mean():
    with pytest.raises(UsageError, match="No rows"):
        layers_mean([])


def test_a_layer_without_an_exit():
    with pytest.raises(UsageError, match="layer 3"):
        exit_histogram([2, 3], (2, 4))
