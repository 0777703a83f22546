"""`de3 adapt`: prototypes moved to data from another domain, without labels."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from de3bert.cli.options import (
    BatchSize,
    Json,
    Out,
    Overwrite,
    Quiet,
    Split,
    SplitConfig,
    Text,
    TextPair,
)
from de3bert.cli.output import Voice, grid

EXAMPLE = "Example: de3 adapt runs/mine --data new.csv --out runs/mine-adapted"


def run(
    model: Annotated[str, typer.Argument(help="Model folder; it is not changed.")],
    data: Annotated[
        str, typer.Option(help="Rows from the new domain; labels are not read.", show_default=False)
    ],
    out: Out,
    rows: Annotated[
        int | None, typer.Option(min=1, help="Use at most this many rows, drawn at random.")
    ] = None,
    distance: Annotated[
        Literal["cosine", "euclidean"], typer.Option(help="Distance used by K-means.")
    ] = "cosine",
    text: Text = None,
    text_pair: TextPair = None,
    split: Split = None,
    config: SplitConfig = None,
    seed: Annotated[int, typer.Option(help="Seed for drawing --rows.")] = 42,
    overwrite: Overwrite = False,
    batch_size: BatchSize = 32,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Move a model's prototypes to unlabelled rows from another domain, by K-means."""
    voice = Voice(json, quiet)
    from de3bert.data.read import read_table
    from de3bert.training.adaptable import check_adaptation

    check_adaptation(Path(model), out, overwrite)
    table = read_table(
        data, text=text, text_pair=text_pair, split=split, config=config, need_labels=False
    )
    from de3bert.training.adapt import adapt_model

    adapted = adapt_model(
        model, table, out, rows=rows, distance=distance, seed=seed, batch_size=batch_size,
        overwrite=overwrite, progress=voice.progress("reading"),
    )  # fmt: skip
    for note in adapted.notes:
        voice.warn(note)
    moved = [[each.layer, each.label, each.rows, each.distance] for each in adapted.moved]
    columns = ["layer", "class", "rows nearest", "moved (cosine distance)"]
    ending = f"\nmodel: {out}   from {adapted.rows} rows, no labels read"
    if adapted.unmeasured:
        listed = ", ".join(adapted.unmeasured)
        ending += (
            "\nThese points keep their thresholds, but have not been measured with the new "
            f"prototypes: {listed}"
        )
    ending += (
        f"\nwith labelled rows from the new domain: de3 calibrate {out} --data FILE --target "
        "layers=2.0 --name 2x"
    )
    voice.result(adapted.to_json(), grid(columns, moved), ending)
