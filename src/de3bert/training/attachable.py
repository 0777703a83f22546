"""What can be wrong with the request to attach exits, found out before torch is loaded."""

from __future__ import annotations

from pathlib import Path
from typing import TypedDict

from de3bert.data.table import Table
from de3bert.errors import UsageError
from de3bert.files import read_json
from de3bert.training.output_folder import check_output, is_finished

__all__ = ["MOST_ROWS", "AttachOptions", "check_attachment", "check_rows"]

MOST_ROWS = 20_000  # by default; more texts hardly change linear exits, and take minutes
LEAST_ROWS = 30
MULTI, VALUE = "multi_label_classification", "regression"


class AttachOptions(TypedDict, total=False):
    """What may be chosen when exits are attached; `attach_model` says what each means."""

    held: Table | None
    labels: bool | None
    method: str | None
    rows: int | None
    pooling: str | None
    exit_layers: list[int] | None
    max_length: int | None
    shrinkage: float | None
    seed: int
    batch_size: int
    overwrite: bool
    force: bool
    trust_remote_code: bool
    progress: bool


def check_attachment(source: str, out: Path, overwrite: bool) -> None:
    """Refuses a bundle, the model itself as output, and heads that choose no class."""
    folder = Path(source)
    if (folder / "manifest.json").exists():
        raise UsageError(
            f"{source} is a bundle of graphs; attach exits to the model folder it was exported "
            "from."
        )
    check_output(out, overwrite)
    if not folder.is_dir():
        return
    if out.resolve().is_relative_to(folder.resolve()):
        raise UsageError(
            f"{out} is the model folder itself or inside it, and the model must stay unchanged. "
            "Choose another --out."
        )
    if not (folder / "config.json").is_file():
        raise UsageError(f"{source} is not a model folder: it has no config.json.")
    if not is_finished(folder):
        _check_head(source, read_json(folder / "config.json"))


def _check_head(source: str, config: dict[str, object]) -> None:
    kind = config.get("problem_type")
    if kind == MULTI:
        raise UsageError(
            f"{source} is multi-label (a yes or no per class), and exits choose one class of "
            "several. Such a model cannot be given exits."
        )
    names = config.get("id2label")
    if kind == VALUE or (isinstance(names, dict) and len(names) == 1):
        raise UsageError(
            f"{source} predicts a value (regression), and exits choose among classes. Such a model "
            "cannot be given exits."
        )


def check_rows(table: Table, held: Table | None) -> None:
    """Refuses too few texts, and texts of two kinds."""
    if len(table) < LEAST_ROWS:
        raise UsageError(
            f"{table.source} gives {len(table)} rows; fitting exits needs at least {LEAST_ROWS}, "
            "and thousands are better. Labels are not needed."
        )
    if held is not None and (held.pairs is None) != (table.pairs is None):
        raise UsageError(f"{held.source} and {table.source}: one has texts, the other pairs.")
    if held is not None and (held.labels is None) != (table.labels is None):
        raise UsageError(
            f"{held.source} and {table.source}: one has labels, the other has none. Give both the "
            "same, or pass --no-labels."
        )
