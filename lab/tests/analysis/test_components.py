"""Kinds of models under one exit rule: parts of DE3 and forms of the regulariser."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from lab.tests.analysis.toys import same_rows, subject, toy_trace

from de3bert.errors import UsageError
from de3bert.exits.curve import curve
from de3bert.exits.family import Family
from de3lab.analysis import ANALYSES, analyse
from de3lab.analysis.bootstrap import resampled_scores
from de3lab.statistics import percentile_interval

SPEEDS = [2.0, 3.0]


def asked(name, subjects, **settings):
    given = {"speeds": SPEEDS, "resamples": 40, **settings}
    return analyse(name, subjects, given, "").numbers


@pytest.fixture
def kinds(tmp_path):
    """Three kinds, each noisier than the one before, with 2, 2 and 1 runs."""
    trace = toy_trace(rows=150)
    made = []
    for label, method, noise, seeds in (
        ("whole", "de3", 0.1, (1, 2)),
        ("w/o PN", "de3-no-pn", 1.5, (3, 4)),
        ("w/o PN w/o DAR", "de3-no-pn-no-dar", 3.0, (5,)),
    ):
        for seed in seeds:
            run = same_rows(trace, seed, noise)
            made.append(subject(tmp_path, f"{method}-{seed}", run, label=label, method=method))
    return made


def test_every_kind_against_every_later_one(kinds):
    numbers = asked("components", kinds)
    assert [(line["label"], line["runs"]) for line in numbers["lines"]] == [
        ("whole", 2),
        ("w/o PN", 2),
        ("w/o PN w/o DAR", 1),
    ]
    assert [(pair["ours"], pair["theirs"], pair["pairs"]) for pair in numbers["differences"]] == [
        ("whole", "w/o PN", 2),
        ("whole", "w/o PN w/o DAR", 1),
        ("w/o PN", "w/o PN w/o DAR", 1),
    ]
    assert numbers["reference"] == "whole"


def test_all_have_the_same_rule(kinds):
    numbers = asked("components", kinds, lambdas=[2.0])
    assert numbers["lambda"] == 2.0
    assert {line["family"] for line in numbers["lines"]} == {"edr(lambda=2.0)"}
    for line in numbers["lines"]:
        runs = [each.trace for each in kinds if each.label == line["label"]]
        curves = [curve(trace, "edr(lambda=2.0)") for trace in runs]
        assert line["at"]["3"]["values"] == [one.at(3.0) for one in curves]


def test_runs_are_paired_in_the_order_given(kinds):
    first = asked("components", kinds[:4])["differences"][0]["at"]["2"]
    turned = asked("components", [*kinds[:2], kinds[3], kinds[2]])["differences"][0]["at"]["2"]
    scores = [curve(each.trace, "edr").at(2.0) for each in kinds[:4]]
    assert first["values"] == [scores[0] - scores[2], scores[1] - scores[3]]
    assert turned["values"] == [scores[0] - scores[3], scores[1] - scores[2]]
    assert first["mean"] == pytest.approx(turned["mean"])
    assert first["over_rows"] == pytest.approx(turned["over_rows"])


def test_noise_is_told_from_a_difference(kinds, tmp_path):
    (apart,) = asked("components", [kinds[0], kinds[4]])["differences"]
    assert apart["at"]["3"]["mean"] > 0
    assert apart["at"]["3"]["beyond_noise"]
    twin = replace(kinds[0], label="twin")
    (same,) = asked("components", [kinds[0], twin])["differences"]
    for seen in same["at"].values():
        assert (seen["mean"], seen["over_rows"], seen["beyond_noise"]) == (0.0, [0.0, 0.0], False)


def test_lambda_is_that_of_the_first(tmp_path):
    trace = toy_trace()
    one = subject(tmp_path, "one", trace, method_options={"lambda": 3})
    two = subject(tmp_path, "two", same_rows(trace, 1), method_options={"lambda": 1})
    assert asked("components", [one, two])["lambda"] == 3.0


def test_the_curve_is_the_mean_over_runs(kinds):
    line = asked("components", kinds)["lines"][0]
    curves = [curve(each.trace, "edr") for each in kinds[:2]]
    drawn = line["curve"]
    assert drawn["layer_speedup"][0] == 1.0
    assert {2.0, 3.0} <= set(drawn["layer_speedup"])
    assert max(drawn["layer_speedup"]) == pytest.approx(1.5 * 3.0)
    for speed, score, sd in zip(drawn["layer_speedup"], drawn["score"], drawn["sd"], strict=True):
        values = [one.at(speed) for one in curves]
        assert score == pytest.approx(np.mean(values), abs=1e-6)
        assert sd == pytest.approx(np.std(values, ddof=1), abs=1e-6)


def test_speeds_refer_to_the_backbone(tmp_path):
    trace = replace(toy_trace(), base_depth=12)
    both = [subject(tmp_path, name, trace) for name in ("a", "b")]
    numbers = asked("components", both, speeds=None)
    assert numbers["speeds"] == [2.0, 2.5, 3.0, 4.0]  # the model is twice as fast at full depth
    assert numbers["lines"][0]["at"]["2"]["mean"] == numbers["lines"][0]["full"]["mean"]
    assert numbers["lines"][0]["curve"]["layer_speedup"][0] >= 2.0


def test_tables_and_figure_from_stored_numbers(kinds, tmp_path):
    numbers = json.loads(json.dumps(asked("components", kinds), allow_nan=False))
    analysis = ANALYSES["components"]
    scores, gaps = analysis.tables(numbers)
    assert [row[:2] for row in scores.rows] == [("whole", 2), ("w/o PN", 2), ("w/o PN w/o DAR", 1)]
    assert "lambda = 1" in scores.note
    assert len(gaps.rows) == 6
    assert gaps.cells()[0][:3] == ["whole - w/o PN", "2x", "2"]
    assert gaps.cells()[2][5:7] == ["-", "-"]  # one pair: no seeds to speak of
    analysis.draw(tmp_path / "f.svg", numbers)
    drawn = (tmp_path / "f.svg").read_text(encoding="utf-8")
    for words in ("n = 150, 1 to 2 runs (mean ± sd)", "to whole, 95 % over rows", "w/o PN"):
        assert f"<!-- {words} -->" in drawn


def test_differences_are_drawn_from_the_reference(kinds, monkeypatch, tmp_path):
    """The table has first minus other, the picture other minus first: lower is worse."""
    seen = {}
    place = "de3lab.analysis.comparison_tables.draw_lines"
    monkeypatch.setattr(place, lambda path, panels, title: seen.update(panels=panels))
    numbers = asked("components", kinds)
    ANALYSES["components"].draw(tmp_path / "f.png", numbers)
    above, below = seen["panels"]
    assert [line.label for line in below.lines] == ["w/o PN", "w/o PN w/o DAR"]
    pair = numbers["differences"][0]["at"]
    assert below.lines[0].y == [-pair["2"]["mean"], -pair["3"]["mean"]]
    low, high = pair["2"]["over_rows"]
    assert (below.lines[0].low[0], below.lines[0].high[0]) == (-high, -low)
    assert below.lines[0].x[0] < 2.0 < below.lines[1].x[0]
    assert below.x_limits == above.x_limits


def test_forms_of_the_regulariser(tmp_path):
    trace = toy_trace(rows=150)
    made = [
        subject(tmp_path, "a", trace, label="de3"),
        subject(tmp_path, "b", same_rows(trace, 1, 0.05), label="v2", method="de3-v2"),
        subject(tmp_path, "c", same_rows(trace, 2, 3.0), label="own", method="mine",
                method_options={"dar": "combined"}),
        subject(tmp_path, "d", same_rows(trace, 3, 0.05), label="odd", method="mine"),
    ]  # fmt: skip
    numbers = json.loads(json.dumps(asked("dar-forms", made), allow_nan=False))
    forms = ["center", "alienation", "combined", None]
    assert [line["form"] for line in numbers["lines"]] == forms
    means = [
        (abs(seen["mean"]), pair["ours"], pair["theirs"], float(key))
        for pair in numbers["differences"]
        for key, seen in pair["at"].items()
    ]
    largest = numbers["largest"]
    found = (abs(largest["mean"]), largest["ours"], largest["theirs"], largest["speed"])
    assert found in means
    assert found[0] == max(mean for mean, *_ in means)
    flags = [s["beyond_noise"] for pair in numbers["differences"] for s in pair["at"].values()]
    assert (numbers["beyond_noise"], numbers["compared"]) == (sum(flags), 12)
    assert 0 < numbers["beyond_noise"] < 12
    scores, gaps = ANALYSES["dar-forms"].tables(numbers)
    assert [row[0] for row in scores.rows] == [
        "center (de3)", "alienation (v2)", "combined (own)", "unknown (odd)"
    ]  # fmt: skip
    assert f"{numbers['beyond_noise']} of them are beyond noise" in gaps.note
    ANALYSES["dar-forms"].draw(tmp_path / "f.png", numbers)
    assert (tmp_path / "f.png").stat().st_size > 5000


@pytest.mark.parametrize("name", ["components", "dar-forms"])
def test_bad_input(name, kinds, tmp_path):
    with pytest.raises(UsageError, match=rf"`{name}` takes 2 or more kinds of models, got 1"):
        asked(name, kinds[:2])
    with pytest.raises(UsageError, match=rf"`{name}` .* takes one --lambda, got 2: 1, 2"):
        asked(name, kinds, lambdas=[1.0, 2.0])
    plain = subject(tmp_path, "plain", replace(toy_trace(rows=150), distances=None))
    with pytest.raises(UsageError, match="has no distances"):
        asked(name, [kinds[0], plain])
    few = [subject(tmp_path, each, toy_trace(rows=9)) for each in "xy"]
    with pytest.raises(UsageError, match=rf"`{name}` needs at least 10 rows, .* has 9"):
        asked(name, few)
    with pytest.raises(UsageError, match="out of reach"):
        asked(name, kinds, speeds=[2.0, 7.0])
    with pytest.raises(UsageError, match="is given twice as whole"):
        asked(name, [kinds[0], kinds[0], kinds[2]])


def test_intervals_over_rows_are_those_of_the_pairs(kinds):
    """Runs without a partner count in the means of the table, not in the differences."""
    drawn = [
        resampled_scores(each.trace, Family.parse("edr"), SPEEDS, "accuracy", 40, seed=5)
        for each in kinds
    ]
    first, second, third = asked("components", kinds, seed=5)["differences"]
    both = (drawn[0] + drawn[1]) / 2 - (drawn[2] + drawn[3]) / 2
    for pair, gaps in ((first, both), (second, drawn[0] - drawn[4]), (third, drawn[2] - drawn[4])):
        for number, key in enumerate(("2", "3")):
            assert pair["at"][key]["over_rows"] == pytest.approx(
                percentile_interval(gaps[:, number])
            )
        assert pair["growth"]["over_rows"] == pytest.approx(
            percentile_interval(gaps[:, 1] - gaps[:, 0])
        )
