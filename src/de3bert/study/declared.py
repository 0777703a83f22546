"""What a method declares, as a person asks for it: parts, schedule, rule, size."""

from __future__ import annotations

import math
from importlib.util import find_spec
from typing import Any

from de3bert.exits.calibrate import LAMBDA_GRID
from de3bert.methods import METHODS, Method

__all__ = ["STANDARD", "describe", "exit_parameters"]

CASCADE = "cascade"
STANDARD = {"hidden": 768, "layers": 12, "classes": 2}  # the size that parameters are counted for


def describe(name: str) -> dict[str, Any]:
    """Everything about a method, as JSON; extra parameters only where torch is installed."""
    method = METHODS[name]
    return {
        "name": method.name,
        "group": method.group,
        "summary": method.summary,
        "citation": method.citation,
        "pooling": method.pooling or "what fits the backbone",
        "heads": method.heads,
        "prototypes": method.prototypes,
        "router": method.router,
        "depth": method.depth,
        "internal_exits": method.internal_exits,
        "exits_at": list(method.exits_at) or None,
        "task": method.task,
        "token_exits": method.token_exits,
        "families": list(method.families),
        "lambdas": list(method.lambdas or LAMBDA_GRID) if "edr" in method.families else None,
        "exits": method.exits,
        "training": method.training,
        "teacher": method.teacher,
        "finish": method.finish,
        "phases": [
            {
                "name": phase.name,
                "losses": [
                    {"loss": term.loss, "weight": term.weight, "exits": term.exits}
                    for term in phase.terms
                ],
                "trains": list(phase.trains) or "everything",
                "epochs": phase.epochs,
                "hook": phase.hook,
            }
            for phase in method.phases
        ],
        "options": dict(method.options),
        "exit_parameters": exit_parameters(name),
    }


def exit_parameters(name: str) -> dict[str, int] | None:
    """What exits add to a BERT of the standard size, by part; None without torch.

    The model is built without memory for its weights, so this takes no time to speak of.
    """
    if not (find_spec("torch") and find_spec("transformers")):
        return None
    import torch
    from transformers import BertConfig

    from de3bert.model import EarlyExitModel
    from de3bert.model.config import EarlyExitConfig
    from de3bert.model.depth import DEPTHS

    method = METHODS[name]
    options = method.resolve({})
    depth = len(DEPTHS[method.depth](STANDARD["layers"], options))
    small = int(float(options["small"])) if method.depth == CASCADE else 0
    config = EarlyExitConfig(
        backbone_config=BertConfig(hidden_size=STANDARD["hidden"], num_hidden_layers=depth),
        method=name,
        method_options=options,
        pooling=method.pooling or "shared_pooler",
        prototypes=method.prototypes,
        heads=method.heads,
        router=method.router,
        cascade=small,
        exit_layers=[small, small + depth] if small else _exit_layers(method, depth),
    )  # a config has two classes unless it is told otherwise
    with torch.device("meta"):
        return EarlyExitModel(config).exit_parameters()


def _exit_layers(method: Method, depth: int) -> list[int] | None:
    """Where the method has exits; None stands for every layer."""
    if not method.internal_exits:
        return [depth]
    return [math.ceil(share * depth) for share in method.exits_at] or None
