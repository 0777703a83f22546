"""The record of one run, from its folder: what was trained, and what its traces score."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from de3bert.exits.trace import Trace
from de3bert.files import read_json
from de3bert.machine import machine, versions
from de3lab.documents import RunRecord, ScoredAs
from de3lab.study.flops import Anatomy, flops_of
from de3lab.study.parameters import parameters_of
from de3lab.study.plan import Job
from de3lab.study.revisions import revision_of
from de3lab.study.scoring import exit_scores, score_method

__all__ = [
    "RUN",
    "SCORING",
    "build_record",
    "is_scored_alike",
    "read_traces",
    "rescored",
    "scored_as",
]

RUN = "run.json"
# Counts up when scores are made in another way. 2: lambda 0 is among the weights that are tried,
# and calibrated speeds have intervals.
SCORING = 2
TRAINED = ("seconds", "steps", "phases", "notes")


def build_record(
    job: Job,
    key: str,
    folder: Path,
    *,
    command: str,
    hashes: Mapping[str, str],
    rows: Mapping[str, int],
) -> RunRecord:
    """Everything about a finished run, from its folder: the model's own record, and the traces."""
    main = read_traces(job, folder)[1][job.task.main_test]
    model = folder / "model"
    trained, config = (read_json(model / name) for name in ("training.json", "config.json"))
    record = RunRecord.made(
        key=key,
        task=job.task.name,
        training=job.training,
        revision=revision_of(job.training),
        seed=job.seed,
        teacher=job.teacher.training if job.teacher else None,
        command=command,
        machine=machine(),
        versions=versions(),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        backbone=job.spec.backbone,
        pooling=config["pooling"],
        settings=job.settings(),
        sha256=dict(hashes),
        rows=dict(rows),
        training_record={name: trained[name] for name in TRAINED if name in trained},
        exit_layers=list(main.exit_layers),
        base_depth=main.base,
        label_names=list(main.label_names),
        exit_accuracy={},
        parameters=parameters_of(model),
        flops=None,
        scored_as=scored_as(job),
        methods={},
    )
    return rescored(record, job, folder)


def rescored(record: RunRecord, job: Job, folder: Path) -> RunRecord:
    """The record with all that the study asks for now, from the run's traces.

    Studies that share a runs folder may score one training on different test files, so rows, hashes
    and what is read off the main test rows are computed again as well.
    """
    calibration, tests = read_traces(job, folder)
    task, spec = job.task, job.spec
    methods = {
        name: score_method(
            name, calibration, tests, task.metrics, spec.speeds, paper_grid=spec.paper_grid
        )
        for name in job.methods
    }
    scored = {
        **_of_tests(record, tests),
        **_of_main(tests[task.main_test], folder / "model"),
        "scored_as": scored_as(job),
        "methods": methods,
    }
    return record.model_copy(update=scored)


def _of_tests(record: RunRecord, tests: Mapping[str, Trace]) -> dict[str, Any]:
    """Rows and hashes of training material unchanged, of the test files as traced."""
    rows = {name: count for name, count in record.rows.items() if not _is_test(name)}
    hashes = {name: sha256 for name, sha256 in record.sha256.items() if not _is_test(name)}
    for name, trace in tests.items():
        rows[f"test-{name}"] = trace.rows
        hashes[f"test-{name}"] = trace.info["data"]["sha256"]
    return {"rows": rows, "sha256": hashes}


def _is_test(name: str) -> bool:
    return name.startswith("test-")


def _of_main(main: Trace, model: Path) -> dict[str, Any]:
    """Scores of exits and operations per text; operations stay where there is no model."""
    found: dict[str, Any] = {"exit_accuracy": exit_scores(main, ["accuracy"])}
    if (model / "config.json").exists():
        found["flops"] = flops_of(Anatomy.of_folder(model), float(main.tokens.mean()))
    return found


def scored_as(job: Job) -> ScoredAs:
    """What a run is scored by; scores of other speeds, metrics or methods are computed again."""
    return ScoredAs(
        scoring=SCORING,
        paper_grid=job.spec.paper_grid,
        methods=list(job.methods),
        metrics=list(job.task.metrics),
        speeds=list(job.spec.speeds),
        tests=list(job.task.test),
    )


def is_scored_alike(record: RunRecord, job: Job) -> bool:
    """Whether a record has the scores asked for, be it in the way of an older version."""
    mine = {"scoring": SCORING, "paper_grid": job.spec.paper_grid}
    return record.scored_as.model_copy(update=mine) == scored_as(job)


def read_traces(job: Job, folder: Path) -> tuple[Trace, dict[str, Trace]]:
    tests = {name: Trace.load(folder / f"test-{name}.trace") for name in job.task.test}
    return Trace.load(folder / "calibration.trace"), tests
