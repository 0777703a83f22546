"""Says once that `forward` runs all layers, to those who have points for stopping earlier."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from transformers.utils import logging

if TYPE_CHECKING:
    from de3bert.model.early_exit import EarlyExitModel

__all__ = ["tell_full_depth"]

logger = logging.get_logger("transformers.de3bert")  # so that its settings of verbosity count


def tell_full_depth(model: EarlyExitModel) -> None:
    """For a call that only wants answers, such as a pipeline's; silent from the second on."""
    if model.knows_full_depth or not model.config.operating_points or model.training:
        return
    if torch.compiler.is_compiling():  # also while a graph is exported
        return
    model.knows_full_depth = True
    logger.warning(
        f"This model runs all its {model.encoder.depth} layers here, as every call of a "
        "transformers model or pipeline does. To stop early, at its operating points, use "
        "de3bert.load(folder).predict(texts)."
    )
