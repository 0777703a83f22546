"""How much the exits of a method add to a BERT of the standard size."""

from __future__ import annotations

import torch
from transformers import BertConfig

from de3bert.methods import METHODS
from de3bert.methods.poolings import chosen_pooling
from de3bert.model import EarlyExitModel
from de3bert.model.building import chosen_exits
from de3bert.model.config import EarlyExitConfig
from de3bert.model.depth import DEPTHS

__all__ = ["STANDARD", "exit_parameters"]

SMALL = 2  # layers of the small model of a cascade, as wide as the others
STANDARD = {"hidden": 768, "layers": 12, "classes": 2}  # the size that parameters are counted for


def exit_parameters(name: str) -> dict[str, int]:
    """What the exits of a method add to a BERT of the standard size, by part.

    The model is built without memory for its weights, so this takes no time to speak of.
    """
    method = METHODS[name]
    options = method.resolve({})
    depth = len(DEPTHS[method.depth](STANDARD["layers"], options))
    small = int(float(options.get("small", SMALL))) if method.cascade != "none" else 0
    config = EarlyExitConfig(
        backbone_config=BertConfig(hidden_size=STANDARD["hidden"], num_hidden_layers=depth),
        method=name,
        method_options=options,
        pooling=chosen_pooling(method, options, "shared_pooler"),
        prototypes=method.prototypes,
        heads=method.heads,
        router=method.router,
        cascade=small,
        exit_layers=chosen_exits(method, small + depth, small, None),
    )  # a config has two classes unless it is told otherwise
    with torch.device("meta"):
        return EarlyExitModel(config).exit_parameters()
