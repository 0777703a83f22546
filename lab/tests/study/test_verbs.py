"""`de3 compare` and `de3 methods`: what they print, and how they end."""

from __future__ import annotations

import json
import tomllib

import pytest
from lab.tests.study.toys import settings, write_study

from de3bert.methods import METHODS
from de3bert.model.standard_size import exit_parameters
from de3bert.training import fit as fit_module


def test_compare_prints_averages_and_where_the_report_is(de3, finished_copy, monkeypatch):
    monkeypatch.chdir(finished_copy)
    said = de3("compare", "study.toml", "--out", "report", "--runs", "runs")
    assert said.code == 0
    assert "mean score in percent over plain, both" in said.out
    assert "12 of 12 trainings finished" in said.out
    assert "report/index.html" in said.out


def test_compare_as_json_is_the_content_of_study_json(de3, finished_copy, monkeypatch):
    monkeypatch.chdir(finished_copy)
    said = de3(
        "compare", "study.toml", "--out", "report", "--runs", "runs", "--report-only", "--json"
    )
    stored = json.loads((finished_copy / "report" / "study.json").read_text(encoding="utf-8"))
    assert said.json == stored
    assert stored["command"].startswith("de3 compare study.toml")


def test_results_have_a_place_of_their_own_by_default(de3, finished_copy, monkeypatch):
    monkeypatch.chdir(finished_copy)
    (finished_copy / "runs").rename(finished_copy / "study")
    (finished_copy / "runs").mkdir()
    (finished_copy / "study").rename(finished_copy / "runs" / "study")
    assert de3("compare", "study.toml", "--report-only", "--quiet").code == 0
    assert (finished_copy / "results" / "study" / "index.html").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing.toml"], "nothing.toml cannot be read"),
        (["study.toml", "--only", "nobody"], "names no training"),
        (["study.toml", "--report-only", "--runs", "none", "--out", "none"], "is finished in none"),
    ],
)
def test_wrong_requests(de3, finished_copy, monkeypatch, arguments, said):
    monkeypatch.chdir(finished_copy)
    found = de3("compare", *arguments)
    assert found.code in (1, 2)
    assert said in found.err


def test_failures_are_listed_at_the_end(de3, tmp_path, tiny_backbone, toy_data, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = settings(tiny_backbone, toy_data, methods=["full", "de3"])
    given["task"] = [{**given["task"][0], "seeds": [1]}]
    write_study(tmp_path / "study.toml", given)
    usual = fit_module.fit

    def broken(recipe, out, **more):
        if recipe.method == "full":
            raise RuntimeError("boom")
        return usual(recipe, out, **more)

    monkeypatch.setattr(fit_module, "fit", broken)
    said = de3("compare", "study.toml", "--quiet")
    assert said.code == 1
    assert "1 of 2 trainings finished" in said.out
    assert "1 trainings failed" in said.err
    assert "plain full seed 1: RuntimeError: boom" in said.err


def test_latency_of_exported_models(de3, finished_copy, monkeypatch):
    monkeypatch.chdir(finished_copy)
    given = tomllib.loads((finished_copy / "study.toml").read_text(encoding="utf-8"))
    fewer = {"methods": ["full", "de3"], "latency": {"task": "both", "rounds": 3}}
    write_study(finished_copy / "study.toml", {**given, **fewer})
    said = de3("compare", "study.toml", "--out", "report", "--runs", "runs", "--latency", "--json")
    found = said.json["latency"]
    assert (found["task"], found["seed"], found["without"]) == ("both", 1, {})
    assert {*found["measured"]} == {"full"}  # it answered texts
    assert found["measured"]["full"]["own"] > 0
    assert {*found["predicted"]} == {"de3"}
    times = found["predicted"]["de3"]
    assert {*times} == {"1.25", "1.5", "2", "3"}
    assert times["3"] < times["1.25"]


def test_methods_are_listed_by_group(de3):
    said = de3("methods")
    assert said.code == 0
    for word in ("ours", "early exit", "reference", "de3", "6,513,430", "as joint-entropy"):
        assert word in said.out
    every = de3("methods", "--json").json
    assert [each["name"] for each in every] == [*METHODS]


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("full", 0),
        ("layers-6", 0),
        ("deebert", 16_918),
        ("pabee", 16_918),
        ("de3", 6_513_430),
        ("de3-no-pn", 16_918),
    ],
)
def test_extra_parameters_are_those_of_the_paper(name, parameters):
    assert sum(exit_parameters(name).values()) == parameters


def test_one_method_in_detail(de3):
    said = de3("methods", "de3")
    for words in ("He et al.", "prototypes: linear", "leaves by: edr", "alpha", "phase train",
                  "calibration chooses among [0.0, 0.667"):  # fmt: skip
        assert words in said.out
    found = de3("methods", "pcee", "--json").json
    assert found["families"] == ["entropy x 2", "entropy x 3", "entropy x 4"]
    assert found["training"] == "joint-entropy"
    assert de3("methods", "de4").code == 2
