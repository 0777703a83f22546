"""Accuracy against milliseconds: exits, fewer layers and distilled students, timed in turn.

    DE3_DATA_DIR=... DE3_BACKBONE_DIR=... python studies/clock.py sst2 --seed 42
    DE3_DATA_DIR=... DE3_BACKBONE_DIR=... python studies/clock.py sst2 --report

The first trains what `studies/clock.toml` names for a task and seed (what is trained already is
used again), exports it in fp32 and int8, and times everybody in one process on the same test texts,
one text at a time and at the batch size that suits each best. Points are chosen on calibration
rows. The second makes table and figure of the seeds that were measured.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from de3bert.bench.contender import Contender, find
from de3bert.bench.material import BenchMaterial, load_bundle
from de3bert.bench.measure import Measured, measure
from de3bert.bench.ours import Ours, at_points
from de3bert.bench.run import graphs, hf, openvino  # noqa: F401  # they register contenders
from de3bert.data.table import Table
from de3bert.export.bundle import export_model
from de3bert.files import read_json, write_json, write_text
from de3bert.machine import machine, versions
from de3bert.runtime.calibrate_folder import calibrate_model
from de3bert.runtime.load import read_config
from de3bert.runtime.manifest import is_bundle
from de3lab.bench.clock import BASELINE, STUDENTS, Timed, bars, means_over_seeds
from de3lab.figures.clock import ClockCurve, ClockDot, draw_clock
from de3lab.study.execute import Study
from de3lab.study.plan import Job
from de3lab.study.spec import load_study
from de3lab.tabular import markdown_table

HERE = Path(__file__).parent
EXITS = {"full+fitted": (1.5, 2.0, 2.5, 2.75, 3.0, 4.0), "layers-6+fitted": (1.25, 1.5, 2.0)}
NAMES = {
    "full": "12 layers", "layers-6": "6 layers", "layers-4": "4 layers",
    "pkd": "PKD", "pd": "PD", "theseus": "Theseus",
}  # fmt: skip
BESIDE = ("full", "layers-6")  # models that every runtime runs
FUSED = ("ort-fused", "ort-fused-int8")  # what every model is timed on; the baseline
EVERY = ("hf", "ort", *FUSED, "openvino")  # what shows the runtimes beside each other


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("task", choices=("sst2", "qnli"))
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--texts", type=int, default=1817, help="test rows that are timed")
    parser.add_argument("--runs", type=Path, default=Path("runs/queue"))
    parser.add_argument("--results", type=Path, default=Path("results/clock"))
    parser.add_argument("--trained", action="store_true", help="only what is trained already")
    parser.add_argument("--report", action="store_true", help="measure nothing: table and figure")
    options = parser.parse_args()
    if not options.report:
        measured = clock(options)
        write_json(options.results / f"{options.task}-seed{options.seed}.json", measured)
    report(options.results, options.task)


def clock(options: argparse.Namespace) -> dict[str, Any]:
    """Times all models of a task and seed."""
    study = Study(load_study(HERE / "clock.toml"), options.runs, " ".join(sys.argv))
    wanted = (options.task, options.seed)
    jobs = {job.training: job for job in study.jobs if (job.task.name, job.seed) == wanted}
    if options.trained:
        jobs = {name: job for name, job in jobs.items() if _is_trained(study, job)}
    task, material = jobs["full"].task, study.material(jobs["full"])
    test = material.tests[task.main_test]
    test = test.take(list(range(min(options.texts, len(test)))))
    right = [material.labels.names[number] for number in material.labels.encode(test.labels or [])]
    contenders = [each for job in jobs.values() for each in _contenders(study, job)]
    found = measure(contenders, test.inputs(), options.rounds, seed=options.seed, note=print)
    return {
        "schema": 1,
        "study": "clock",
        "task": options.task,
        "seed": options.seed,
        "command": " ".join(["python", *sys.argv]),
        "machine": machine(),
        "versions": versions(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "rows": len(test),
        "rounds": options.rounds,
        "contenders": [_row(each, right) for each in found],
    }


def _is_trained(study: Study, job: Job) -> bool:
    from de3bert.training.fit import is_finished

    fitted_on = job.teacher if job.training in EXITS else None
    return is_finished(study.folder(fitted_on or job) / "model")


def _contenders(study: Study, job: Job) -> Iterator[Contender]:
    """Those of one training: its points, or what runs it."""
    model, held = study.train(job), study.material(job).splits(job.seed).calibration
    if job.training in EXITS:
        _calibrate(model, held, EXITS[job.training])
        for int8 in (False, True):
            bundle = load_bundle(_bundle(model, held, int8=int8))
            yield from at_points(bundle, None, prefix=job.training)
        return
    bundle = load_bundle(_bundle(model, held, int8=False))
    material = BenchMaterial(bundle, model, model.parent)
    for name in EVERY if job.training in BESIDE else FUSED:
        contender = find(name)(material, name)()
        yield replace(contender, name=f"{job.training}:{name}")  # type: ignore[type-var]
    material.close()


def _calibrate(model: Path, held: Table[Any], speeds: Sequence[float]) -> None:
    """A point for each speed, of the model's own layers."""
    config = read_config(model)
    known, depth = config.get("operating_points") or {}, config["exit_layers"][-1]
    for speed in speeds:
        if (name := f"{speed:g}x") not in known:
            calibrate_model(model, f"layers={depth / speed:.4f}", name, table=held)


