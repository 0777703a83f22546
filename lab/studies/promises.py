"""Do promises hold, and are speeds kept? On traces of real models, without running them again.

    DE3_DATA_DIR=... DE3_BACKBONE_DIR=... de3 compare studies/fitted.toml
    DE3_DATA_DIR=... python studies/promises.py --runs runs/fitted --out results/promises

1. Promises. The rows of a test trace are a world in which the risk of every policy is known. From
   it 1,000 rows are drawn (with replacement) 500 times; each time a point is calibrated, with a
   promise and without, and the point's risk in that world is compared with its bound.
2. Speeds. A point for 2x, 3x and 4x, calibrated on phrases of SST-2's training file, meets streams
   of SST-2's test sentences and IMDb's reviews: as it is, with a threshold fitted to 500 texts of
   the stream, and with a controller.
"""

from __future__ import annotations

import argparse
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from de3bert.data.read import read_table
from de3bert.errors import De3Error
from de3bert.exits import Policy, Trace, calibrate, replay
from de3bert.exits.layer_speedup import layer_speedup
from de3bert.files import write_json, write_text
from de3bert.machine import machine, versions
from de3bert.runtime.evaluate import trace_table
from de3bert.runtime.load import load
from de3lab.tabular import markdown_table

DRAWS, ROWS = 500, 1000
TARGETS = ("agree=0.99", "agree=0.98", "drop=0.01", "drop=0.02")
CONFIDENCES = (0.95, 0.8)
LAMBDAS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
SPEEDS = (2.0, 3.0, 4.0)
BEGIN = 500  # texts of a stream after which its speed is looked at
REVIEWS = 2000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=Path, default=Path("runs/fitted"))
    parser.add_argument("--out", type=Path, default=Path("results/promises"))
    parser.add_argument("--method", default="full+attached")
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--data", type=Path, help="the folder of DE3_DATA_DIR, for IMDb")
    given = parser.parse_args()
    folders = {
        task: found[0]
        for task in ("sst2", "agnews", "qnli")
        if (found := sorted(given.runs.glob(f"{task}-{given.method}-seed{given.seed}-*/")))
    }
    kept = {task: promises(test_trace(folder)) for task, folder in folders.items()}
    streams = {"sst2 test": test_trace(folders["sst2"])}
    if given.data is not None:
        streams["imdb"] = imdb_trace(folders["sst2"], given.data)
    speeds = {
        name: held(Trace.load(folders["sst2"] / "calibration.trace"), stream)
        for name, stream in streams.items()
    }
    document = {
        "schema": 1,
        "command": f"python studies/promises.py --method {given.method} --seed {given.seed}",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "draws": DRAWS,
        "rows": ROWS,
        "promises": kept,
        "speeds": speeds,
    }
    write_json(given.out / "result.json", document)
    write_text(given.out / "table.md", tables(document))
    print(tables(document))


def test_trace(folder: Path) -> Trace:
    (path,) = (each for each in sorted(folder.glob("test-*.trace")) if "sst2" not in folder.name
               or each.name == "test-test.trace")  # fmt: skip
    return Trace.load(path)


def imdb_trace(folder: Path, data: Path) -> Trace:
    """Reviews by the model of SST-2, in the order of the file; kept beside its other traces."""
    path = folder / f"imdb-{REVIEWS}.trace"
    if not path.exists():
        table = read_table(data / "imdb" / "test.parquet", limit=REVIEWS)
        trace_table(load(folder / "model"), table, progress="tracing IMDb").save(path)
    return Trace.load(path)


def risk(trace: Trace, policy: Policy, kind: str) -> float:
    said, ends = replay(trace, policy).labels, trace.predictions[:, -1]
    if kind == "agree":
        return float((said != ends).mean())
    return float((said != trace.known_labels).mean() - (ends != trace.known_labels).mean())


