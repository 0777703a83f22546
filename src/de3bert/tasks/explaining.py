"""What each exit said of a text or of the words of a sentence, from a trace of it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from de3bert.exits import Policy, Trace, signals
from de3bert.exits.rules import Threshold
from de3bert.exits.signals.parse import Signal
from de3bert.exits.units import joint_signal, lower_is_safer
from de3bert.tasks.answers import Prediction, TaggedSentence
from de3bert.tasks.explanations import (
    ExplainedLayer,
    ExplainedWord,
    Explanation,
    SentenceExplanation,
)

__all__ = ["explain_sentence", "explain_text"]


def explain_text(
    text: str, answer: Prediction, trace: Trace, policy: Policy, weight: float
) -> Explanation:
    """Every exit's view of a trace of one text.

    Args:
        weight: lambda of the EDR that is shown.
    """
    layers = _layers(trace, 0, answer.exit_layer, weight)
    return Explanation(text, str(policy), answer, layers)


def explain_sentence(
    answer: TaggedSentence, trace: Trace, policy: Policy, weight: float
) -> SentenceExplanation:
    """Every exit's view of the words of one sentence.

    Args:
        trace: of the sentence; where words halt by themselves, with their states kept from there.
    """
    signal = policy.signal or Signal.parse("entropy")
    own, joint = _signals(trace, policy, signal)
    words = []
    for number, (word, left) in enumerate(zip(answer.words, answer.exit_layers, strict=True)):
        if left is None:  # behind the length limit
            words.append(ExplainedWord(word, (), (), ()))
            continue
        layers = _layers(trace, number, left, weight)
        if policy.window is not None:  # nothing was read of it after it had halted
            layers = tuple(row for row in layers if row.layer <= left)
        seen = slice(len(layers))
        decides = tuple(joint[number][seen]) if isinstance(policy.rule, Threshold) else ()
        words.append(ExplainedWord(word, layers, tuple(own[number][seen]), decides))
    unit = "sentence" if policy.window is None else "word"
    return SentenceExplanation(str(policy), str(signal), unit, answer, tuple(words))


def _signals(
    trace: Trace, policy: Policy, signal: Signal
) -> tuple[Sequence[Sequence[float]], Sequence[Sequence[float]]]:
    """Of every word at every exit before the last: its own signal, and what decides about it."""
    assert trace.sentence is not None
    own, joint = np.zeros((2, trace.rows, trace.exits - 1))
    for number in range(trace.exits - 1):
        own[:, number] = signal(trace.view(number))
        low = lower_is_safer(signal, own[:, number])
        found = joint_signal(low, trace.sentence, policy.over, policy.window)
        joint[:, number] = lower_is_safer(signal, found)  # turning twice is turning back
    return own.tolist(), joint.tolist()


def _layers(trace: Trace, unit: int, left: int, weight: float) -> tuple[ExplainedLayer, ...]:
    """One entry per exit of a unit that left at layer `left`."""
    return tuple(_layer(trace, unit, index, left, weight) for index in range(trace.exits))


def _layer(trace: Trace, unit: int, index: int, left: int, weight: float) -> ExplainedLayer:
    layer, logits = trace.exit_layers[index], trace.logits[unit, index]
    entropy = float(signals.entropy(logits))
    near = far = ratio = fused = sure = None
    if index < trace.exits - 1:  # the final exit has no prototypes and no router
        if trace.distances is not None:
            near, far = signals.nearest_two(logits, trace.distances[unit, index])
            ratio = signals.distance_ratio(near, far)
            fused = float(signals.edr(np.float64(entropy), ratio, weight))
            near, far, ratio = float(near), float(far), float(ratio)
        if trace.certainty is not None:
            sure = float(trace.certainty[unit, index])
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
