"""DE3 on SST-2 with the 12-layer gte-small: entropy against EDR on the same checkpoint.

    DE3_DATA_DIR=... DE3_BACKBONE_DIR=... python studies/sst2_gte_small.py --seed 42

Trains on 8,000 rows of the GLUE train split, keeps 1,000 other rows of it for calibration, and
reports on the whole dev split. A run that was stopped goes on when started again.
"""

from __future__ import annotations

import argparse
import os
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from de3bert.data.labels import LabelSet
from de3bert.data.read import read_table
from de3bert.data.split import split_rows
from de3bert.data.table import Table
from de3bert.exits import Trace, curve
from de3bert.exits.calibrate import PAPER_LAMBDA_GRID, calibrate, measure
from de3bert.exits.trade_off import trade_off_of
from de3bert.figures.curve import draw_report
from de3bert.files import write_json
from de3bert.machine import machine, versions
from de3bert.runtime.evaluate import trace_table
from de3bert.runtime.load import load
from de3bert.training.fit import fit, is_finished
from de3bert.training.recipe import recipe_from
from de3bert.training.refresh import refresh_prototypes
from de3bert.training.rows import Rows
from de3bert.training.splits import Splits

LABELS = LabelSet(("negative", "positive"))
SPEEDS = (1.5, 2.0, 2.5, 3.0, 4.0)


def folder(name: str) -> Path:
    value = os.environ.get(name)
    if not value or not Path(value).is_dir():
        sys.exit(f"set {name} to the folder that holds the study's material")
    return Path(value)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument(
        "--group-by-length", action="store_true", help="batches of one length each, for comparison"
    )
    parser.add_argument("--runs", type=Path, default=Path("runs/sst2-gte-small"))
    parser.add_argument("--results", type=Path, default=Path("results/sst2-gte-small"))
    options = parser.parse_args()
    rows = material(options.seed)
    model, name = trained(rows, options.runs, options.seed, options.group_by_length)
    classifier = load(model)
    calibration = trace_table(classifier, rows["calibration"], progress="tracing calibration")
    test = trace_table(classifier, rows["dev"], progress="tracing dev")
    numbers = LABELS.encode(rows["train"].labels or [])
    train_rows = Rows(classifier.backend.encoder(rows["train"].inputs()), numbers)
    refresh_prototypes(classifier.backend.model, train_rows, classifier.backend.encoder)
    refreshed = trace_table(classifier, rows["dev"], progress="tracing dev, prototypes refreshed")
    report(options.results, name, calibration, test, refreshed, model)


def material(seed: int) -> dict[str, Table]:
    """Training, calibration and dev rows."""
    data = folder("DE3_DATA_DIR") / "sst2"
    train = read_table(data / "train.parquet")
    numbers = LABELS.encode(train.labels or [])
    parts = split_rows(numbers, {"train": 8000, "calibration": 1000}, seed)
    rows = {name: train.take(index.tolist()) for name, index in parts.items()}
    return {**rows, "dev": read_table(data / "dev.parquet")}


def trained(
    rows: dict[str, Table], runs: Path, seed: int, grouped: bool = False
) -> tuple[Path, str]:
    """The model's folder and name; trained unless it is there."""
    recipe = recipe_from(
        {
            "backbone": str(folder("DE3_BACKBONE_DIR") / "gte-small"),
            "method": "de3",
            "pooling": "mean",
            "data": {"train": str(folder("DE3_DATA_DIR") / "sst2" / "train.parquet")},
            "train": {
                "epochs": 2,
                "learning_rate": 5e-5,
                "head_rate": 1.0,  # one rate for all, as the stored results were made
                "seed": seed,
                "group_by_length": grouped,
            },
            "method_options": {"alpha": 0.1},
        }
    )
    name = f"{'grouped-' if grouped else ''}seed-{seed}"
    if not is_finished(runs / name):
        fit(recipe, runs / name, splits=splits(rows))
    return runs / name, name


