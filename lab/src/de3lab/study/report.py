"""The report of a study: one folder with records, numbers, tables, figures and a page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from de3bert.errors import De3Error
from de3bert.files import write_text
from de3bert.machine import versions
from de3bert.methods import METHODS
from de3lab.documents import Latency, RunRecord, StudyResult
from de3lab.study.aggregate import aggregate
from de3lab.study.collect import collect
from de3lab.study.costs import flops_table
from de3lab.study.drawings import draw_all
from de3lab.study.execute import Study
from de3lab.study.latency import read_latency
from de3lab.study.page import page
from de3lab.study.plan import train_recipe
from de3lab.study.results import Results
from de3lab.study.revisions import outdated
from de3lab.study.scoring import tries_lambda
from de3lab.study.tables import markdown, tex

__all__ = ["summarise", "write_report"]

TRIES_ZERO = 2  # the first way of scoring that does (`de3lab.study.record`)
TRAINING = ("epochs", "batch_size", "learning_rate", "head_learning_rate")


def write_report(
    study: Study,
    place: Path,
    *,
    exact: bool = True,
    note: Callable[[str], None] = lambda text: None,
) -> StudyResult:
    """Writes everything that can be said from what is finished; the content of `study.json`.

    Args:
        exact: see `collect`.
    """
    with _sound(study, place):
        records = collect(study, place, exact=exact, note=note)
    if not records:
        raise De3Error(
            f"Nothing of this study is finished in {study.runs} or {place / 'runs'}, so there is "
            "nothing to report. Run `de3 compare` without --report-only first."
        )
    with _sound(study, place):
        document = summarise(study, records, read_latency(place))
        _write(place, document, note)
    return document


@contextmanager
def _sound(study: Study, place: Path) -> Iterator[None]:
    """A De3Error where a record, which anybody may have changed, does not hold what it should."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        raise De3Error(
            f"A record in {place / 'runs'} or {study.runs} is damaged: a report cannot be made of "
            f"it ({error!r:.200}). Remove the record that was changed, and run the study again."
        ) from error


def _write(place: Path, document: StudyResult, note: Callable[[str], None]) -> None:
    document.write(place / "study.json")
    write_text(place / "table.md", markdown(document))
    write_text(place / "table.tex", tex(document))
    write_text(place / "index.html", page(document))
    if find_spec("matplotlib") is None:
        note("no figures: they need matplotlib (pip install 'de3bert[plot]')")
    else:
        draw_all(place, document)


def summarise(
    study: Study, records: Sequence[RunRecord], latency: Latency | None = None
) -> StudyResult:
    """`study.json`: what was compared, how far it is, and all aggregated numbers."""
    spec, results = study.spec, Results(study.spec, records)
    done = {record.identity for record in records if not outdated(record)}
    missing = [job.label for job in study.jobs if job.identity not in done]
    return StudyResult.made(
        title=spec.title,
        command=study.command,
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        versions=versions(),
        machines=sorted({record.machine for record in records}),
        backbone=spec.backbone,
        progress={"done": len(done), "of": len(study.jobs), "missing": missing},
        speeds=spec.speeds,
        methods=[_method(study, name, results) for name in spec.methods],
        tasks=[_task(study, task.name, records) for task in spec.task],
        **aggregate(results),
        flops=flops_table(results),
        latency=latency,
        older_scoring=_older(study, results),
        paper_grid=spec.paper_grid,
    )


def _older(study: Study, results: Results) -> list[str]:
    """Methods with a score from before lambda 0 was tried, which the study asks for."""
    found = {
        method
        for (_, method, _), record in results.records_of.items()
        if record.scored_as.scoring < TRIES_ZERO and tries_lambda(method)
    }
    return [] if study.spec.paper_grid else [name for name in study.spec.methods if name in found]


def _method(study: Study, name: str, results: Results) -> dict[str, Any]:
    method = METHODS[name]
    training = method.training or name
    job = next(job for job in study.jobs if job.training == training)
    return {
        "name": name,
        "group": method.group,
        "summary": method.summary,
        "citation": method.citation,
        "ranked": name in results.ranked,
        "training": training,
        "withdrawn": results.withdrawn.get(name),
        "pooling": job.pooling,
        "declared_pooling": METHODS[training].pooling,
        "built_poolings": results.built_poolings(name),
    }


def _task(study: Study, name: str, records: Sequence[RunRecord]) -> dict[str, Any]:
    task = next(each for each in study.spec.task if each.name == name)
    rows = next((record.rows for record in records if record.task == name), None)
    return {
        "name": name,
        "metric": task.metric,
        "metrics": task.metrics,
        "test": task.main_test,
        "seeds": study.spec.seeds_of(task),
        "rows": rows,
        "training": _training(study, name),
    }


def _training(study: Study, task: str) -> dict[str, float | str | None]:
    """How the models of a task are trained: what all methods share."""
    spec = next(each for each in study.spec.task if each.name == task)
    shared = train_recipe(study.spec.train_of(spec))
    return {
        **{name: getattr(shared, name) for name in TRAINING},
        "max_length": spec.max_length,
        "pooling": study.spec.pooling,
    }
