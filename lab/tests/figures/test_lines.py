"""Panels of lines: one look for one label, gaps, bars, and limits that fit what is shown."""

from __future__ import annotations

import math
from contextlib import contextmanager

import pytest

from de3bert.errors import UsageError
from de3bert.figures.style import figure
from de3lab.figures import lines
from de3lab.figures.lines import Panel, PlotLine, draw_lines

X = [1.0, 2.0, 3.0]
ABOVE = Panel(
    [
        PlotLine("first", X, [0.9, 0.8, 0.7], [0.8, 0.7, 0.6], [0.95, 0.9, 0.8]),
        PlotLine("second", X, [0.9, None, 0.5]),
        PlotLine("alone", [2.0], [0.85], kind="points", colour="#000000", marker="*"),
    ],
    "speed",
    "score",
)
BELOW = Panel(
    [PlotLine("second", X, [0.1, 0.2, 0.3], [0.0, 0.1, 0.2], [0.2, 0.3, 0.4], kind="marked")],
    "speed",
    "difference",
    title="below",
    zero=True,
)


@pytest.fixture
def axes(monkeypatch):
    """The axes of what is drawn."""
    kept = []

    @contextmanager
    def keeping(*args, **kwargs):
        with figure(*args, **kwargs) as drawn:
            kept.extend(drawn.flat if hasattr(drawn, "flat") else [drawn])
            yield drawn

    monkeypatch.setattr(lines, "figure", keeping)
    return kept


def curve_of(panel, label):
    return next(line for line in panel.lines if line.get_label() == label)


@pytest.mark.parametrize("end", ["png", "svg", "pdf"])
def test_files(tmp_path, end):
    draw_lines(tmp_path / f"a.{end}", [ABOVE, BELOW], title="a title")
    assert (tmp_path / f"a.{end}").stat().st_size > 3000


def test_an_unknown_end(tmp_path):
    with pytest.raises(UsageError, match=r"\.png, \.svg, \.pdf"):
        draw_lines(tmp_path / "a.gif", [ABOVE])


def test_every_label_is_in_the_legend_once(tmp_path):
    draw_lines(tmp_path / "a.svg", [ABOVE, BELOW], title="a title")
    drawn = (tmp_path / "a.svg").read_text(encoding="utf-8")
    for words in ("first", "second", "alone", "a title", "below", "difference"):
        assert drawn.count(f"<!-- {words} -->") == 1


def test_a_label_looks_the_same_in_all_panels(tmp_path, axes):
    draw_lines(tmp_path / "a.svg", [ABOVE, BELOW])
    (bars,) = axes[1].containers
    assert bars.lines[0].get_color() == curve_of(axes[0], "second").get_color()
    assert curve_of(axes[0], "first").get_color() != curve_of(axes[0], "second").get_color()
    assert curve_of(axes[0], "alone").get_color() == "#000000"


def test_gaps_and_bands(tmp_path, axes):
    draw_lines(tmp_path / "a.svg", [ABOVE])
    assert math.isnan(curve_of(axes[0], "second").get_ydata()[1])
    (band,) = axes[0].collections
    ends = band.get_paths()[0].vertices[:, 1]
    assert (ends.min(), ends.max()) == (0.6, 0.95)


def test_bars_reach_the_ends_of_the_interval(tmp_path, axes):
    draw_lines(tmp_path / "a.svg", [BELOW])
    (bars,) = axes[0].containers
    segments = bars.lines[2][0].get_segments()
    ends = [end[1] for segment in segments for end in segment]
    assert ends == pytest.approx([0.0, 0.2, 0.1, 0.3, 0.2, 0.4])


def test_limits_fit_what_is_shown(tmp_path, axes):
    far = PlotLine("far", [1.0, 2.0, 9.0], [0.5, 0.6, 5.0])
    draw_lines(tmp_path / "a.svg", [Panel([far], "x", "y", x_limits=(1.0, 3.0))])
    assert axes[0].get_xlim() == (1.0, 3.0)
    low, high = axes[0].get_ylim()
    assert 0.4 < low < 0.5 < 0.6 < high < 0.7


def test_differences_show_zero(tmp_path, axes):
    high = PlotLine("high", X, [0.5, 0.6, 0.7])
    draw_lines(tmp_path / "a.svg", [Panel([high], "x", "y", x_limits=(1.0, 3.0), zero=True)])
    assert axes[0].get_ylim()[0] < 0


def test_one_point_alone_is_still_drawn(tmp_path, axes):
    draw_lines(tmp_path / "a.svg", [Panel([PlotLine("p", [1], [1])], "x", "y", x_limits=(0, 2))])
    low, high = axes[0].get_ylim()
    assert low < 1 < high


def test_no_two_lines_look_alike():
    looks = [lines.look(number) for number in range(12)]
    assert len({(look["color"], look["linestyle"]) for look in looks}) == 12
    assert not {"#000000", "#999999"} & {look["color"] for look in looks}


def test_long_labels_stand_one_below_the_other():
    assert lines._legend_columns(["x" * 60, "y"]) == 1
    assert lines._legend_columns(["a", "b", "c"]) == 3
    assert lines._legend_columns([f"{number:020d}" for number in range(9)]) == 2
