"""Study files: what is accepted, and what is refused with which words."""

from __future__ import annotations

from pathlib import Path

import pytest
import tomli_w
from lab.tests.study.toys import changed_task, checked, settings, write_study

from de3bert.errors import UsageError
from de3lab.study.plan import plan
from de3lab.study.spec import expand, load_study

PAPER = Path(__file__).parents[2] / "studies" / "paper_methods.toml"


@pytest.fixture
def given(toy_data):
    return settings("bb", toy_data)


def refused(tmp_path, given) -> str:
    with pytest.raises(UsageError) as caught:
        plan(load_study(write_study(tmp_path / "s.toml", given)))
    return str(caught.value)


def test_a_sound_file(tmp_path, given):
    spec = load_study(write_study(tmp_path / "s.toml", {**given, "speeds": [3, 1.5, 3]}))
    assert spec.speeds == [1.5, 3.0]
    first, second = spec.task
    assert (first.main_test, first.metric, spec.seeds_of(first)) == ("test", "accuracy", [1, 2])
    assert (second.metric, spec.seeds_of(second)) == ("f1+accuracy", [1])
    assert spec.chosen == "de3"
    assert spec.keep_models


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"colour": "red"}, "colour: Extra inputs"),
        ({"speeds": [0.5, 2]}, "a layer speed-up is 1 or more, got 0.5"),
        ({"speeds": []}, "speeds: List should have at least 1"),
        ({"methods": ["full", "de4"], "chosen": "full"}, 'Unknown method "de4".'),
        ({"methods": ["full"]}, "the chosen method de3 is not among the methods"),
        ({"methods": ["de3", "de3"]}, "the method de3 is there twice"),
        ({"seeds": [1, 1]}, "the seed 1 is there twice"),
        ({"train": {"epoch": 2}}, 'Unknown setting in [train] "epoch". Did you mean "epochs"?'),
        ({"train": {"seed": 2}}, "seeds are in its list `seeds`"),
        ({"train": {"epochs": 1, "num_train_epochs": 2}},
         "train: Value error, train.epochs and train.num_train_epochs are the same setting"),
        ({"train": {"warmup_steps": 500}}, "train.warmup_steps is a fraction of all steps"),
        ({"train": {"num_train_epoch": 2}}, 'Unknown setting in [train] "num_train_epoch"'),
        ({"train": {"num_train_epochs": 0}}, "train.epochs: Input should be greater than 0"),
        ({"train": {"epochs": 0}}, "train.epochs: Input should be greater than 0"),
        ({"method": {"de3": {"alhpa": 0.1}}}, 'Unknown option of method de3 "alhpa"'),
        ({"method": {"pabee": {"alpha": 0.1}}}, "[method.pabee] changes nothing here: it shares"),
        ({"method": {"gpfee": {"thaw": 1}}}, "[method.gpfee] changes nothing here. Remove"),
        ({"latency": {"task": "other"}}, "latency.task is other, which is none of the tasks"),
        ({"task": []}, "task: List should have at least 1"),
    ],
)  # fmt: skip
def test_refusals(tmp_path, given, changes, said):
    assert said in refused(tmp_path, {**given, **changes})


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": "both"}, "the task both is there twice"),
        ({"name": "a/b"}, '"a/b" is to name files'),
        ({"metrics": ["acuracy"]}, 'Unknown metric "acuracy". Did you mean "accuracy"?'),
        ({"test": {}}, "test: Dictionary should have at least 1"),
        ({"calibration_rows": None}, "calibration_rows: Field required"),
        ({"rows": 1}, "rows: Input should be greater than or equal to 2"),
        ({"training": {"epoch": 2}}, 'Unknown setting in [train] "epoch"'),
        (
            {"training": {"bf16": True, "mixed_precision": "no"}},
            "task.0.training: Value error, train.",
        ),
        ({"colum": "x"}, "task.0.colum: Extra inputs"),
    ],
)
def test_refusals_of_tasks(tmp_path, given, changes, said):
    assert said in refused(tmp_path, changed_task(given, **changes))


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(UsageError, match=r"nothing\.toml cannot be read: No such file"):
        load_study(tmp_path / "nothing.toml")
    (tmp_path / "bad.toml").write_text("title = ")
    with pytest.raises(UsageError, match="not valid TOML"):
        load_study(tmp_path / "bad.toml")


def test_variables_in_paths(monkeypatch):
    monkeypatch.setenv("TOY_DIR", "/somewhere")
    monkeypatch.delenv("TOY_GONE", raising=False)
    assert expand("$TOY_DIR/a.csv") == "/somewhere/a.csv"
    assert expand("${TOY_DIR}x") == "/somewherex"
    assert expand("plain/a.csv") == "plain/a.csv"
    with pytest.raises(UsageError, match="environment variable TOY_GONE is not set"):
        expand("$TOY_GONE/a.csv")
    monkeypatch.setenv("TOY_GONE", "")
    with pytest.raises(UsageError, match="TOY_GONE"):
        expand("$TOY_GONE/a.csv")


def test_a_task_may_train_otherwise(given):
    spec = checked(changed_task(given, 1, training={"epochs": 3}))
    epochs = {job.task.name: (job.train.epochs, job.train.batch_size) for job in plan(spec)}
    assert epochs == {"plain": (1.0, 16), "both": (3.0, 16)}


def test_settings_by_the_names_of_training_arguments(given):
    theirs = {"num_train_epochs": 2, "per_device_train_batch_size": 8, "bf16": False}
    ours = {"epochs": 2, "batch_size": 8, "mixed_precision": "no"}
    made, meant = ([job.settings() for job in plan(checked({**given, "train": train}))]
                   for train in (theirs, ours))  # fmt: skip
    assert made == meant  # and so runs have the same names
    for training in ({"epochs": 3}, {"num_train_epochs": 3}):
        spec = checked(changed_task({**given, "train": theirs}, 1, training=training))
        epochs = {job.task.name: job.train.epochs for job in plan(spec)}
        assert epochs == {"plain": 2.0, "both": 3.0}  # a task's replaces the study's


def test_the_study_of_the_paper_is_sound():
    """Its methods exist and its options fit; the data it reads is not at hand."""
    spec = load_study(PAPER)
    jobs = plan(spec)
    assert [task.name for task in spec.task] == ["sst2", "mrpc", "rte", "qnli", "qqp", "mnli"]
    assert [job.label for job in jobs][:2] == ["sst2 full seed 42", "sst2 layers-6 seed 42"]
    assert all(job.train.epochs == 2 for job in jobs)
    assert tomli_w.dumps(spec.model_dump(exclude_none=True))  # nothing but plain values