def _bundle(model: Path, held: Table[Any], *, int8: bool) -> Path:
    out = model.with_name("int8" if int8 else "fp32")
    if not is_bundle(out):
        print(f"exporting {out}")
        export_model(model, out, int8=int8, table=held)
    return out


def _row(measured: Measured, right: Sequence[str]) -> dict[str, Any]:
    """What is kept of a contender; `right` has the class of each text."""
    contender, answers = measured.contender, measured.answers
    model, _, way = contender.name.partition(":")
    alone = measured.seconds.mean(axis=1) * 1e3
    hits = [answer.label == label for answer, label in zip(answers, right, strict=True)]
    return {
        "model": model,
        "way": way,
        "precision": contender.precision,
        "policy": str(contender.policy) if isinstance(contender, Ours) else None,
        "layers": float(np.mean([answer.exit_layer for answer in answers])),
        "accuracy": float(np.mean(hits)),
        "ms": float(alone.mean()),
        "p50": float(np.median(alone)),
        "p95": float(np.percentile(alone, 95)),
        "rate": float(len(answers) / np.median(measured.list_seconds)),
        "batch_size": measured.batch_size,
        "hits": "".join("01"[hit] for hit in hits),
    }


def report(results: Path, task: str) -> None:
    """Table and figure of all seeds that were measured."""
    documents = [read_json(path) for path in sorted(results.glob(f"{task}-seed*.json"))]
    rows = means_over_seeds([[Timed.of(row) for row in each["contenders"]] for each in documents])
    seeds = ", ".join(str(each["seed"]) for each in documents)
    last = documents[-1]
    title = f"{task}, gte-small (12 x 384), {last['machine'].partition(', Linux')[0]}"
    draw_clock(results / f"{task}.png", list(_curves(rows)), list(_dots(rows)), title)
    columns = ("model", "run by / point", "", "mean layers", "accuracy", "ms", "texts/s")
    cells = [
        (each.model, each.way, each.precision, f"{each.layers:.2f}", f"{each.accuracy:.4f}",
         f"{each.ms:.2f}", f"{each.rate:.0f}")
        for each in rows
    ]  # fmt: skip
    table = markdown_table(columns, cells, right=False)
    met = [str(bar) for precision in ("fp32", "int8") for bar in bars(rows, task, precision)]
    said = f"Seeds {seeds}; {last['rows']} test rows; {last['machine']}; {last['date'][:10]}."
    lines = [
        f"# Accuracy against milliseconds: {task}",
        "",
        said,
        "",
        *table,
        "",
        "```",
        *met,
        "```",
    ]
    write_text(results / f"{task}.md", "\n".join(lines) + "\n")
    print("\n".join(met))


def _curves(rows: Sequence[Timed]) -> Iterator[ClockCurve]:
    for number, (model, depth) in enumerate(zip(EXITS, (12, 6), strict=True)):
        for precision in BASELINE:
            own = [each for each in rows if each.model == model and each.precision == precision]
            points = tuple((each.ms, each.accuracy) for each in own)
            if points:
                label = f"exits on {depth} layers, {precision}"
                yield ClockCurve(label, points, number, precision == "fp32")


def _dots(rows: Sequence[Timed]) -> Iterator[ClockDot]:
    for precision, way in BASELINE.items():
        for each in (each for each in rows if each.way == way):
            label = NAMES[each.model] + ("" if precision == "fp32" else ", int8")
            student = each.model in STUDENTS
            yield ClockDot(label, each.ms, each.accuracy, precision == "fp32", student)


if __name__ == "__main__":
    main()
