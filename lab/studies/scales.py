"""How sure should an exit be: as often as it is right, or as often as it agrees with the last one?

    DE3_DATA_DIR=... DE3_BACKBONE_DIR=... de3 compare studies/fitted.toml --only sst2/full/42
    DE3_DATA_DIR=... python studies/scales.py --model runs/fitted/sst2-full-seed42-*/model

Logistic heads on the plainly fine-tuned classifier of the study, fitted to labels or to the final
exit's probabilities, each scaled on the study's calibration rows to labels or to the final exit's
answers; the entropy rule on test and dev rows.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from de3bert.exits import Trace, curve
from de3bert.files import write_json, write_text
from de3bert.fitting.logistic import STRENGTHS, Head, agreement, cross_entropy, fit_head
from de3bert.fitting.moments import class_moments
from de3bert.machine import machine, versions
from de3bert.model.attaching import with_exits
from de3bert.model.loading import read_model
from de3bert.model.tokens import TextEncoder, load_tokenizer
from de3bert.training.states import States, read_states
from de3lab.study.material import read_material
from de3lab.study.spec import load_study
from de3lab.tabular import markdown_table

SEED, SPEEDS = 42, (2.0, 2.5, 3.0, 4.0, 6.0)
STUDY = Path(__file__).with_name("fitted.toml")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True, help="of the method full, seed 42")
    parser.add_argument("--out", type=Path, default=Path("results/scales"))
    given = parser.parse_args()
    states, labels = read(given.model)
    classes = states["train"].logits.shape[1]
    hard = {name: np.eye(classes, dtype=np.float32)[each] for name, each in labels.items()}
    targets = {"labels": hard["train"], "final exit": states["train"].answers()}
    wanted = {"labels": labels["held"], "final exit": states["held"].logits.argmax(axis=1)}
    found = []
    for fitted, q in targets.items():
        own = hard["held"] if fitted == "labels" else states["held"].answers()
        paths = [path(x, q, y, own) for x, y in zip(*vectors(states), strict=True)]
        for scaled, answers in wanted.items():
            heads = [scale(head, y, answers) for head, y in zip(paths, vectors(states)[1],
                                                                strict=True)]  # fmt: skip
            seen = {
                name: [curve(trace(states[name], labels[name], heads), "entropy").at(s)
                       for s in SPEEDS]
                for name in ("test", "dev")
            }  # fmt: skip
            found.append({"fitted": fitted, "scaled": scaled, **seen})
    document = {
        "schema": 1,
        "command": "python studies/scales.py",
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "seed": SEED,
        "rows": {name: len(each) for name, each in labels.items()},
        "scales": found,
    }
    write_json(given.out / "result.json", document)
    write_text(given.out / "table.md", table(document))
    print(table(document))


def read(folder: Path) -> tuple[dict[str, States], dict[str, np.ndarray]]:
    """What the exits of the classifier read of training, calibration, test and dev rows."""
    material = read_material(load_study(STUDY).task[0])
    splits = material.splits(SEED)
    model = with_exits(read_model(str(folder)).eval(), method="full+fitted")
    encoder = TextEncoder(load_tokenizer(str(folder)), model.config.max_length)
    tables = {"train": splits.train, "held": splits.calibration, **material.tests}
    states, labels = {}, {}
    with tempfile.TemporaryDirectory() as place:
        for name, rows in tables.items():
            tokens = encoder(rows.inputs()).rows
            pooling = {"own": model.pooling}
            states[name] = read_states(
                model, encoder, tokens, pooling, Path(place), progress=f"reading {name}"
            )
            labels[name] = material.labels.encode(rows.labels or [], names=rows.label_names)
    return states, labels


def vectors(states: dict[str, States]) -> tuple[np.ndarray, np.ndarray]:
    return states["train"].vectors["own"], states["held"].vectors["own"]


def path(x: np.ndarray, q: np.ndarray, held: np.ndarray, own: np.ndarray) -> Head:
    """The strength with the least loss on held rows, as usual for a logistic regression."""
    moments, start = class_moments(x, q), None
    heads = []
    for strength in STRENGTHS:
        head, start = fit_head(x, q, moments, strength, start)
        heads.append(head)
    return min(heads, key=lambda head: cross_entropy(head.logits(held), own))


def scale(head: Head, held: np.ndarray, answers: np.ndarray) -> Head:
    factor, _ = agreement(head.logits(held), answers)
    return Head(factor * head.weight, factor * head.bias, head.strength)


def trace(states: States, labels: np.ndarray, heads: Sequence[Head]) -> Trace:
    own = [head.logits(x) for x, head in zip(states.vectors["own"], heads, strict=True)]
    logits = np.stack([*own, states.logits], axis=1).astype(np.float32)
    names = tuple(str(number) for number in range(logits.shape[2]))
    tokens = np.ones(len(labels), dtype=np.int32)
    return Trace(logits, None, labels, tokens, tuple(range(1, logits.shape[1] + 1)), names)


def table(document: dict[str, Any]) -> str:
    head = (
        f"# How sure an exit should be\n\n`{document['command']}`, {document['date'][:10]}, SST-2, "
        f"gte-small, plain fine-tuning, seed {document['seed']}, entropy rule: accuracy.\n"
    )
    columns = ("rows", "heads fitted to", "scaled to", *(f"{speed:g}x" for speed in SPEEDS))
    rows = [
        (f"{name} ({document['rows'][name]})", each["fitted"], each["scaled"],
         *(f"{score:.4f}" for score in each[name]))
        for name in ("test", "dev")
        for each in document["scales"]
    ]  # fmt: skip
    return "\n".join([head, *markdown_table(columns, rows, right=False)]) + "\n"


if __name__ == "__main__":
    main()
