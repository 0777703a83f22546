"""The record of one run: what was trained, from what, by which command, and what it scored."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from de3bert.exits.trace import Trace
from de3bert.files import read_document, write_json
from de3bert.machine import machine, versions
from de3lab.study.flops import Sizes, flops_of
from de3lab.study.parameters import parameters_of
from de3lab.study.plan import Job
from de3lab.study.scoring import exit_scores, score_method

__all__ = ["FORMAT", "RUN", "VERSION", "build_record", "read_record", "rescored", "scored_as"]

FORMAT, VERSION = "de3bert-run", 1
RUN = "run.json"
SCORING = 1  # counts up when scores are made in another way
TRAINED = ("seconds", "steps", "phases", "notes")


def build_record(
    job: Job,
    key: str,
    folder: Path,
    *,
    command: str,
    hashes: Mapping[str, str],
    rows: Mapping[str, int],
) -> dict[str, Any]:
    """Everything about a finished run, from its folder: the model's own record, and the traces."""
    main = read_traces(job, folder)[1][job.task.main_test]
    trained = json.loads((folder / "model" / "training.json").read_text(encoding="utf-8"))
    record = {
        "format": FORMAT,
        "version": VERSION,
        "key": key,
        "task": job.task.name,
        "training": job.training,
        "seed": job.seed,
        "teacher": job.teacher.training if job.teacher else None,
        "command": command,
        "machine": machine(),
        "versions": versions(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "backbone": job.spec.backbone,
        "settings": job.settings(),
        "sha256": dict(hashes),
        "rows": dict(rows),
        "training_record": {name: trained[name] for name in TRAINED if name in trained},
        "exit_layers": list(main.exit_layers),
        "base_depth": main.base,
        "label_names": list(main.label_names),
        "exit_accuracy": {},
        "parameters": parameters_of(folder / "model"),
        "flops": {},
    }
    return rescored(record, job, folder)


def rescored(record: Mapping[str, Any], job: Job, folder: Path) -> dict[str, Any]:
    """The record with all that the study asks for now, from the run's traces.

    Studies that share a runs folder may score one training on different test files, so rows, hashes
    and what is read off the main test rows are made anew as well.
    """
    calibration, tests = read_traces(job, folder)
    task, speeds = job.task, job.spec.speeds
    methods = {
        name: score_method(name, calibration, tests, task.metrics, speeds) for name in job.methods
    }
    return {
        **record,
        **_of_tests(record, tests),
        **_of_main(record, tests[task.main_test], folder / "model"),
        "scored_as": scored_as(job),
        "methods": methods,
    }


def _of_tests(record: Mapping[str, Any], tests: Mapping[str, Trace]) -> dict[str, Any]:
    """Rows and hashes of training material as they are, of the test files as traced."""
    rows = {f"test-{name}": trace.rows for name, trace in tests.items()}
    hashes = {f"test-{name}": trace.info["data"]["sha256"] for name, trace in tests.items()}
    kept = {
        part: {name: value for name, value in record[part].items() if not name.startswith("test-")}
        for part in ("rows", "sha256")
    }
    return {"rows": {**kept["rows"], **rows}, "sha256": {**kept["sha256"], **hashes}}


def _of_main(record: Mapping[str, Any], main: Trace, model: Path) -> dict[str, Any]:
    """Scores of exits and operations per text; operations stay where there is no model."""
    found: dict[str, Any] = {"exit_accuracy": exit_scores(main, ["accuracy"])}
    if (model / "config.json").exists():
        found["flops"] = flops_of(Sizes.of_model(model), float(main.tokens.mean()))
    return found


def scored_as(job: Job) -> dict[str, Any]:
    """What a run is scored by; scores of other speeds, metrics or methods are made anew."""
    return {
        "scoring": SCORING,
        "methods": list(job.methods),
        "metrics": list(job.task.metrics),
        "speeds": list(job.spec.speeds),
        "tests": list(job.task.test),
    }


def read_traces(job: Job, folder: Path) -> tuple[Trace, dict[str, Trace]]:
    tests = {name: Trace.load(folder / f"test-{name}.trace") for name in job.task.test}
    return Trace.load(folder / "calibration.trace"), tests


def read_record(path: Path) -> dict[str, Any]:
    """A stored record; De3Error when it is damaged or of a newer version."""
    return read_document(path, FORMAT, VERSION, "the record of a run")


def write_record(path: Path, record: Mapping[str, Any]) -> None:
    write_json(path, record)


def find_records(places: Iterable[Path]) -> dict[str, dict[str, Any]]:
    """All records in these files by key; of one key the last place counts."""
    records = (read_record(path) for path in places)
    return {record["key"]: record for record in records}
