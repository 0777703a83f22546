"""What each exit said of one text, from a trace of it."""

from __future__ import annotations

import numpy as np

from de3bert.errors import De3Error
from de3bert.exits import Policy, Trace, signals
from de3bert.runtime.model_info import ModelInfo
from de3bert.tasks.answers import ExplainedLayer

__all__ = ["explained_layers", "lambda_of"]


def lambda_of(policy: Policy, config: ModelInfo) -> float:
    """The weight of the policy's EDR, or the model's own where the policy has none."""
    stored = config.method_options.get("lambda", 1.0)
    if not isinstance(stored, int | float) or not stored >= 0:
        raise De3Error(f"The model's config is damaged: its lambda is {stored!r:.60}.")
    return dict(policy.signal.params).get("lambda", stored) if policy.signal else stored


def explained_layers(trace: Trace, left: int, weight: float) -> tuple[ExplainedLayer, ...]:
    """One entry per exit of a trace of one row, which left at layer `left`."""
    return tuple(_explained(trace, index, left, weight) for index in range(trace.exits))


def _explained(trace: Trace, index: int, left: int, weight: float) -> ExplainedLayer:
    layer, logits = trace.exit_layers[index], trace.logits[0, index]
    entropy = float(signals.entropy(logits))
    near = far = ratio = fused = sure = None
    if index < trace.exits - 1:  # the final exit has no prototypes and no router
        if trace.distances is not None:
            near, far = signals.nearest_two(logits, trace.distances[0, index])
            ratio = signals.distance_ratio(near, far)
            fused = float(signals.edr(np.float64(entropy), ratio, weight))
            near, far, ratio = float(near), float(far), float(ratio)
        if trace.certainty is not None:
            sure = float(trace.certainty[0, index])
    return ExplainedLayer(
        layer=layer,
        label=trace.label_names[int(logits.argmax())],
        score=float(signals.max_probability(logits)),
        entropy=entropy,
        distance=near,
        runner_up_distance=far,
        distance_ratio=ratio,
        edr=fused,
        leaves=layer == left,
        certainty=sure,
    )
