"""What exits cost: parameters, operations of each module, and time in training."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from de3bert.data.tokens import TokenRow
from de3bert.errors import De3Error, UsageError
from de3bert.files import read_json
from de3bert.runtime.manifest import is_bundle
from de3lab.analysis.analysis import ANALYSES, Analysis
from de3lab.analysis.costs_tables import costs_tables
from de3lab.analysis.counting import COUNTER, Operations, count_by_torch
from de3lab.analysis.subject import Subject, grouped
from de3lab.figures.costs import draw_costs
from de3lab.study.flops import POOLERS, Anatomy, modules_of
from de3lab.study.parameters import shares_of

__all__ = ["PAPER_MINUTES", "PAPER_MODULES", "PAPER_PARAMETERS", "measure_costs", "paper_anatomy"]

# As the paper prints them, for BERT-base and texts of 128 tokens; classes -> value.
PAPER_LENGTH = 128
PAPER_MODULES = {
    "embedding": {2: "786.4K", 3: "786.4K"},
    "encoder layer": {2: "1813.5M", 3: "1813.5M"},
    "pooler": {2: "1.2M", 3: "1.2M"},
    "prediction head": {2: "3.1K", 3: "4.6K"},
    "prototypical network": {2: "1.2M", 3: "1.2M"},
    "internal classifier": {2: "3.1K", 3: "4.6K"},
    "EDR": {2: "9.2K", 3: "9.2K"},
}
PAPER_PARAMETERS = {
    "BERT-base": {2: "109.48M", 3: "109.48M"},
    "DeeBERT": {2: "+16.92K", 3: "+25.38K"},
    "DE3-BERT": {2: "+6.51M", 3: "+6.52M"},
}
PAPER_MINUTES = {  # of training, by task
    "BERT-base": {"MRPC": 1.4, "SST-2": 38, "QQP": 313, "MNLI": 166},
    "DeeBERT": {"MRPC": 1.3, "SST-2": 34, "QQP": 304, "MNLI": 163},
    "DE3-BERT": {"MRPC": 0.95, "SST-2": 44, "QQP": 293, "MNLI": 165},
}
PLAIN = "full"  # the method that is plain fine-tuning
FIRST_ID = 5  # a token id that every vocabulary has


def paper_anatomy(classes: int) -> Anatomy:
    """The model of the paper's tables: BERT-base, an exit after every layer."""
    names = {str(number): str(number) for number in range(classes)}
    return Anatomy.of_config(
        {
            "backbone_config": {"model_type": "bert", "hidden_size": 768},
            "exit_layers": list(range(1, 13)),
            "id2label": names,
            "method": "de3",
            "pooling": "shared_pooler",
            "prototypes": "linear",
        }
    )


