"""`de3 bench`: a bundle against other ways to run the model, timed on your own texts."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from de3bert.cli.options import Columns, Data, Json, Quiet
from de3bert.cli.output import Voice, grid
from de3bert.errors import UsageError
from de3bert.runtime.threads import check_threads

if TYPE_CHECKING:
    from de3bert.data.table import Table

EXAMPLE = (
    "Example: de3 bench runs/mine-onnx --data test.csv --against hf,ort,layer-k --points full,2x"
)

EFFICIENCY = (
    "efficiency: share of the saved layers that arrives as time, against one fused graph of all "
    "layers (ort-fused, ort-fused-int8)"
)

Bundle = Annotated[str, typer.Argument(help="Bundle as de3 export writes it.", show_default=False)]
Against = Annotated[
    str,
    typer.Option(
        help="Baselines: hf, ort, ort-int8, ort-fused, ort-fused-int8, openvino, layer-6 (any "
        "exit), layer-k (half depth)."
    ),
]
Points = Annotated[
    str | None,
    typer.Option(help="Operating points; by default full depth and all that the bundle has."),
]
ModelFolder = Annotated[
    str | None,
    typer.Option(help="Model folder the bundle was exported from; by default its path at export."),
]
Backends = Annotated[
    str,
    typer.Option(
        "--backend", help="What runs the bundle; separate several with commas: onnx,openvino."
    ),
]
Int8 = Annotated[str | None, typer.Option(help="An int8 bundle of the same model, timed too.")]
Rounds = Annotated[int, typer.Option(min=1, help="How often each text and the list are timed.")]
Texts = Annotated[int, typer.Option(min=1, help="How many texts are drawn from the data.")]
Threads = Annotated[
    int | None, typer.Option(min=1, help="Threads for all contenders; default: cores.")
]


def run(
    bundle: Bundle,
    data: Data,
    columns: Columns,
    against: Against = "hf,ort,ort-fused",
    points: Points = None,
    model: ModelFolder = None,
    int8: Int8 = None,
    backend: Backends = "onnx",
    rounds: Rounds = 5,
    texts: Texts = 200,
    threads: Threads = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Time a bundle against other ways to run its model, one text at a time and in batches."""
    voice = Voice(json, quiet)
    if check_threads(threads) is not None:
        # Before the tokenizer's own pool is made, which would take every core.
        os.environ["RAYON_NUM_THREADS"] = str(threads)
    from de3bert.bench.run import Request, run_bench

    request = Request(
        bundle=bundle,
        against=_names(against, "--against") or (),
        points=_names(points, "--points"),
        model=model,
        int8=int8,
        backends=_names(backend, "--backend") or (),
        rounds=rounds,
        texts=texts,
        threads=threads,
    )
    table = _read(bundle, data, columns)
    command = shlex.join(["de3", *sys.argv[1:]])
    document = run_bench(request, table, command=command, note=voice.note)
    for warning in document["warnings"]:
        voice.warn(warning)
    voice.result(document, *_shown(document))


def _names(given: str | None, option: str) -> tuple[str, ...] | None:
    """The names of a list with commas."""
    if given is None:
        return None
    names = tuple(part.strip() for part in given.split(","))
    if not all(names):
        raise UsageError(f'{option} takes comma-separated names, got "{given}".')
    return names


def _read(bundle: str, data: str, columns: Columns) -> Table[Any]:
    from de3bert.data.formats import suffix_of
    from de3bert.data.read import read_inputs
    from de3bert.runtime.load import task_of_model

    task = task_of_model(bundle)
    if suffix_of(Path(data)) == "txt" and not task.splits_words:
        return read_inputs(data, text=columns.text, text_pair=columns.text_pair)
    return task.read(data, need_labels=False, **columns.named())


def _shown(document: dict[str, Any]) -> list[Any]:
    """The tables, and what one must know to read them."""
    from de3bert.bench.report import latency_table, ratio_table

    rows, tokens = document["contenders"], document["tokens"]
    shown: list[Any] = [
        f"{document['machine']}; {document['threads']} threads; {document['texts']} texts of "
        f"{tokens['min']} to {tokens['max']} tokens, median {tokens['p50']:.0f}",
        "",
        grid(*latency_table(rows)),
    ]
    columns, cells = ratio_table(rows)
    if cells:
        shown += [
            "",
            grid(columns, cells, "times faster than a baseline (95 % interval)"),
            EFFICIENCY,
        ]
    return shown
