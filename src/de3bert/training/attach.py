"""Exits on a classifier that is fine-tuned already: one pass over texts, and a fit."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from de3bert.card import write_card
from de3bert.data.hub import hub_id
from de3bert.data.labels import LabelSet
from de3bert.data.table import Table
from de3bert.data.tokens import Encoded
from de3bert.errors import De3Error, UsageError
from de3bert.files import replace_folder, write_json
from de3bert.methods import METHODS
from de3bert.methods.method import with_fitted_exits
from de3bert.model import EarlyExitModel
from de3bert.model.attaching import from_classifier, with_exits
from de3bert.model.building import fitting_length
from de3bert.model.loading import read_model
from de3bert.model.tokens import TextEncoder, load_tokenizer
from de3bert.training.attachable import MOST_ROWS, check_attachment, check_rows
from de3bert.training.diverged import unsound
from de3bert.training.fitted import FitRows, FittedExits, fit_exits
from de3bert.training.output_folder import is_finished
from de3bert.training.seal import digest
from de3bert.training.verdict import separation

__all__ = ["Attached", "attach_model"]

Model = EarlyExitModel
WEIGHTS = "model.safetensors"
POOLINGS = ("mean", "cls")  # what exits on a foreign encoder may read; held rows choose
HELD_SHARE, MOST_HELD = 0.1, 2000
UNKNOWN = 0.3  # share of unknown tokens from which on it is mentioned


@dataclass(frozen=True)
class Attached:
    """What an attachment gave.

    Attributes:
        folder: the new model folder.
        exits: what was fitted, and how.
        truncated: texts that were cut to the model's length.
        accuracy: layer -> share of held rows whose label the exit gives, or whose answer by the
            final exit, where there are no labels.
        notes: what the user should know.
    """

    folder: Path
    method: str
    exits: FittedExits
    truncated: int
    accuracy: dict[int, float]
    notes: list[str]

    @property
    def seconds(self) -> float:
        return sum(self.exits.seconds.values())

    def to_json(self) -> dict[str, Any]:
        exits = {**self.exits.to_json(), "seconds": self.exits.seconds}
        accuracy = {str(layer): value for layer, value in self.accuracy.items()}
        return {**asdict(self), "folder": str(self.folder), "exits": exits, "accuracy": accuracy}


def attach_model(
    checkpoint: str | Path,
    table: Table,
    out: str | Path,
    *,
    held: Table | None = None,
    labels: bool | None = None,
    method: str | None = None,
    rows: int | None = MOST_ROWS,
    pooling: str | None = None,
    exit_layers: list[int] | None = None,
    max_length: int | None = None,
    shrinkage: float | None = None,
    seed: int = 42,
    batch_size: int = 64,
    overwrite: bool = False,
    force: bool = False,
    trust_remote_code: bool = False,
    progress: bool = False,
) -> Attached:
    """Puts exits on a trained classifier and writes a model folder; no weight of it is changed.

    Args:
        checkpoint: hub id or folder of a transformers classifier, or a model folder of de3bert.
        table: texts such as the model will see; a few thousand are enough.
        held: other rows to choose strengths on; by default a tenth of `table`.
        labels: whether the exits learn labels (which `table` must have then), or what the final
            exit says; None takes labels where there are some.
        method: the name that the model goes by; by default that of its training with `+fitted`
            or `+attached`.
        rows: at most so many, drawn at random; None takes all.
        pooling: what exits read, `mean` or `cls`; None tries both on a foreign model, and keeps
            that of a model of de3bert.
        exit_layers: None puts an exit after every layer.
        max_length: None takes the longest text that model and tokenizer allow.
        force: fits exits to texts that lack a class, too.

    Raises:
        UsageError: the model has no such head, the texts do not fit, the folder is taken.
        De3Error: it cannot be loaded, or does not give numbers.
    """
    source, out = str(checkpoint), Path(out)
    check_attachment(source, out, overwrite)
    check_rows(table, held)
    ours = is_finished(Path(source))
    known = table.labels is not None if labels is None else labels
    if known and table.labels is None:
        raise UsageError(f"{table.source} has no labels to fit exits to.")
    model = _model(source, ours, known, method, pooling, exit_layers, trust_remote_code)
    tokenizer = load_tokenizer(source, trust_remote_code=trust_remote_code and not ours)
    _set_length(model, tokenizer, max_length, ours)
    encoder = TextEncoder(tokenizer, model.config.max_length)
    model.config.text_pairs = _pairs(model, table, ours)
    table, held = _cut(table, held, rows, seed)
    train, apart = encoder(table.inputs()), encoder(held.inputs())
    notes = _check_tokens(model, encoder, train, source)
    if torch.cuda.is_available():
        torch.nn.Module.to(model, "cuda")  # the subclass's wrapper hides its signature
    out.absolute().parent.mkdir(parents=True, exist_ok=True)
    fitted = fit_exits(
        model,
        encoder,
        FitRows(train.rows, _numbers(model, table) if known else None),
        FitRows(apart.rows, _numbers(model, held) if known else None),
        out.absolute().parent,
        poolings=POOLINGS if pooling is None and not ours else (),
        shrinkage=shrinkage,
        batch_size=batch_size,
        progress=progress,
        force=force,
    )
    torch.nn.Module.to(model, "cpu")
    assert model.config.fitted is not None
    model.config.fitted["data"] = sorted({table.sha256, held.sha256})
    if train.truncated:
        notes.append(
            f"{train.truncated} of {len(table)} texts were truncated to the model's length"
        )
    found = Attached(out, model.config.method, fitted, train.truncated, fitted.accuracy, notes)
    _save(out, model, encoder, found, source, table)
    return found


def _model(
    source: str,
    ours: bool,
    labels: bool,
    method: str | None,
    pooling: str | None,
    exit_layers: list[int] | None,
    trust_remote_code: bool,
) -> Model:
    """The trained model with exits that know nothing yet."""
    if not ours:
        return from_classifier(
            source,
            method=method or f"full+{'fitted' if labels else 'attached'}",
            pooling=pooling or POOLINGS[0],
            exit_layers=exit_layers,
            trust_remote_code=trust_remote_code,
        )
    trained = read_model(source).eval()
    declared = METHODS[trained.config.method]
    base = METHODS[declared.base or declared.training or declared.name]
    if pooling not in (None, trained.config.pooling):
        raise UsageError(
            f'{source} reads "{trained.config.pooling}", which its final exit was trained on; '
            f'its exits cannot read "{pooling}".'
        )
    name = method or with_fitted_exits(base, labels=labels).name
    return with_exits(trained, method=name, exit_layers=exit_layers)


def _set_length(model: Model, tokenizer: Any, asked: int | None, ours: bool) -> None:
    """The longest text: that of the model and its tokenizer, unless less is asked for."""
    config = model.config
    if ours:
        config.max_length = min(config.max_length, asked or config.max_length)
        return
    limit = int(min(getattr(tokenizer, "model_max_length", 0) or 512, 1 << 20))
    longest = fitting_length(limit, config.encoder_config)
    if asked is not None and asked > longest:
        raise UsageError(f"max_length is {asked}, and the model reads {longest} tokens at most.")
    config.max_length = asked or longest


def _pairs(model: Model, table: Table, ours: bool) -> bool:
    pairs = table.pairs is not None
    if ours and model.config.text_pairs not in (None, pairs):
        kinds = ("single texts", "pairs of texts")
        raise UsageError(
            f"{table.source} has {kinds[pairs]}, and the model was trained on {kinds[not pairs]}."
        )
    return pairs


def _cut(table: Table, held: Table | None, rows: int | None, seed: int) -> tuple[Table, Table]:
    """At most so many rows at random, and those to be held apart. Files are often sorted."""
    generator = np.random.default_rng(seed)
    order = generator.permutation(len(table))[: rows or len(table)]
    if held is not None:
        return table.take(np.sort(order).tolist()), held
    count = min(MOST_HELD, max(1, round(HELD_SHARE * len(order))))
    return table.take(np.sort(order[count:]).tolist()), table.take(np.sort(order[:count]).tolist())


def _numbers(model: Model, table: Table) -> np.ndarray:
    """Labels as the model numbers its classes; others are refused with both vocabularies."""
    classes = LabelSet(model.config.label_names, positions=model.config.numbered_labels)
    try:
        return classes.encode(table.labels or [], names=table.label_names)
    except UsageError as error:
        raise UsageError(f"{error}\nTo fit exits without labels, pass --no-labels.") from error


def _check_tokens(model: Model, encoder: TextEncoder, encoded: Encoded, source: str) -> list[str]:
    """A tokenizer that does not belong to the model gives tokens that it has not, or unknown."""
    words = model.config.vocab_size
    highest = max(max(row["input_ids"]) for row in encoded.rows)
    if highest >= words:
        raise De3Error(
            f"The tokenizer of {source} does not fit its model: it gives the token id {highest}, "
            f"and the model's vocabulary has {words} entries. Copy the tokenizer that the model "
            "was trained with."
        )
    unknown = encoder.tokenizer.unk_token_id
    if unknown is None:
        return []
    tokens = sum(len(row["input_ids"]) for row in encoded.rows)
    share = sum(row["input_ids"].count(unknown) for row in encoded.rows) / tokens
    if share < UNKNOWN:
        return []
    return [
        f"{share:.0%} of the tokens are unknown to the tokenizer of {source}: is it the one that "
        "the model was trained with, and are these texts of its language?"
    ]


def _save(
    out: Path, model: Model, encoder: TextEncoder, found: Attached, source: str, table: Table
) -> None:
    """The whole model folder, or nothing."""
    spoilt = unsound(model)
    if spoilt is not None:
        raise De3Error(f"The model is not saved: its weights are not finite ({spoilt}).")
    record = {
        "schema": 1,
        "backbone": "/".join(Path(source).parts[-2:]),  # no path of this machine
        "base_model": hub_id(source),
        "attached": True,
        "source": digest(weights) if (weights := Path(source) / WEIGHTS).is_file() else None,
        "seconds": found.seconds,
        "steps": 0,
        "phases": [{"name": k, "steps": 0, "seconds": v} for k, v in found.exits.seconds.items()],
        "rows": {"train": found.exits.rows, "calibration": found.exits.held},
        "data": {"train": table.sha256},
        "exit_accuracy": found.accuracy,
        "prototype_separation": separation(model),
        "notes": found.notes,
        "log": [],
    }
    with replace_folder(out) as folder:
        model.save_pretrained(folder)
        encoder.tokenizer.save_pretrained(folder)
        write_json(folder / "training.json", record)
        write_card(folder, out.absolute().name)
