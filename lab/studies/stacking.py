"""Exits, int8 and a better runtime, alone and together: accuracy against measured latency.

    DE3_DATA_DIR=... DE3_BACKBONE_DIR=... python studies/stacking.py --seed 42

Answers "why not just distil or quantise?" on SST-2 dev with the 12 x 384 model of
`sst2_gte_small.py`: full depth, 2x and 3x layers; fp32 and int8; Hugging Face eager torch, ONNX
Runtime, and ours; beside a six-layer model fine-tuned on the same rows. Points are chosen on
calibration rows. All contenders answer every dev text one at a time, in turn, in one process.
A run that was stopped goes on when started again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import torch
from sst2_gte_small import folder, material, splits, trained
from transformers import AutoModel, AutoTokenizer

from de3bert.bench.answers import Reference
from de3bert.bench.contender import Contender, find
from de3bert.bench.material import BenchMaterial, load_bundle
from de3bert.bench.measure import Measured, measure
from de3bert.bench.ours import at_points
from de3bert.bench.report import contender_rows
from de3bert.bench.run import graphs, hf  # noqa: F401  # they register their contenders
from de3bert.data.table import Table
from de3bert.data.tokens import TextInput, TokenRow
from de3bert.export.bundle import export_model
from de3bert.files import write_json
from de3bert.machine import machine, versions
from de3bert.runtime.calibrate_folder import calibrate_model
from de3bert.runtime.classifier import Classifier
from de3bert.runtime.load import load, read_config
from de3bert.runtime.manifest import is_bundle
from de3bert.tasks import TASKS, Prediction
from de3bert.training.fit import fit, is_finished
from de3bert.training.recipe import recipe_from
from de3lab.figures.stacking import StackedSeries, draw_latency
from de3lab.tabular import markdown_table

NAMES = ("negative", "positive")
SERIES = (
    StackedSeries(
        "Hugging Face, torch (with our exits: 2x, 3x)", ("hf", "torch:2x", "torch:3x"), "s"
    ),
    StackedSeries("ONNX Runtime, one graph (fp32, int8)", ("ort", "ort-int8"), "^", (-6, 7)),
    StackedSeries(
        "six-layer model, ONNX Runtime (fp32, int8)",
        ("half-depth:full", "half-depth-int8:full"),
        "D",
    ),
    StackedSeries("ours, fp32", ("ours:full", "ours:2x", "ours:3x"), offset=(4, -12)),
    StackedSeries(
        "ours, int8", ("ours-int8:full", "ours-int8:2x", "ours-int8:3x"), offset=(-2, -14)
    ),
)
MARKS = {
    "hf": "full", "torch:2x": "2x", "torch:3x": "3x", "ort": "fp32", "ort-int8": "int8",
    "half-depth:full": "fp32", "half-depth-int8:full": "int8",
    **{f"{kind}:{at}": at for kind in ("ours", "ours-int8") for at in ("full", "2x", "3x")},
}  # fmt: skip
POINTS = {"2x": "layers=2.0", "3x": "layers=3.0"}
HALF = 6


@dataclass(frozen=True)
class Torch:
    """The model folder itself, run by torch at one point."""

    name: str
    point: str
    classifier: Classifier
    precision: str = "fp32"
    pool: str = "torch"

    @property
    def full_depth(self) -> bool:
        return self.point == "full"

    def tokenise(self, texts: Sequence[TextInput]) -> list[TokenRow]:
        return self.classifier.encode(texts).rows

    def predict(self, texts: Sequence[TextInput], batch_size: int) -> list[Prediction]:
        return self.classifier.predict(texts, point=self.point, batch_size=batch_size)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--texts", type=int, default=872)
    parser.add_argument("--runs", type=Path, default=Path("runs/sst2-gte-small"))
    parser.add_argument("--results", type=Path, default=Path("results/stacking"))
    parser.add_argument("--only-train", action="store_true")
    options = parser.parse_args()
    rows = material(options.seed)
    model, name = trained(rows, options.runs, options.seed)
    half = half_depth(rows, options.runs, options.seed)
    for place in (model, half):
        with_points(place, rows["calibration"])
    bundles = {
        (place, int8): bundle(place, int8, rows["calibration"])
        for place in (model, half)
        for int8 in (False, True)
    }
    if options.only_train:
        return
    dev = rows["dev"].take(list(range(min(options.texts, len(rows["dev"])))))
    with tempfile.TemporaryDirectory() as scratch:
        contenders = everybody(model, half, bundles, Path(scratch))
        measured = measure(contenders, dev.inputs(), options.rounds, seed=options.seed, note=print)
    document = report(measured, dev, options.seed)
    write_json(options.results / f"{name}.json", document)
    title = f"SST-2 dev ({len(dev)} texts), 12 x 384, {machine().partition(', Linux')[0]}"
    draw_latency(options.results / f"{name}.png", document["contenders"], SERIES, title)
    print(table(document["contenders"]))


def half_depth(rows: dict[str, Table], runs: Path, seed: int) -> Path:
    """The first six layers of the backbone, fine-tuned to the end on the same rows."""
    place = runs / f"half-seed-{seed}"
    if is_finished(place):
        return place
    source = folder("DE3_BACKBONE_DIR") / "gte-small"
    cut = runs / "gte-small-6-layers"
    backbone = AutoModel.from_pretrained(source, num_hidden_layers=HALF, dtype=torch.float32)
    backbone.save_pretrained(cut)
    AutoTokenizer.from_pretrained(source).save_pretrained(cut)
    recipe = recipe_from(
        {
            "backbone": str(cut),
            "method": "full",
            "pooling": "mean",
            "data": {"train": str(folder("DE3_DATA_DIR") / "sst2" / "train.parquet")},
            "train": {"epochs": 2, "learning_rate": 5e-5, "head_rate": 1.0, "seed": seed},
        }
    )
    fit(recipe, place, splits=splits(rows))
    return place


def with_points(model: Path, rows: Table) -> None:
    config = read_config(model)
    wanted = POINTS if len(config["exit_layers"]) > 1 else {}
    for name, target in wanted.items():
        if name not in (config.get("operating_points") or {}):
            calibrate_model(model, target, name, table=rows)


def bundle(model: Path, int8: bool, rows: Table) -> Path:
    out = model.with_name(f"{model.name}-{'int8' if int8 else 'fp32'}")
    if not is_bundle(out):
        print(f"exporting {out}")
        export_model(model, out, int8=int8, table=rows)
    return out


def everybody(
    model: Path, half: Path, bundles: dict[tuple[Path, bool], Path], scratch: Path
) -> list[Contender]:
    ours = {int8: load_bundle(str(bundles[model, int8])) for int8 in (False, True)}
    wanted = ["hf", "ort", "ort-int8"]
    material = BenchMaterial(ours[False], str(model), scratch)
    makers = [find(name)(material, name) for name in wanted]
    found: list[Contender] = [make() for make in makers]
    material.close()
    eager = load(model, device="cpu")
    found += [Torch(f"torch:{point}", point, eager) for point in POINTS]
    found += at_points(ours[False], ("full", *POINTS))
    found += at_points(ours[True], ("full", *POINTS), prefix="ours-int8")
    found += at_points(load_bundle(str(bundles[half, False])), ("full",), prefix="half-depth")
    found += at_points(load_bundle(str(bundles[half, True])), ("full",), prefix="half-depth-int8")
    return found


def report(measured: Sequence[Measured], dev: Table, seed: int) -> dict[str, Any]:
    labels = [(NAMES[int(label)],) for label in dev.labels or []]
    eager = next(each for each in measured if each.contender.name == "hf")
    task = TASKS["text-classification"]
    own = [task.said(answer) for answer in eager.answers]
    reference = Reference("hf", task, tuple(NAMES), own)
    rows = contender_rows(measured, ["hf", "ort"], reference, labels)
    for row in rows:
        if row["name"].startswith("half-depth"):
            row["answers_ok"] = None  # another model: it has answers of its own
    return {
        "schema": 1,
        "study": "stacking",
        "command": " ".join(["python", "studies/stacking.py", *sys.argv[1:]]),
        "seed": seed,
        "machine": machine(),
        "versions": versions(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "rows": len(dev),
        "contenders": [{**row, "mark": MARKS[row["name"]]} for row in rows],
    }


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as Markdown."""
    cells = []
    for row in rows:
        spent = row["latency_ms"]
        ratio = row["against"]["hf"]["mean"]["value"] if "hf" in row["against"] else 1.0
        cells.append(
            (row["name"], f"{row['accuracy']:.3f}", f"{row['layers_mean']:.2f}",
             f"{spent['p50']:.2f} ms", f"{spent['p95']:.2f} ms", f"{ratio:.2f}x",
             f"{row['texts_per_second']['value']:.0f}")
        )  # fmt: skip
    columns = ("", "accuracy", "mean layers", "p50", "p95", "times HF", "texts/s")
    return "\n".join(markdown_table(columns, cells, right=False))


if __name__ == "__main__":
    main()
