"""A toy study from end to end: trained once, traced, scored, kept, and never done twice."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from filelock import FileLock
from lab.tests.study.toys import METHODS as COMPARED
from lab.tests.study.toys import (
    TRAININGS,
    changed_task,
    checked,
    records,
    settings,
    study_of,
    write_study,
)

from de3bert.exits import Trace, curve
from de3bert.methods import METHODS
from de3bert.training import fit as fit_module
from de3lab import made
from de3lab.study.execute import Study
from de3lab.study.report import write_report
from de3lab.study.run import FAILURE, run_study
from de3lab.study.spec import load_study

JOBS = 3 * TRAININGS


@pytest.fixture
def no_training(monkeypatch):
    """Any training is an error from here on."""

    def forbidden(*args, **kwargs):
        raise AssertionError("this was trained already")

    monkeypatch.setattr(fit_module, "fit", forbidden)


def test_every_training_has_a_record_and_its_traces(finished):
    found = records(finished / "report")
    assert len(found) == JOBS
    for key, record in found.items():
        folder = finished / "runs" / key
        names = {path.name for path in folder.iterdir()}
        assert names == {
            "model",
            "calibration.trace",
            "test-test.trace",
            "test-dev.trace",
            "run.json",
        }
        assert (record["format"], record["version"], record["key"]) == ("de3bert-run", 1, key)
        assert record["rows"]["train"] == record["settings"]["rows"]
        assert record["parameters"]["encoder"] > 10_000
        assert {*record["methods"]} <= {*COMPARED}
    assert str(finished) not in json.dumps(found)  # no path of this machine


def test_scores_are_those_of_the_traces(finished):
    key = next(
        key for key in records(finished / "report") if key.startswith("plain-joint-entropy-seed2")
    )
    record = records(finished / "report")[key]
    test = Trace.load(finished / "runs" / key / "test-test.trace")
    found = record["methods"]["joint-entropy"]["tests"]["test"]
    assert found["at"]["2"]["score"] == curve(test, "entropy").at(2.0)
    assert record["exit_accuracy"]["4"] == float(test.correct[:, -1].mean())
    assert found["rows"] == 120


def test_all_methods_saw_the_same_rows(finished):
    """Calibration traces of one task and seed have the same labels and lengths."""
    for start in ("plain-*-seed1-*", "plain-*-seed2-*", "both-*"):
        paths = sorted((finished / "runs").glob(f"{start}/calibration.trace"))
        traces = [Trace.load(path) for path in paths]
        assert len(traces) == TRAININGS
        assert {trace.rows for trace in traces} == {100}
        for trace in traces[1:]:
            np.testing.assert_array_equal(trace.labels, traces[0].labels)
            np.testing.assert_array_equal(trace.tokens, traces[0].tokens)


def test_a_cut_model_is_compared_with_its_backbone(finished):
    key = next(
        key for key in records(finished / "report") if key.startswith("plain-layers-2-seed1")
    )
    record = records(finished / "report")[key]
    assert (record["exit_layers"], record["base_depth"]) == ([2], 4)
    found = record["methods"]["layers-2"]["tests"]["test"]
    assert found["point"]["layer_speedup"] == 2.0
    assert found["at"]["2"]["score"] == found["point"]["score"]
    assert found["at"]["1.5"] is None


def test_nothing_is_trained_twice(finished_copy, no_training):
    before = records(finished_copy / "report")
    shutil.rmtree(finished_copy / "report")
    assert run_study(study_of(finished_copy), finished_copy / "report", progress=False) == {}
    assert records(finished_copy / "report") == before


def test_more_speeds_and_methods_of_the_same_training_need_no_training(finished_copy, no_training):
    given = load_study(finished_copy / "study.toml")
    more = given.model_copy(update={"speeds": [1.75, 2.0], "methods": [*COMPARED, "ceebert"]})
    study = Study(more, finished_copy / "runs")
    assert run_study(study, finished_copy / "report", progress=False) == {}
    for record in records(finished_copy / "report").values():
        for scored in record["methods"].values():
            assert list(scored["tests"]["test"]["at"]) == ["1.75", "2"]
    shared = records(finished_copy / "report")
    assert sum("ceebert" in record["methods"] for record in shared.values()) == 3


def test_a_lost_record_is_made_again_from_the_traces(finished_copy, no_training):
    before = records(finished_copy / "report")
    for path in (finished_copy / "runs").glob("*/run.json"):
        path.unlink()
    assert run_study(study_of(finished_copy), finished_copy / "report", progress=False) == {}
    assert records(finished_copy / "report") == before


def test_a_damaged_trace_is_made_again_from_the_model(finished_copy, no_training):
    before = records(finished_copy / "report")
    key = next(iter(before))
    path = finished_copy / "runs" / key / "test-test.trace"
    path.write_bytes(path.read_bytes()[:-40])
    (finished_copy / "runs" / key / "run.json").unlink()
    assert run_study(study_of(finished_copy), finished_copy / "report", progress=False) == {}
    assert records(finished_copy / "report") == before


def test_weights_go_where_they_are_not_kept(finished_copy, monkeypatch):
    """All but those that others learn from; and a run without weights is still finished."""
    pupil = replace(METHODS["layers-2"], name="pupil", teacher="full")
    monkeypatch.setattr(METHODS, "_parts", {**METHODS._parts, "pupil": pupil})
    given = load_study(finished_copy / "study.toml")
    spec = given.model_copy(
        update={"methods": ["de3", "full"], "keep_models": False, "task": given.task[1:]}
    )
    shutil.rmtree(finished_copy / "runs")
    study = Study(spec, finished_copy / "runs")
    assert run_study(study, finished_copy / "report", progress=False) == {}
    assert not [*finished_copy.glob("runs/*/model/*.safetensors")]
    assert all(study.stored(job) for job in study.jobs)
    taught = Study(spec.model_copy(update={"methods": ["pupil", "de3"]}), finished_copy / "runs")
    assert [job.training for job in taught.jobs] == ["full", "pupil", "de3"]
    fits = []
    usual = fit_module.fit

    def watched(recipe, out, **given):
        fits.append((recipe.method, given.get("teacher")))
        return usual(recipe, out, **given)

    monkeypatch.setattr(fit_module, "fit", watched)
    assert run_study(taught, finished_copy / "report", progress=False) == {}
    teacher = taught.folder(taught.jobs[0]) / "model"
    assert fits == [("full", None), ("pupil", teacher)]  # its weights were gone, so it came first
    assert [path.parent for path in finished_copy.glob("runs/*/model/*.safetensors")] == [teacher]


def test_one_failure_does_not_stop_the_others(tmp_path, tiny_backbone, toy_data, monkeypatch):
    given = changed_task(
        settings(tiny_backbone, toy_data, methods=["full", "layers-2", "de3"]), seeds=[1]
    )
    study = Study(checked({**given, "task": given["task"][:1]}), tmp_path / "runs")
    usual = fit_module.fit

    def broken(recipe, out, **more):
        if recipe.method == "layers-2":
            raise ZeroDivisionError("something in a method")
        return usual(recipe, out, **more)

    monkeypatch.setattr(fit_module, "fit", broken)
    heard: list[str] = []
    failed = run_study(study, tmp_path / "report", progress=False, note=heard.append)
    assert list(failed) == ["plain layers-2 seed 1"]
    assert "ZeroDivisionError: something in a method" in failed["plain layers-2 seed 1"]
    assert "in broken" in (study.folder(study.jobs[1]) / FAILURE).read_text(encoding="utf-8")
    assert len(records(tmp_path / "report")) == 2
    assert any(line.startswith("3 of 3: plain de3 seed 1") for line in heard)


def test_what_is_wrong_is_said_before_any_training(tmp_path, tiny_backbone, toy_data, no_training):
    given = changed_task(settings(tiny_backbone, toy_data), 1, label="nothing")
    path = write_study(tmp_path / "study.toml", given)
    with pytest.raises(Exception, match=r'Task both: .* has no column "nothing"'):
        run_study(Study(load_study(path), tmp_path / "runs"), tmp_path / "report", progress=False)
    assert not (tmp_path / "runs").exists()


def test_a_training_that_another_process_is_at_is_left_to_it(finished_copy, no_training):
    """Two processes may run one study: each takes what the other one is not at."""
    study = study_of(finished_copy)
    job = study.jobs[0]
    (study.folder(job) / "run.json").unlink()
    said: list[str] = []
    with FileLock(f"{study.folder(job)}.lock"):
        assert run_study(study, finished_copy / "report", progress=False, note=said.append) == {}
    assert said == [f"{job.label}: another process is working on it"]
    assert not (study.folder(job) / "run.json").exists()
    run_study(study, finished_copy / "report", progress=False)
    assert (study.folder(job) / "run.json").exists()


def test_a_claim_ends_with_the_work(finished_copy):
    study = study_of(finished_copy)
    with study.claim(study.jobs[0]) as mine, study.claim(study.jobs[1]) as other:
        assert mine
        assert other
    with study.claim(study.jobs[0], wait=True) as again:
        assert again


def test_a_trace_is_read_once_to_know_that_it_is_there(finished_copy, no_training, monkeypatch):
    """The checks of a run, of its report and of a second study read no file again."""
    read: Counter[Path] = Counter()

    def load(path: Path) -> Trace:
        read[path] += 1
        return Trace.load(path)

    made._content.cache_clear()
    monkeypatch.setattr(made, "Trace", SimpleNamespace(load=load))
    for _ in range(2):
        study = study_of(finished_copy)
        assert run_study(study, finished_copy / "report", progress=False) == {}
        write_report(study, finished_copy / "report")
    assert {*read} == {*(finished_copy / "runs").glob("*/*.trace")}
    assert {*read.values()} == {1}


def test_a_trace_that_was_changed_is_read_again(finished_copy):
    path = next((finished_copy / "runs").glob("*/test-dev.trace"))
    trace = Trace.load(path)
    of = trace.info["data"]["sha256"]
    assert made.trace_is_of(path, of, trace.rows)
    assert not made.trace_is_of(path, of, trace.rows + 1)
    assert not made.trace_is_of(path, "other", trace.rows)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    assert not made.trace_is_of(path, of, trace.rows)  # its checksum is not that of its content
    trace.take(slice(5)).save(path)
    assert made.trace_is_of(path, of, 5)
    path.unlink()
    assert not made.trace_is_of(path, of, 5)
