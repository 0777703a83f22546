"""`de3 predict`: texts in, one JSON line per text out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from de3bert.cli import words
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
from de3bert.errors import UsageError
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
            help="Where a controller or bandit goes on from, and leaves off: a JSON file that is "
            "written at the end."
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop at the first row that cannot be answered.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Classify texts. Lines carry label, score, exit_layer and the input's own columns.

    Answers come as the input does, in its order. A row that cannot be answered has `error` and its
    line in place of an answer, and the exit code is 1.

    With a model of words: tags, scores and exit_layers of every word; lines are split at spaces.
    """
    voice = Voice(json, quiet)
    if words.is_word_model(model):
        if state is not None:
            raise UsageError(f"{model} tags words, and nothing of it learns as it answers: leave "
                             "out --state.")  # fmt: skip
        words.predict(
            voice, model, source, point, policy, text, batch_size, threads, strict, backend
        )
        return
    from de3bert.data.stream import stream_texts
    from de3bert.runtime.prediction import Prediction

    if state is not None:
        check_file_place(state)
    loaded: list[Classifier] = []

    def load() -> Classifier:
        from de3bert.runtime.load import load

        loaded.append(load(model, threads=threads, backend=backend))
        if state is not None and state.exists():
            loaded[0].resume(read_json(state, "It is the file of --state."))
        return loaded[0]

    try:
        answer(
            voice,
            stream_texts(source, sys.stdin.buffer, text=text, text_pair=text_pair),
            load,
            Prediction,
            point=point,
            policy=policy,
            batch_size=batch_size,
            strict=strict,
            waits=source == "-",
            cut="{count} texts were cut to {limit} tokens",
        )
    finally:
        if state is not None and loaded and (learned := loaded[0].learned()):
            write_json(state, learned)
