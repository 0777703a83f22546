"""A router that learns by trying, and heads that learn where it leaves (ConsistentEE)."""

from __future__ import annotations

import torch
from torch import Tensor

from de3bert.objective import needs
from de3bert.objective.objective import LOSSES, ExitBatch
from de3bert.objective.per_row import cross_entropies
from de3bert.objective.reward import reward
from de3bert.objective.rollouts import exit_chances, log_probability, roll_out

__all__ = ["policy_gradient", "policy_loss", "sampled_cross_entropy"]

SALT = 2  # one for both losses: a step's heads learn at the exits that its router tried


@LOSSES.register("policy_gradient")
def policy_gradient(batch: ExitBatch) -> Tensor:
    """REINFORCE over walks up the exits, the certainty as the chance to leave, ().

    Only the certainty has a gradient. Reads `memorised`. Options: `rollouts` per row (8) and `a`
    (0.05), the price of a layer in the reward.

    The value of this slope means nothing. In evaluation the loss is therefore what training lowers
    by it: minus the reward to be expected, - mean of sum_l c_l R_l with c_l the chance of exit l.
    """
    price = needs.number(batch.options, "a", 0.05)
    meaning = "the exit from which on all are right, counted from 1, (rows,)"
    memorised = needs.extra(batch, "memorised", "policy_gradient", meaning)
    leave, exits = needs.certainty(batch, "policy_gradient"), batch.exit_logits.shape[1]
    if not batch.training:
        losses = cross_entropies(batch.exit_logits, batch.labels)  # (rows, exits)
        every = torch.arange(1, exits + 1, device=losses.device)
        return -_expected(leave, reward(losses, every, memorised[:, None], exits, price))
    taken = _walks(batch, "policy_gradient")
    rewards = reward(_cross_entropy_at(batch, taken), taken, memorised, exits, price)
    return policy_loss(rewards, log_probability(leave, taken))


@LOSSES.register("sampled_cross_entropy")
def sampled_cross_entropy(batch: ExitBatch) -> Tensor:
    """Cross-entropy at the exits where the router leaves, mean over walks and rows, ().

    The walks are those of `policy_gradient` in the same step (option `rollouts`, 8). The certainty
    has no gradient: a walk is a constant. In evaluation all walks count, by their chance.
    """
    if not batch.training:
        leave = needs.certainty(batch, "sampled_cross_entropy")
        return _expected(leave, cross_entropies(batch.exit_logits, batch.labels))
    return _cross_entropy_at(batch, _walks(batch, "sampled_cross_entropy")).mean()


def policy_loss(rewards: Tensor, log_probability: Tensor) -> Tensor:
    """- mean of (R - mean R over walks) * log pi(walk), the rewards R constant, ().

    Both (rollouts, rows).
    """
    advantage = (rewards - rewards.mean(0)).detach()
    return -(advantage * log_probability).mean()


def _expected(leave: Tensor, values: Tensor) -> Tensor:
    """Of a value per exit, (rows, exits), the mean over rows of what a walk may expect, ()."""
    return (exit_chances(leave) * values).sum(1).mean()


def _walks(batch: ExitBatch, loss: str) -> Tensor:
    """The exits taken, counted from 1, (rollouts, rows)."""
    # One walk is its own baseline, and would teach nothing.
    rollouts = needs.whole_number(batch.options, "rollouts", 8, least=2)
    leave = needs.certainty(batch, loss)
    return roll_out(leave, rollouts, batch.clock.generator(SALT))


def _cross_entropy_at(batch: ExitBatch, taken: Tensor) -> Tensor:
    """(rollouts, rows)"""
    return cross_entropies(batch.exit_logits, batch.labels).gather(1, taken.T - 1).T
