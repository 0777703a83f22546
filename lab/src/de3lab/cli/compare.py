"""`de3 compare`: methods against each other over tasks and seeds, at equal speed."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from de3bert.cli.options import Json, Quiet
from de3bert.cli.output import Voice, grid
from de3bert.errors import De3Error
from de3bert.files import check_file_place

if TYPE_CHECKING:
    from de3lab.documents import StudyResult

EXAMPLE = "Example: de3 compare studies/paper_methods.toml --out results/paper-methods"

StudyFile = Annotated[Path, typer.Argument(help="A study file (TOML).", show_default=False)]
OutFolder = Annotated[
    Path | None, typer.Option(help="Where the report goes; by default results/NAME.")
]
RunFolder = Annotated[
    Path | None, typer.Option(help="Where models and traces go; by default runs/NAME.")
]
Only = Annotated[
    list[str] | None,
    typer.Option(help='Train only these: task/method/seed, such as "sst2/de3" or "*/*/42".'),
]


def run(
    study: StudyFile,
    out: OutFolder = None,
    runs: RunFolder = None,
    only: Only = None,
    report_only: Annotated[
        bool, typer.Option("--report-only", help="Train nothing: report what is finished.")
    ] = False,
    latency: Annotated[
        bool, typer.Option("--latency", help="Time the models of one seed, exported, as well.")
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Discard unfinished trainings instead of resuming them.")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Compare methods fairly. A study that was stopped goes on when the command is run again."""
    voice = Voice(json, quiet)
    from de3lab.study.execute import Study
    from de3lab.study.report import write_report
    from de3lab.study.run import check_failures, run_study
    from de3lab.study.spec import load_study

    spec = load_study(study)
    place = out or Path("results") / study.stem
    check_file_place(place / "study.json")
    command = shlex.join(["de3", *sys.argv[1:]])
    work = Study(spec, runs or Path("runs") / study.stem, command)
    failed = {}
    if not report_only:
        failed = run_study(
            work, place, only=only or [], progress=not quiet, fresh=fresh, note=voice.note
        )
    if latency:
        from de3bert.export.bundle import export_model
        from de3lab.study.latency import time_models

        time_models(work, place, export_model, note=voice.note)
    try:
        document = write_report(work, place, exact=not report_only, note=voice.note)
    except De3Error:
        check_failures(failed)  # where nothing was finished, the reasons are the message
        raise
    voice.result(document.to_json(), *_shown(document, place))
    check_failures(failed)


def _shown(document: StudyResult, place: Path) -> list[Any]:
    """The averages of all methods at all speeds, speeds that were missed, and what is missing."""
    from de3lab.study.side_tables import off_target_lines

    progress, tasks = document.progress, document.complete_tasks
    speeds = list(document.averages)
    rows = [
        [
            method,
            *(_percent(document.averages[speed].methods.get(method)) for speed in speeds),
        ]
        for method in (each.name for each in document.methods if each.ranked)
    ]
    title = f"mean score in percent over {', '.join(tasks)}, at equal layer speed-up"
    shown: list[Any] = [grid(["method", *(f"{speed}x" for speed in speeds)], rows, title=title), ""]
    if not tasks:
        shown = ["no task is finished by all methods yet"]
    off = off_target_lines(document, document.chosen)
    return [
        *shown,
        *off,
        *([""] if off else []),
        f"{progress.done} of {progress.of} trainings finished",
        f"report: {place / 'index.html'}, {place / 'table.md'}",
    ]


def _percent(score: float | None) -> str:
    return "-" if score is None else f"{100 * score:.1f}"
