"""Replay: what a policy would have answered, from a trace, without running the network."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de3bert.exits.bandit import CONFIDENCE_SIGNAL
from de3bert.exits.bandit_rule import BanditRule
from de3bert.exits.exit_state import ExitState
from de3bert.exits.keeping import KeepRule
from de3bert.exits.policy import Policy
from de3bert.exits.rules import Threshold
from de3bert.exits.signals.formulas import probabilities
from de3bert.exits.trace import Trace
from de3bert.exits.units import check_rule, joint_signal, lower_is_safer, starts_of
from de3bert.exits.view import ExitView

__all__ = ["Replay", "exit_indices", "margin", "replay"]


@dataclass(frozen=True, eq=False)
class Replay:
    """The answers of a policy on a trace; every array is (rows,).

    Attributes:
        labels: the predicted class.
        exit_layers: the layer at which each row left, counted from 1.
        exit_index: the number of that exit, counted from 0.
        scores: the probability of the predicted class at that exit.
        exact: whether a run gives the same. A halted word (TOKEE) passes on its old state, so that
            words above read something else than in the full-depth pass that made the trace: from
            the first halted word of a sentence on, a replay only approximates the run.
    """

    labels: NDArray[np.int64]
    exit_layers: NDArray[np.int64]
    exit_index: NDArray[np.int64]
    scores: NDArray[np.float64]
    exact: bool = True


def replay(trace: Trace, policy: Policy) -> Replay:
    """The labels and exit layers that the live engine gives with the same policy.

    Rows whose signal lies within rounding error of the threshold may differ, because padding and
    batch shape change the last bits of the logits; see `margin`.

    Bandits and controllers take the rows in the order of the trace and start knowing nothing; their
    answers are those given while they learn.
    """
    index = exit_indices(trace, policy)
    rows = np.arange(trace.rows)
    scores: NDArray[Any] = probabilities(trace.logits[rows, index].astype(np.float64)).max(axis=-1)
    return Replay(
        labels=trace.predictions[rows, index],
        exit_layers=np.asarray(trace.exit_layers, dtype=np.int64)[index],
        exit_index=index,
        scores=scores,
        exact=trace.sentence is None or policy.window is None,
    )


def exit_indices(trace: Trace, policy: Policy) -> NDArray[np.int64]:
    """The number of the exit, from 0, at which each row leaves. (rows,)"""
    if policy.needs_labels:
        return _oracle(trace)
    if trace.sentence is not None:
        check_rule(policy.rule)
    if isinstance(policy.rule, BanditRule):
        return _in_order(trace, policy.rule)
    if isinstance(policy.rule, KeepRule):
        return _kept(trace, policy.rule)
    return _stepped(trace, policy, np.arange(trace.rows))


def _stepped(trace: Trace, policy: Policy, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each of these rows leaves. (rows,)"""
    index = np.full(len(rows), trace.exits - 1, dtype=np.int64)
    leaving = len(rows) if trace.sentence is None else trace.sentences
    exit_state = ExitState(policy, leaving, trace.exit_layers, trace.sentence)
    for number in range(trace.exits - 1):
        now = exit_state.step(trace.view(number, rows[exit_state.units]))
        index[exit_state.units[now]] = number
        if not exit_state.drop(now).any():
            break
    return index


def _kept(trace: Trace, rule: KeepRule) -> NDArray[np.int64]:
    """In the order of the trace, each block of rows at the threshold that those before ask for."""
    keeper = rule.fresh(trace.exit_layers)
    layers = np.asarray(trace.exit_layers, dtype=np.int64)
    found = []
    for start in range(0, trace.rows, rule.every):
        block = np.arange(start, min(start + rule.every, trace.rows))
        index = _stepped(trace, Policy(keeper.present), block)
        keeper.learn(layers[index].tolist())
        found.append(index)
    return np.concatenate(found) if found else np.zeros(0, dtype=np.int64)


def margin(trace: Trace, policy: Policy) -> NDArray[np.float64]:
    """How near each row came to a different decision. (rows,)

    The smallest |signal - threshold| over the internal exits up to and including the one where the
    row left; infinite for rules without a threshold, and for bandits and controllers, whose rows
    hang together.
    """
    nearest = np.full(trace.rows, np.inf)
    if not isinstance(policy.rule, Threshold):
        return nearest
    index = exit_indices(trace, policy)
    for number in range(trace.exits - 1):
        values = policy.rule.signal(trace.view(number))
        if trace.sentence is not None:
            low = lower_is_safer(policy.rule.signal, values)
            joint = joint_signal(low, trace.sentence, policy.over, policy.window)
            values = lower_is_safer(policy.rule.signal, joint)
        gap = np.abs(values - policy.rule.threshold)
        nearest = np.where(number <= index, np.minimum(nearest, gap), nearest)
    return nearest


def _in_order(trace: Trace, rule: BanditRule) -> NDArray[np.int64]:
    """Row by row, each with the arm that the rows before it have led to."""
    bandit, last = rule.fresh(trace.exit_layers), trace.exits - 1
    index = np.full(trace.rows, last, dtype=np.int64)
    # All exits at once, because it is faster; a row's decision reads only those up to its own.
    confidence = CONFIDENCE_SIGNAL(ExitView(trace.depth, trace.logits))
    for row, seen in enumerate(confidence.tolist()):
        number = bandit.choose()
        arm = bandit.arms[number]
        left = next((place for place in range(last) if seen[place] >= arm), last)
        bandit.learn(number, left, seen[0], seen[left])
        index[row] = left
    return index


def _oracle(trace: Trace) -> NDArray[np.int64]:
    """The shallowest right exit; a row that no exit gets right goes through the whole model.

    A sentence is right when all its words are.
    """
    correct = trace.correct
    if trace.sentence is not None:
        whole = np.logical_and.reduceat(correct, starts_of(trace.sentence), axis=0)
        correct = whole[trace.sentence]
    return np.where(correct.any(axis=1), correct.argmax(axis=1), trace.exits - 1)
