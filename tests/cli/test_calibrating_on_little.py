"""Calibrating on too few rows, on rows without a class and on rows of another task."""

from __future__ import annotations

import random

import pytest
from tests.fixtures_trained import toy_rows, write_csv

USAGE = 2


@pytest.fixture
def calibrate(de3, model_copy):
    def run(data, *more, target="layers=1.2", name="p"):
        return de3("calibrate", model_copy, "--data", data, "--target", target, "--name", name,
                   "--json", "--quiet", *more)  # fmt: skip

    return run


def test_two_rows_are_refused_unless_forced(calibrate, de3, model_copy, tmp_path):
    data = write_csv(tmp_path / "two.csv", toy_rows(2, 5))
    said = calibrate(data)
    assert said.code == USAGE
    assert "2 rows are too few to calibrate on: at least 30" in " ".join(said.err.split())
    assert "--force" in said.err
    forced = calibrate(data, "--force")
    assert forced.code == 0, forced.err
    warnings = forced.json["measured"]["warnings"]
    assert any("too few" in text for text in warnings)
    assert any("would halve it" in text for text in warnings)
    assert "warning: " in forced.err
    shown = de3("inspect", model_copy)
    assert "too few to calibrate on" in " ".join(shown.out.split())
    assert "too few to calibrate on" in (model_copy / "README.md").read_text()


def test_one_class_is_refused_unless_forced(calibrate, tmp_path):
    rows = [(text, "pos") for text, label in toy_rows(200, 5) if label == "pos"]
    data = write_csv(tmp_path / "one.csv", rows)
    said = calibrate(data)
    assert said.code == USAGE
    assert "none of the class neg (1 of the model's 2)" in " ".join(said.err.split())
    assert calibrate(data, "--force").code == 0


def test_rows_of_another_task_are_warned_of(calibrate, tmp_path):
    chance = random.Random(0)
    rows = [(text, chance.choice(("pos", "neg", "neg"))) for text, _ in toy_rows(200, 5)]
    said = calibrate(write_csv(tmp_path / "other.csv", rows))
    assert said.code == 0, said.err
    assert any("most frequent class" in text for text in said.json["measured"]["warnings"])


def test_full_depth_chooses_nothing_and_is_only_warned_of(calibrate, tmp_path):
    said = calibrate(write_csv(tmp_path / "two.csv", toy_rows(2, 5)), target="full")
    assert said.code == 0, said.err
    assert said.json["measured"]["warnings"]


@pytest.mark.parametrize("name", ["full", "default"])
def test_reserved_names(calibrate, toy_data, name):
    said = calibrate(toy_data.calibration, name=name)
    assert said.code == USAGE
    assert f'"{name}" is' in said.err
