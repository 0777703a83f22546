"""Making an item's analyses from its traces and models, once for the same content."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from de3bert.errors import De3Error
from de3bert.methods import METHODS
from de3lab.analysis import ANALYSES, Subject, analyse, write_result
from de3lab.analysis.analysis import resolve
from de3lab.documents import AnalysisResult, Source
from de3lab.paper.adapted import adapted_trace
from de3lab.paper.folders import Folders, StudyWork
from de3lab.paper.item import Item, Measurement
from de3lab.study.plan import Job
from de3lab.study.spec import TaskSpec

__all__ = ["measure_item"]

Runs = dict[str, list[tuple[StudyWork, Job]]]  # label -> finished runs, in the order of the seeds


def measure_item(
    item: Item,
    works: Sequence[StudyWork],
    folders: Folders,
    *,
    tasks: Sequence[str],
    progress: bool = True,
    note: Callable[[str], None] = lambda text: None,
) -> dict[str, str]:
    """Makes the item's result for each task that is trained; one that is there stays.

    Args:
        works: the item's studies.
        tasks: only these.

    Returns:
        Task -> reason of the analyses that failed.
    """
    failed: dict[str, str] = {}
    if item.measurement is None or item.training is None:
        return failed
    needed = item.training.tasks or tasks
    for task in works[0].study.spec.task:
        if task.name not in tasks or task.name not in needed:
            continue
        try:
            _measure_task(item, item.measurement, task, works, folders, progress, note)
        except De3Error as error:
            failed[f"{item.name} {task.name}"] = str(error)
            note(f"{item.name} on {task.name} failed: {error}")
    return failed


def _measure_task(
    item: Item,
    measurement: Measurement,
    task: TaskSpec,
    works: Sequence[StudyWork],
    folders: Folders,
    progress: bool,
    note: Callable[[str], None],
) -> None:
    runs = _finished(measurement, task, works)
    if not all(runs.values()):
        lacking = ", ".join(label for label, found in runs.items() if not found)
        note(f"{item.name} on {task.name}: nothing is trained yet of {lacking}")
        return
    test = measurement.rows.get(task.name, task.main_test)
    source = Source(
        item=item.name,
        task=task.name,
        test=test,
        runs={label: [w.study.key(job) for w, job in seen] for label, seen in runs.items()},
        adapted=dict(measurement.adapted),
    )
    place = folders.result(item, task.name)
    settings = measurement.settings_of(task.name)
    if _is_made(place, measurement, settings, source):
        return
    note(f"{item.name} on {task.name}: {measurement.analysis}")
    subjects = _subjects(measurement, runs, test, progress)
    document = analyse(measurement.analysis, subjects, settings, item.command)
    write_result(place, document.model_copy(update={"source": source, **_seen(runs)}))


def _finished(measurement: Measurement, task: TaskSpec, works: Sequence[StudyWork]) -> Runs:
    """The finished runs of every label; only seeds that all labels have.

    Values of a varied option that nothing is trained with are left out once two others are.
    """
    found: dict[str, dict[int, tuple[StudyWork, Job]]] = {}
    for label, work, method in _wanted(measurement, works):
        training = METHODS[method].training or method
        found[label] = {
            job.seed: (work, job)
            for job in work.study.jobs
            if job.identity[:2] == (task.name, training) and work.study.stored(job) is not None
        }
    trained = {label: seen for label, seen in found.items() if seen}
    if len(works) > 1 and len(trained) > 1:
        found = trained
    common = set.intersection(*(set(seen) for seen in found.values()))
    seeds = [seed for seed in works[0].study.spec.seeds_of(task) if seed in common]
    if measurement.seeds == "first":
        seeds = seeds[:1]
    return {label: [seen[seed] for seed in seeds] for label, seen in found.items()}


def _wanted(
    measurement: Measurement, works: Sequence[StudyWork]
) -> list[tuple[str, StudyWork, str]]:
    """(label, study, method); with a varied option its values are the labels."""
    if len(works) == 1:
        return [(label, works[0], method) for label, method in measurement.labels.items()]
    (method,) = measurement.labels.values()
    return [(work.label, work, method) for work in works]


def _is_made(
    place: Path, measurement: Measurement, settings: Mapping[str, Any], source: Source
) -> bool:
    """Whether the same analysis of the same runs is there."""
    try:
        stored = AnalysisResult.read(place / "result.json")
    except De3Error:
        return False
    wanted = resolve(ANALYSES[measurement.analysis], settings)
    return (
        stored.analysis == measurement.analysis
        and stored.settings == wanted
        and stored.source == source
    )


def _subjects(measurement: Measurement, runs: Runs, test: str, progress: bool) -> list[Subject]:
    subjects = []
    for label, seen in runs.items():
        for work, job in seen:
            folder, table = work.study.folder(job), work.study.material(job).tests[test]
            if measurement.of == "models":
                subjects.append(Subject(label, str(folder / "model"), table))
            else:
                beside = table if measurement.of == "texts" else None
                subjects.append(Subject(label, str(folder / f"test-{test}.trace"), beside))
    for label, origin in measurement.adapted.items():
        for work, job in runs[origin]:
            folder, table = work.study.folder(job), work.study.material(job).tests[test]
            path = adapted_trace(folder, test, table, progress=progress)
            subjects.append(Subject(label, str(path)))
    return subjects


def _seen(runs: Runs) -> dict[str, Any]:
    """What the models were trained on and from, for the report."""
    work, job = next(iter(runs.values()))[0]
    record = work.study.stored(job)
    return {
        "backbone": work.study.spec.backbone,
        "training_rows": record.rows["train"] if record else None,
        "seeds": [job.seed for _, job in next(iter(runs.values()))],
    }
