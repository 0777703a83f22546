"""Operating points for a bundle whose answers differ from the model's: recalibrated."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from de3bert.data.table import Table
from de3bert.errors import De3Error, UsageError
from de3bert.exits import OperatingPoint, Policy, calibrate
from de3bert.exits.adequacy import check_rows, doubts, with_warnings
from de3bert.exits.bandit_rule import BanditRule
from de3bert.exits.calibrate import measure
from de3bert.exits.rules import FixedLayer, Full, Patience
from de3bert.runtime.classifier import Classifier
from de3bert.runtime.evaluate import class_numbers, trace_table
from de3bert.runtime.load import load
from de3bert.runtime.stored_points import store_points

__all__ = ["Recalibrated", "calibration_rows", "check_table", "recalibrate"]

ASK = (
    "Eight-bit weights and fewer exits change the answers, so the operating points must be "
    "recalibrated, and {reason}. Give labelled calibration rows: --data FILE"
)


@dataclass(frozen=True)
class Recalibrated:
    """What the new points give compared with the old ones, on the same calibration rows.

    Attributes:
        rows: calibration rows.
        full: full-depth scores of the model and of the bundle.
        points: name -> policies and scores before and after.
        warnings: why the rows were refused, where that was overruled.
        dropped: name -> why a point could not be had again.
    """

    rows: int
    metric: str
    full: dict[str, float]
    points: dict[str, dict[str, Any]] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    dropped: dict[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def calibration_rows(classifier: Classifier[Any]) -> Table[Any]:
    """The rows that the model's points were calibrated on, read again from where they came."""
    for point in classifier.points.values():
        stored = point.measured.get("data")
        data: dict[str, Any] = stored if isinstance(stored, dict) else {}
        source = str(data.get("source", ""))
        if not source or not Path(source).is_file():
            continue
        try:
            table = classifier.task.read(source)
            class_numbers(classifier, table)
        except UsageError:  # columns or classes that were named by hand
            continue
        if table.sha256 == data.get("sha256") and len(table) == data.get("rows"):
            return table
    raise UsageError(ASK.format(reason="the rows they were calibrated on were not found"))


def check_table(model: Classifier[Any], table: Table[Any], force: bool) -> list[str]:
    """Refuses rows that the model's points cannot be calibrated on; with `force` says why."""
    labels = class_numbers(model, table)
    if not model.points:
        return []
    unit = model.task.counted
    return check_rows(labels, model.label_names, force=force, rows=len(table), unit=unit)


def recalibrate(
    folder: Path,
    model: Classifier[Any],
    table: Table[Any],
    progress: str | None = None,
    *,
    force: bool = False,
) -> Recalibrated:
    """Chooses every point again, by its own target, from what the bundle says of the rows.

    Table[Any] that `de3 calibrate` would refuse are refused here as well, unless `force` is set.
    """
    forced = check_table(model, table, force)
    bundle = load(folder)
    metric = model.info.metric
    before = trace_table(model, table, progress=progress)
    after = trace_table(bundle, table, progress=progress)
    full = Policy.parse("full")
    scores = {"model": measure(before, full, metric), "bundle": measure(after, full, metric)}
    seen = {name: each["score"] for name, each in scores.items()}
    report = Recalibrated(after.rows, metric, seen, warnings=forced)
    kept = []
    for name, point in model.points.items():
        old = measure(before, point.policy, metric)
        try:
            new = _again(after, name, point, metric)
        except De3Error as error:
            report.dropped[name] = str(error)
            continue
        found = doubts(new.measured, after.known_labels, after.predictions[:, -1])
        kept.append(with_warnings(new, [*forced, *found]))
        report.points[name] = {
            "policy": [str(point.policy), str(new.policy)],
            "score": [old["score"], new.measured["score"]],
            "layer_speedup": [old["layer_speedup"], new.measured["layer_speedup"]],
        }
    default = model.info.default_point
    store_points(folder, kept, default=default, replace=True)
    return report


def _again(trace: Any, name: str, point: OperatingPoint, metric: str) -> OperatingPoint:
    return calibrate(trace, point.target, name=name, family=_family(point.policy), metric=metric)


def _family(policy: Policy) -> str | None:
    """The family a policy belongs to; `edr` without a lambda, which is chosen again."""
    if isinstance(policy.rule, Patience):
        return "patience"
    if isinstance(policy.rule, FixedLayer):
        return "layers"
    if isinstance(policy.rule, BanditRule):
        return f"bandit({policy.rule.without_mu})"
    if isinstance(policy.rule, Full) or policy.signal is None:
        return None  # a controller has a signal, and is made again from its family
    name = "edr" if policy.signal.name == "edr" else str(policy.signal)
    count = getattr(policy.rule, "count", 1)
    return f"{name} x {count}" if count > 1 else name
