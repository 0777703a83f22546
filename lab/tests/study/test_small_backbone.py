"""Studies with a cascade: its small encoder is a part of the run's name, record and recipe."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from lab.tests.study.toys import changed_task, checked, settings, spec_of

from de3bert.errors import UsageError
from de3lab.study.execute import Study
from de3lab.study.plan import plan
from de3lab.study.revisions import outdated
from de3lab.study.run import run_study

METHODS = {"methods": ["de3", "cascadebert", "cascade-truncated"]}
SMALL = {"cascadebert": {"small_backbone": "$DE3_SMALL"}, "cascade-truncated": {"small": 1}}


@pytest.fixture
def jobs(toy_data, small_backbone, monkeypatch):
    monkeypatch.setenv("DE3_SMALL", str(small_backbone))
    return {job.training: job for job in plan(spec_of("bb", toy_data, **METHODS, method=SMALL))}


def test_it_is_written_in_the_settings_as_the_study_has_it(jobs, small_backbone):
    assert jobs["cascadebert"].settings()["small_backbone"] == "$DE3_SMALL"
    assert jobs["cascadebert"].options == {}
    assert jobs["cascadebert"].recipe().small_backbone == str(small_backbone)
    for name in ("de3", "cascade-truncated"):
        assert "small_backbone" not in jobs[name].settings()
        assert jobs[name].recipe().small_backbone is None
    assert jobs["cascade-truncated"].options == {"small": 1}


def test_its_content_names_the_run_and_no_other_runs(jobs, toy_data, monkeypatch):
    job = jobs["cascadebert"]
    assert job.key("d", "b", "one") != job.key("d", "b", "two")
    other = {job.training: job for job in plan(spec_of("bb", toy_data))}
    assert jobs["de3"].key("d", "b", None) == other["de3"].key("d", "b")


@pytest.mark.parametrize(
    ("method", "said"),
    [({}, "cascade-truncated"),
     ({**SMALL, "de3": {"small_backbone": "$DE3_SMALL"}}, "Method de3 has no use for a small_back"),
     ({**SMALL, "cascade-truncated": {"small_backbone": "x"}}, "has no use for a small_backbone")],
)  # fmt: skip
def test_what_does_not_fit_is_said_before_anything_is_read(toy_data, method, said):
    with pytest.raises(UsageError, match=said):
        plan(spec_of("bb", toy_data, **METHODS, method=method))


def test_a_study_trains_records_and_withdraws(
    tiny_backbone, small_backbone, toy_data, tmp_path, monkeypatch
):
    own = Path(shutil.copytree(small_backbone, tmp_path / "own"))
    monkeypatch.setenv("DE3_SMALL", str(own))
    given = settings(
        tiny_backbone, toy_data, methods=["full", "cascadebert"], chosen="cascadebert",
        method={"cascadebert": SMALL["cascadebert"]}, speeds=[1.2], seeds=[1],
        train={"epochs": 0.2, "batch_size": 16},
    )  # fmt: skip
    given["task"] = [{**changed_task(given)["task"][0], "seeds": [1]}]
    study = Study(checked(given), tmp_path / "runs")
    study.check()
    assert run_study(study, tmp_path / "report", progress=False) == {}
    job = next(job for job in study.jobs if job.training == "cascadebert")
    record = study.stored(job)
    assert record is not None
    assert (record.exit_layers, record.base_depth, record.revision) == ([1, 5], 4, 2)
    assert record.sha256["small_backbone"] == study.small_backbone(job)
    assert "cascadebert" in record.methods
    assert outdated(record) is None
    assert outdated(record.model_copy(update={"revision": 1})) is not None
    # Another small encoder is another run.
    changed = own / "config.json"
    changed.write_text(changed.read_text(encoding="utf-8") + "\n", encoding="utf-8")
    assert Study(study.spec, study.runs).stored(job) is None
    changed.unlink()
    with pytest.raises(UsageError, match=r"no backbone at .*own"):
        Study(study.spec, study.runs).check()
