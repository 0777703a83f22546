"""Calibrating a model folder: trace, choose, store."""

from __future__ import annotations

from pathlib import Path

from de3bert.data.table import Table
from de3bert.errors import UsageError
from de3bert.exits import OperatingPoint, Trace
from de3bert.exits.calibrate import LAMBDA_GRID, WIDE_LAMBDA_GRID, calibrate
from de3bert.exits.points import Target
from de3bert.runtime.evaluate import trace_table
from de3bert.runtime.load import check_folder, load
from de3bert.runtime.points import check_point_name, store_points

__all__ = ["calibrate_model"]


def calibrate_model(
    folder: str | Path,
    target: str,
    name: str,
    *,
    table: Table | None = None,
    trace: str | Path | None = None,
    family: str | None = None,
    wide: bool = False,
    metric: str = "accuracy",
    default: bool = False,
    batch_size: int = 32,
    progress: str | None = None,
) -> OperatingPoint:
    """Finds the point that meets `target` on a table or a trace of one, and stores it."""
    if (table is None) == (trace is None):
        raise UsageError("Give labelled rows with --data, or a trace of this model with --trace.")
    # Everything that can be wrong with the request is said before the long pass.
    Target.parse(target)
    check_point_name(name)
    check_folder(Path(folder))
    if table is not None:
        recorded = trace_table(load(folder), table, batch_size=batch_size, progress=progress)
    else:
        recorded = Trace.load(str(trace))
        _check_trace(recorded, folder)
    lambdas = WIDE_LAMBDA_GRID if wide else LAMBDA_GRID
    point = calibrate(recorded, target, name=name, family=family, lambdas=lambdas, metric=metric)
    store_points(folder, [point], default=name if default else None)
    return point


def _check_trace(trace: Trace, folder: str | Path) -> None:
    from de3bert.runtime.summary import read_config

    config = read_config(folder)
    if list(trace.exit_layers) != config["exit_layers"]:
        raise UsageError(
            f"The trace has exits at {list(trace.exit_layers)}, the model at "
            f"{config['exit_layers']}: it was made from another model."
        )
