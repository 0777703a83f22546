"""Findings about exits and time: the oracle, exit layers, layers against time and operations."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from de3lab.paper.judging import Holds
from de3lab.paper.names import task_name
from de3lab.paper.stored import Stored
from de3lab.paper.verdict import Finding, Verdict, unmeasured
from de3lab.statistics import share_difference_reach

__all__ = ["SPEED"]

HIGH = 0.9  # a correlation that counts as high


def oracle_is_far(stored: Stored) -> Verdict:
    """The oracle's score less the best exit rule's at the oracle's own layer speed-up."""
    gaps, said = [], []
    for task, document in stored.results("strategies").items():
        numbers = document["numbers"]
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
    holds: Holds = "yes" if all(each["gap"] > each["noise"] for each in gaps) else "not significant"
    listed = ", ".join(f"{100 * each['gap']:.1f} > {100 * each['noise']:.1f}" for each in gaps)
    test = f"gap against 1.96 standard errors of a difference of two shares, in points: {listed}"
    return Verdict(holds, f"Oracle: {'; '.join(said)}.", test, {"gaps": gaps, "n": len(gaps)})


def exits_move(stored: Stored) -> Verdict:
    """Mean layers fall from threshold to threshold; of a threshold rule nothing else can be."""
    falls, said = [], []
    for task, document in stored.results("exit-layers").items():
        seen = sorted(document["numbers"]["thresholds"], key=lambda each: float(each["tau"]))
        layers = [float(each["layers_mean"]) for each in seen]
        falls.append(all(b < a for a, b in pairwise(layers)))
        listed = ", ".join(
            f"{each['layers_mean']:.1f} (score {100 * each['score']:.1f}) at {each['tau']:g}"
            for each in seen
        )
        said.append(f"{task_name(task)} {listed}")
    if not falls:
        return unmeasured("exit-layers")
    test = (
        "exact: a row that leaves at a threshold leaves at every higher one, no later; mean layers "
        "are compared from threshold to threshold"
    )
    return Verdict(
        "yes" if all(falls) else "no", f"Mean layers: {'; '.join(said)}.", test, {"falls": falls}
    )


def layers_are_time(stored: Stored) -> Verdict:
    """Pearson's correlation of executed layers with time and with operations."""
    document = stored.results("speed").get("sst2")
    if document is None:
        return unmeasured("speed")
    found = document["numbers"]["correlations"]
    shown = {"seconds": "time", "flops": "operations"}
    said = ", ".join(f"{found[key]['value']:.4f} with {name}" for key, name in shown.items())
    listed = ", ".join(f"[{found[key]['low']:.3f}, {found[key]['high']:.3f}]" for key in shown)
    holds: Holds = "not significant"
    if all(found[key]["low"] > HIGH for key in shown):
        holds = "yes"
    elif any(found[key]["high"] < HIGH for key in shown):
        holds = "no"
    count = len(document["numbers"]["thresholds"])
    test = f"Fisher's 95 % intervals over {count} thresholds above {HIGH:g}: {listed}"
    return Verdict(holds, f"Pearson's correlation of layers: {said}.", test, dict(found))


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


SPEED = {
    finding.name: finding
    for finding in (
        Finding("oracle", "An oracle that leaves at the first right exit stands far above all "
                "exit rules.", ("strategies",), oracle_is_far),
        Finding("exits", "With a higher threshold, rows leave at shallower layers.",
                ("exit-layers",), exits_move),
        Finding("layers", "Executed layers go with time and operations.", ("speed",),
                layers_are_time),
    )
}  # fmt: skip
