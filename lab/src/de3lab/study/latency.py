"""Milliseconds of the compared methods on this machine, one text at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from de3bert.bench.contender import ORT_POOL
from de3bert.bench.timing import alternate
from de3bert.errors import De3Error
from de3bert.exits.calibrate import curves_of
from de3bert.exits.cost_model import CostModel
from de3bert.exits.family import Family
from de3bert.exits.trace import Trace
from de3bert.machine import machine
from de3bert.methods import METHODS
from de3bert.runtime.classifier import Classifier
from de3bert.runtime.load import load
from de3bert.runtime.profile import profile, read_profile, write_profile
from de3lab.documents import Latency, MethodScores, RunRecord
from de3lab.documents.study import OWN
from de3lab.made import Export, bundle_in
from de3lab.study.execute import Study, is_timed
from de3lab.study.plan import Job
from de3lab.study.record import read_traces
from de3lab.study.spec import LatencySpec

__all__ = ["LATENCY", "predicted", "read_latency", "time_models"]

LATENCY = "latency.json"
MOST_TEXTS = 200  # that a model of one exit answers


def time_models(
    study: Study, place: Path, export: Export, *, note: Callable[[str], None]
) -> Latency:
    """Times the models of one task and seed, one after the other, and writes `latency.json`.

    Each is exported. A model with exits is profiled, and its times at every speed are predicted by
    the cost model; a model with one exit answers test texts. All are means per text of the main
    test rows, one text at a time, tokenising included. Measured and predicted times are kept apart.
    What cannot be exported has no times, and the reason is noted.
    """
    measured: dict[str, Any] = {}
    guessed: dict[str, Any] = {}
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
        (measured if _has_one_exit(record) else guessed).update(times)
    document = Latency.made(
        task=jobs[0].task.name,
        seed=jobs[0].seed,
        machine=machine(),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        measured=measured,
        predicted=guessed,
        without=reasons,
    )
    document.write(place / LATENCY)
    return document


def read_latency(place: Path) -> Latency | None:
    """What `time_models` wrote, None when nothing was timed; De3Error when it is damaged."""
    path = place / LATENCY
    return Latency.read(path) if path.exists() else None


def _times(
    study: Study, job: Job, record: RunRecord, export: Export
) -> dict[str, dict[str, float]]:
    """Method -> speed -> milliseconds, of the methods that read one training.

    Measured where there is one exit, else predicted.
    """
    folder = study.folder(job)
    bundle = bundle_in(folder / "bundle", folder / "model", export)
    rounds = (study.spec.latency or LatencySpec()).rounds
    if _has_one_exit(record):
        texts = study.material(job).tests[job.task.main_test].inputs()
        spent = _answering(load(bundle), texts, rounds)
        return {method: {OWN: spent} for method in job.methods}
    cost = read_profile(bundle)
    if cost is None:
        cost = profile(load(bundle), batches=(1,), rounds=rounds)
        write_profile(bundle, cost)
    return {method: predicted(job, record.methods[method], folder, cost) for method in job.methods}


def _has_one_exit(record: RunRecord) -> bool:
    return len(record.exit_layers) == 1


def _answering(classifier: Classifier, texts: Sequence[Any], rounds: int) -> float:
    """Milliseconds: mean over texts, spread over all of them, of the median over rounds."""
    some = texts[:: max(1, len(texts) // MOST_TEXTS)]
    classifier.predict(some[:1])  # the first call is not like the others
    jobs = {"model": lambda item: classifier.predict([some[item]])}
    times = alternate(jobs, len(some), rounds, pools={"model": ORT_POOL})["model"]
    return float(np.median(times, axis=1).mean() * 1e3)


def predicted(job: Job, scored: MethodScores, folder: Path, cost: CostModel) -> dict[str, float]:
    """Speed -> mean milliseconds per text on the main test rows, by the family used there."""
    trace = read_traces(job, folder)[1][job.task.main_test]
    if scored.temperatures is not None:
        trace = trace.tempered(scored.temperatures)
    seen = scored.tests[job.task.main_test]
    if seen.point is not None:  # the oracle
        family = METHODS[scored.method].families[0]
        return {OWN: _milliseconds(trace, family, cost, seen.point.layer_speedup)}
    return {
        key: _milliseconds(trace, at.family, cost, float(key))
        for key, at in seen.at.items()
        if at is not None
    }


def _milliseconds(trace: Trace, family: str, cost: CostModel, speed: float) -> float:
    line = curves_of(trace, [Family.parse(family)], "accuracy", cost)[0]
    assert line.milliseconds is not None  # there was a cost model
    layers = trace.base / speed
    # np.interp wants rising x, and mean layers fall along the curve.
    return float(np.interp(layers, line.layers_mean[::-1], line.milliseconds[::-1]))
