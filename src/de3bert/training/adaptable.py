"""Which models can be adapted, and where to; found out before torch is loaded."""

from __future__ import annotations

from pathlib import Path

from de3bert.errors import UsageError
from de3bert.files import read_json
from de3bert.tasks import task_of
from de3bert.training.output_folder import check_output, is_finished

__all__ = ["check_adaptation"]


def check_adaptation(source: Path, out: Path, overwrite: bool) -> None:
    """Refuses a model without prototypes, and a location where no model can be written."""
    _check_model(source)
    _check_out(source, out, overwrite)


def _check_model(source: Path) -> None:
    """Refuses what has no prototypes to move."""
    if (source / "manifest.json").exists():
        raise UsageError(
            f"{source} is a bundle, whose prototypes are part of its graphs. Adapt the model "
            "folder it was exported from, then export that: de3 export"
        )
    if not is_finished(source):
        raise UsageError(
            f"{source} is not a model folder of de3bert. Give one that de3 train made."
        )
    config = read_json(source / "config.json")
    task_of(config).check_single(source, "adapting prototypes", "it clusters one vector per text")
    if config.get("prototypes", "none") == "none" or len(config.get("exit_layers") or ()) < 2:
        raise UsageError(
            f"{source} (method {config.get('method')}) has no prototypes to adapt. Give a model "
            "that was trained with prototypes, such as one of the method de3."
        )


def _check_out(source: Path, out: Path, overwrite: bool) -> None:
    if out.resolve().is_relative_to(source.resolve()):
        raise UsageError(
            f"{out} is the model folder itself or inside it, and the model must stay unchanged. "
            "Choose another --out."
        )
    check_output(out, overwrite)
