"""Models at equal milliseconds: the arithmetic, against numbers worked out by hand."""

import dataclasses

import pytest

from de3lab.bench.clock import Timed, bars, means_over_seeds, score_at
from de3lab.figures.clock import ClockCurve, ClockDot, draw_clock


def timed(model, way, ms, accuracy, layers=12.0, precision="fp32"):
    return Timed(model, way, precision, layers, accuracy, ms, 1000 / ms)


CURVE = [
    timed("full+fitted", "full", 10.0, 0.91),
    timed("full+fitted", "2x", 5.2, 0.908, layers=6.0),
    timed("full+fitted", "3x", 3.6, 0.90, layers=4.0),
    timed("full+fitted", "4x", 3.0, 0.88, layers=3.0),
]
STATIC = [
    timed("full", "ort-fused", 10.0, 0.91),
    timed("layers-6", "ort-fused", 5.0, 0.895, layers=6.0),
    timed("layers-4", "ort-fused", 3.4, 0.855, layers=4.0),
    timed("pkd", "ort-fused", 5.1, 0.90, layers=6.0),
    timed("theseus", "ort-fused", 5.1, 0.905, layers=6.0),
]


def test_a_score_between_two_points_lies_on_the_line_between_them():
    assert score_at(CURVE, 4.4) == pytest.approx(0.904)  # in the middle of 3.6 and 5.2
    assert score_at(CURVE, 3.0) == pytest.approx(0.88)
    assert score_at(CURVE[::-1], 4.4) == score_at(CURVE, 4.4)


@pytest.mark.parametrize("ms", [2.9, 10.1])
def test_beyond_its_points_a_curve_has_no_score(ms):
    assert score_at(CURVE, ms) is None
    assert score_at([], ms) is None


def test_bars_say_what_exits_give_at_the_time_of_others():
    found = {bar.name: bar for bar in bars([*CURVE, *STATIC], "sst2")}
    over_six = found["points over layers-6 at its time, fp32"]
    assert over_six.value == pytest.approx(100 * (0.90 + 0.008 * 1.4 / 1.6 - 0.895))
    assert over_six.bar == pytest.approx(1.0)
    assert over_six.passed
    over_four = found["points over layers-4 at its time, fp32"]
    assert over_four.value == pytest.approx(100 * (0.88 + 0.02 * 0.4 / 0.6 - 0.855))
    assert not over_four.passed
    student = found["points over the best student (theseus), fp32"]
    assert student.value == pytest.approx(100 * (0.90 + 0.008 * 1.5 / 1.6 - 0.905))
    assert found["time within 0.5 points of full depth, fp32"].value == pytest.approx(0.52)
    assert found["efficiency at 2x, fp32"].value == pytest.approx(10 / 5.2 / 2)
    assert found["efficiency at 3x, fp32"].value == pytest.approx(10 / 3.6 / 3)


def test_bars_of_what_was_not_measured_are_left_out():
    assert bars(CURVE, "sst2") == []
    assert bars([*CURVE, *STATIC], "sst2", "int8") == []
    far = [*CURVE, timed("layers-4", "ort-fused", 1.0, 0.8)]
    assert bars(far, "sst2") == []


def test_means_are_over_what_all_seeds_have():
    first = [timed("full", "ort-fused", 10.0, 0.91), timed("pkd", "ort-fused", 5.0, 0.9)]
    second = [timed("full", "ort-fused", 12.0, 0.90)]
    (mean,) = means_over_seeds([first, second])
    assert mean.name == ("full", "ort-fused", "fp32")
    assert (mean.ms, mean.accuracy) == pytest.approx((11.0, 0.905))


def test_a_row_with_more_in_it_is_read():
    row = {**dataclasses.asdict(CURVE[0]), "hits": "0101", "policy": None}
    assert Timed.of(row) == CURVE[0]


def test_the_figure_is_drawn(tmp_path):
    points = tuple((each.ms, each.accuracy) for each in CURVE)
    curves = [
        ClockCurve("exits", points, 0),
        ClockCurve("exits, int8", points[:2], 0, filled=False),
    ]
    dots = [ClockDot(each.model, each.ms, each.accuracy, student=True) for each in STATIC]
    draw_clock(tmp_path / "clock.png", curves, dots, "made up")
    assert (tmp_path / "clock.png").stat().st_size > 5000
