"""`de3 train`: a model folder from data, a backbone and a method."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from de3bert.cli.options import Json, Label, Out, Quiet, Text, TextPair
from de3bert.cli.output import Voice, grid

EXAMPLE = "Example: de3 train --data reviews.csv --backbone distilbert-base-uncased --out runs/mine"


def run(
    out: Out,
    data: Annotated[
        str | None, typer.Option(help="Training rows: a file or a hub id; needed without --recipe.")
    ] = None,
    backbone: Annotated[
        str | None, typer.Option(help="Encoder: folder or hub id; needed without --recipe.")
    ] = None,
    method: Annotated[str | None, typer.Option(help="de3, joint-entropy or full.")] = None,
    calibration: Annotated[
        str | None, typer.Option(help="Calibration rows; by default a tenth of the training rows.")
    ] = None,
    recipe: Annotated[
        str | None, typer.Option(help="A TOML file, or a shipped one: sst2, mrpc, qnli, rte ...")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="Override a setting, such as train.learning_rate=5e-5."),
    ] = None,
    text: Text = None,
    text_pair: TextPair = None,
    label: Label = None,
    seed: Annotated[int | None, typer.Option(help="Seed of everything random.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a model there.")] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Discard an unfinished training there.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a classifier. An interrupted training goes on when the command is run again."""
    voice = Voice(json, quiet)
    given: dict[str, Any] = {
        "backbone": backbone,
        "method": method,
        "data.train": data,
        "data.calibration": calibration,
        "data.text": text,
        "data.text_pair": text_pair,
        "data.label": label,
        "train.seed": seed,
    }
    from de3bert.training.fit import fit
    from de3bert.training.recipe import resolve

    trained = fit(
        resolve(recipe, given, set_ or ()),
        out,
        overwrite=overwrite,
        fresh=fresh,
        progress=not quiet,
    )
    for note in trained.notes:
        voice.warn(note)
    rows = [[layer, value] for layer, value in trained.exit_accuracy.items()]
    voice.result(
        trained.to_json(),
        grid(["layer", "accuracy (calibration rows)"], rows),
        f"\nmodel: {trained.folder}   training: {trained.seconds:.0f} s",
        f"next:  de3 calibrate {trained.folder} --data FILE --target layers=2.0 --name 2x",
    )
