"""Every table and figure of the paper has an item, numbered as the paper prints it."""

from __future__ import annotations

from pathlib import Path

import pytest

from de3bert.data.packaged import minilm_folder
from de3bert.errors import UsageError
from de3bert.methods import METHODS
from de3lab.analysis import ANALYSES
from de3lab.analysis.analysis import resolve
from de3lab.paper.folders import Folders
from de3lab.paper.item import Item
from de3lab.paper.items import BY_VALUE, ITEMS, item_named, runnable
from de3lab.paper.run import wanted_jobs
from de3lab.study.plan import plan
from de3lab.study.spec import StudySpec, expand

STUDIES = Path(__file__).parents[2] / "studies"
ROMAN = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII", "XIII"]
# The labels of the paper's source in their order there: figures and tables are numbered by it.
FIGURES = [
    "fig:intro_entropy", "fig:oracle", "fig:overview", "fig:ablation_dr", "fig:ablation_dar_pn",
    "fig:sample_distribution", "fig:lamda_sensitivity", "fig:arfa_sensitivity",
    "fig:correctness_estimation", "fig:visualization",
]  # fmt: skip
TABLES = [
    "tab:dataset_statistics", "tab:main_result", "tab:compare_static_methods", "tab:generalization",
    "tab:early_exit_baselines", "tab:different_speed_measurement", "tab:OOD_generalization",
    "tab:chinese_cls", "tab:storage_training_costs", "tab:flops_analysis", "tab:PN_homo",
    "tab:hyperparameter_selection", "tab:dar_performance",
]  # fmt: skip


def folders(folder: Path = STUDIES) -> Folders:
    return Folders(folder, Path("runs"), Path("results"))


def trained() -> list[Item]:
    return [item for item in ITEMS.values() if item.training is not None]


def spec_of(item: Item) -> StudySpec:
    assert item.training is not None
    return folders().spec(item.training.study)


def test_every_table_and_figure_has_one_item():
    expected = {label: f"Fig. {number}" for number, label in enumerate(FIGURES, start=1)}
    expected |= {label: f"Table {ROMAN[number]}" for number, label in enumerate(TABLES)}
    found = {}
    for item in ITEMS.values():
        assert len(item.labels) == len(item.references)
        for label, reference in zip(item.labels, item.references, strict=True):
            assert label not in found
            found[label] = reference
    assert found == expected


def test_all_items_that_need_training_are_run_by_all():
    assert {item.name for item in runnable()} == {item.name for item in trained()}
    assert len(BY_VALUE) == len({*BY_VALUE})


@pytest.mark.parametrize("item", trained(), ids=lambda item: item.name)
def test_an_item_fits_its_study(item):
    """Methods, tasks, test files and settings that a declaration names are there."""
    spec, need = spec_of(item), item.training
    tasks = {task.name: task for task in spec.task}
    assert {*need.tasks} <= {*tasks}
    assert {*need.methods} <= {*spec.methods}
    assert plan(spec)
    if item.measurement is None:
        return
    analysis = ANALYSES[item.measurement.analysis]
    for method in item.measurement.labels.values():
        assert method in METHODS
        assert method in (need.methods or spec.methods)
    for task in need.tasks or tasks:
        test = item.measurement.rows.get(task, tasks[task].main_test)
        assert test in tasks[task].test
        resolve(analysis, item.measurement.settings_of(task))
    if not analysis.seeds:
        assert item.measurement.seeds == "first"
    if analysis.needs_model:
        assert item.measurement.of == "models"
    assert {*item.measurement.adapted.values()} <= {*item.measurement.labels}


@pytest.mark.parametrize("item", trained(), ids=lambda item: item.name)
def test_methods_that_the_paper_lists_are_in_the_study(item):
    table = item.published if item.of_study else {}
    listed = {method for rows in table.values() for method in rows}
    assert listed <= {*spec_of(item).methods}


OTHER_RATE = "paper_one_rate"


def test_trainings_of_all_studies_with_one_encoder_are_shared():
    """A run is named by its settings: the same task, method and seed must have the same."""
    main = {job.identity: job.settings() for job in plan(folders().spec("paper_methods"))}
    shared = 0
    for path in sorted(STUDIES.glob("paper_*.toml")):
        spec = folders().spec(path.stem)
        if spec.backbone != "$DE3_BACKBONE_DIR/gte-small" or path.stem == OTHER_RATE:
            continue
        for job in plan(spec):
            if job.identity in main:
                shared += 1
                assert job.settings() == main[job.identity], (path.stem, job.label)
    assert shared > 88 + 30


def test_the_training_with_one_rate_is_shared_too():
    many = {job.identity: job.settings() for job in plan(folders().spec("one_rate"))}
    mine = {job.identity: job.settings() for job in plan(folders().spec(OTHER_RATE))}
    both = many.keys() & mine.keys()
    assert both == {("sst2", "de3", 42)}
    assert all(many[identity] == mine[identity] for identity in both)


def test_one_value_of_alpha_is_the_usual_training():
    works = list(folders().works(ITEMS["alpha"].training))
    assert [work.label for work in works] == ["0.0001", "0.001", "0.01", "0.1"]
    alphas = [work.study.jobs[0].settings()["options"]["alpha"] for work in works]
    assert alphas == [1e-4, 1e-3, 1e-2, 1e-1]
    main = {job.identity: job.settings() for job in plan(folders().spec("paper_methods"))}
    for number, work in enumerate(works):
        same = [job.settings() == main[job.identity] for job in work.study.jobs]
        assert all(same) == any(same) == (number == 3)
    assert len({work.report for work in works}) == 4


def test_an_item_trains_what_it_needs_and_no_more():
    item = ITEMS["indicator"]
    (work,) = folders().works(item.training)
    jobs = wanted_jobs(work, item.training, [])
    assert {job.training for job in jobs} == {"de3"}
    assert {job.task.name for job in jobs} == {"qqp", "sst2", "mnli", "qnli"}
    jobs = wanted_jobs(work, item.training, ["sst2/*/43", "rte"])
    assert [job.identity for job in jobs] == [("sst2", "de3", 43)]
    assert wanted_jobs(work, item.training, ["rte"]) == []
    assert wanted_jobs(work, item.training, ["nothing"]) == []
    students = ITEMS["distillation"]
    (work,) = folders().works(students.training)
    jobs = wanted_jobs(work, students.training, ["qnli/pkd"])
    assert [job.training for job in jobs] == ["full", "pkd"]  # the teacher first


def test_study_files_say_where_they_are_when_missing(tmp_path):
    with pytest.raises(UsageError, match="come with the repository"):
        folders(tmp_path / "nowhere").spec("paper_methods")
    with pytest.raises(UsageError, match=r"paper_methods\.toml is not there"):
        folders(tmp_path).spec("paper_methods")


def test_the_second_encoder_is_the_packaged_one_unless_told_otherwise(monkeypatch, tmp_path):
    backbone = folders().spec("paper_minilm").backbone
    monkeypatch.delenv("DE3_MINILM", raising=False)
    assert expand(backbone) == str(minilm_folder())
    monkeypatch.setenv("DE3_MINILM", str(tmp_path))
    assert expand(backbone) == str(tmp_path)


def test_an_unknown_item_names_the_near_ones():
    with pytest.raises(UsageError, match='Did you mean "indicator"'):
        item_named("indicater")
