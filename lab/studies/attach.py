"""How long attaching takes, and what more texts without labels give. On SST-2, 12 layers, 384 wide.

    DE3_DATA_DIR=... DE3_BACKBONE_DIR=... de3 compare studies/fitted.toml --only sst2/full/42
    DE3_DATA_DIR=... python studies/attach.py --model runs/fitted/sst2-full-seed42-*/model

The plainly fine-tuned classifier of the study gets exits from (a) the 8,000 texts that it was
trained on, a tenth of them held for strengths and scales, (b) the same with the study's calibration
rows held, (c) 8,000 texts that it has not seen, (d) five times as many of these; without a label.
All are calibrated on the study's calibration rows and scored on test rows.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from de3bert.data.table import Table
from de3bert.exits import curve
from de3bert.exits.calibrate import families_of
from de3bert.files import write_json, write_text
from de3bert.machine import machine, versions
from de3bert.methods import METHODS
from de3bert.runtime.evaluate import trace_table
from de3bert.runtime.load import load
from de3bert.training.attach import attach_model
from de3lab.study.material import TaskRows, read_material
from de3lab.study.spec import load_study
from de3lab.tabular import markdown_table

SEED, SPEEDS = 42, (2.0, 2.5, 3.0, 4.0, 6.0)
STUDY = Path(__file__).with_name("fitted.toml")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="of the method full, seed 42")
    parser.add_argument("--out", type=Path, default=Path("results/attach"))
    given = parser.parse_args()
    if "DE3_DATA_DIR" not in os.environ:
        raise SystemExit("Set DE3_DATA_DIR to the folder of the data.")
    material = read_material(load_study(STUDY).task[0])
    found = {name: one(given.model, *each, material) for name, each in texts(material).items()}
    document = {
        "schema": 1,
        "command": "python studies/attach.py",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "seed": SEED,
        "attached": found,
    }
    write_json(given.out / "result.json", document)
    write_text(given.out / "table.md", table_of(document))
    print(table_of(document))


def texts(material: TaskRows) -> dict[str, tuple[Table, Table | None]]:
    """Texts to fit to, and texts to hold: of the training rows, or of others in the same file."""
    cut = material.cut(SEED)
    used = np.concatenate([cut["train"], cut["calibration"]])
    others = np.setdiff1d(np.arange(len(material.source)), used)
    mixed = np.random.default_rng(SEED).permutation(others)
    rows = len(cut["train"])
    trained, held = (material.source.take(cut[n].tolist()) for n in ("train", "calibration"))
    return {
        "its training texts, some held": (trained, None),
        "its training texts, others held": (trained, held),
        "texts it has not seen": (material.source.take(mixed[:rows].tolist()), held),
        "five times as many": (material.source.take(mixed[: 5 * rows].tolist()), held),
    }


def one(model: Path, table: Table, held: Table | None, material: TaskRows) -> dict[str, Any]:
    tuning = material.splits(SEED).calibration
    folder = Path(tempfile.mkdtemp())
    try:
        attached = attach_model(
            model, table, folder / "out", held=held, labels=False, rows=None, progress=True
        )
        clf = load(folder / "out")
        tuned, test = (
            trace_table(clf, each, progress="tracing") for each in (tuning, material.tests["test"])
        )
    finally:
        shutil.rmtree(folder)
    lambdas = METHODS["full+attached"].lambdas or ()
    families = families_of(tuned, "edr", lambdas)
    curves = {str(family): (curve(tuned, family), curve(test, family)) for family in families}
    chosen = {
        f"{speed:g}": max(curves, key=lambda name: curves[name][0].at(speed)) for speed in SPEEDS
    }
    return {
        "rows": len(table),
        "tokens": float(test.tokens.mean()),
        "seconds": attached.exits.seconds,
        "full": float(test.correct[:, -1].mean()),
        "entropy": {f"{s:g}": curve(test, "entropy").at(s) for s in SPEEDS},
        "chosen": {s: curves[name][1].at(float(s)) for s, name in chosen.items()},
    }


def table_of(document: dict[str, Any]) -> str:
    head = (
        f"# Attaching exits\n\n`{document['command']}`, {document['date'][:10]}, SST-2, gte-small, "
        f"seed {document['seed']}: accuracy on 1,817 test rows.\n"
    )
    columns = ["fitted to", "rows", "reading", "fitting", "full depth", "rule"]
    rows = []
    for name, seen in document["attached"].items():
        spent = (f"{seen['seconds']['states']:.0f} s", f"{seen['seconds']['fit']:.1f} s")
        for rule, shown in (("entropy", "entropy"), ("chosen", "EDR, lambda by calibration")):
            scores = (f"{seen[rule][f'{speed:g}']:.4f}" for speed in SPEEDS)
            rows.append((name, seen["rows"], *spent, f"{seen['full']:.4f}", shown, *scores))
    columns += [f"{speed:g}x" for speed in SPEEDS]
    return "\n".join([head, *markdown_table(columns, rows, right=False)]) + "\n"


if __name__ == "__main__":
    main()
