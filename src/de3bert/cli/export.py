"""`de3 export`: a bundle that predicts without torch, or one ONNX file that runs anywhere."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from de3bert.cli.options import DataOptions, Force, Json, Model, Quiet, whole_numbers
from de3bert.cli.output import Voice, grid
from de3bert.errors import UsageError
from de3bert.files import check_file_place, check_folder_place

if TYPE_CHECKING:
    from de3bert.data.table import Table

EXAMPLE = "Example: de3 export runs/demo/model --out runs/demo/bundle"


@dataclass(frozen=True)
class FileOptions:
    """What goes with --one-file; see `export_one_file`."""

    point: Annotated[
        str | None, typer.Option(help="The point whose kind of rule the one file has.")
    ] = None
    policy: Annotated[
        str | None, typer.Option(help='The same, named by a policy such as "entropy < 0.2".')
    ] = None
    record: Annotated[
        bool, typer.Option("--record", help="The one file also gives what every exit said.")
    ] = False
    no_defaults: Annotated[
        bool,
        typer.Option("--no-defaults", help="The one file asks for every number of its rule."),
    ] = False

    def check(self, one_file: Path | None) -> None:
        given = next((name for name, value in vars(self).items() if value), None)
        if given is not None and one_file is None:
            option = given.replace("_", "-")
            raise UsageError(f"--{option} goes with --one-file; a bundle has no need of it.")


@dataclass(frozen=True)
class Making:
    """How the graphs of a model are made; see `export_model`."""

    int8: bool
    exits: list[int] | None
    table: Table[Any] | None
    progress: str | None
    force: bool


def run(
    model: Model,
    chosen: FileOptions,
    read: DataOptions,
    out: Annotated[Path | None, typer.Option(help="Folder of the bundle.")] = None,
    one_file: Annotated[
        Path | None, typer.Option(help="In place of a bundle: one ONNX file, its rule inside.")
    ] = None,
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
    """Write a model as ONNX graphs: a bundle with tokenizer and points, or one file."""
    voice = Voice(json, quiet)
    layers = None if exits is None else whole_numbers(exits, "--exits")
    if (out is None) == (one_file is None):
        raise UsageError("Give --out FOLDER for a bundle, or --one-file FILE for one ONNX file.")
    chosen.check(one_file)
    from de3bert.runtime.load import task_of_model

    if out is not None:
        check_folder_place(out)
    if one_file is not None:
        check_file_place(one_file)
    task = task_of_model(model)
    table = None if data is None else task.read(data, **read.named())
    how = Making(int8, layers, table, voice.progress("calibrating"), force)
    if out is not None:
        _bundle(model, out, how, voice)
    if one_file is not None:
        _one_file(model, one_file, chosen, how, voice)


def _one_file(model: str, out: Path, chosen: FileOptions, how: Making, voice: Voice) -> None:
    from de3bert.export.one_file import export_one_file

    voice.note(f"exporting {model}")
    done = export_one_file(model, out, **vars(chosen), **vars(how))
    facts = [
        ["precision", done.precision],
        ["exits", ", ".join(map(str, done.exit_layers))],
        ["size", f"{done.bytes / 1e6:.1f} MB"],
        ["rule", done.rule],
    ]
    rows = [[name, *numbers.values()] for name, numbers in done.points.items()]
    columns = ["point", *done.points[done.default_point]]
    for name, reason in done.left_out.items():
        voice.note(f'the point "{name}" is not in the file: {reason}')
    voice.result(done.to_json(), grid(["one file", str(out)], facts), "", grid(columns, rows))


def _bundle(model: str, out: Path, how: Making, voice: Voice) -> None:
    from de3bert.export.bundle import export_model

    voice.note(f"exporting {model}; each graph takes a few seconds")
    done = export_model(model, out, **vars(how))
    seen = done.agreement
    facts = [
        ["precision", done.precision],
        ["exits", ", ".join(map(str, done.exit_layers))],
        ["size", f"{done.bytes / 1e6:.1f} MB"],
        ["fp32 graphs against the model", f"signals within {seen.signals:.1g} ({seen.rows} rows)"],
    ]
    single = done.single
    facts.append(["single rows", f"one graph, its rule {single['rule']}" if "rule" in single
                  else "stretch by stretch"])  # fmt: skip
    if "refused" in single:
        voice.note(single["refused"])
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
    elif how.int8:
        voice.note("the model has no operating points, so none were calibrated")
    voice.result(done.to_json(), *shown, f"\nuse it with: de3 predict {out}")
