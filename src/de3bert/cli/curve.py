"""`de3 curve`: the exact trade-off curve of traces, as a table and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from de3bert.cli.options import Json, Quiet
from de3bert.cli.output import Voice, grid

EXAMPLE = "Example: de3 curve runs/demo/test.trace --plot curve.png"
SPEEDS = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0)


def run(
    traces: Annotated[list[Path], typer.Argument(help="Trace files.", show_default=False)],
    family: Annotated[
        list[str] | None,
        typer.Option(help='"edr(lambda=1.0)", "entropy", "patience", "entropy x 2" ...; repeat.'),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a figure (.png, .svg, .pdf).")] = None,
    metric: Annotated[str, typer.Option(help="accuracy, f1, macro_f1, matthews.")] = "accuracy",
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score against layer speed-up at every distinct threshold."""
    voice = Voice(json, quiet)
    from de3bert.exits.report import trade_off

    report = trade_off(traces, family, metric)
    single = [line for line in report.lines if len(line.curve) == 1]  # the oracle has one point
    rows = [
        [line.label, *(_shown(line.score_at(speed)) for speed in SPEEDS)]
        for line in report.lines
        if line not in single
    ]
    if plot is not None:
        from de3bert.figures.curve import draw_report

        draw_report(plot, report)
        voice.note(f"wrote {plot}")
    title = f"{metric} at the same layer speed-up (interpolated in mean layers)"
    voice.result(
        report.to_json(),
        grid(["policy family", *(f"{speed:g}x" for speed in SPEEDS)], rows, title=title),
        *(
            f"{line.label}: {line.curve.score[0]:.4f} at {line.curve.layer_speedup[0]:.2f}x"
            for line in single
        ),
    )


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
