"""`de3 export`: a bundle that predicts without torch."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from de3bert.cli.options import DataOptions, Force, Json, Model, Quiet, whole_numbers
from de3bert.cli.output import Voice, grid
from de3bert.files import check_folder_place

EXAMPLE = "Example: de3 export runs/demo/model --out runs/demo/bundle"


def run(
    model: Model,
    out: Annotated[Path, typer.Option(help="Folder of the bundle.", show_default=False)],
    read: DataOptions,
    int8: Annotated[
        bool, typer.Option("--int8", help="8-bit weights; points are recalibrated.")
    ] = False,
    exits: Annotated[
        str | None, typer.Option(help="Keep only these exits: 2,4,6. The last layer stays.")
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(
            help="Labelled calibration rows, for --int8 and --exits; default: those of the points."
        ),
    ] = None,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Write a model as ONNX graphs, one per stretch of layers, with tokenizer and points."""
    voice = Voice(json, quiet)
    layers = None if exits is None else whole_numbers(exits, "--exits")
    check_folder_place(out)
    from de3bert.export.bundle import export_model
    from de3bert.runtime.load import task_of_model

    task = task_of_model(model)
    table = None if data is None else task.read(data, **read.named())
    voice.note(f"exporting {model}; each graph takes a few seconds")
    done = export_model(
        model, out, int8=int8, exits=layers, table=table, force=force,
        progress=voice.progress("calibrating"),
    )  # fmt: skip
    seen = done.agreement
    facts = [
        ["precision", done.precision],
        ["exits", ", ".join(map(str, done.exit_layers))],
        ["size", f"{done.bytes / 1e6:.1f} MB"],
        ["fp32 graphs against the model", f"signals within {seen.signals:.1g} ({seen.rows} rows)"],
    ]
    shown: list[object] = [grid(["bundle", str(out)], facts)]
    again = done.recalibrated
    if again is not None:
        before, after = again.full["model"], again.full["bundle"]
        rows = [["full depth", "full", before, after, after - before, "-"]]
        rows += [
            [name, seen["policy"][1], *seen["score"], seen["score"][1] - seen["score"][0],
             f"{seen['layer_speedup'][1]:.2f}"]
            for name, seen in again.points.items()
        ]  # fmt: skip
        columns = ["point", "policy", "model", "bundle", "difference", "layer speed-up"]
        title = f"{again.metric} on {again.rows} calibration rows"
        shown += ["", grid(columns, rows, title=title)]
        for warning in again.warnings:
            voice.warn(warning)
        for name, reason in again.dropped.items():
            voice.warn(f'the point "{name}" is not in the bundle: {reason}')
    elif int8:
        voice.note("the model has no operating points, so none were calibrated")
    voice.result(done.to_json(), *shown, f"\nuse it with: de3 predict {out}")
