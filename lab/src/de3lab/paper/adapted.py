"""A run's model with its prototypes moved to other rows, and its trace there; made once."""

from __future__ import annotations

from pathlib import Path

from de3bert.data.table import Table
from de3bert.errors import De3Error
from de3bert.files import read_json
from de3lab.made import trace_is_of

__all__ = ["adapted_trace"]


def adapted_trace(run: Path, test: str, table: Table, *, progress: bool = True) -> Path:
    """The trace of the adapted model on the rows that it was adapted to; no label is used.

    Args:
        run: the folder of a run; the adapted model lies in it, as `adapted-TEST`.
        test: the name of the rows.
    """
    from de3bert.runtime.evaluate import trace_table
    from de3bert.runtime.load import load
    from de3bert.training.adapt import adapt_model

    place = run / f"adapted-{test}"
    path = place / f"test-{test}.trace"
    if _is_made(place, path, table):
        return path
    said = f"adapting to {test}" if progress else None
    adapt_model(run / "model", table, place / "model", overwrite=True, progress=said)
    said = f"tracing {test}, adapted" if progress else None
    trace_table(load(place / "model"), table, progress=said).save(path)
    return path


def _is_made(place: Path, path: Path, table: Table) -> bool:
    """Whether model and trace are there and of these rows."""
    if not trace_is_of(path, table.sha256, len(table)):
        return False
    try:
        adapted_to = read_json(place / "model" / "config.json")["adapted_to"]
        return (adapted_to["sha256"], adapted_to["rows"]) == (table.sha256, len(table))
    except (De3Error, KeyError, TypeError):
        return False
