"""`de3 train`: a model folder from data, a backbone and a method."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from de3bert.cli.options import Columns, Json, Out, Overwrite, Quiet, TrustRemoteCode
from de3bert.cli.output import Voice, grid

if TYPE_CHECKING:
    from de3bert.data.table import Table
    from de3bert.training.recipe import DataRecipe

EXAMPLE = "Example: de3 train --data reviews.csv --backbone distilbert-base-uncased --out runs/mine"


def run(
    out: Out,
    columns: Columns,
    data: Annotated[
        str | None, typer.Option(help="Training rows: a file or a hub id; needed without --recipe.")
    ] = None,
    backbone: Annotated[
        str | None, typer.Option(help="Encoder: folder or hub id; needed without --recipe.")
    ] = None,
    small_backbone: Annotated[
        str | None, typer.Option(help="The small encoder that a cascade begins with.")
    ] = None,
    method: Annotated[
        str | None, typer.Option(help="By default de3-fitted; `de3 methods` lists all.")
    ] = None,
    teacher: Annotated[
        str | None,
        typer.Option(help="A trained full model to learn from; by default one is trained first."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(help="text-classification, or token-classification (a tag per word)."),
    ] = None,
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
    seed: Annotated[int | None, typer.Option(help="Random seed.")] = None,
    overwrite: Overwrite = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Discard an unfinished training in --out.")
    ] = False,
    trust_remote_code: TrustRemoteCode = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train a classifier. An interrupted training resumes when the command is run again."""
    voice = Voice(json, quiet)
    given: dict[str, Any] = {
        "backbone": backbone,
        "small_backbone": small_backbone,
        "method": method,
        "data.train": data,
        "data.task": task,
        "data.calibration": calibration,
        **{f"data.{name}": value for name, value in columns.named().items()},
        "train.seed": seed,
    }
    from de3bert.training.recipe import resolve
    from de3bert.training.request import check_request, read_rows

    settings = resolve(recipe, given, set_ or ())
    check_request(settings, out, overwrite=overwrite, teacher=teacher)
    splits, tests = read_rows(settings), _read_test(settings.data)
    # Torch takes seconds to load: only now, when the request and the rows are known to be sound.
    from de3bert.training.fit import fit

    trained = fit(
        settings,
        out,
        overwrite=overwrite,
        fresh=fresh,
        progress=not quiet,
        splits=splits,
        teacher=teacher,
        trust_remote_code=trust_remote_code,
    )
    for note in trained.notes:
        voice.warn(note)
    tested = _score_test(voice, tests, trained.folder)
    rows = [[layer, value] for layer, value in trained.exit_accuracy.items()]
    voice.result(
        {**trained.to_json(), "test": tested},
        grid(["layer", "accuracy (calibration rows)"], rows),
        *([f"\nfull depth on test rows: {tested['scores']}"] if tested else []),
        f"\nmodel: {trained.folder}   training: {trained.seconds:.0f} s",
        f"next:  de3 calibrate {trained.folder} --data FILE --target layers=2.0 --name 2x",
    )


def _read_test(data: DataRecipe) -> Table[Any] | None:
    """The recipe's test rows, if it names any; before the training, lest it ends in an error."""
    if data.test is None:
        return None
    from de3bert.training.splits import read_source

    return read_source(data, data.test, data.test_split)


def _score_test(voice: Voice, table: Table[Any] | None, folder: Path) -> dict[str, Any] | None:
    """Full-depth scores on the test rows, if there are any."""
    if table is None:
        return None
    from de3bert.runtime.evaluate import evaluate
    from de3bert.runtime.load import load

    label = voice.progress("scoring the test rows")
    return evaluate(load(folder), table, policy="full", progress=label).to_json()
