"""Online signal calibration (COSEE): right rows are to look easier than wrong ones."""

from __future__ import annotations

from torch import Tensor

from de3bert.exits.signals.formulas import energy
from de3bert.objective import needs
from de3bert.objective.objective import LOSSES, ExitBatch
from de3bert.objective.per_row import correct

__all__ = ["calibration_error", "signal_calibration"]


@LOSSES.register("signal_calibration")
def signal_calibration(batch: ExitBatch) -> Tensor:
    """The calibration error of the normalised energy at the internal exits, ().

    Option `margin`: eps, 0.3.
    """
    margin = needs.number(batch.options, "margin", 0.3)
    logits = batch.exit_logits[:, :-1]
    return calibration_error(energy(logits), correct(logits, batch.labels), margin)


def calibration_error(signals: Tensor, right: Tensor, margin: float) -> Tensor:
    """Mean over exits of max(0, mean S of right rows - mean S of wrong rows + eps), ().

    An exit whose rows are all right or all wrong has nothing to compare: it is left out of the
    mean, as in the authors' code (the paper divides by all). No exit left gives 0.

    Args:
        signals: S, low is easy, (rows, exits).
        right: (rows, exits) bool.
        margin: eps.
    """
    wrong = ~right
    gap = _mean(signals, right) - _mean(signals, wrong) + margin  # (exits,)
    known = right.any(0) & wrong.any(0)
    return (gap.relu() * known).sum() / known.sum().clamp_min(1)


def _mean(values: Tensor, chosen: Tensor) -> Tensor:
    """Mean over the chosen rows, (exits,); 0 where there are none."""
    return (values * chosen).sum(0) / chosen.sum(0).clamp_min(1)
