"""`de3 paper run` on toy studies: trained once, analysed once, and nothing lost by a failure."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from lab.tests.paper.conftest import MADE, folders_in

from de3bert.errors import De3Error, UsageError
from de3bert.exits import Trace
from de3bert.training import adapt as adapt_module
from de3bert.training import fit as fit_module
from de3lab.documents import AnalysisResult, RunRecord
from de3lab.paper import adapted as adapted_module
from de3lab.paper import measure as measure_module
from de3lab.paper.items import ITEMS
from de3lab.paper.run import ITEMS_FAILED, items_to_run, run_items
from de3lab.study.run import check_failures


@pytest.fixture
def no_training(monkeypatch):
    """Any training is an error from here on."""

    def forbidden(*args, **kwargs):
        raise AssertionError("this was trained already")

    monkeypatch.setattr(fit_module, "fit", forbidden)
    monkeypatch.setattr(adapt_module, "adapt_model", forbidden)


def results_of(folder: Path) -> dict[str, bytes]:
    paths = sorted((folder / "results" / "paper").rglob("*"))
    return {str(path.relative_to(folder)): path.read_bytes() for path in paths if path.is_file()}


def run(folder: Path, *names: str, **more):
    items = [ITEMS[name] for name in names]
    return run_items(items, folders_in(folder), progress=False, **more)


def test_results_of_an_item(made):
    place = made / "results" / "paper" / "indicator" / "sst2"
    assert {path.name for path in place.iterdir()} == {
        "result.json", "table.md", "table.tex", "figure.png", "figure.svg",
    }  # fmt: skip
    document = AnalysisResult.read(place / "result.json")
    assert document.command == "de3 paper run indicator"
    assert document.settings["lambdas"] == [1.0]  # the paper's of SST-2
    assert document.source.test == "dev"
    assert document.numbers["rows"] == 120
    assert document.seeds == [1]
    assert document.training_rows == 160
    assert (made / "results" / "paper_methods" / "study.json").exists()


def test_only_what_items_need_was_trained_and_once(made):
    """Five items and four studies: four alphas, one of them the DE3 of all studies."""
    kinds = sorted(
        (record.training, record.settings["options"].get("alpha"))
        for path in (made / "runs").glob("*/run.json")
        if (record := RunRecord.read(path))
    )
    assert kinds == [
        ("de3", 1e-4), ("de3", 1e-3), ("de3", 1e-2), ("de3", 0.1), ("de3-no-pn-no-dar", 0.1),
        ("joint-entropy", None),
    ]  # fmt: skip


def test_nothing_is_done_twice(made_copy, no_training, monkeypatch):
    def forbidden(*args, **kwargs):
        raise AssertionError("this was measured already")

    monkeypatch.setattr(measure_module, "analyse", forbidden)
    before = results_of(made_copy)
    assert run(made_copy, *MADE) == {}
    assert results_of(made_copy) == before


def test_other_settings_or_runs_are_measured_anew(made_copy, no_training):
    path = made_copy / "results" / "paper" / "exit-layers" / "sst2" / "result.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    for change in (
        {"settings": {**document["settings"], "tau": [0.5]}},
        {"source": {**document["source"], "runs": {"de3": ["other"]}}},
    ):
        path.write_text(json.dumps({**document, **change}), encoding="utf-8")
        assert run(made_copy, "exit-layers") == {}
        again = json.loads(path.read_text(encoding="utf-8"))
        assert again["settings"] == document["settings"]
        assert again["source"] == document["source"]
        assert again["numbers"] == document["numbers"]


def test_a_damaged_result_is_made_again(made_copy, no_training):
    path = made_copy / "results" / "paper" / "exit-layers" / "sst2" / "result.json"
    path.write_text("{", encoding="utf-8")
    assert run(made_copy, "exit-layers") == {}
    assert AnalysisResult.read(path).analysis == "exit-layers"


def test_alpha_compares_four_trainings(made):
    document = AnalysisResult.read(made / "results" / "paper" / "alpha" / "sst2" / "result.json")
    assert document.numbers["alphas"] == [1e-4, 1e-3, 1e-2, 1e-1]
    assert [*document.source.runs] == ["0.0001", "0.001", "0.01", "0.1"]
    reports = sorted(path.name for path in (made / "results" / "paper_alpha").iterdir())
    assert reports == ["alpha-0.0001", "alpha-0.001", "alpha-0.01", "alpha-0.1"]


def test_values_of_alpha_that_are_trained_are_compared_before_the_others_are(
    made_copy, monkeypatch
):
    for path in (made_copy / "runs").glob("*/run.json"):
        if RunRecord.read(path).settings["options"].get("alpha") in (1e-3, 1e-2):
            shutil.rmtree(path.parent)
    shutil.rmtree(made_copy / "results" / "paper" / "alpha")

    def stopped(*args, **kwargs):
        raise KeyboardInterrupt

    monkeypatch.setattr(fit_module, "fit", stopped)
    with pytest.raises(KeyboardInterrupt):
        run(made_copy, "alpha")
    document = AnalysisResult.read(
        made_copy / "results" / "paper" / "alpha" / "sst2" / "result.json"
    )
    assert document.numbers["alphas"] == [1e-4, 1e-1]


def test_shift_adapts_the_models_of_de3_without_labels(made):
    document = AnalysisResult.read(made / "results" / "paper" / "shift" / "sst2" / "result.json")
    assert [*document.numbers["rules"]] == ["ceebert", "joint-entropy", "de3", "de3 adapted"]
    assert document.numbers["reference"] == "ceebert"
    (run_folder,) = (made / "runs").glob("sst2-de3-seed1-*/adapted-imdb")
    plain = Trace.load(run_folder.parent / "test-imdb.trace")
    moved = Trace.load(run_folder / "test-imdb.trace")
    assert (plain.predictions == moved.predictions).all()  # answers stay, distances change
    assert (plain.distances != moved.distances).any()


def test_an_adapted_model_of_other_rows_is_made_again(made_copy, monkeypatch):
    path = next((made_copy / "runs").glob("*/adapted-imdb/model/config.json"))
    config = json.loads(path.read_text(encoding="utf-8"))
    config["adapted_to"]["rows"] = 7
    path.write_text(json.dumps(config), encoding="utf-8")
    (made_copy / "results" / "paper" / "shift" / "sst2" / "result.json").unlink()
    seen = []
    usual = adapted_module._is_made
    monkeypatch.setattr(adapted_module, "_is_made", lambda *a: seen.append(usual(*a)) or seen[-1])
    assert run(made_copy, "shift") == {}
    assert seen == [False]
    assert json.loads(path.read_text(encoding="utf-8"))["adapted_to"]["rows"] == 120


def test_studies_that_share_a_training_keep_their_own_test_files(made):
    """The same run was scored on dev rows for one study and on shifted rows for another."""
    found = {}
    for study in ("paper_methods", "paper_shift"):
        (path,) = (made / "results" / study / "runs").glob("sst2-de3-*.json")
        found[study] = RunRecord.read(path)
    assert found["paper_methods"].key == found["paper_shift"].key
    tests = {
        study: {name for name in record.rows if name.startswith("test-")}
        for study, record in found.items()
    }
    assert tests == {"paper_methods": {"test-test", "test-dev"}, "paper_shift": {"test-imdb"}}
    for record in found.values():
        assert {n for n in record.sha256 if n.startswith("test-")} == {
            n for n in record.rows if n.startswith("test-")
        }
        assert record.flops.tokens > 0


def test_filters_leave_other_items_alone(made_copy, no_training):
    said = []
    assert run(made_copy, "indicator", "exit-layers", only=["sst2/de3/1"], note=said.append) == {}
    assert len([line for line in said if line.startswith("indicator (Fig. 4)")]) == 1
    with pytest.raises(UsageError, match="--only rte names no training of indicator"):
        run(made_copy, "indicator", only=["rte"])


def test_one_item_failing_does_not_keep_the_others(made_copy, no_training, monkeypatch):
    for name in ("indicator", "exit-layers"):
        (made_copy / "results" / "paper" / name / "sst2" / "result.json").unlink()
    usual = measure_module.analyse

    def broken(name, *more):
        if name == "indicator":
            raise RuntimeError("boom")
        return usual(name, *more)

    monkeypatch.setattr(measure_module, "analyse", broken)
    failed = run(made_copy, "indicator", "exit-layers")
    assert [*failed] == ["indicator"]
    assert failed["indicator"].startswith("RuntimeError: boom (more in ")
    story = made_copy / "runs" / "failure-indicator.txt"
    assert "boom" in story.read_text(encoding="utf-8")
    assert (made_copy / "results" / "paper" / "exit-layers" / "sst2" / "result.json").exists()
    with pytest.raises(De3Error, match="1 of the things to do failed"):
        check_failures(failed, ITEMS_FAILED)
    check_failures({}, ITEMS_FAILED)


def test_what_needs_no_run_says_so():
    with pytest.raises(UsageError, match="needs no run"):
        items_to_run("data")
    assert [item.name for item in items_to_run("indicator")] == ["indicator"]
    trained = {item.name for item in ITEMS.values() if item.training is not None}
    assert {item.name for item in items_to_run("all")} == trained
