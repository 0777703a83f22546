"""The options that verbs share, spelled once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = [
    "Backend", "BatchSize", "Data", "Force", "Json", "Label", "LabelNames", "Metric", "Model",
    "Out", "Point", "PolicyLine", "Quiet", "Split", "SplitConfig", "Text", "TextPair", "Threads",
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
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No notes, no progress.")]
