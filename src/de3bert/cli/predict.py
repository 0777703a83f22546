"""`de3 predict`: texts in, one JSON line per text out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from de3bert.cli.answers import answer
from de3bert.cli.options import (
    Backend,
    BatchSize,
    Json,
    Model,
    Point,
    PolicyLine,
    Quiet,
    Text,
    TextPair,
    Threads,
)
from de3bert.cli.output import Voice
from de3bert.files import check_file_place, read_json, write_json

if TYPE_CHECKING:
    from de3bert.runtime.classifier import Classifier

EXAMPLE = "Example: echo 'a joy from start to finish' | de3 predict runs/demo/model --point 2x"


def run(
    model: Model,
    source: Annotated[
        str, typer.Argument(help="Text lines, CSV, TSV, JSONL or Parquet; - is standard input.")
    ] = "-",
    point: Point = None,
    policy: PolicyLine = None,
    text: Text = None,
    text_pair: TextPair = None,
    batch_size: BatchSize = 32,
    threads: Threads = None,
    backend: Backend = None,
    state: Annotated[
        Path | None,
        typer.Option(
            help="JSON file with the state of a controller or bandit: read at the start, written "
            "at the end."
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first row that cannot be answered.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Classify texts. Lines carry label, score, exit_layer and the input's own columns.

    Answers are streamed in the order of the input. A row that cannot be answered has `error` and
    its line instead of an answer, and the exit code is 1.

    With a tagger: tags, scores and exit_layers of every word; lines are split on spaces.
    """
    voice = Voice(json, quiet)
    from de3bert.runtime.load import task_of_model

    task = task_of_model(model)
    if state is not None:
        why = "policies that learn go from one independent row to the next"
        task.check_single(model, "--state, what a policy learns as it answers,", why)
        check_file_place(state)
    loaded: list[Classifier[Any]] = []

    def load() -> Classifier[Any]:
        from de3bert.runtime.load import load

        loaded.append(load(model, threads=threads, backend=backend))
        if state is not None and state.exists():
            loaded[0].resume(read_json(state, "It is the file of --state."))
        return loaded[0]

    try:
        answer(
            voice,
            task.stream(source, sys.stdin.buffer, text=text, text_pair=text_pair),
            load,
            task.answer,
            point=point,
            policy=policy,
            batch_size=batch_size,
            strict=strict,
            waits=source == "-",
            cut=task.cut,
        )
    finally:
        if state is not None and loaded and (learned := loaded[0].learned()):
            write_json(state, learned)
