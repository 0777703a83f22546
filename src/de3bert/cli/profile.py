"""`de3 profile`: what a layer and an exit test cost on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from de3bert.cli.options import Backend, Json, Model, Quiet, Threads, whole_numbers
from de3bert.cli.output import Voice, grid
from de3bert.files import check_file_place

EXAMPLE = "Example: de3 profile runs/demo/bundle"


def run(
    model: Model,
    batches: Annotated[str, typer.Option(help="Batch sizes, separated by commas.")] = "1,8",
    lengths: Annotated[
        str | None, typer.Option(help="Lengths in tokens; by default 8 to the model's limit.")
    ] = None,
    rounds: Annotated[int, typer.Option(min=3, help="Measurements of each case.")] = 15,
    threads: Threads = None,
    backend: Backend = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Time = fixed + per layer + per exit test, by length and batch; stored in the folder."""
    voice = Voice(json, quiet)
    sizes = whole_numbers(batches, "--batches")
    tokens = whole_numbers(lengths, "--lengths") if lengths else None
    from de3bert.runtime.load import load
    from de3bert.runtime.profile import PROFILE, profile, write_profile

    if Path(model).is_dir():
        check_file_place(Path(model) / PROFILE)
    cost = profile(
        load(model, threads=threads, backend=backend),
        batches=sizes,
        lengths=tokens,
        rounds=rounds,
        note=voice.note,
    )
    path = write_profile(model, cost)
    rows = [
        [batch, int(count), fixed, layer, test, f"{test / layer:.1%}" if layer else "-"]
        for batch, found in sorted(cost.batches.items())
        for count, fixed, layer, test in zip(
            found.tokens, found.fixed, found.layer, found.test, strict=True
        )
    ]
    columns = ["batch", "tokens", "fixed ms", "ms per layer", "ms per exit test", "test / layer"]
    tokenise = [[int(count), spent] for count, spent in zip(*cost.tokenise, strict=True)]
    voice.result(
        {"profile": str(path), **cost.to_json()},
        grid(columns, rows, title="milliseconds per batch, without tokenising"),
        "",
        grid(["tokens", "ms"], tokenise, title="tokenising one text"),
        f"\n{cost.info['machine']}; stored in {path}",
    )
