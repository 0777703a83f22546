"""Calibrating a model folder: trace, choose, store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from de3bert.data.table import Table
from de3bert.errors import UsageError
from de3bert.exits import OperatingPoint, Trace
from de3bert.exits.adequacy import MINIMUM_ROWS, check_rows, doubts, with_warnings
from de3bert.exits.calibrate import (
    LAMBDA_GRID,
    NEED_LABELS,
    PAPER_LAMBDA_GRID,
    WIDE_LAMBDA_GRID,
    calibrate,
)
from de3bert.exits.family import Family
from de3bert.exits.kept import check_keep
from de3bert.exits.points import Target
from de3bert.methods import METHODS
from de3bert.printable import cut_list
from de3bert.runtime.backends import checked_backend, chosen_backend
from de3bert.runtime.evaluate import numbers_of, trace_table
from de3bert.runtime.load import load, read_config
from de3bert.runtime.model_info import ModelInfo
from de3bert.runtime.profile import check_measured_by, read_profile
from de3bert.runtime.stored_points import check_point_name, check_storable, store_points
from de3bert.runtime.weights import weights_sha256
from de3bert.tasks import TASKS

__all__ = ["calibrate_model"]


def calibrate_model(
    folder: str | Path,
    target: str,
    name: str,
    *,
    table: Table[Any] | None = None,
    trace: str | Path | None = None,
    unlabelled: Table | None = None,
    family: str | Sequence[str] | None = None,
    wide: bool = False,
    paper_grid: bool = False,
    metric: str | None = None,
    default: bool = False,
    batch_size: int = 32,
    progress: str | None = None,
    force: bool = False,
    backend: str | None = None,
) -> OperatingPoint:
    """Finds the point that meets `target` on a table or a trace of one, and stores it.

    Policies of `family` are considered, one text or several; by default those that the model's
    method declares. Lambda of `edr` is one of the method's weights, of 0 to 10 (`wide`), or of the
    paper's, which lack 0 (`paper_grid`). A layer speed-up refers to the model's `base_depth`.

    Labels are not needed for speeds and agreement; scores are agreement with full depth then. With
    `unlabelled` the threshold is fitted to those texts, and the labelled rows say what it scores;
    they alone will do as well.

    Fewer than 30 rows, or rows without some class of the model, are refused unless `force` is set
    or nothing is to be chosen (`full`). What is doubtful is kept in `measured["warnings"]`.
    """
    traffic_asked = unlabelled is not None
    if wide and paper_grid:
        raise UsageError("--wide and --paper-grid are two grids of lambda: give one of them.")
    if table is not None and trace is not None:
        raise UsageError("Give rows with --data, or a trace of this model with --trace, not both.")
    if table is None and trace is None:
        if unlabelled is None:
            raise UsageError("Give rows with --data, or a trace of this model with --trace.")
        table, unlabelled = replace(unlabelled, labels=None), None
    # Everything that can be wrong with the request is said before the long pass.
    wanted = Target.parse(target)
    check_point_name(name)
    check_storable(folder)
    chosen_backend(str(folder), checked_backend(backend))
    info = ModelInfo.of(read_config(folder))
    task = TASKS[info.task]
    task.check_target(wanted, traffic_asked)
    cost = read_profile(folder, weights_sha256(folder))
    if wanted.is_time and cost is None:
        raise UsageError(
            f"The target {wanted} is about time on this machine, which was not measured yet. "
            f"Run first: de3 profile {folder}"
        )
    if wanted.is_time and cost is not None:
        check_measured_by(cost, folder, backend)
    metric = metric or info.metric
    task.check_metric(metric, info.label_names)
    families = [family] if isinstance(family, str) else family
    parsed = [Family.parse(text) for text in families or METHODS[info.method].families]
    if wanted.kind != "full":
        _check_families(parsed, info)
    if wanted.keep:
        check_keep(parsed)
    force = force or wanted.kind == "full"  # nothing is chosen there
    asked = {"batch_size": batch_size, "progress": progress}
    if table is not None:
        _check_labels(table.labels is not None, wanted, table.source)
        if table.labels is not None:
            labels = task.unit_numbers(numbers_of(info, table))
            check_rows(labels, info.label_names, force=force, rows=len(table), unit=task.counted)
        recorded = trace_table(load(folder, backend=backend), table, **asked)  # type: ignore[arg-type]
    else:
        recorded = Trace.load(str(trace))
        _check_trace(recorded, info, folder)
        _check_labels(recorded.labels is not None, wanted, str(trace))
    known = recorded.labels is not None
    judged = recorded if known else recorded.self_labelled()
    # What the model says of texts need not be every class: only labels must be.
    forced = check_rows(
        judged.known_labels, info.label_names if known else (), force=force,
        rows=judged.sentences, unit=task.counted,
    )  # fmt: skip
    traffic = None
    if unlabelled is not None:
        if len(unlabelled) < MINIMUM_ROWS and not force:
            raise UsageError(
                f"{unlabelled.source} gives {len(unlabelled)} texts, too few to fit a threshold "
                f"to: at least {MINIMUM_ROWS} are needed, and hundreds are better."
            )
        texts = replace(unlabelled, labels=None)
        traffic = trace_table(load(folder, backend=backend), texts, **asked)  # type: ignore[arg-type]
    families = families or _declared_families(info.method, recorded)
    lambdas = _lambdas(info.method, wide, paper_grid)
    point = calibrate(
        recorded, wanted, name=name, family=families, lambdas=lambdas, metric=metric, cost=cost,
        traffic=traffic,
    )  # fmt: skip
    found = doubts(point.measured, judged.known_labels, recorded.predictions[:, -1])
    if wanted.confidence is not None:
        found += _known_rows(recorded, info)
    point = with_warnings(point, [*forced, *found])
    store_points(folder, [point], default=name if default else None)
    return point


def _lambdas(method: str, wide: bool, paper_grid: bool) -> tuple[float, ...]:
    """The weights to try for `edr`."""
    if wide:
        return WIDE_LAMBDA_GRID
    return PAPER_LAMBDA_GRID if paper_grid else METHODS[method].lambdas or LAMBDA_GRID


def _known_rows(trace: Trace, info: ModelInfo) -> list[str]:
    """A promise rests on rows that nothing was chosen by."""
    data = trace.info.get("data")
    name = data.get("sha256") if isinstance(data, dict) else None
    if not name or name not in ((info.fitted or {}).get("data") or ()):
        return []
    return [
        "the exits were fitted with these rows, or their strengths chosen on them, so the promise "
        "is slightly optimistic; give rows that were used in neither training nor fitting"
    ]


def _check_labels(known: bool, target: Target, source: str) -> None:
    if not known and target.kind in NEED_LABELS:
        raise UsageError(
            f"The target {target} is about right answers, and {source} has no labels. Give "
            "labelled rows, or ask for agreement with full depth: agree=0.99."
        )


def _check_families(families: Sequence[Family], info: ModelInfo) -> None:
    """Refuses what no trace of this model can be calibrated with."""
    method = info.method
    if len(info.exit_layers) == 1:
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


def _check_trace(trace: Trace, info: ModelInfo, folder: str | Path) -> None:
    if (trace.sentence is not None) != TASKS[info.task].joint:
        raise UsageError(
            f"The trace is not of {TASKS[info.task].row}, which {folder} reads: it was made from "
            "another model."
        )
    if trace.exit_layers != info.exit_layers:
        raise UsageError(
            f"The trace has exits at {list(trace.exit_layers)}, the model at "
            f"{list(info.exit_layers)}: it was made from another model."
        )
    if trace.label_names != info.label_names:
        raise UsageError(
            f"The trace has the classes {cut_list(trace.label_names)}, the model "
            f"{cut_list(info.label_names)}: it was made from another model."
        )
    made_by = trace.info.get("weights")
    if made_by is not None and made_by != weights_sha256(folder):
        raise UsageError(
            f"The trace was made by a model with other weights than {folder} has. "
            "Make it again with `de3 trace`."
        )
