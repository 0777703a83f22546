"""Calibrating a model folder: trace, choose, store."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from de3bert.data.table import Table
from de3bert.errors import UsageError
from de3bert.exits import OperatingPoint, Trace
from de3bert.exits.calibrate import LAMBDA_GRID, WIDE_LAMBDA_GRID, calibrate
from de3bert.exits.family import Family
from de3bert.exits.metrics import METRICS
from de3bert.exits.points import Target
from de3bert.methods import METHODS
from de3bert.runtime.evaluate import trace_table
from de3bert.runtime.load import check_folder, load, read_config
from de3bert.runtime.points import check_point_name, store_points
from de3bert.runtime.profile import read_profile
from de3bert.runtime.weights import weights_sha256

__all__ = ["calibrate_model"]


def calibrate_model(
    folder: str | Path,
    target: str,
    name: str,
    *,
    table: Table | None = None,
    trace: str | Path | None = None,
    family: str | Sequence[str] | None = None,
    wide: bool = False,
    metric: str | None = None,
    default: bool = False,
    batch_size: int = 32,
    progress: str | None = None,
) -> OperatingPoint:
    """Finds the point that meets `target` on a table or a trace of one, and stores it.

    Policies of `family` are considered, one text or several; by default those that the model's
    method declares. A layer speed-up refers to the model's `base_depth`.
    """
    if (table is None) == (trace is None):
        raise UsageError("Give labelled rows with --data, or a trace of this model with --trace.")
    # Everything that can be wrong with the request is said before the long pass.
    wanted = Target.parse(target)
    check_point_name(name)
    check_folder(Path(folder))
    cost = read_profile(folder, weights_sha256(folder))
    if wanted.is_time and cost is None:
        raise UsageError(
            f"The target {wanted} is about time on this machine, which was not measured yet. "
            f"Run first: de3 profile {folder}"
        )
    config = read_config(folder)
    metric = metric or config.get("metric", "accuracy")
    METRICS[metric]
    families = [family] if isinstance(family, str) else family
    parsed = [Family.parse(text) for text in families or METHODS[config["method"]].families]
    if wanted.kind != "full":
        _check_families(parsed, config)
    if table is not None:
        recorded = trace_table(load(folder), table, batch_size=batch_size, progress=progress)
    else:
        recorded = Trace.load(str(trace))
        _check_trace(recorded, config, folder)
    families = families or _declared_families(config["method"], recorded)
    lambdas = WIDE_LAMBDA_GRID if wide else LAMBDA_GRID
    point = calibrate(
        recorded, wanted, name=name, family=families, lambdas=lambdas, metric=metric, cost=cost
    )
    store_points(folder, [point], default=name if default else None)
    return point


def _check_families(families: Sequence[Family], config: dict[str, Any]) -> None:
    """Refuses what no trace of this model can be calibrated with."""
    method = config["method"]
    if len(config["exit_layers"]) == 1:
        raise UsageError(
            f"method {method} has no exits to calibrate: the model answers after its last layer "
            "only. Train a method with exits, such as de3, or ask for the target `full`."
        )
    if any(family.kind == "oracle" for family in families):
        raise UsageError(
            f"`oracle` (method {method}) reads the true labels, which new texts do not have, so it "
            "cannot be calibrated. Name another family, such as `entropy`; `de3 curve` shows the "
            "oracle on a trace."
        )


def _declared_families(method: str, trace: Trace) -> list[str]:
    """The families the method was made for, or entropy when the model cannot be read by them."""
    declared = [text for text in METHODS[method].families if _can_read(trace, Family.parse(text))]
    return declared or ["entropy"]


def _can_read(trace: Trace, family: Family) -> bool:
    """Whether the trace has the prototypes or the router that a family asks."""
    signal = family.signal
    if signal is None:
        return True
    return not (signal.needs_distances and trace.distances is None) and not (
        signal.needs_certainty and trace.certainty is None
    )


def _check_trace(trace: Trace, config: dict[str, Any], folder: str | Path) -> None:
    if list(trace.exit_layers) != config["exit_layers"]:
        raise UsageError(
            f"The trace has exits at {list(trace.exit_layers)}, the model at "
            f"{config['exit_layers']}: it was made from another model."
        )
    names = [config["id2label"][key] for key in sorted(config["id2label"], key=int)]
    if list(trace.label_names) != names:
        raise UsageError(
            f"The trace has the classes {', '.join(trace.label_names)}, the model "
            f"{', '.join(names)}: it was made from another model."
        )
    made_by = trace.info.get("weights")
    if made_by is not None and made_by != weights_sha256(folder):
        raise UsageError(
            f"The trace was made by a model with other weights than {folder} has. "
            "Make it again with `de3 trace`."
        )
