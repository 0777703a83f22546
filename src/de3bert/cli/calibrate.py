"""`de3 calibrate`: a named operating point from a target, stored in the model."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from de3bert.cli.options import Backend, BatchSize, DataOptions, Force, Json, Metric, Model, Quiet
from de3bert.cli.output import Voice, brief, grid, ratio_text

EXAMPLE = "Example: de3 calibrate runs/mine --data dev.csv --target layers=2.0 --name 2x"


def run(
    model: Model,
    target: Annotated[
        str,
        typer.Option(
            help="layers=2.0, drop=0.01, accuracy=0.9, agree=0.99, latency=8ms, speedup=2.5 (time) "
            'or full; "layers=4.0 keep" holds a speed on live traffic.',
            show_default=False,
        ),
    ],
    name: Annotated[str, typer.Option(help="Name of the point.", show_default=False)],
    read: DataOptions,
    data: Annotated[
        str | None,
        typer.Option(
            help="Rows that are not used to report scores later; labelled if the target needs it."
        ),
    ] = None,
    unlabelled: Annotated[
        str | None,
        typer.Option(
            help="Unlabelled texts from real traffic: the threshold is fitted to their speed."
        ),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            help="Guarantee agree, drop or accuracy on other rows with this probability, e.g. 0.95."
        ),
    ] = None,
    trace: Annotated[
        str | None, typer.Option(help="A trace of this model instead of --data.")
    ] = None,
    family: Annotated[
        str | None, typer.Option(help="edr, entropy, patience ...; by default those of the model.")
    ] = None,
    wide: Annotated[
        bool, typer.Option("--wide", help="Search lambda from 0 to 10, not the method's grid.")
    ] = False,
    paper_grid: Annotated[
        bool,
        typer.Option("--paper-grid", help="The paper's lambdas alone: 0 (entropy) is not tried."),
    ] = False,
    default: Annotated[
        bool, typer.Option("--default", help="Use this point when none is given.")
    ] = False,
    metric: Metric = None,
    batch_size: BatchSize = 32,
    backend: Backend = None,
    force: Force = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Choose threshold and lambda on calibration rows and store them under a name."""
    voice = Voice(json, quiet)
    if confidence is not None:
        target = f"{target} confidence={confidence!r}"
    from de3bert.data.read import read_table
    from de3bert.exits.calibrate import NEED_LABELS
    from de3bert.exits.points import Target
    from de3bert.runtime.calibrate_folder import calibrate_model
    from de3bert.runtime.load import task_of_model

    wanted, task = Target.parse(target), task_of_model(model)
    task.check_target(wanted, unlabelled is not None)
    table = traffic = None
    if data is not None:
        need_labels = wanted.kind in NEED_LABELS or read.label is not None
        table = task.read(data, need_labels=need_labels, **read.named())
    if unlabelled is not None:
        traffic = read_table(
            unlabelled, text=read.text, text_pair=read.text_pair, need_labels=False
        )
    given: dict[str, Any] = {
        "family": family, "wide": wide, "paper_grid": paper_grid, "metric": metric,
        "default": default, "force": force, "batch_size": batch_size, "backend": backend,
        "progress": voice.progress("tracing"),
    }  # fmt: skip
    point = calibrate_model(
        model, target, name, table=table, trace=trace, unlabelled=traffic, **given
    )
    seen = point.measured
    cut = (seen["data"] or {}).get("truncated")
    if cut:
        count = f"{cut} of {seen.get('sentences', seen['rows'])} {task.row}"
        voice.warn(f"{count} were longer than the model's limit and were truncated")
    for warning in seen.get("warnings", []):
        voice.warn(warning)
    rows = [
        ["policy", brief(str(point.policy))],
        ["target", point.target],
        [seen["metric"], f"{seen['score']:.4f} (full depth {seen['full_score']:.4f})"],
        ["95 % interval", "{:.4f} to {:.4f}".format(*seen["score_interval"])],
        ["mean layers", f"{seen['layers_mean']:.2f}"],
        ["layer speed-up", ratio_text(seen["layer_speedup"], seen["layer_speedup_interval"])],
        ["rows", str(seen["rows"])],
    ]
    if "predicted_ms" in seen:
        ratio = f"{seen['predicted_time_speedup']:.2f} times full depth"
        unit = "sentence" if "sentences" in seen else "text"
        rows.append(["predicted time", f"{seen['predicted_ms']:.2f} ms per {unit}, {ratio}"])
    rows += _promise(seen.get("guarantee")) + _traffic(seen.get("traffic"))
    voice.result(
        point.to_json(),
        grid(["point", name], rows),
        f"\nstored in {model}; use it with --point {name}",
    )


def _promise(promise: dict[str, Any] | None) -> list[list[str]]:
    if promise is None:
        return []
    cost = f"{promise['layer_speedup']:.2f} instead of {promise['without']:.2f} in layers"
    return [["promise", promise["promise"]], ["what the promise costs", cost]]


def _traffic(traffic: dict[str, Any] | None) -> list[list[str]]:
    """What the threshold gives on the texts that it was fitted to."""
    if traffic is None:
        return []
    speed = f"{traffic['layer_speedup']:.2f} in layers on {traffic['rows']} texts"
    rows = [["on the traffic", speed], ["agreement there", f"{traffic['agreement']:.4f}"]]
    if traffic["score"] is not None:
        low, high = traffic["interval"]
        worth = f"shift {traffic['shift']:.2f}, worth {traffic['effective_rows']:.0f} rows"
        rows.append(["estimated accuracy", f"{traffic['score']:.4f} ({low:.4f} to {high:.4f}; "
                                           f"{worth})"])  # fmt: skip
    elif traffic["shift"] is not None:
        rows.append(["estimated accuracy", "none: no labelled rows leave where the traffic does"])
    return rows
