"""`de3 explain`: layer by layer, why a text or a sentence left where it did."""

from __future__ import annotations

from typing import Annotated

import typer

from de3bert.cli.options import (
    Backend,
    Json,
    Model,
    Point,
    PolicyLine,
    Quiet,
    Threads,
)
from de3bert.cli.output import Voice

EXAMPLE = 'Example: de3 explain runs/demo/model "not quite the disaster it could have been"'


def run(
    model: Model,
    text: Annotated[
        str,
        typer.Argument(
            help="The text; of a tagger its words with spaces between.", show_default=False
        ),
    ],
    pair: Annotated[
        str | None, typer.Argument(help="The second text, for text-pair models.")
    ] = None,
    point: Point = None,
    policy: PolicyLine = None,
    threads: Threads = None,
    backend: Backend = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Show what every exit predicts for a text, and where it leaves."""
    voice = Voice(json, quiet)
    from de3bert.runtime.load import load

    classifier = load(model, threads=threads, backend=backend)
    given = classifier.task.typed(text, pair)
    found = classifier.explain(given, point=point, policy=policy)
    voice.result(found.to_json(), str(found))
