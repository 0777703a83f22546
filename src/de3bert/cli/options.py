"""The options that verbs share, spelled once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from de3bert.data.label_names import label_names_of
from de3bert.errors import UsageError

__all__ = [
    "Backend",
    "BatchSize",
    "Columns",
    "Data",
    "DataOptions",
    "Force",
    "Json",
    "Metric",
    "Model",
    "Out",
    "Overwrite",
    "Point",
    "PolicyLine",
    "Quiet",
    "Split",
    "SplitConfig",
    "Text",
    "TextPair",
    "Threads",
    "TrustRemoteCode",
    "whole_numbers",
]  # fmt: skip

Model = Annotated[str, typer.Argument(help="Bundle, model folder or hub id.", show_default=False)]
Data = Annotated[
    str,
    typer.Option(
        help="CSV, TSV, JSONL or Parquet file (also .gz), or a hub id.", show_default=False
    ),
]
Text = Annotated[
    str | None, typer.Option(help="Text column; by default guessed from common names.")
]
TextPair = Annotated[str | None, typer.Option(help="Column with the second text of a pair.")]
Label = Annotated[str | None, typer.Option(help="Label column.")]
LabelNames = Annotated[
    str | None,
    typer.Option(
        help="What numbers in the label column stand for: the names of 0, 1, 2 ..., separated by "
        "commas, or 0=World,1=Sports.",
    ),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Calibrate even on few rows, or on rows that lack a class."),
]
Split = Annotated[str | None, typer.Option(help="Split of a hub id, such as validation.")]
SplitConfig = Annotated[str | None, typer.Option("--config", help="Configuration of a hub id.")]
Out = Annotated[Path, typer.Option(help="Where to write.", show_default=False)]
Point = Annotated[str | None, typer.Option(help="Operating point by name.")]
PolicyLine = Annotated[
    str | None,
    typer.Option("--policy", help='A policy to use instead of a point, such as "entropy < 0.2".'),
]
Metric = Annotated[
    str | None,
    typer.Option(help="accuracy, f1, macro_f1, matthews (taggers: span_f1); default: the model's."),
]
Backend = Annotated[
    str | None,
    typer.Option(
        help="What runs the model: torch (a model folder), onnx or openvino (a bundle); by default "
        "torch or onnx."
    ),
]
BatchSize = Annotated[int, typer.Option(min=1, help="Rows per batch.")]
Threads = Annotated[
    int | None, typer.Option(min=1, help="Threads to compute with; by default one per core.")
]
TrustRemoteCode = Annotated[
    bool,
    typer.Option(
        "--trust-remote-code",
        help="Run Python code that comes with the model: only if you trust its source.",
    ),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing model.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No notes, no progress.")]


@dataclass(frozen=True)
class Columns:
    """Which columns of the data hold what. In the signature of a verb, each field is an option."""

    text: Text = None
    text_pair: TextPair = None
    label: Label = None
    label_names: LabelNames = None

    def named(self) -> dict[str, Any]:
        """The arguments of `read_table`, and of a task's `read`."""
        return {**vars(self), "label_names": label_names_of(self.label_names)}


@dataclass(frozen=True)
class DataOptions(Columns):
    """What is read: of a hub id only a part, and which columns."""

    split: Split = None
    config: SplitConfig = None


def whole_numbers(text: str, option: str) -> list[int]:
    """`2,4,6` as numbers."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise UsageError(
            f'{option} takes whole numbers separated by commas, as in 2,4,6; got "{text[:60]}".'
        )
    return [int(part) for part in parts]
