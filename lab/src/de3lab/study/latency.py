"""Milliseconds of the compared methods on this machine, one text at a time."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from de3bert.errors import De3Error
from de3bert.exits.calibrate import curves_of
from de3bert.exits.family import Family
from de3bert.exits.timing import CostModel
from de3bert.exits.trace import Trace
from de3bert.files import read_document, write_json
from de3bert.machine import machine
from de3bert.methods import METHODS
from de3bert.runtime.classifier import Classifier
from de3bert.runtime.load import load
from de3bert.runtime.manifest import is_bundle
from de3bert.runtime.profile import profile, read_profile, write_profile
from de3lab.study.costs import OWN
from de3lab.study.execute import Study, is_timed
from de3lab.study.plan import Job
from de3lab.study.record import read_traces
from de3lab.study.spec import LatencySpec

__all__ = ["LATENCY", "Export", "predicted", "read_latency", "time_models"]

LATENCY = "latency.json"
FORMAT, VERSION = "de3bert-latency", 1
MOST_TEXTS = 200  # that a model of one exit answers
Export = Callable[[Path, Path], object]  # a model folder, the place of its bundle


def time_models(
    study: Study, place: Path, export: Export, *, note: Callable[[str], None]
) -> dict[str, Any]:
    """Times the models of one task and seed, one after the other, and writes `latency.json`.

    Each is exported. A model with exits is profiled, and its times at every speed are predicted by
    the cost model; a model with one exit answers test texts. All are means per text of the main
    test rows, one text at a time, tokenising included. What cannot be exported has no times, and
    the reason is noted.
    """
    found: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    jobs = [job for job in study.jobs if is_timed(job)]
    for job in (job for job in jobs if job.methods):
        record = study.stored(job)
        if record is None:
            reasons[job.training] = "not trained yet"
            continue
        note(f"timing {job.label}")
        try:
            times = _times(study, job, record, export)
        except De3Error as error:
            reasons[job.training] = str(error)
            note(f"{job.training} has no times: {error}")
            continue
        found |= times
    document = {
        "format": FORMAT,
        "version": VERSION,
        "task": jobs[0].task.name,
        "seed": jobs[0].seed,
        "machine": machine(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "milliseconds": found,
        "without": reasons,
    }
    write_json(place / LATENCY, document)
    return document


def read_latency(place: Path) -> dict[str, Any] | None:
    """What `time_models` wrote, None when nothing was timed; De3Error when it is damaged."""
    path = place / LATENCY
    if not path.exists():
        return None
    return read_document(path, FORMAT, VERSION, "the timing of a study's models")


def _times(
    study: Study, job: Job, record: Mapping[str, Any], export: Export
) -> dict[str, dict[str, float]]:
    """Method -> speed -> milliseconds, of the methods that read one training."""
    folder = study.folder(job)
    bundle = folder / "bundle"
    if not is_bundle(bundle):
        export(folder / "model", bundle)
    rounds = (study.spec.latency or LatencySpec()).rounds
    if len(record["exit_layers"]) == 1:
        texts = study.material(job).tests[job.task.main_test].inputs()
        spent = _answering(load(bundle), texts, rounds)
        return {method: {OWN: spent} for method in job.methods}
    cost = read_profile(bundle)
    if cost is None:
        cost = profile(load(bundle), batches=(1,), rounds=rounds)
        write_profile(bundle, cost)
    scored = record["methods"]
    return {method: predicted(job, scored[method], folder, cost) for method in job.methods}


def _answering(classifier: Classifier, texts: Sequence[Any], rounds: int) -> float:
    """Mean over texts, spread over all of them, of the median over rounds."""
    step = max(1, len(texts) // MOST_TEXTS)
    classifier.predict(texts[:1])  # the first call is not like the others
    medians = []
    for text in texts[::step]:
        spent = []
        for _ in range(rounds):
            start = time.perf_counter()
            classifier.predict([text])
            spent.append((time.perf_counter() - start) * 1e3)
        medians.append(np.median(spent))
    return float(np.mean(medians))


def predicted(
    job: Job, scored: Mapping[str, Any], folder: Path, cost: CostModel
) -> dict[str, float]:
    """Speed -> mean milliseconds per text on the main test rows, by the family used there."""
    trace = read_traces(job, folder)[1][job.task.main_test]
    if METHODS[scored["method"]].finish == "temperatures":
        trace = trace.tempered(scored["temperatures"])
    seen = scored["tests"][job.task.main_test]
    if seen["point"] is not None:  # the oracle
        family = METHODS[scored["method"]].families[0]
        return {OWN: _milliseconds(trace, family, cost, seen["point"]["layer_speedup"])}
    return {
        key: _milliseconds(trace, at["family"], cost, float(key))
        for key, at in seen["at"].items()
        if at is not None
    }


def _milliseconds(trace: Trace, family: str, cost: CostModel, speed: float) -> float:
    line = curves_of(trace, [Family.parse(family)], "accuracy", cost)[0]
    assert line.milliseconds is not None  # there was a cost model
    layers = trace.base / speed
    # np.interp wants rising x, and mean layers fall along the curve.
    return float(np.interp(layers, line.layers_mean[::-1], line.milliseconds[::-1]))
