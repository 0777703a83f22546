"""Fifty steps lower the loss of every phase of every method, on the rows they were taken on."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.methods.phases import Running, Toy, toy, without_dropout
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from de3bert.methods import METHODS, Phase
from de3bert.objective import Clock
from de3bert.objective.per_row import cross_entropies
from de3bert.objective.reward import reward
from de3bert.training.batch_hook import PerPass

STEPS, BATCH, ROWS = 50, 16, 48
RATE = 1e-3
SAME = Clock(step=25, total=STEPS, seed=7)  # whenever a loss is measured
# How much of its loss a phase may keep. Words to guess take many more steps than classes.
KEPT = 0.7
WORDS = {("distilbert", "words"): 0.95, ("pd", "words"): 0.9}
# Policies learn by trial: their loss says nothing, the reward they can expect does.
REWARDED = {("consistentee", "policy"): 0.03, ("consistentee", "together"): 0.03}
FASTER = {"consistentee": {"policy_rate": 0.015}}  # fifty steps are few at the default


def batches(made: Toy) -> list[dict[str, Tensor]]:
    return [made.batch(first, BATCH) for first in range(0, ROWS, BATCH)]


@torch.no_grad()
def loss_now(made: Toy, running: Running) -> float:
    """The phase's loss on all rows at one and the same time, without dropout.

    In evaluation mode, unless a hook takes part in the passes of training alone.
    """
    model, hook = made.model, running.hook
    model.eval()
    if isinstance(hook, PerPass):
        without_dropout(model)
    running.at(SAME)
    values = [float(model(**batch).loss) for batch in batches(made)]
    model.train()
    return sum(values) / len(values)


@torch.no_grad()
def reward_now(made: Toy) -> float:
    """E[R] over all walks that the router may take: what the sampled loss is a noisy slope of."""
    model = made.model.eval()
    price, total = float(made.context.options["a"]), 0.0
    for batch in batches(made):
        found = model(**batch)
        stay = torch.cumprod(1 - found.certainty, 1)
        before = torch.cat([torch.ones_like(stay[:, :1]), stay], 1)  # still there, (rows, exits)
        leave = torch.cat([found.certainty, torch.ones_like(stay[:, :1])], 1)
        exits = leave.shape[1]
        losses = cross_entropies(found.exit_logits, batch["labels"])
        taken, memorised = torch.arange(1, exits + 1), batch["extras"]["memorised"][:, None]
        gained = reward(losses, taken, memorised, exits, price)
        total += float((before * leave * gained).sum(1).mean())
    model.train()
    return total / len(batches(made))


def learn(made: Toy, running: Running, phase: Phase) -> None:
    """Fifty steps of AdamW, as the Trainer takes them, on batches that go round."""
    model, options = made.model, made.context.options
    rate = RATE * made.method.number(phase.learning_rate, options)
    if phase.own_rate is not None:
        rate = made.method.number(phase.own_rate, options)
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(learning, lr=rate, weight_decay=0.0)
    for step in range(STEPS):
        running.at(Clock(step, STEPS, seed=7))
        model(**made.batch(step * BATCH, BATCH)).loss.backward()
        torch.nn.utils.clip_grad_norm_(learning, 1.0)
        optimizer.step()
        optimizer.zero_grad()


@pytest.mark.parametrize("name", [name for name in METHODS if METHODS[name].training is None])
def test_every_phase_learns(
    name: str,
    tiny_backbone: Path,
    masked_backbone: Path,
    teacher: Path,
    tiny_tokenizer: PreTrainedTokenizerFast,
) -> None:
    method = METHODS[name]
    made = toy(
        name,
        masked_backbone if name == "distilbert" else tiny_backbone,
        tiny_tokenizer,
        teacher=teacher if method.teacher else None,
        pooling=method.pooling or "mean",
        rows=ROWS,
        **FASTER.get(name, {}),
    )
    torch.manual_seed(1)  # of dropout
    for phase in method.phases:
        with made.phase(phase) as running:
            made.model(**made.batch())  # prototypes have a place before anything is measured
            gain = REWARDED.get((name, phase.name))
            if gain is not None:
                reward_before = reward_now(made)
                learn(made, running, phase)
                assert reward_now(made) > reward_before + gain
                continue
            before = loss_now(made, running)
            assert before == loss_now(made, running)  # measuring changes nothing
            learn(made, running, phase)
            share = WORDS.get((name, phase.name), KEPT)
            assert 0 < loss_now(made, running) < share * before, phase.name
