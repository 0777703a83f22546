"""Phases that train a router: by what its epochs are compared, and how fast it learns."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.fixtures_trained import ToyData, toy_recipe
from tests.methods.phases import Toy, toy
from torch import nn
from transformers import PreTrainedTokenizerFast

from de3bert.methods import METHODS
from de3bert.objective import Clock
from de3bert.training.hooks import Memorised
from de3bert.training.recipe import recipe_from
from de3bert.training.schedule import Schedule
from de3bert.training.trainer import OrderedTrainer

RATES = ["train.learning_rate=0.001", "train.head_rate=20", "train.batch_size=16"]
EPOCHS = 3


@pytest.fixture
def made(tiny_backbone: Path, tiny_tokenizer: PreTrainedTokenizerFast) -> Toy:
    """An untrained consistentee whose exits are sure of themselves, some of them wrongly."""
    options = {"a": 0.3, "policy_epochs": 1.0, "joint_epochs": 1.0, "policy_rate": 1e-12}
    made = toy("consistentee", tiny_backbone, tiny_tokenizer, rows=32, **options)
    torch.manual_seed(5)
    for exit in made.model.heads.exits:
        nn.init.normal_(exit.weight, std=0.4)
    return made


def schedule(made: Toy, backbone: Path, data: ToyData, place: Path, *lines: str) -> Schedule:
    method = f"method={made.method.name}"
    recipe = recipe_from(toy_recipe(backbone, data, epochs=EPOCHS), [method, *lines])
    context = made.context
    return Schedule(made.method, recipe, context.model, context.encoder, context.rows,
                    context.held, place, progress=False)  # fmt: skip


def lean(made: Toy, bias: float) -> None:
    """The same chance to leave at every exit, for all rows."""
    for exit in made.model.router.exits:
        nn.init.zeros_(exit[2].weight)
        nn.init.constant_(exit[2].bias, bias)


@torch.no_grad()
def expected_reward(made: Toy, bias: float, price: float) -> float:
    """What rows may expect of a router that leans like that, row by row and exit by exit."""
    chance, total = 1 / (1 + math.exp(-bias)), 0.0
    model = made.model.eval()
    rows = [model(**made.batch(number, 1)).exit_logits[0].tolist() for number in range(32)]
    for number, logits in enumerate(rows):
        right = int(made.batch(number, 1)["labels"])
        exits = len(logits)
        memorised = exits
        for exit in range(exits, 0, -1):
            if logits[exit - 1][right] <= logits[exit - 1][1 - right]:
                break
            memorised = exit
        still_there = 1.0
        for exit, each in enumerate(logits, start=1):
            leaves = chance if exit < exits else 1.0
            loss = math.log(sum(math.exp(value) for value in each)) - each[right]
            paid = price * exit * (1 - memorised / exits)
            total += still_there * leaves * (-loss - paid)
            still_there *= 1 - leaves
    return total / len(rows)


def test_the_epoch_of_the_best_reward_is_kept(
    made: Toy, tiny_backbone: Path, toy_data: ToyData, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Exits do not change in this phase: by their accuracy, the first epoch would stay."""
    biases = sorted((-9.0, 0.0, 9.0), key=lambda bias: expected_reward(made, bias, 0.3))
    worst, middle, best = biases
    order = [middle, best, worst]

    def step(self: Memorised, clock: Clock) -> None:
        lean(made, order[clock.epoch])

    monkeypatch.setattr(Memorised, "step", step)
    done = schedule(made, tiny_backbone, toy_data, tmp_path, *RATES)
    policy = made.method.phases[1]
    record = done._phase(policy, tmp_path / "policy", None)
    losses = [each["eval_loss"] for each in record["log"] if "eval_loss" in each]
    rewards = [expected_reward(made, bias, 0.3) for bias in order]
    assert losses == pytest.approx([-value for value in rewards], abs=1e-4)
    assert rewards[1] > max(rewards[0], rewards[2]) + 1e-3
    accuracies = {e["eval_mean_exit_accuracy"] for e in record["log"] if "eval_loss" in e}
    assert len(accuracies) == 1
    kept = [float(exit[2].bias.detach()) for exit in made.model.router.exits]
    assert kept == pytest.approx([best] * 3, abs=1e-6)


def test_joint_epochs_are_compared_at_the_prices_of_their_start(
    made: Toy, tiny_backbone: Path, toy_data: ToyData, tmp_path: Path
) -> None:
    """Were easy rows counted anew, an epoch that makes more of them would pay for it."""
    with torch.no_grad():
        right = made.model.eval()(**made.batch(size=32)).exit_logits.argmax(-1)
    labels = made.batch(size=32)["labels"]
    prices = [from_then_on(row) for row in (right == labels[:, None]).tolist()]
    phase = made.method.phases[2]
    running = schedule(made, tiny_backbone, toy_data, tmp_path, *RATES)
    record = running._phase(phase, tmp_path / "together", None)
    assert made.context.held.extras["memorised"].tolist() == prices
    losses = [each["eval_loss"] for each in record["log"] if "eval_loss" in each]
    made.model.objective.enter(phase.terms)
    with torch.no_grad():
        left = float(made.model.eval()(**made.batch(size=32)).loss)
    assert len(losses) == EPOCHS
    assert left == pytest.approx(min(losses), abs=1e-4)
    assert len(set(losses)) == EPOCHS


def from_then_on(right: list[bool]) -> int:
    """The exit from which on all are right, from 1; the last one where there is none."""
    return next((m + 1 for m in range(len(right)) if all(right[m:])), len(right))


@pytest.mark.parametrize("given", [None, 0.002])
def test_the_rate_of_the_policy_phase_is_the_stated_one(
    tiny_backbone: Path, tiny_tokenizer: PreTrainedTokenizerFast, toy_data: ToyData,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: float | None,
) -> None:  # fmt: skip
    rates: list[dict[str, set[float]]] = []
    usual = OrderedTrainer.create_optimizer

    def spy(self: OrderedTrainer, model: Any = None) -> torch.optim.Optimizer:
        optimizer = usual(self, model)
        names = {id(p): name.partition(".")[0] for name, p in self.model.named_parameters()}
        seen: dict[str, set[float]] = {}
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                seen.setdefault(names[id(parameter)], set()).add(group["lr"])
        rates.append(seen)
        return optimizer

    monkeypatch.setattr(OrderedTrainer, "create_optimizer", spy)
    options = {} if given is None else {"policy_rate": given}
    made = toy("consistentee", tiny_backbone, tiny_tokenizer, rows=16, **options)
    lines = [*RATES, "train.epochs=1"]
    schedule(made, tiny_backbone, toy_data, tmp_path, *lines).run(None)
    exits, policy, together = rates
    assert policy == {"router": {given or 3e-4}}
    assert (exits["encoder"], exits["heads"]) == ({0.001}, {0.02})
    assert (together["encoder"], together["router"]) == ({0.001}, {0.02})


@pytest.mark.parametrize("name", list(METHODS))
def test_nobody_compares_epochs_by_what_they_cannot_change(name: str) -> None:
    """Without heads and encoder the accuracy of exits is the same in every epoch."""
    answering = {"encoder", "layers", "pooling", "heads", "internal"}
    for phase in METHODS[name].phases:
        if phase.trains and not answering & {*phase.trains}:
            assert phase.judge == "loss", phase.name
