"""What a method declares, as a person asks for it: parts, schedule, rule."""

from __future__ import annotations

from typing import Any

from de3bert.exits.calibrate import LAMBDA_GRID
from de3bert.methods import METHODS, Method
from de3bert.methods.poolings import chosen_pooling, pooler_start, pooling_words

__all__ = ["describe"]


def describe(name: str) -> dict[str, Any]:
    """Everything about a method, as JSON.

    `reads` is there where exits have poolers of their own: what they read on a backbone with a
    trained pooler, and on one that is read by its mean, such as a sentence embedder.
    """
    method = METHODS[name]
    return {
        "name": method.name,
        "group": method.group,
        "summary": method.summary,
        "citation": method.citation,
        "pooling": method.pooling or "what fits the backbone",
        "reads": _reads(method),
        "heads": method.heads,
        "prototypes": method.prototypes,
        "router": method.router,
        "depth": method.depth,
        "cascade": method.cascade,
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
                "learning_rate": phase.learning_rate,
                "own_rate": phase.own_rate,
                "judge": phase.judge if phase.rows == "labelled" else None,
                "hook": phase.hook,
            }
            for phase in method.phases
        ],
        "options": dict(method.options),
    }


def _reads(method: Method) -> dict[str, str] | None:
    if pooler_start(method, method.options) == "none":
        return None
    fitting = ("shared_pooler", "mean")
    return {each: pooling_words(chosen_pooling(method, method.options, each)) for each in fitting}
