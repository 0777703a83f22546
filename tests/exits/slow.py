"""Slow, obvious versions of what the package computes fast: plain Python, one row at a time."""

from __future__ import annotations

import math

import numpy as np

from de3bert.exits import ExitView, Signal, Trace


def softmax(logits: list[float]) -> list[float]:
    peak = max(logits)
    weights = [math.exp(value - peak) for value in logits]
    return [weight / sum(weights) for weight in weights]


def entropy(logits: list[float]) -> float:
    chances = softmax(logits)
    nats = -sum(p * math.log(p) for p in chances if p > 0)
    return nats / math.log(len(chances))


def distance_ratio(logits: list[float], distances: list[float]) -> float:
    first, second = sorted(range(len(logits)), key=lambda k: -logits[k])[:2]
    near, far = distances[first], distances[second]
    if near == far:
        return 0.5
    return near / (2 * far) if near < far else 1 - far / (2 * near)


def edr(local: float, ratio: float, weight: float) -> float:
    if local == 0 or (ratio == 0 and weight > 0):
        return 0.0
    return local if weight == 0 else (weight + 1) / (weight / ratio + 1 / local)


def signal_rows(trace: Trace, signal: Signal) -> list[list[float]]:
    """The signal at each internal exit, each row and exit computed alone."""
    table = []
    for row in range(trace.rows):
        values = []
        for number in range(trace.exits - 1):
            distances = None if trace.distances is None else trace.distances[row, number][None]
            view = ExitView(
                trace.exit_layers[number],
                trace.logits[row, number][None],
                distances,
                certainty=None if trace.certainty is None else trace.certainty[row, number][None],
            )
            values.append(float(signal(view)[0]))
        table.append(values)
    return table


def threshold_exit(values: list[float], rising: bool, threshold: float, count: int) -> int:
    run = 0
    for number, value in enumerate(values):
        passed = value > threshold if rising else value < threshold
        run = run + 1 if passed else 0
        if run == count:
            return number
    return len(values)


def patience_exit(answers: list[int], patience: int) -> int:
    """Over the predictions of all exits, the final one last."""
    run = 0
    for number in range(1, len(answers) - 1):
        run = run + 1 if answers[number] == answers[number - 1] else 0
        if run == patience:
            return number
    return len(answers) - 1


def oracle_exit(answers: list[int], label: int) -> int:
    for number, answer in enumerate(answers):
        if answer == label:
            return number
    return len(answers) - 1


def outcome(trace: Trace, exits: list[int]) -> tuple[int, int]:
    """Total layers executed and number of right answers."""
    assert trace.labels is not None
    layers = sum(trace.exit_layers[number] for number in exits)
    right = 0
    for row, number in enumerate(exits):
        right += int(np.argmax(trace.logits[row, number])) == trace.labels[row]
    return layers, right


def threshold_outcomes(trace: Trace, signal: Signal, count: int) -> list[tuple[int, int]]:
    """All distinct outcomes of a threshold family, slowest first, by trying every threshold."""
    table = signal_rows(trace, signal)
    values = sorted({value for row in table for value in row})
    trial = [math.nextafter(value, side) for value in values for side in (-math.inf, math.inf)]
    found = {(trace.rows * trace.depth, outcome(trace, [trace.exits - 1] * trace.rows)[1])}
    for threshold in trial:
        exits = [threshold_exit(row, signal.rising, threshold, count) for row in table]
        found.add(outcome(trace, exits))
    return sorted(found, reverse=True)
