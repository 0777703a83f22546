"""`de3 attach`: exits on a classifier that is fine-tuned already, without a gradient step."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import typer

from de3bert.cli.options import (
    BatchSize,
    DataOptions,
    Json,
    Out,
    Overwrite,
    Quiet,
    TrustRemoteCode,
    whole_numbers,
)
from de3bert.cli.output import Voice, grid

EXAMPLE = "Example: de3 attach runs/mine/model --data texts.csv --out runs/mine-exits"


def run(
    checkpoint: Annotated[
        str,
        typer.Argument(
            help="A trained classifier: hub id or folder of transformers, or a model folder.",
            show_default=False,
        ),
    ],
    data: Annotated[
        str,
        typer.Option(
            help="Texts like those it will see, a few thousand; labels are used if present.",
            show_default=False,
        ),
    ],
    out: Out,
    read: DataOptions,
    calibration: Annotated[
        str | None,
        typer.Option(help="Other rows to choose regularisation on; by default a tenth of --data."),
    ] = None,
    no_labels: Annotated[
        bool,
        typer.Option("--no-labels", help="Fit exits to the model's own answers, not to labels."),
    ] = False,
    rows: Annotated[
        int, typer.Option(min=30, help="Use at most this many rows, drawn at random.")
    ] = 20_000,
    pooling: Annotated[
        Literal["mean", "cls"] | None,
        typer.Option(help="What exits read; by default chosen on held-out rows."),
    ] = None,
    exit_layers: Annotated[
        str | None, typer.Option(help="Layers with an exit, as 2,4,6; by default all.")
    ] = None,
    max_length: Annotated[
        int | None, typer.Option(min=8, help="Longest text in tokens; by default the model's.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Seed for drawing rows.")] = 42,
    overwrite: Overwrite = False,
    force: Annotated[
        bool, typer.Option("--force", help="Fit exits even if the texts lack a class.")
    ] = False,
    trust_remote_code: TrustRemoteCode = False,
    batch_size: BatchSize = 64,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Put exits on a trained classifier: one pass over texts, no training, no labels needed."""
    voice = Voice(json, quiet)
    from de3bert.data.read import read_table
    from de3bert.training.attachable import check_attachment, check_rows

    layers = None if exit_layers is None else whole_numbers(exit_layers, "--exit-layers")
    check_attachment(checkpoint, out, overwrite)
    table, held = read_table(data, need_labels=False, **read.named()), None
    if calibration is not None:
        whole = replace(read, split=None, config=None)  # these belong to --data
        held = read_table(calibration, need_labels=False, **whole.named())
    check_rows(table, None if no_labels else held)
    from de3bert.training.attach import attach_model

    found = attach_model(
        checkpoint, table, out, held=held, labels=False if no_labels else None, rows=rows,
        pooling=pooling, exit_layers=layers, max_length=max_length, seed=seed,
        batch_size=batch_size, overwrite=overwrite, force=force,
        trust_remote_code=trust_remote_code, progress=not quiet,
    )  # fmt: skip
    for note in found.notes:
        voice.warn(note)
    fit, gives = found.exits, "agrees with the last layer"
    if fit.labels == "given":
        gives = "accuracy"
    lines = [
        [layer, share, fit.strengths.get(layer), fit.shrinkage.get(layer)]
        for layer, share in found.accuracy.items()
    ]
    voice.result(
        found.to_json(),
        grid(["layer", f"{gives} ({fit.held} held-out rows)", "strength C", "shrinkage"], lines),
        f"\nmodel: {out}   from {fit.rows} texts, {_source(fit.labels)}; exits read {fit.pooling}",
        f"time:  {fit.seconds['states']:.1f} s reading, {fit.seconds['fit']:.1f} s fitting",
        f"next:  de3 calibrate {out} --data FILE --target agree=0.99 --confidence 0.95 --name safe",
    )


def _source(labels: str) -> str:
    return "with their labels" if labels == "given" else "without labels"