def promises(world: Trace) -> list[dict[str, Any]]:
    rng = np.random.default_rng(0)
    draws = [world.take(rng.integers(0, world.rows, ROWS)) for _ in range(DRAWS)]
    found = []
    for target in TARGETS:
        kind, value = target.split("=")
        bound = 1 - float(value) if kind == "agree" else float(value)
        for confidence in (None, *CONFIDENCES):
            text = target if confidence is None else f"{target} confidence={confidence}"
            seen = _over(world, draws, text, kind, bound)
            found.append({"target": target, "confidence": confidence, **seen})
    return found


def _over(
    world: Trace, draws: list[Trace], target: str, kind: str, bound: float
) -> dict[str, float]:
    """How often the bound is broken, how fast the points are, and how often there is none."""
    broken, none, speeds = 0, 0, []
    for trace in draws:
        try:
            policy = calibrate(trace, target, name="x", lambdas=(0.0, 1.0)).policy
        except De3Error:
            none += 1
            continue
        broken += risk(world, policy, kind) > bound + 1e-12
        speeds.append(layer_speedup(replay(world, policy).exit_layers, world.base))
    return {
        "broken": broken / len(draws),
        "none": none / len(draws),
        "layer_speedup": float(np.mean(speeds)) if speeds else 1.0,
    }


def held(calibration: Trace, stream: Trace) -> list[dict[str, Any]]:
    begin = replace(stream.take(slice(0, BEGIN)), labels=None)
    rest = stream.take(slice(BEGIN, None))
    found = []
    for speed in SPEEDS:
        ways = {
            "fixed": calibrate(calibration, f"layers={speed}", name="x", lambdas=LAMBDAS).policy,
            "fitted to 500 texts": calibrate(
                calibration, f"layers={speed}", name="x", lambdas=LAMBDAS, traffic=begin
            ).policy,
            "controller": calibrate(
                calibration, f"layers={speed} keep agree=0.8", name="x", lambdas=LAMBDAS
            ).policy,
        }
        for way, policy in ways.items():
            answers = replay(stream, policy)  # a controller begins with the stream
            layers, said = answers.exit_layers, answers.labels
            found.append(
                {
                    "target": speed,
                    "way": way,
                    "first_500": layer_speedup(layers[:BEGIN], stream.base),
                    "behind": layer_speedup(layers[BEGIN:], stream.base),
                    "accuracy_behind": float((said[BEGIN:] == rest.known_labels).mean()),
                    "full_behind": float(rest.correct[:, -1].mean()),
                    "rows": rest.rows,
                }
            )
    return found


def tables(document: dict[str, Any]) -> str:
    lines = [
        f"# Promises and speeds\n\n`{document['command']}`, {document['date'][:10]}.\n",
        f"## Promises: {document['draws']} draws of {document['rows']} rows\n",
        "Share of draws in which the bound is broken, and the mean layer speed-up, without a "
        "promise and with confidence 0.95 and 0.8.\n",
    ]
    columns = ["task", "target", "broken, no promise", "0.95", "0.8", "speed-up, no promise",
               "0.95", "0.8"]  # fmt: skip
    kept = []
    for task, rows in document["promises"].items():
        for target in TARGETS:
            own = [row for row in rows if row["target"] == target]
            broken = (f"{row['broken']:.3f}" for row in own)
            kept.append((task, target, *broken, *(_speed(row) for row in own)))
    lines += [*markdown_table(columns, kept, right=False), "\n## Speeds\n"]
    columns = ["stream", "target", "way", "speed-up of the first 500", "of the rest",
               "accuracy of the rest", "full depth", "rows"]  # fmt: skip
    speeds = [
        (stream, f"{row['target']:g}x", row["way"], f"{row['first_500']:.2f}",
         f"{row['behind']:.2f}", f"{row['accuracy_behind']:.4f}", f"{row['full_behind']:.4f}",
         row["rows"])
        for stream, rows in document["speeds"].items()
        for row in rows
    ]  # fmt: skip
    return "\n".join([*lines, *markdown_table(columns, speeds, right=False)]) + "\n"


def _speed(row: dict[str, Any]) -> str:
    missing = f" (none in {row['none']:.0%})" if row["none"] else ""
    return f"{row['layer_speedup']:.2f}{missing}"


if __name__ == "__main__":
    main()
