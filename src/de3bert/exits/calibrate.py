"""Calibration: find the policy that meets a target, and record what it gives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from de3bert.errors import UsageError
from de3bert.exits.choose import choose
from de3bert.exits.cost_model import CostModel
from de3bert.exits.curve import Curve, curve
from de3bert.exits.family import Family
from de3bert.exits.kept import check_keep, kept_policy
from de3bert.exits.layer_speedup import (
    exit_histogram,
    layer_speedup,
    layer_speedup_interval,
    layers_mean,
)
from de3bert.exits.points import OperatingPoint, Target
from de3bert.exits.policy import Policy
from de3bert.exits.replay import Replay, replay
from de3bert.exits.rules import Full, Threshold
from de3bert.exits.scoring import scorer_of
from de3bert.exits.signals.parse import Signal
from de3bert.exits.trace import Trace
from de3bert.exits.traffic import choose_on_traffic, traffic_of

__all__ = [
    "LAMBDA_GRID",
    "PAPER_LAMBDA_GRID",
    "WIDE_LAMBDA_GRID",
    "calibrate",
    "check_words_target",
    "curves_of",
    "default_family",
    "families_of",
    "full_score",
    "measure",
]

PAPER_LAMBDA_GRID = (0.667, 1.0, 1.5, 2.0, 3.0)
# With 0, which is plain entropy: no method is to end below its own ablation for want of a try.
LAMBDA_GRID = (0.0, *PAPER_LAMBDA_GRID)
WIDE_LAMBDA_GRID = (0.0, 0.25, 0.5, 0.667, 1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0)

PROMISED_LAMBDAS = (0.0, 1.0)  # every additional family makes a promise a little more costly
NEED_LABELS = ("drop", "accuracy")
AGREEMENT = "agreement"  # the metric of rows without labels

NO_COST = (
    "The target {target} is about time, and this model has not been timed here yet. Run `de3 "
    "profile BUNDLE` on the exported model first, and pass the bundle."
)


def calibrate(
    trace: Trace,
    target: str | Target,
    *,
    name: str,
    family: str | Sequence[str] | None = None,
    lambdas: Sequence[float] = LAMBDA_GRID,
    metric: str = "accuracy",
    cost: CostModel | None = None,
    traffic: Trace | None = None,
) -> OperatingPoint:
    """The policy that meets `target` on this trace.

    - `layers=r`: on each curve the first point at least r times as fast in layers; of these the
      best score. The ratio is taken to `trace.base`, the depth of the model compared with.
    - `latency=t`, `speedup=r`: likewise, by the predicted mean time per text; needs `cost`.
    - `drop=x`, `accuracy=a`, `agree=s`: the fastest point that still scores full - x, or a, or
      gives the full model's answer to a share s of rows. Fastest is the least predicted time with
      `cost`, else the fewest layers. With `confidence=c` after it this is promised for other rows
      as well (`de3bert.exits.guarantee`), of families with lambda 0 and 1 unless others are named.
    - `layers=r keep`: a controller that holds r on live traffic (`de3bert.exits.keeping`).

    For taggers, all this is about sentences that leave as a whole; times are per sentence, and
    none of their targets can be promised or kept.

    Ties go to the better score, then to the faster point, then to lambda nearest to 1, then to the
    smaller lambda. Thresholds fit the data they were chosen on a little too well: use a calibration
    split, and report scores on another.

    Args:
        trace: with labels; without them scores are agreement with full depth, and targets that
            read labels are refused.
        target: `layers=2.0`, `layers=4.0 keep`, `latency=8ms`, `speedup=2.5`, `drop=0.01`,
            `accuracy=0.9` (in units of `metric`), `agree=0.99 confidence=0.95` or `full`.
        name: the name of the operating point.
        family: which policies to consider, such as `entropy` or `patience`, or several such
            texts; `edr` means all `lambdas`. By default `edr` if the trace has distances,
            `certainty` if it has that of a router, else `entropy`.
        lambdas: the weights tried for `edr`; 0 is entropy, which the paper does not try
            (`PAPER_LAMBDA_GRID`).
        metric: accuracy, f1, macro_f1 or matthews; for taggers accuracy or span_f1.
        cost: what things take on one machine; with it, predicted times are measured as well.
        traffic: of unlabelled texts from real traffic: speeds are theirs, `trace` has the
            scores.

    Raises:
        UsageError: a time target without `cost`.
        De3Error: no policy reaches the target; the message names the nearest one.
    """
    target = Target.parse(target) if isinstance(target, str) else target
    if trace.sentence is not None:
        check_words_target(target)
    if target.is_time and cost is None:
        raise UsageError(NO_COST.format(target=target))
    if trace.labels is None and target.kind in NEED_LABELS:
        raise UsageError(
            f"The target {target} is about right answers, and the rows have no labels. Give "
            "labelled rows, or ask for agreement with full depth: agree=0.99."
        )
    found: dict[str, Any] = {}
    if target.kind == "full":
        policy = Policy(Full())
    elif target.confidence is not None:
        policy, found["guarantee"] = _promised(trace, target, family, metric)
    else:
        families = families_of(trace, family, lambdas)
        policy = plain(_chosen(trace, target, families, metric, cost, traffic))
        if target.keep:
            policy = kept_policy(trace if traffic is None else traffic, policy, target)
    found = measure(trace, policy, metric, cost) | found
    if traffic is not None:
        found["traffic"] = traffic_of(policy, traffic, trace).to_json()
    return OperatingPoint(name, policy, str(target), found)


def check_words_target(target: Target, unlabelled: bool = False) -> None:
    """UsageError for a target that taggers cannot have: words are not independent rows."""
    if target.confidence is not None or target.keep or unlabelled:
        raise UsageError(
            "Confidence, keep and --unlabelled are for text classifiers: the words of a sentence "
            "are not independent rows. Ask for layers=2.0, drop=0.01, accuracy=0.9 or agree=0.99."
        )


def _chosen(
    trace: Trace,
    target: Target,
    families: Sequence[Family],
    metric: str,
    cost: CostModel | None,
    traffic: Trace | None,
) -> Policy:
    """The policy of one of the families that meets a target on these rows, or on the traffic."""
    if target.keep:
        check_keep(families)
    of_speed = target.is_time or target.kind == "layers"
    if traffic is not None and (of_speed or target.kind == "agree"):
        curves = curves_of(traffic.self_labelled(), families, "accuracy", cost)
        if not of_speed:
            return choose(curves, target, 1.0).policy
        full_ms = 0.0 if cost is None else float(cost.full(traffic).mean())
        labelled = None if trace.labels is None else trace
        return choose_on_traffic(curves, labelled, target, metric, full_ms)
    if trace.labels is None or target.kind == "agree":
        trace, metric = trace.self_labelled(), "accuracy"
    curves = curves_of(trace, families, metric, cost)
    full_ms = 0.0 if cost is None else float(cost.full(trace).mean())
    return choose(curves, target, full_score(trace, metric), full_ms).policy


def _promised(
    trace: Trace, target: Target, family: str | Sequence[str] | None, metric: str
) -> tuple[Policy, dict[str, Any]]:
    """A policy with a guarantee, and what is promised."""
    from de3bert.exits.guarantee import guaranteed  # here: scipy takes its time to load

    assert target.confidence is not None
    if metric != "accuracy" and target.kind in NEED_LABELS:
        raise UsageError(
            f"A loss of accuracy can be promised, but not one of {metric}, which is not a mean "
            "over rows. Ask for agree=0.99, or for --metric accuracy."
        )
    bound = target.value if target.kind == "drop" else round(1.0 - target.value, 12)
    families = families_of(trace, family, PROMISED_LAMBDAS)
    policy, promise = guaranteed(trace, target.kind, bound, target.confidence, families)
    return plain(policy), promise.to_json()


def plain(policy: Policy) -> Policy:
    """EDR without distances is entropy, and is called so: distances need not be computed then."""
    rule = policy.rule
    if isinstance(rule, Threshold) and rule.signal == Signal("edr", (("lambda", 0.0),)):
        return replace(policy, rule=replace(rule, signal=Signal("entropy")))
    return policy


def measure(
    trace: Trace, policy: Policy, metric: str = "accuracy", cost: CostModel | None = None
) -> dict[str, Any]:
    """What a policy gives on a trace, in plain JSON values; without labels scores are agreement.

    The layer speed-up refers to `trace.base`.
    """
    answer = replay(trace, policy)
    ends = trace.predictions[:, -1]
    agreed = float((answer.labels == ends).mean())
    named = metric
    if trace.labels is None:
        trace, named, metric = trace.self_labelled(), AGREEMENT, "accuracy"
    scored = scorer_of(trace, metric)
    layers, weights = answer.exit_layers, trace.weights
    histogram = exit_histogram(layers, trace.exit_layers)
    between = layer_speedup_interval(layers, trace.base, weights, trace.sentence)
    return {
        "rows": trace.rows,
        **({} if trace.sentence is None else {"sentences": trace.sentences}),
        "metric": named,
        "score": scored.score(answer.labels),
        "score_interval": list(scored.interval(answer.labels)),
        "full_score": scored.score(ends),
        "agreement": agreed,
        "layers_mean": layers_mean(layers, weights),
        "layer_speedup": layer_speedup(layers, trace.base, weights),
        "layer_speedup_interval": None if between is None else list(between),
        **({} if cost is None else _predicted(trace, policy, answer, cost)),
        "exit_histogram": {str(layer): count for layer, count in histogram.items()},
        "data": trace.info.get("data"),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _predicted(trace: Trace, policy: Policy, answer: Replay, cost: CostModel) -> dict[str, float]:
    """Mean milliseconds per text or sentence, charging only the exits that the policy looks at."""
    tests = np.cumsum([policy.reads(layer) for layer in trace.exit_layers[:-1]]).tolist()
    costs = cost.row_costs(trace, tests=[*tests, tests[-1] if tests else 0])
    left = trace.last_exits(answer.exit_index)
    spent = float(costs[np.arange(trace.sentences), left].mean())
    whole = float(cost.full(trace).mean())
    return {"predicted_ms": spent, "predicted_time_speedup": whole / spent}


def curves_of(
    trace: Trace, families: Sequence[Family], metric: str, cost: CostModel | None = None
) -> list[Curve]:
    """The curve of each family, with predicted times if there is a cost model."""
    if cost is None:
        return [curve(trace, family, metric) for family in families]
    tested = cost.row_costs(trace)
    # Every row of a fixed-depth model leaves at one exit, and no other is looked at.
    alone = cost.row_costs(trace, tests=[*[1] * (trace.exits - 1), 0])
    return [
        curve(trace, family, metric, costs=alone if family.kind == "layers" else tested)
        for family in families
    ]


def full_score(trace: Trace, metric: str) -> float:
    """The score of the final head on all rows."""
    return scorer_of(trace, metric).score(trace.predictions[:, -1])


def families_of(
    trace: Trace, texts: str | Sequence[str] | None, lambdas: Sequence[float]
) -> list[Family]:
    """The families to try: `edr` without a lambda stands for one family for each of `lambdas`.

    Args:
        texts: one family or several; None is what fits the trace.
    """
    if texts is None:
        texts = default_family(trace)
    wanted = [texts] if isinstance(texts, str) else texts
    if not wanted:
        raise UsageError("There is no policy family to try. Name one, such as `entropy`.")
    return [family for text in wanted for family in _expanded(text, lambdas)]


def default_family(trace: Trace) -> str:
    """`edr` where there are distances, `certainty` where there is a router, else `entropy`."""
    if trace.distances is not None:
        return "edr"
    return "entropy" if trace.certainty is None else "certainty"


def _expanded(text: str, lambdas: Sequence[float]) -> list[Family]:
    family = Family.parse(text)
    if family.kind == "oracle":
        raise UsageError("`oracle` needs the labels of what it predicts. Choose another family.")
    if family.signal is None or family.signal.name != "edr" or "(" in text:
        return [family]
    if not lambdas:
        raise UsageError("`edr` needs at least one lambda to try, got none.")
    weighted = [Signal("edr", (("lambda", weight),)) for weight in lambdas]
    return [replace(family, signal=signal) for signal in weighted]
