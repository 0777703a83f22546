"""`de3 curve`: the exact trade-off curve of traces, as a table and a picture."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from de3bert.cli.options import Backend, Json, Quiet
from de3bert.cli.output import Voice, grid
from de3bert.errors import UsageError
from de3bert.files import check_file_place

if TYPE_CHECKING:
    from de3bert.exits.trade_off import TradeOff
    from de3bert.runtime.timed import TimedPoint

EXAMPLE = "Example: de3 curve runs/demo/test.trace --plot curve.png"
MEASURED = 200  # texts that are run for real
SPEEDS = (1.0, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0)


def run(
    traces: Annotated[list[Path], typer.Argument(help="Trace files.", show_default=False)],
    family: Annotated[
        list[str] | None,
        typer.Option(help='"edr(lambda=1.0)", "entropy", "patience", "entropy x 2" ...; repeat.'),
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Write a figure (.png, .svg, .pdf).")] = None,
    profile: Annotated[
        str | None,
        typer.Option(help="A profiled bundle: draw against its milliseconds instead of layers."),
    ] = None,
    measure: Annotated[
        str | None,
        typer.Option(help="Texts to run the --profile bundle on, to compare with the prediction."),
    ] = None,
    metric: Annotated[
        str, typer.Option(help="accuracy, f1, macro_f1, matthews (taggers: span_f1).")
    ] = "accuracy",
    backend: Backend = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score against layer speed-up at every distinct threshold."""
    voice = Voice(json, quiet)
    if plot is not None:
        check_file_place(plot)
    from de3bert.exits.trade_off import trade_off

    cost = None
    if measure is not None and profile is None:
        raise UsageError("--measure runs a bundle; name it with --profile BUNDLE.")
    if profile is not None:
        from de3bert.runtime.profile import check_measured_by, known_profile

        cost = known_profile(profile)
        check_measured_by(cost, profile, backend)
    report = trade_off(traces, family, metric, cost)
    timed = _timed(str(profile), measure, report, backend) if measure is not None else []
    single = [line for line in report.lines if len(line.curve) == 1]  # the oracle has one point
    rows = [
        [line.label, *(_shown(line.score_at(speed)) for speed in SPEEDS)]
        for line in report.lines
        if line not in single
    ]
    if plot is not None:
        from de3bert.figures.curve import draw_report

        draw_report(plot, report, timed=timed, time=cost is not None)
        voice.note(f"wrote {plot}")
    title = f"{metric} at the same layer speed-up (interpolated in mean layers)"
    voice.result(
        {**report.to_json(), **({"timed": [each.to_json() for each in timed]} if timed else {})},
        grid(["policy family", *(f"{speed:g}x" for speed in SPEEDS)], rows, title=title),
        *(
            f"{line.label}: {line.curve.score[0]:.4f} at {line.curve.layer_speedup[0]:.2f}x"
            for line in single
        ),
        *_tables(timed),
    )


def _timed(bundle: str, texts: str, report: TradeOff, backend: str | None) -> list[TimedPoint]:
    from de3bert.runtime.load import load, task_of_model
    from de3bert.runtime.timed import time_curve

    inputs = task_of_model(bundle).read(texts, limit=MEASURED, need_labels=False).inputs()
    return time_curve(load(bundle, backend=backend), inputs, report.lines[0].curve)


def _tables(timed: list[TimedPoint]) -> list[object]:
    if not timed:
        return []
    columns = ["policy", "score", "layer speed-up", "predicted ms", "measured ms", "p50", "p95"]
    rows = [
        [each.policy, each.score, each.layer_speedup, each.predicted_ms, each.measured_ms,
         each.measured_p50, each.measured_p95]
        for each in timed
    ]  # fmt: skip
    return ["", grid(columns, rows, title="one text at a time, tokenising included")]


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
