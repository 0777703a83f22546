"""Reading a trained model, refusing anything incomplete."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from de3bert.errors import De3Error, UsageError
from de3bert.model.config import EarlyExitConfig
from de3bert.model.early_exit import MODELS, EarlyExitModel
from de3bert.model.pretrained import from_pretrained, reason_of

__all__ = ["read_model"]

MISMATCH = "ignore_mismatched_sizes"  # how transformers says so, with advice that is not ours
OTHER_SIZES = "its weights do not have the sizes that its config says (classes, exits, layers or "
"widths)"


def read_model(source: str, dtype: str | None = None) -> EarlyExitModel:
    """The model of a folder or hub id; De3Error when weights are damaged or missing.

    Args:
        dtype: what weights become, but for prototypes; None leaves them what they are.
    """
    local = Path(source).exists()
    try:
        config: Any = from_pretrained(EarlyExitConfig, source)
        kind = MODELS[config.task]
        loaded: Any = from_pretrained(
            kind, source, config=config, dtype=dtype or "auto", output_loading_info=True
        )
    except De3Error:
        raise
    except Exception as error:  # safetensors, json and hub errors have no common base
        reason = OTHER_SIZES if MISMATCH in str(error) else reason_of(error, source)
        if local:
            raise De3Error(f"The model in {source} is damaged or incomplete: {reason}.") from error
        raise UsageError(
            f'No model "{source}": it is neither a folder nor a model that could be fetched from '
            f"the hub ({reason})."
        ) from error
    model: EarlyExitModel = loaded[0]
    missing = sorted(loaded[1]["missing_keys"])
    if missing:
        raise De3Error(
            f"The weights in {source} are incomplete: {len(missing)} tensors are missing, "
            f"the first is {missing[0]}."
        )
    strange = sorted(loaded[1]["unexpected_keys"])
    if strange:
        raise De3Error(
            f"The weights in {source} belong to another model than its config: {len(strange)} "
            f"tensors do not fit it, the first is {strange[0]}."
        )
    model.knows_full_depth = True
    return model