def measure_costs(subjects: Sequence[Subject], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Every kind of model, counted for one text of `length` tokens; the first of its seeds."""
    length = settings["length"]
    kinds = [_kind(label, runs, length) for label, runs in grouped(subjects).items()]
    plain = next((kind for kind in kinds if kind["method"] == PLAIN), None)
    for kind in kinds:
        kind["training"] |= _against(kind, plain)
    return {
        "length": length,
        "kinds": kinds,
        "plain": None if plain is None else plain["label"],
        "paper": {
            "length": PAPER_LENGTH,
            "recounted": {
                str(classes): modules_of(paper_anatomy(classes), PAPER_LENGTH) for classes in (2, 3)
            },
            "modules": _text_keys(PAPER_MODULES),
            "parameters": _text_keys(PAPER_PARAMETERS),
            "minutes": PAPER_MINUTES,
        },
    }


def _kind(label: str, runs: Sequence[Subject], length: int) -> dict[str, Any]:
    """One kind of model: its sizes by the first run, its training by all of them."""
    subject = runs[0]
    if bundle := next((run.path for run in runs if is_bundle(run.path)), None):
        raise UsageError(
            f"{bundle} is a bundle, whose parts cannot be told apart. Give the model folder it was "
            "exported from."
        )
    backend: Any = subject.classifier.backend
    longest = subject.classifier.info.max_length
    if not 1 <= length <= longest:
        raise UsageError(
            f"{subject.path} takes texts of 1 to {longest} tokens, got --length {length}."
        )
    operations = count_by_torch(backend, _row(subject, length))
    config = backend.model.config
    anatomy = Anatomy.of_config(config.to_dict())
    return {
        "label": label,
        "method": subject.method,
        "runs": len(runs),
        "classes": len(config.label_names),
        "depth": subject.classifier.depth,
        "hidden": anatomy.hidden,
        "parameters": shares_of(backend.model),
        "flops": {
            "convention": modules_of(anatomy, length),
            "counted": _counted_modules(operations, config.pooling),
            "counted_by": COUNTER,
            "pass": operations.until(subject.classifier.depth),
            "pass_without_exits": operations.until(subject.classifier.depth, tested=False),
        },
        "training": _training(runs),
    }


def _row(subject: Subject, length: int) -> TokenRow:
    """A token row of just this length, with the fields that the tokenizer gives."""
    fields = subject.classifier.backend.encoder(["a"]).rows[0]
    row: dict[str, list[int]] = {
        name: [1 if name == "attention_mask" else 0] * length for name in fields
    }
    return {**row, "input_ids": [FIRST_ID] * length}


def _counted_modules(operations: Operations, pooling: str) -> dict[str, float]:
    """The counts of `modules_of`, from what was counted; a layer in the mean over all."""
    first, last = operations.exits[0], operations.exits[-1]
    found = {
        "embedding": operations.embedding,
        "encoder layer": float(np.mean(operations.layers)),
        "pooler" if pooling in POOLERS else f"{pooling} pooling": last["pooling"],
        "prediction head": last["head"],
    }
    names = {"projection": "prototypical network", "head": "internal classifier",
             "distances": "EDR", "router": "router"}  # fmt: skip
    if len(operations.exits) > 1:
        found |= {name: first[part] for part, name in names.items() if part in first}
    return found


def _training(runs: Sequence[Subject]) -> dict[str, Any]:
    """Seconds per step of each run, as far as the folders tell."""
    records = [_record(run.path) for run in runs]
    known = [record for record in records if record is not None]
    if not known:
        return {"runs": 0, "steps": None, "seconds": None, "seconds_per_step": None}
    return {
        "runs": len(known),
        "steps": float(np.mean([record["steps"] for record in known])),
        "seconds": float(np.mean([record["seconds"] for record in known])),
        "seconds_per_step": float(np.mean([r["seconds"] / r["steps"] for r in known])),
    }


def _record(path: str) -> dict[str, float] | None:
    """Seconds and steps from a model folder's own record of its training."""
    place = Path(path) / "training.json"
    if not place.is_file():
        return None
    record = read_json(place)
    try:
        found = {name: float(record[name]) for name in ("seconds", "steps")}
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise De3Error(f"{place} is damaged: {error!r:.200}.") from error
    if not all(math.isfinite(value) for value in found.values()):
        raise De3Error(f"{place} is damaged: seconds and steps are not numbers.")
    return found if found["steps"] > 0 else None


def _against(kind: Mapping[str, Any], plain: Mapping[str, Any] | None) -> dict[str, Any]:
    """Time per step and operations of a pass with all exits, as multiples of plain fine-tuning."""
    if plain is None:
        return {"time_ratio": None, "flops_ratio": None}
    own, theirs = (each["training"]["seconds_per_step"] for each in (kind, plain))
    return {
        "time_ratio": own / theirs if own and theirs else None,
        "flops_ratio": kind["flops"]["pass"] / plain["flops"]["pass"],
    }


def _text_keys(table: Mapping[str, Mapping[int, str]]) -> dict[str, dict[str, str]]:
    return {name: {str(k): text for k, text in row.items()} for name, row in table.items()}


ANALYSES.add(
    "costs",
    Analysis(
        name="costs",
        title="Parameters, operations and training time",
        summary="parameters, operations per module and training time against plain fine-tuning",
        paper="Tables IX and X",
        measure=measure_costs,
        tables=costs_tables,
        draw=draw_costs,
        settings={"length": PAPER_LENGTH},
        labels=(1, None),
        needs_model=True,
        needs_rows=False,
    ),
)
