"""Figures: real image files, whole or not at all."""

from __future__ import annotations

import struct
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

from de3bert.errors import De3Error, UsageError
from de3bert.exits import Trace
from de3bert.exits.trade_off import trade_off_of
from de3bert.figures.curve import _looks, draw_report
from de3bert.figures.exits import draw_exits

HISTOGRAMS = {"full": {1: 0, 2: 0, 3: 30}, "2x": {1: 10, 2: 15, 3: 5}}


@pytest.fixture(scope="module")
def report():
    chance = np.random.default_rng(4)
    labels = chance.integers(0, 2, 60)
    logits = chance.normal(size=(60, 4, 2))
    logits[np.arange(60), :, labels] += [0.5, 1, 1.5, 2]
    trace = Trace(
        logits, chance.random((60, 3, 2)), labels, np.full(60, 9), (1, 2, 3, 4), ("neg", "pos")
    )
    return trade_off_of(trace)


def png_size(path: Path) -> tuple[int, int]:
    data = path.read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert data.endswith(b"IEND\xaeB`\x82")
    return struct.unpack(">II", data[16:24])


@pytest.fixture(params=["curve", "exits"])
def draw(request, report):
    if request.param == "curve":
        return lambda path: draw_report(path, report, points=[("2x", 2.0, 0.9)], title="test")
    return lambda path: draw_exits(path, HISTOGRAMS, title="test")


def test_png(draw, tmp_path):
    draw(tmp_path / "a.png")
    width, height = png_size(tmp_path / "a.png")
    assert 400 < width < 3000
    assert 300 < height < 2000


def test_svg(draw, tmp_path):
    draw(tmp_path / "a.svg")
    root = ElementTree.parse(tmp_path / "a.svg").getroot()
    assert root.tag.endswith("svg")


def test_pdf_and_capital_letters(draw, tmp_path):
    draw(tmp_path / "a.PDF")
    assert (tmp_path / "a.PDF").read_bytes().startswith(b"%PDF")


def test_a_rule_has_one_colour_whatever_stands_beside_it():
    many = ["entropy", "edr(lambda=1.0)", "edr(lambda=2.0)", "patience", "entropy x 2", "mine"]
    looks = dict(zip(many, _looks(many), strict=True))
    for family in ("entropy", "edr(lambda=1.0)", "patience"):
        assert _looks([family]) == [looks[family]]
    first, second = looks["edr(lambda=1.0)"], looks["edr(lambda=2.0)"]
    assert first["color"] == second["color"]
    assert first["linestyle"] != second["linestyle"]
    assert len({(look["color"], look["linestyle"]) for look in looks.values()}) == len(many)


def test_one_histogram_alone(tmp_path):
    draw_exits(tmp_path / "a.png", {"2x": HISTOGRAMS["2x"]})
    assert png_size(tmp_path / "a.png")


@pytest.mark.parametrize("name", ["a.jpgg", "a", "a.txt"])
def test_an_unknown_suffix_is_refused_with_those_that_work(draw, tmp_path, name):
    with pytest.raises(UsageError, match=r"\.png, \.svg, \.pdf"):
        draw(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_without_matplotlib_the_message_says_how_to_get_it(draw, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(De3Error, match=r"pip install 'de3bert\[plot\]'"):
        draw(tmp_path / "a.png")


def test_an_error_while_drawing_leaves_the_old_figure(draw, tmp_path, monkeypatch):
    draw(tmp_path / "a.png")
    before = (tmp_path / "a.png").read_bytes()

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", interrupted)
    with pytest.raises(KeyboardInterrupt):
        draw(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]
