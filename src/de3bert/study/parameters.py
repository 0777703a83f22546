"""How many numbers of a model are learned: in the encoder, and in what exits add to it."""

from __future__ import annotations

import math
from pathlib import Path

from safetensors import safe_open

__all__ = ["parameters_of"]

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
