"""Tables beside the scores: speeds wanted and achieved, optimizer steps, times of one text."""

from __future__ import annotations

from de3lab.documents import StudyResult
from de3lab.documents.study import OWN, CalibratedMean, StepCount
from de3lab.tabular import Grid

__all__ = ["off_target_lines", "side_tables", "speed_tables"]

OFF = " !"
SPEED_NOTE = (
    "Achieved on test rows by the point that calibration rows chose for the wanted speed-up; in "
    "brackets its 95 % interval over seeds, or over rows (r) where there is one seed; none where "
    "it was not stored. ! the wanted one lies outside."
)


def side_tables(document: StudyResult) -> list[Grid]:
    """Those that have anything to show."""
    found = [*speed_tables(document), _steps(document), _times(document)]
    return [table for table in found if table.rows]


def off_target_lines(document: StudyResult, method: str | None = None) -> list[str]:
    """Where a speed that was asked for is not the one that test rows have, beyond its interval.

    Args:
        method: of this one alone.
    """
    return [
        f"{task}: {name} was asked for {key}x and gives {_speed(seen)} on test rows"
        for key, tasks in document.calibrated.items()
        for task, methods in tasks.items()
        for name, seen in methods.items()
        if seen.off and method in (None, name)
    ]


def speed_tables(document: StudyResult) -> list[Grid]:
    """Of every task the layer speed-ups of the points that calibration rows chose."""
    found = []
    for task in (each.name for each in document.tasks):
        rows = []
        for name in (each.name for each in document.methods if each.ranked):
            seen = {
                key: tasks.get(task, {}).get(name) for key, tasks in document.calibrated.items()
            }
            if any(seen.values()):
                cells = (None if each is None else _speed(each, OFF) for each in seen.values())
                rows.append((name, *cells))
        columns = ("method", *(f"wanted {key}x" for key in document.calibrated))
        if rows:
            title = f"Layer speed-up wanted and achieved, {task}"
            found.append(Grid(title, columns, tuple(rows), SPEED_NOTE))
    return found


def _speed(seen: CalibratedMean, off: str = "") -> str:
    text = f"{seen.layer_speedup:.2f}x"
    if seen.low is not None and seen.high is not None:
        over = " r" if seen.over == "rows" else ""
        text += f" [{seen.low:.2f}, {seen.high:.2f}]{over}"
    return text + (off if seen.off else "")


def _steps(document: StudyResult) -> Grid:
    tasks = [task for task in (each.name for each in document.tasks) if document.steps.get(task)]
    rows = []
    for method in (each.name for each in document.methods):
        seen = [document.steps[task].get(method) for task in tasks]
        if any(seen):
            rows.append((method, *(None if each is None else _step_text(each) for each in seen)))
    note = (
        "Of the first finished seed. Steps of a model that exits were fitted to are among them; "
        "those of a teacher are not."
    )
    return Grid("Optimizer steps", ("method", *tasks), tuple(rows), note)


def _step_text(seen: StepCount) -> str:
    text = str(seen.steps)
    if len(seen.phases) > 1:
        text += f" ({', '.join(f'{name} {steps}' for name, steps in seen.phases.items())})"
    return text + ("" if seen.teacher is None else f", and a teacher of {seen.teacher}")


def _times(document: StudyResult) -> Grid:
    """Measured and predicted milliseconds, never in one column."""
    timed = document.latency
    columns = ("method", "layer speed-up", "measured ms", "predicted ms")
    if timed is None:
        return Grid("", columns, ())
    rows: list[tuple[str, str, str | None, str | None]] = []
    for method in (each.name for each in document.methods):
        for key, spent in timed.measured.get(method, {}).items():
            rows.append((method, _named(key), f"{spent:.2f}", None))
        for key, spent in timed.predicted.get(method, {}).items():
            rows.append((method, _named(key), None, f"{spent:.2f}"))
    note = (
        f"{timed.task}, seed {timed.seed}, exported, one text at a time; {timed.machine}, "
        f"{timed.date[:10]}. Models of one speed answered texts. Those with exits were profiled, "
        "and their times at a speed-up are predicted from that."
    )
    return Grid("Milliseconds per text", columns, tuple(rows), note)


def _named(key: str) -> str:
    return "its own" if key == OWN else f"{key}x"
