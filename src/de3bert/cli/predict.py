"""`de3 predict`: texts in, one JSON line per text out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from de3bert.cli import words
from de3bert.cli.answers import answer
from de3bert.cli.options import (
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
        words.predict(voice, model, source, point, policy, text, batch_size, threads, strict)
        return
    from de3bert.data.stream import stream_texts
    from de3bert.runtime.prediction import Prediction

    def load() -> Classifier:
        from de3bert.runtime.load import load

        return load(model, threads=threads)

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
