"""A whole benchmark: contenders are made, answer, are timed in turn, and a document comes out."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

# Each of these registers its contenders; none imports a model library before it is needed.
from de3bert.bench import graphs, hf, openvino
from de3bert.bench.answers import find_reference, right_labels
from de3bert.bench.contender import Contender, find
from de3bert.bench.material import BenchMaterial, load_bundle
from de3bert.bench.measure import Note, measure
from de3bert.bench.ours import Ours, at_points
from de3bert.bench.report import contender_rows, token_lengths
from de3bert.bench.timing import SYSTEM, TimeSource
from de3bert.data.sampling import draw_rows
from de3bert.data.table import Table
from de3bert.errors import UsageError
from de3bert.machine import machine, versions
from de3bert.runtime.backends import checked_backend
from de3bert.runtime.classifier import Classifier
from de3bert.runtime.manifest import Manifest

__all__ = ["Request", "graphs", "hf", "openvino", "run_bench"]

SCHEMA = 1
DEFAULT = "onnx"  # what runs a bundle unless something else is asked for


@dataclass(frozen=True)
class Request:
    """What to compare, and how thoroughly.

    Attributes:
        bundle: the folder to measure.
        against: names of the baselines.
        points: operating points; None takes full depth and all that the bundle has.
        model: the model folder the bundle was made from; None looks where it was then.
        int8: an int8 bundle of the same model, measured too.
        backends: what runs the bundles, each measured alongside the others.
        rounds: how often each text, and the whole list, is timed.
        texts: how many texts are drawn from the data.
    """

    bundle: str
    against: tuple[str, ...]
    points: tuple[str, ...] | None = None
    model: str | None = None
    int8: str | None = None
    backends: tuple[str, ...] = (DEFAULT,)
    rounds: int = 5
    texts: int = 200
    threads: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        for name in self.against:
            find(name)
        for name in self.backends:
            checked_backend(name)
        if self.rounds < 1 or self.texts < 1:
            raise UsageError(
                f"rounds and texts must be at least 1, got {self.rounds} and {self.texts}."
            )


def run_bench(
    request: Request,
    table: Table,
    *,
    command: str = "",
    clock: TimeSource = SYSTEM,
    note: Note = lambda _: None,
) -> dict[str, Any]:
    """Compares a bundle with its baselines on a table's texts; plain JSON values come out."""
    bundle = load_bundle(request.bundle, request.threads, request.backends[0])
    table = draw_rows(table, request.texts, request.seed)
    texts = table.inputs()
    warnings: list[str] = []
    labels = right_labels(bundle, table, warnings)
    facts = _circumstances(request, bundle, table, warnings)
    with _contenders(request, bundle, note) as (baselines, ours):
        everybody = [*baselines, *ours]
        measured = measure(
            everybody, texts, request.rounds, seed=request.seed, clock=clock, note=note
        )
        reference = find_reference(measured, bundle, texts)
    note("intervals")
    rows = contender_rows(measured, [each.name for each in baselines], reference, labels)
    found = [reference.warning(each) for each in measured]
    return {
        "schema": SCHEMA,
        "benchmark": "a bundle against its baselines",
        "command": command,
        **facts,
        "reference": reference.name,
        "answers_ok": not any(found),
        "warnings": [*warnings, *filter(None, found)],
        "contenders": rows,
    }


def _circumstances(
    request: Request, bundle: Classifier, table: Table, warnings: list[str]
) -> dict[str, Any]:
    """When, where and on what; taken before the run, whose own work is no load of others."""
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    encoded, longest = bundle.encode(table.inputs()), bundle.info.max_length
    cut = encoded.truncated
    if load > cores / 2:
        warnings.append(f"this machine is busy with other work (load {load:.1f}): times are noisy")
    if cut:
        warnings.append(f"{cut} of {len(table)} texts were truncated to {longest} tokens")
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "load": load,
        "versions": _versions(),
        "threads": bundle.backend.size()["threads"],
        "bundle": {"folder": request.bundle, "weights": bundle.weights_sha256},
        "data": {"source": table.source, "sha256": table.sha256},
        "texts": len(table),
        "tokens": token_lengths(encoded.lengths),
        "truncated": cut,
        "rounds": request.rounds,
        "seed": request.seed,
    }


@contextmanager
def _contenders(
    request: Request, bundle: Classifier, note: Callable[[str], None]
) -> Iterator[tuple[list[Contender], list[Ours]]]:
    """Baselines and ours. All that can be wrong is said before the first graph is exported."""
    ours = list(_ours(request, bundle))
    if not request.against:
        yield [], ours
        return
    with TemporaryDirectory(prefix="de3-bench-") as folder:
        material = BenchMaterial(bundle, request.model, Path(folder))
        makers = {name: find(name)(material, name) for name in request.against}
        try:
            made = {}
            for name, make in makers.items():
                note(f"making {name}")
                contender = make()
                made[contender.name] = contender  # layer-k and layer-6 may be the same
            yield list(made.values()), ours
        finally:
            material.close()


def _ours(request: Request, bundle: Classifier) -> Iterator[Ours]:
    """The bundles at every point, by one back end after the other."""
    for backend in dict.fromkeys(request.backends):
        suffix = "" if backend == DEFAULT else f"-{backend}"
        own = bundle
        if backend != request.backends[0]:
            own = load_bundle(request.bundle, request.threads, backend)
        yield from at_points(own, request.points, prefix=f"ours{suffix}")
        if request.int8 is not None:
            int8 = load_bundle(request.int8, request.threads, backend)
            _check_same_model(bundle, int8)
            yield from at_points(int8, request.points, prefix=f"ours-int8{suffix}")


def _check_same_model(bundle: Classifier, int8: Classifier) -> None:
    """Two bundles compare only if they were made of one model."""
    folders = (Path(each.source) for each in (bundle, int8))
    first, second = (Manifest.read(folder).source.get("weights") for folder in folders)
    if first != second or bundle.label_names != int8.label_names:
        raise UsageError(
            f"{int8.source} (--int8) was exported from a different model than {bundle.source}: "
            "their times and answers are not comparable."
        )


def _versions() -> dict[str, str]:
    found = versions()
    with suppress(metadata.PackageNotFoundError):
        found["openvino"] = metadata.version("openvino")
    return found
