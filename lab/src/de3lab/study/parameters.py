"""How many numbers of a model are learned: in the encoder, and in what exits add to it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors import safe_open

if TYPE_CHECKING:
    from torch import nn

    from de3bert.model import EarlyExitModel

__all__ = ["parameters_of", "shares_of"]

BUFFERS = (  # stored, not learned
    "prototypes.",
    "encoder.token_exits.",
    "objective.stateful.weighted_cross_entropy.",
)


def parameters_of(folder: str | Path) -> dict[str, int]:
    """Parameters of a model folder, by the part of the model that has them; weights are not read.

    Example:
        >>> parameters_of("runs/mine")
        {'encoder': 33360000, 'heads': 9240, 'projectors': 1625... }
    """
    counts: dict[str, int] = {}
    for path in sorted(Path(folder).glob("*.safetensors")):
        with safe_open(path, framework="numpy") as file:
            for name in file.keys():  # noqa: SIM118  # this is no dict
                if not name.startswith(BUFFERS):
                    part = name.partition(".")[0]
                    size = math.prod(file.get_slice(name).get_shape())
                    counts[part] = counts.get(part, 0) + size
    return counts


def shares_of(model: EarlyExitModel) -> dict[str, Any]:
    """A loaded model's parameters as the paper tells them, and all of them.

    The paper's backbone has its pooler but no classifier; `added` is what the exits before the last
    bring along, and `added_percent` its share of the backbone. Prototypes are stored numbers that
    nobody learns: they are in no sum. A loss that learns (LeeBERT) is gone after training.
    """
    added = model.exit_parameters()
    loss, heads = _size(model.objective), _size(model.heads)
    final = heads - added.get("classifiers", 0)
    backbone = _size(model) - loss - final - sum(added.values())
    return {
        "backbone": backbone,
        "final head": final,
        "parts": added,
        "added": sum(added.values()),
        "added_percent": 100 * sum(added.values()) / backbone,
        "total": backbone + final + sum(added.values()),
        "prototypes": 0 if model.prototypes is None else model.prototypes.vectors.numel(),
    }


def _size(part: nn.Module) -> int:
    return sum(parameter.numel() for parameter in part.parameters())
