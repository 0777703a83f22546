"""Doing a study's work: train what is not there yet, trace it, write the record. Nothing twice."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from filelock import FileLock, Timeout

from de3bert.data.table import Table
from de3bert.errors import UsageError
from de3bert.methods import METHODS
from de3lab.documents import RunRecord
from de3lab.made import trace_is_of
from de3lab.study.material import TaskRows, backbone_sha256, read_material
from de3lab.study.plan import Job, plan
from de3lab.study.record import RUN, build_record, rescored, scored_as
from de3lab.study.spec import StudySpec, expand

__all__ = ["Study", "is_timed"]

WEIGHTS = ("*.safetensors", "*.bin")


@dataclass(frozen=True)
class Study:
    """A study and the folder of its runs.

    Args:
        runs: one folder per training: model, traces, `run.json`.
        command: how the study was started, for the records.
    """

    spec: StudySpec
    runs: Path
    command: str = ""
    _material: dict[str, TaskRows] = field(default_factory=dict, repr=False)
    _hashes: dict[str, str] = field(default_factory=dict, repr=False)

    @cached_property
    def jobs(self) -> list[Job]:
        return plan(self.spec)

    @cached_property
    def backbone(self) -> str:
        """The hash of the backbone's content."""
        return backbone_sha256(expand(self.spec.backbone))

    def small_backbone(self, job: Job) -> str | None:
        """The hash of the small encoder's content; None for a job without one."""
        if job.small_backbone is None:
            return None
        if job.small_backbone not in self._hashes:
            self._hashes[job.small_backbone] = backbone_sha256(expand(job.small_backbone))
        return self._hashes[job.small_backbone]

    def material(self, job: Job) -> TaskRows:
        if job.task.name not in self._material:
            self._material[job.task.name] = read_material(job.task)
        return self._material[job.task.name]

    def check(self) -> None:
        """Reads all rows and refuses everything that could only fail in the middle."""
        for job in self.jobs:
            material = self.material(job)
            _check_metrics(job, len(material.labels))
            for name in (job.training, *job.methods):
                _check_fit(name, job.task.name, material)
        smaller = {job.small_backbone for job in self.jobs}
        for source in (self.spec.backbone, *filter(None, smaller)):
            folder = Path(expand(source))
            if folder.is_absolute() and not (folder / "config.json").exists():
                raise UsageError(f"There is no backbone at {folder} (config.json is missing).")

    def key(self, job: Job) -> str:
        source = self.material(job).source.sha256
        return job.key(source, self.backbone, self.small_backbone(job))

    def folder(self, job: Job) -> Path:
        return self.runs / self.key(job)

    @contextmanager
    def claim(self, job: Job, *, wait: bool = False) -> Iterator[bool]:
        """Whether this process may work on a job: no other one does.

        Several processes may thus run one study; the system takes a dead one's claim back.
        """
        self.runs.mkdir(parents=True, exist_ok=True)
        lock = FileLock(f"{self.folder(job)}.lock")
        try:
            lock.acquire(timeout=-1 if wait else 0)
        except Timeout:
            yield False
            return
        try:
            yield True
        finally:
            lock.release()

    def stored(self, job: Job) -> RunRecord | None:
        """The record of a finished run, scored as the study asks now; None when there is none."""
        folder = self.folder(job)
        if not (folder / RUN).exists() or self._untraced(job):
            return None
        record = RunRecord.read(folder / RUN)
        if record.scored_as != scored_as(job):
            record = rescored(record, job, folder)
            record.write(folder / RUN)
        return record

    def run(self, job: Job, *, progress: bool = True, fresh: bool = False) -> RunRecord:
        """The record of a job: trained, traced and scored, as far as that is still to be done."""
        record = self.stored(job)
        if record is not None:
            return record
        folder = self.folder(job)
        if self._untraced(job):
            self.train(job, progress=progress, fresh=fresh)
            self._trace(job, progress)
        material = self.material(job)
        sizes = {name: len(table) for name, table in material.tests.items()}
        record = build_record(
            job,
            folder.name,
            folder,
            command=self.command,
            hashes={
                **material.hashes(),
                "backbone": self.backbone,
                **({"small_backbone": small} if (small := self.small_backbone(job)) else {}),
            },
            rows={
                "train": material.train_rows,
                "calibration": job.task.calibration_rows,
                **{f"test-{name}": rows for name, rows in sizes.items()},
            },
        )
        record.write(folder / RUN)
        self._tidy(job)
        return record

    def train(self, job: Job, *, progress: bool = True, fresh: bool = False) -> Path:
        """The folder of the trained model; its teacher is trained first."""
        from de3bert.training.fit import fit, is_finished

        out = self.folder(job) / "model"
        if is_finished(out):
            return out
        shutil.rmtree(out, ignore_errors=True)  # a model whose weights were removed
        above: Path | None = None
        if job.teacher is not None:
            with self.claim(job.teacher, wait=True):
                above = self.train(job.teacher, progress=progress, fresh=fresh)
        splits = self.material(job).splits(job.seed)
        method = METHODS[job.training]
        if method.exits == "trained":
            fit(job.recipe(), out, splits=splits, progress=progress, fresh=fresh, teacher=above)
            return out
        from de3bert.training.attach import attach_model

        assert above is not None  # the plan puts the training before the fit
        attach_model(
            above, splits.train, out, held=splits.calibration, rows=None, method=method.name,
            labels=method.exits == "fitted", progress=progress,
        )  # fmt: skip
        return out

    def _tables(self, job: Job) -> Iterator[tuple[str, Table]]:
        material = self.material(job)
        yield "calibration", material.splits(job.seed).calibration
        for name, table in material.tests.items():
            yield f"test-{name}", table

    def _untraced(self, job: Job) -> list[str]:
        """The traces that are missing or were made from other rows."""
        folder, material = self.folder(job), self.material(job)
        wanted = {"calibration": (material.source.sha256, job.task.calibration_rows)}
        for name, table in material.tests.items():
            wanted[f"test-{name}"] = table.sha256, len(table)
        return [
            name
            for name, (sha256, rows) in wanted.items()
            if not trace_is_of(folder / f"{name}.trace", sha256, rows)
        ]

    def _trace(self, job: Job, progress: bool) -> None:
        from de3bert.runtime.evaluate import trace_table
        from de3bert.runtime.load import load

        missing, folder = self._untraced(job), self.folder(job)
        classifier = load(folder / "model")
        for name, table in self._tables(job):
            if name in missing:
                label = f"tracing {name}" if progress else None
                trace_table(classifier, table, progress=label).save(folder / f"{name}.trace")

    def _tidy(self, job: Job) -> None:
        """Removes the weights where the study does not keep them and nobody learns from them."""
        if self.spec.keep_models or job.identity in _needed(self.jobs):
            return
        for pattern in WEIGHTS:
            for path in (self.folder(job) / "model").glob(pattern):
                path.unlink()


def _needed(jobs: Sequence[Job]) -> set[tuple[str, str, int]]:
    """Jobs whose models others need: teachers, and those that are to be timed."""
    teachers = {job.teacher.identity for job in jobs if job.teacher is not None}
    timed = {job.identity for job in jobs if job.spec.latency is not None and is_timed(job)}
    return teachers | timed


def is_timed(job: Job) -> bool:
    """Whether `--latency` times this job's model: one task, its first seed."""
    spec = job.spec
    task = (spec.latency.task if spec.latency else None) or spec.task[0].name
    return job.task.name == task and job.seed == spec.seeds_of(job.task)[0]


def _check_metrics(job: Job, classes: int) -> None:
    if "f1" in job.task.metrics and classes != 2:
        raise UsageError(
            f"Task {job.task.name} is scored by f1, which is for 2 classes; it has {classes}. "
            "Use macro_f1."
        )


def _check_fit(method: str, task: str, material: TaskRows) -> None:
    """Refuses methods that are for other data than a task has."""
    if METHODS[method].task != "text-classification":
        raise UsageError(f"Method {method} tags words, and a study compares text classifiers.")
