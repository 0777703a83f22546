"""`de3 queue`: the trainings of several studies, one after the other, on a core that is idle."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer

from de3bert.cli.options import Json, Quiet
from de3bert.cli.output import Voice, grid

EXAMPLE = "Example: de3 queue studies/queue.toml --status"
LOWEST = 19

QueueFile = Annotated[Path, typer.Argument(help="A queue file (TOML).", show_default=False)]


def run(
    queue: QueueFile,
    results: Annotated[
        Path, typer.Option(help="Where reports and records are, a folder for each study.")
    ] = Path("results"),
    runs: Annotated[Path, typer.Option(help="Where models and traces go.")] = Path("runs/queue"),
    status: Annotated[
        bool, typer.Option("--status", help="Train nothing: show how far each entry is.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Work through a queue of trainings at the lowest priority. Stopped, it goes on when run again.

    A training whose record is among the results is done, also when its model is gone. The process
    may be paused (SIGSTOP, SIGCONT) for a quiet benchmark.
    """
    voice = Voice(json, quiet)
    from de3lab.study.queue import run_queue, standings
    from de3lab.study.run import check_failures

    failed = {}
    if not status:
        import torch

        os.nice(LOWEST)
        torch.set_num_threads(1)
        command = shlex.join(["de3", *sys.argv[1:]])
        failed = run_queue(
            queue, results, runs, command=command, progress=not quiet, note=voice.note
        )
    found = standings(queue, results, runs)
    document = [
        {"study": each.entry.study, "only": list(each.entry.only), "done": each.done, "of": each.of}
        for each in found
    ]
    rows = [[each.entry.label, str(each.done), str(each.of)] for each in found]
    voice.result(document, grid(["entry", "done", "of"], rows, title="trainings"))
    check_failures(failed)
