"""Where a training reports to while it runs: trackers of transformers, asked for by name."""

from __future__ import annotations

from importlib.util import find_spec

from de3bert.errors import UsageError
from de3bert.registry import unknown

__all__ = ["check_trackers"]

# Name in `report_to` -> the packages of which one must be installed.
TRACKERS = {
    "tensorboard": ("tensorboard", "tensorboardX"),
    "wandb": ("wandb",),
    "trackio": ("trackio",),
    "mlflow": ("mlflow",),
    "comet_ml": ("comet_ml",),
    "clearml": ("clearml",),
    "codecarbon": ("codecarbon",),
    "dvclive": ("dvclive",),
    "neptune": ("neptune",),
    "swanlab": ("swanlab",),
}
NONE, ALL = "none", "all"


def check_trackers(report_to: str | list[str]) -> None:
    """Refuses a tracker that does not exist or is not installed, before anything is read."""
    for name in [report_to] if isinstance(report_to, str) else report_to:
        if name in (NONE, ALL):
            continue
        if name not in TRACKERS:
            raise UsageError(unknown("tracker in report_to", name, (*TRACKERS, NONE, ALL)))
        packages = TRACKERS[name]
        if not any(find_spec(package) for package in packages):
            raise UsageError(
                f'report_to = "{name}" needs a package that is not installed here: pip install '
                f"{packages[0]}"
            )
