"""The order of the work, what is trained once for several, and the names of runs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from lab.tests.documents.made import run_record
from lab.tests.study.toys import changed_task, checked, settings, spec_of

from de3bert.errors import UsageError
from de3bert.methods import METHODS
from de3lab.study import revisions
from de3lab.study.plan import plan, selected
from de3lab.study.progress import Countdown, duration, work_of
from de3lab.study.revisions import Revision


@pytest.fixture
def taught(monkeypatch):
    """Two more methods: `pupil` learns from `full`, `grandpupil` from `pupil`."""
    pupil = replace(METHODS["layers-2"], name="pupil", teacher="full")
    every = {"pupil": pupil, "grandpupil": replace(pupil, name="grandpupil", teacher="pupil")}
    monkeypatch.setattr(METHODS, "_parts", {**METHODS._parts, **every})


def labels(jobs):
    return [job.label for job in jobs]


def test_tasks_then_seeds_then_methods_each_training_once(toy_data):
    assert labels(plan(spec_of("bb", toy_data))) == [
        f"{task} {method} seed {seed}"
        for task, seed in (("plain", 1), ("plain", 2), ("both", 1))
        for method in ("full", "layers-2", "joint-entropy", "de3")
    ]


def test_methods_read_the_training_they_share(toy_data):
    jobs = {job.training: job for job in plan(spec_of("bb", toy_data))}
    assert jobs["joint-entropy"].methods == (
        "joint-entropy", "joint-entropy-calibrated", "pabee", "pcee", "oracle",
    )  # fmt: skip
    assert jobs["de3"].methods == ("de3",)


def test_a_shared_training_is_there_though_its_method_is_not_compared(toy_data):
    jobs = plan(spec_of("bb", toy_data, methods=["pabee", "de3"]))
    assert [(job.training, job.methods) for job in jobs[:2]] == [
        ("joint-entropy", ("pabee",)), ("de3", ("de3",)),
    ]  # fmt: skip


def test_teachers_come_first_of_the_same_task_and_seed(toy_data, taught):
    jobs = plan(spec_of("bb", toy_data, methods=["grandpupil", "full", "de3"]))
    assert labels(jobs)[:4] == [
        "plain full seed 1", "plain pupil seed 1", "plain grandpupil seed 1", "plain de3 seed 1",
    ]  # fmt: skip
    last = jobs[-2]
    assert last.label == "both grandpupil seed 1"
    assert last.teacher.identity == ("both", "pupil", 1)
    assert last.teacher.teacher.identity == ("both", "full", 1)
    assert jobs[1].methods == ()  # trained, not compared


@pytest.mark.parametrize(
    ("only", "count"),
    [
        ([], 12),
        (["plain"], 8),
        (["plain/de3"], 2),
        (["plain/pabee/2"], 1),  # by the method that reads it
        (["*/*/2"], 4),
        (["//1"], 8),
        (["*/layers-*"], 3),
        (["plain/de3/1", "both/full"], 2),
    ],
)
def test_filters(toy_data, only, count):
    assert len(selected(plan(spec_of("bb", toy_data)), only)) == count


def test_filters_take_teachers_along(toy_data, taught):
    jobs = plan(spec_of("bb", toy_data, methods=["de3", "grandpupil"]))
    assert labels(selected(jobs, ["both/grandpupil"])) == [
        "both full seed 1", "both pupil seed 1", "both grandpupil seed 1",
    ]  # fmt: skip


@pytest.mark.parametrize("only", [["nothing"], ["plain/de4"]])
def test_a_filter_that_names_nothing(toy_data, only):
    with pytest.raises(UsageError, match="names no training of this study"):
        selected(plan(spec_of("bb", toy_data)), only)


def test_a_filter_of_another_form(toy_data):
    with pytest.raises(UsageError, match="task/method/seed"):
        selected(plan(spec_of("bb", toy_data)), ["a/b/c/d"])


def key(spec, training="de3", data="d", backbone="b"):
    return next(job for job in plan(spec) if job.training == training).key(data, backbone)


def test_a_run_is_named_by_what_changes_its_result(toy_data):
    plain = settings("bb", toy_data)
    usual = key(spec_of("bb", toy_data))
    assert usual.startswith("plain-de3-seed1-")
    changed = [
        {**plain, "pooling": "cls"},
        {**plain, "train": {**plain["train"], "learning_rate": 1e-3}},
        {**plain, "train": {**plain["train"], "refresh_prototypes": True}},
        {**plain, "method": {"de3": {"alpha": 0.2}}},
        {**plain, "method": {"de3": {"pooling": "shared_pooler"}}},
        changed_task(plain, rows=200),
        changed_task(plain, calibration_rows=90),
        changed_task(plain, max_length=16),
        changed_task(plain, text="text"),
        changed_task(plain, training={"epochs": 2}),
    ]
    names = [key(checked(each)) for each in changed]
    names += [key(spec_of("bb", toy_data), data="e"), key(spec_of("bb", toy_data), backbone="c")]
    assert len({usual, *names}) == 1 + len(names)


def test_what_changes_no_result_changes_no_name(toy_data):
    plain, usual = settings("bb", toy_data), key(spec_of("bb", toy_data))
    same = [
        {**plain, "title": "another"},
        {**plain, "speeds": [2]},
        {**plain, "methods": ["de3"]},
        {**plain, "keep_models": False},
        {**plain, "method": {"de3": {"alpha": 0.1}}},  # its default
        {**plain, "method": {"joint-entropy": {}}},
        {**plain, "methods": ["de3", "deebert"], "method": {"deebert": {"poolers": "none"}}},
        changed_task(plain, metrics=["macro_f1"]),
        changed_task(plain, test={"other": str(toy_data.test)}),
    ]
    for each in same:
        assert key(checked(each)) == usual
    assert key(spec_of("elsewhere", toy_data)) == usual  # the content counts, not the place


def test_a_pupil_is_named_by_its_teacher_too(toy_data, taught):
    methods = ["full", "pupil", "de3"]
    usual = key(spec_of("bb", toy_data, methods=methods), "pupil")
    other = spec_of("bb", toy_data, methods=methods, method={"full": {"pooling": "cls"}})
    assert key(other, "pupil") != usual
    assert key(other) == key(spec_of("bb", toy_data))


def test_pooling_is_the_same_for_all_unless_named(toy_data):
    spec = spec_of("bb", toy_data, methods=["de3", "gpfee"], method={"gpfee": {"pooling": "cls"}})
    assert [job.pooling for job in plan(spec)[:2]] == ["mean", "cls"]
    assert plan(spec)[1].options == {}
    assert plan(spec)[1].recipe().pooling == "cls"


def test_an_option_that_leaves_out_what_there_was_not_names_no_other_training(toy_data):
    def named(**options):
        spec = spec_of("bb", toy_data, methods=["deebert", "de3"], method={"deebert": options})
        return plan(spec)[0].settings()["options"]

    assert named() == named(poolers="none") == {}  # as in records from before the option
    assert named(poolers="copied") == {"poolers": "copied"}


def test_prototypes_are_refreshed_where_there_are_any(toy_data):
    spec = spec_of("bb", toy_data, methods=["full", "de3"], train={"refresh_prototypes": True})
    assert [job.train.refresh_prototypes for job in plan(spec)[:2]] == [False, True]


def test_time_left_follows_the_work_done(toy_data):
    jobs = plan(spec_of("bb", toy_data))  # four of 240 rows twice, four of 160
    clock = Countdown(jobs, [])
    assert clock.left() is None
    assert clock.line(jobs[0]).startswith("1 of 12: plain full seed 1 (0 s so far)")
    spent = {"seconds": 12.0}
    clock.done(run_record(task="plain", training="full", seed=1, training_record=spent))
    assert clock.left() == pytest.approx(12.0 / 240 * (7 * 240 + 4 * 160))
    assert clock.line(jobs[3]) == "4 of 12: plain de3 seed 1 (0 s so far, about 2 min left)"


def test_work_counts_all_phases(toy_data):
    spec = spec_of("bb", toy_data, methods=["deebert", "de3"])
    deebert, de3 = plan(spec)[:2]
    assert work_of(deebert) == 2 * work_of(de3) == 2 * 240


def test_equal_steps_share_the_epochs_among_phases(toy_data):
    """DeeBERT has two phases of all epochs each; with equal steps they have half of them."""
    methods = ["deebert", "mixed", "de3"]
    usual = plan(spec_of("bb", toy_data, methods=methods))[:3]
    assert [job.train.epochs for job in usual] == [1, 1, 1]
    assert [work_of(job) for job in usual] == [480, 240, 240]
    equal = plan(spec_of("bb", toy_data, methods=methods, steps="equal"))[:3]
    assert [job.train.epochs for job in equal] == [0.5, 1, 1]
    assert [work_of(job) for job in equal] == [240, 240, 240]
    keys = [[job.key("d", "b") for job in jobs] for jobs in (usual, equal)]
    assert keys[0][0] != keys[1][0]
    assert keys[0][1:] == keys[1][1:]  # nothing changes for the others
    with pytest.raises(ValueError, match="'published' or 'equal'"):
        spec_of("bb", toy_data, steps="fair")


def test_a_revised_method_is_another_training(toy_data, monkeypatch):
    methods = ["pabee", "de3", "joint-entropy+fitted"]
    before = [job.settings() for job in plan(spec_of("bb", toy_data, methods=methods))]
    assert all("revision" not in settings for settings in before)
    monkeypatch.setattr(revisions, "REVISIONS", {"joint-entropy": Revision(3, "why")})
    after = {job.training: job for job in plan(spec_of("bb", toy_data, methods=methods))}
    assert after["joint-entropy"].settings()["revision"] == 3
    assert after["joint-entropy+fitted"].settings()["revision"] == 3
    assert "revision" not in after["de3"].settings()


def test_durations():
    assert [duration(s) for s in (3, 89, 91, 3600, 5401, 90000)] == [
        "3 s", "89 s", "2 min", "60 min", "1.5 h", "25.0 h",
    ]  # fmt: skip


def test_a_run_that_does_not_name_the_rate_of_its_heads_has_one_rate(toy_data):
    named = []
    for changed in ({"head_rate": 1.0}, {"head_rate": 20.0}, {}):
        given = settings("bb", toy_data)
        given["train"] = {**given["train"], **changed}
        named.append(plan(checked(given))[0].settings()["train"].get("head_rate", "absent"))
    assert named == ["absent", 20.0, None]
