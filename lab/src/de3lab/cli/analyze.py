"""`de3 analyze`: one of the paper's analyses on any model or trace."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from de3bert.cli.options import (
    BatchSize,
    Json,
    Label,
    Out,
    Quiet,
    Split,
    SplitConfig,
    Text,
    TextPair,
    Threads,
)
from de3bert.cli.output import Voice, grid
from de3bert.errors import UsageError
from de3bert.files import check_file_place

if TYPE_CHECKING:
    from de3lab.analysis import Analysis

EXAMPLE = "Example: de3 analyze exit-layers runs/demo/test.trace --tau 0.2 --tau 0.5 --out exits"

NAME_HELP = (
    "sample, strategies, indicator, components, exit-layers, speed, lambda, alpha, correctness, "
    "costs, space, homogeneity, dar-forms or shift."
)
SINGULAR = {"layers": "layer", "lambdas": "lambda", "speeds": "speed"}  # of repeated options


def run(
    name: Annotated[str, typer.Argument(help=NAME_HELP, show_default=False)],
    subjects: Annotated[
        list[str],
        typer.Argument(
            help="Models or traces, as PATH or LABEL=PATH; the seeds of a kind share a label.",
            show_default=False,
        ),
    ],
    out: Out,
    data: Annotated[str | None, typer.Option(help="Rows to run the models on.")] = None,
    text: Text = None,
    text_pair: TextPair = None,
    label: Label = None,
    split: Split = None,
    config: SplitConfig = None,
    limit: Annotated[
        int | None, typer.Option(min=1, help="Use only this many rows of --data, the first ones.")
    ] = None,
    family: Annotated[
        str | None, typer.Option(help='Policy family, such as "edr(lambda=1.0)".')
    ] = None,
    tau: Annotated[list[float] | None, typer.Option(help="Threshold; repeat.")] = None,
    layer: Annotated[list[int] | None, typer.Option(help="Layer with an exit; repeat.")] = None,
    weight: Annotated[
        list[float] | None, typer.Option("--lambda", help="Lambda of EDR; repeat.")
    ] = None,
    speed: Annotated[list[float] | None, typer.Option(help="Layer speed-up; repeat.")] = None,
    row: Annotated[
        int | None, typer.Option(min=1, help="The row to look at, counted from 1.")
    ] = None,
    rows: Annotated[
        int | None, typer.Option(min=1, help="How many rows to draw, for analyses that draw rows.")
    ] = None,
    metric: Annotated[str | None, typer.Option(help="accuracy, f1, macro_f1, matthews.")] = None,
    reference: Annotated[str | None, typer.Option(help="Label to compare the others with.")] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="How often each text is timed.")] = None,
    length: Annotated[
        int | None,
        typer.Option(min=1, help="Length in tokens of the text to count operations for."),
    ] = None,
    perplexity: Annotated[
        float | None, typer.Option(help="Perplexity of t-SNE: about how many neighbours count.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Random seed.")] = None,
    batch_size: BatchSize = 32,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Answer one of the paper's questions for a model: figure, table and numbers."""
    voice = Voice(json, quiet)
    from de3bert.data.read import read_table
    from de3lab.analysis import ANALYSES, analyse, read_subjects, write_result

    analysis = ANALYSES[name]
    asked = {
        "family": family, "tau": tau, "layers": layer, "lambdas": weight, "speeds": speed,
        "row": row, "rows": rows, "metric": metric, "reference": reference,
        "rounds": rounds, "length": length, "perplexity": perplexity, "seed": seed,
    }  # fmt: skip
    given = {key: value for key, value in asked.items() if value is not None}
    _check_taken(analysis, given, asked)
    check_file_place(out / "result.json")
    table = None
    if data is not None:
        table = read_table(
            data, text=text, text_pair=text_pair, label=label, split=split, config=config,
            limit=limit, need_labels=False,
        )  # fmt: skip
    found = read_subjects(
        subjects, table, batch_size=batch_size, threads=threads, progress=not quiet,
        need_rows=analysis.needs_rows,
    )  # fmt: skip
    command = shlex.join(["de3", *sys.argv[1:]])
    document = analyse(name, found, given, command)
    written = write_result(out, document)
    shown: list[Any] = [
        grid(each.columns, each.cells(), title=each.title)
        for each in analysis.tables(document.numbers)
    ]
    voice.result(document.to_json(), *shown, "wrote " + ", ".join(str(path) for path in written))


def _check_taken(analysis: Analysis, given: Iterable[str], known: Iterable[str]) -> None:
    """Refuses options that this analysis has no use for, before anything is read."""
    for name in given:
        if name not in analysis.settings:
            takes = ", ".join(_flag(each) for each in known if each in analysis.settings)
            raise UsageError(
                f"`{analysis.name}` does not take {_flag(name)}. It takes: {takes or 'none'}."
            )


def _flag(setting: str) -> str:
    return f"--{SINGULAR.get(setting, setting)}"
