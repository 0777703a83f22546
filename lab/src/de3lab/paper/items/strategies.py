"""Fig. 2: all exit rules on one model, and the oracle."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from de3lab.paper.item import Finding, Item, Measurement, Training
from de3lab.paper.items.hyperparameters import LAMBDAS_OF
from de3lab.paper.judging import Holds, Verdict, unmeasured
from de3lab.paper.stored import Stored
from de3lab.paper.tasks import DEV, task_name
from de3lab.statistics import share_difference_reach

__all__ = ["STRATEGIES"]


def oracle_is_far(stored: Stored) -> Verdict:
    """The oracle's score less the best exit rule's at the oracle's own layer speed-up.

    It is right wherever any exit is, so that no rule can be above it: only how far is measured.
    """
    gaps, said = [], []
    for task, document in stored.results(STRATEGIES).items():
        numbers = document.numbers
        oracle = next(each for each in numbers["points"] if each["name"] == "oracle")
        best = _best_rule(numbers, oracle["layer_speedup"])
        if best is None:
            continue
        name, score = best
        noise = share_difference_reach(score, score, numbers["rows"])
        gaps.append({"gap": oracle["score"] - score, "noise": noise, "task": task})
        said.append(
            f"{task_name(task)} {100 * oracle['score']:.1f} at {oracle['layer_speedup']:.2f}x, "
            f"the best rule there ({name}) {100 * score:.1f}"
        )
    if not gaps:
        return unmeasured("strategies")
    far = all(each["gap"] > each["noise"] for each in gaps)
    holds: Holds = "by construction" if far else "not significant"
    listed = ", ".join(f"{100 * each['gap']:.1f} > {100 * each['noise']:.1f}" for each in gaps)
    test = (
        "no rule can be above the oracle, which is right wherever any exit is (a bound on the "
        "score, not on speed); gap against 1.96 "
        f"standard errors of a difference of two shares, in points: {listed}"
    )
    return Verdict(holds, test, {"gaps": gaps, "n": len(gaps)}, f"Oracle: {'; '.join(said)}.")


def _best_rule(numbers: Mapping[str, Any], speed: float) -> tuple[str, float] | None:
    """The exit rule with the highest score at a speed, between its stored points."""
    reached = []
    for each in numbers["strategies"]:
        x, y = each["curve"]["layer_speedup"], each["curve"]["score"]
        if len(x) > 1 and min(x) <= speed <= max(x):
            order = np.argsort(x)
            score = float(np.interp(speed, np.asarray(x)[order], np.asarray(y)[order]))
            reached.append((each["name"], score))
    return max(reached, key=lambda pair: pair[1], default=None)


STRATEGIES = Item(
    name="strategies",
    references=("Fig. 2",),
    labels=("fig:oracle",),
    title="Exit rules, the backbone and the oracle",
    shows="On QNLI the oracle, which leaves at the first exit that is right, stands far above all "
    "exit rules and the full model in score and speed: better estimates of correctness would pay.",
    setting="BERT-base, development set of QNLI",
    training=Training("paper_methods", ("de3", "full"), ("qnli", "sst2")),
    measurement=Measurement(
        "strategies", {"de3": "de3"}, rows=DEV, settings=LAMBDAS_OF, seeds="first"
    ),
    findings=(
        Finding(
            "oracle",
            "An oracle that leaves at the first right exit stands far above all exit rules.",
            oracle_is_far,
        ),
    ),
)