def splits(rows: dict[str, Table]) -> Splits:
    train, calibration = rows["train"], rows["calibration"]
    numbers = [LABELS.encode(table.labels or []) for table in (train, calibration)]
    return Splits(LABELS, train, numbers[0], calibration, numbers[1])


def report(
    results: Path, name: str, calibration: Trace, test: Trace, refreshed: Trace, model: Path
) -> None:
    """Scores on dev at equal layer speed-ups, and the points that calibration rows choose."""
    families = ["entropy", *(f"edr(lambda={weight!r})" for weight in PAPER_LAMBDA_GRID)]
    lines = {family: curve(test, family) for family in families}
    lines["edr(lambda=1.0), refreshed prototypes"] = curve(refreshed, "edr(lambda=1.0)")
    scores = {
        label: {f"{s:g}": round(found.at(layer_speedup=s), 4) for s in SPEEDS}
        for label, found in lines.items()
    }
    points = {}
    for speed in (2.0, 2.5, 3.0, 4.0):
        for family in ("entropy", "edr"):
            key = f"{family} {speed:g}x"
            point = calibrate(
                calibration,
                f"layers={speed}",
                name=key,
                family=family,
                lambdas=PAPER_LAMBDA_GRID,
            )
            seen = measure(test, point.policy)
            points[key] = {
                "policy": str(point.policy),
                "calibration_score": point.measured["score"],
                "dev_score": seen["score"],
                "dev_interval": seen["score_interval"],
                "dev_layer_speedup": seen["layer_speedup"],
            }
    means = test.correct.mean(0)
    document = {
        "schema": 1,
        "study": "sst2-gte-small",
        "command": " ".join(["python", "studies/sst2_gte_small.py", *sys.argv[1:]]),
        "seed": int(name.rpartition("-")[2]),
        "machine": machine(),
        "versions": versions(),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "rows": {"train": 8000, "calibration": calibration.rows, "dev": test.rows},
        "full_depth": float(means[-1]),
        "exit_accuracy": {
            str(m): round(float(v), 4) for m, v in zip(test.exit_layers, means, strict=True)
        },
        "dev_score_at_layer_speedup": scores,
        "points_chosen_on_calibration": points,
        "entropy_distance_spearman": spearman(test),
        "weights_sha256": test.info["weights"],
        "recipe": recipe_lines(model),
    }
    write_json(results / f"{name}.json", document)
    shown = trade_off_of(test, ["edr(lambda=1.0)", "entropy", "patience"])
    title = f"SST-2 dev, gte-small (12 layers), {name}"
    draw_report(results / f"curve-{name}.png", shown, title=title)
    for family, row in scores.items():
        print(f"{family:40s}", "  ".join(f"{speed}x {value:.3f}" for speed, value in row.items()))
    print("full depth", document["full_depth"])


def recipe_lines(model: Path) -> list[str]:
    """The resolved recipe, with the folders of this machine by the names of their variables."""
    text = (model / "recipe.toml").read_text(encoding="utf-8")
    for name in ("DE3_DATA_DIR", "DE3_BACKBONE_DIR"):
        text = text.replace(str(folder(name)), f"${name}")
    return text.splitlines()


def spearman(trace: Trace) -> dict[str, float]:
    """Rank correlation of entropy and distance ratio at each internal exit."""
    from scipy.stats import spearmanr

    from de3bert.exits import signals

    near, far = signals.nearest_two(trace.logits[:, :-1], trace.distances)
    ratio, entropy = signals.distance_ratio(near, far), signals.entropy(trace.logits[:, :-1])
    found = [spearmanr(entropy[:, i], ratio[:, i]).statistic for i in range(ratio.shape[1])]
    return {
        str(m): round(float(np.float64(v)), 4)
        for m, v in zip(trace.exit_layers[:-1], found, strict=True)
    }


if __name__ == "__main__":
    main()
