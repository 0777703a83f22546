"""`de3 paper`: the paper, table by table and figure by figure, ours beside the published one."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from de3bert.cli.options import Json, Quiet
from de3bert.cli.output import Voice, grid
from de3bert.errors import UsageError
from de3bert.files import check_file_place

HELP = "The paper, table by table and figure by figure: ours beside the published numbers."

app = typer.Typer(help=HELP, no_args_is_help=True, add_completion=False)

Results = Annotated[Path, typer.Option(help="Where results are kept.")]
Studies = Annotated[Path, typer.Option(help="Where the paper's study files are.")]
Runs = Annotated[
    Path, typer.Option(help="Models and traces, one folder for all studies of the paper.")
]
Only = Annotated[
    list[str] | None,
    typer.Option(help='Train only these: task/method/seed, such as "sst2/de3" or "*/*/42".'),
]


@app.command("all", epilog="Example: de3 paper all --results results/ --out report/")
def make_report(
    results: Results = Path("results"),
    out: Annotated[Path, typer.Option(help="Where the report goes.")] = Path("report"),
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Build the report from stored results, as a page and as Markdown. Nothing is trained."""
    voice = Voice(json, quiet)
    from de3lab.paper.report import build_report, findings_document, write_report

    if not results.is_dir():
        raise UsageError(f"There is no folder {results}. Say where results are with --results.")
    check_file_place(out / "index.html")
    report = build_report(results)
    for problem in report.problems:
        voice.warn(problem)
    written = write_report(report, out, "de3 paper all")
    document = findings_document(report)
    rows = [[each["claim"], each["paper"], each["holds"]] for each in document]
    shown = grid(["the paper says", "in", "holds here"], rows)
    voice.result(document, shown, "", "wrote " + ", ".join(str(path) for path in written))


@app.command("list", epilog="Example: de3 paper list")
def show_items(
    results: Results = Path("results"), json: Json = False, quiet: Quiet = False
) -> None:
    """List the tables and figures of the paper, with what is stored of each."""
    voice = Voice(json, quiet)
    from de3lab.paper.items import ITEMS
    from de3lab.paper.settings import state_of
    from de3lab.paper.stored import Stored

    stored = Stored(results)
    document: list[dict[str, Any]] = [
        {
            "name": item.name,
            "paper": item.reference,
            "title": item.title,
            "stored": state_of(item, stored)[0],
            "command": item.command,
        }
        for item in ITEMS.values()
    ]
    for problem in stored.problems:
        voice.warn(problem)
    columns = ["name", "paper", "title", "stored"]
    rows = [[each[column] for column in columns] for each in document]
    voice.result(document, grid(columns, rows), "", "make one: de3 paper run NAME")


@app.command("run", epilog="Example: de3 paper run indicator --only sst2/de3/42")
def run_one(
    name: Annotated[str, typer.Argument(help="A name of `de3 paper list`, or all.")],
    results: Results = Path("results"),
    runs: Runs = Path("runs/paper_methods"),
    studies: Studies = Path("studies"),
    only: Only = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train what a table or figure needs and is not there yet, and make its result.

    What was stopped goes on when the command is run again; nothing is done twice.
    """
    voice = Voice(json, quiet)
    from de3lab.paper.folders import Folders
    from de3lab.paper.run import ITEMS_FAILED, items_to_run, run_items
    from de3lab.paper.settings import state_of
    from de3lab.paper.stored import Stored
    from de3lab.study.run import check_failures

    items = items_to_run(name)
    failed = run_items(
        items,
        Folders(studies, runs, results),
        only=only or [],
        progress=not quiet,
        note=voice.note,
    )
    stored = Stored(results)
    document = [
        {"name": item.name, "paper": item.reference, "stored": state_of(item, stored)[0]}
        for item in items
    ]
    rows = [list(each.values()) for each in document]
    shown = grid(["name", "paper", "stored"], rows)
    voice.result(document, shown, "", "the report of all: de3 paper all")
    check_failures(failed, ITEMS_FAILED)
