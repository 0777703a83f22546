"""`de3 predict`: texts in, one JSON line per text out."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from de3bert.cli import words
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
from de3bert.cli.output import Voice, json_text

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
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Classify texts. Lines carry label, score, exit_layer and the input's own columns.

    With a model of words: tags, scores and exit_layers of every word; lines are split at spaces.
    """
    voice = Voice(json, quiet)
    if words.is_word_model(model):
        words.predict(voice, model, source, point, policy, text, batch_size, threads)
        return
    from de3bert.data.read import read_inputs
    from de3bert.runtime.evaluate import predict_rows
    from de3bert.runtime.load import load

    table = read_inputs(source, sys.stdin.buffer, text=text, text_pair=text_pair)
    classifier = load(model, threads=threads)
    answers = predict_rows(classifier, table, point=point, policy=policy, batch_size=batch_size)
    if classifier.truncated:
        limit = classifier.config.max_length
        voice.warn(f"{classifier.truncated} of {len(table)} texts were cut to {limit} tokens")
    if json:
        voice.result(answers)
        return
    for answer in answers:
        print(json_text(answer))
