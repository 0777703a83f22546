"""Phases that train a part of the model leave the rest as it is, bit for bit; by `Schedule`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.fixtures_trained import ToyData, toy_recipe
from tests.methods.phases import Toy, everything, toy
from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast

from de3bert.methods import METHODS, Phase
from de3bert.training.recipe import recipe_from
from de3bert.training.schedule import Schedule

INTERNAL = r"heads\.exits\.[012]\..*"
TASK = r"(encoder|pooling|heads\.exits\.3)\..*"
# Phase -> what changes in it, of 4 layers: what its groups name and a gradient reaches.
CHANGES: dict[str, dict[str, str]] = {
    "deebert": {"fine-tune": TASK, "exits": INTERNAL},
    # No pooled vector is read by attention heads, so the pooler stays in both phases.
    "fastbert": {"fine-tune": TASK.replace("|pooling", ""), "distil": INTERNAL},
    "consistentee": {
        "exits": r"(encoder|pooling|heads)\..*", "policy": r"router\..*", "together": r".*",
    },
    "theseus": {"train": r"encoder\.layers\..*"},
}  # fmt: skip
OWN_POOLERS = {"fine-tune": r"(encoder|pooling\.dense\.3|heads\.exits\.3)\..*",
               "exits": r"(pooling\.dense|heads\.exits)\.[012]\..*"}  # fmt: skip
READERS = [("deebert", "exits"), ("fastbert", "distil"), ("consistentee", "policy")]
# Never learn anything: what is added to all keys, and numbers of positions.
CONSTANT = re.compile(r".*(key\.bias|position_ids|token_type_ids)")


class Watched(Schedule):
    """Notes all numbers of the model at the first step of every phase and at its end."""

    def __init__(self, *parts: Any) -> None:
        super().__init__(*parts)
        self.seen: dict[str, tuple[dict[str, Tensor], dict[str, Tensor]]] = {}
        self.training: dict[str, set[tuple[bool, bool]]] = {}  # of encoder and heads, in steps

    def _phase(self, phase: Phase, *rest: Any) -> dict[str, Any]:
        begun: list[dict[str, Tensor]] = []
        modes = self.training.setdefault(phase.name, set())

        def note(model: nn.Module, *_inputs: object) -> None:
            if model.training:
                begun.extend([everything(self.model)] * (not begun))
                inside = any(part.training for part in self.model.encoder.modules())
                modes.add((inside, self.model.heads.training))

        handle = self.model.register_forward_pre_hook(note)
        record = super()._phase(phase, *rest)
        handle.remove()
        self.seen[phase.name] = begun[0], everything(self.model)
        return record


@pytest.fixture
def run(
    tiny_backbone: Path, tiny_tokenizer: PreTrainedTokenizerFast, toy_data: ToyData,
    teacher: Path, tmp_path: Path,
) -> Any:  # fmt: skip
    """Runs all phases of a method for a few steps each."""

    def watched(name: str, pooling: str | None = None, **options: float) -> tuple[Toy, Watched]:
        taught = METHODS[name].teacher is not None
        pooling = "mean" if taught else pooling
        made = toy(name, tiny_backbone, tiny_tokenizer, pooling=pooling, rows=32, **options)
        recipe = recipe_from(toy_recipe(tiny_backbone, toy_data, epochs=2), [f"method={name}"])
        context = made.context
        schedule = Watched(
            made.method, recipe, context.model, context.encoder, context.rows, context.held,
            tmp_path / "scratch",
        )  # fmt: skip
        schedule.run(teacher if taught else None)
        return made, schedule

    return watched


def check(schedule: Watched, changes: dict[str, str]) -> None:
    assert list(schedule.seen) == list(changes)
    for phase, pattern in changes.items():
        before, after = schedule.seen[phase]
        assert before.keys() == after.keys()
        changed = {name for name in before if not torch.equal(before[name], after[name])}
        wanted = {name for name in before if re.fullmatch(pattern, name)}
        assert changed <= wanted, phase
        assert not [name for name in wanted - changed if not CONSTANT.fullmatch(name)], phase


def test_every_method_with_frozen_parts_is_here() -> None:
    partly = {name for name in METHODS if any(phase.trains for phase in METHODS[name].phases)}
    assert partly == set(CHANGES)


@pytest.mark.parametrize("name", CHANGES)
def test_a_phase_changes_its_groups_and_nothing_else(name: str, run: Any) -> None:
    # Without a chance that a layer of theseus is never drawn.
    made, schedule = run(name, **({"rate": 1.0} if name == "theseus" else {}))
    check(schedule, CHANGES[name])
    for phase, modes in schedule.training.items():
        assert modes == {((name, phase) not in READERS, True)}
    model = made.model
    assert all(parameter.requires_grad for parameter in model.parameters())
    assert all(part.training for part in model.train().modules())  # dropout is back
    assert model.objective.terms == METHODS[name].terms
    assert not model._forward_pre_hooks


@pytest.mark.parametrize("pooling", ["own_pooler", "mean_own_pooler"])
def test_exits_with_poolers_of_their_own_train_these_too(run: Any, pooling: str) -> None:
    """The head of DeeBERT's authors: a pooler per exit, which learns with it."""
    _, schedule = run("deebert", pooling=pooling)
    check(schedule, OWN_POOLERS)


@pytest.mark.parametrize(("name", "phase"), READERS)
def test_an_encoder_that_only_reads_gives_the_same_states_twice(
    name: str, phase: str, tiny_backbone: Path, tiny_tokenizer: PreTrainedTokenizerFast
) -> None:
    made = toy(name, tiny_backbone, tiny_tokenizer)
    (declared,) = (each for each in METHODS[name].phases if each.name == phase)

    def states() -> Tensor:
        batch = made.batch()
        prepared = made.model.encoder.prepare(batch["input_ids"], batch["attention_mask"])
        return made.model.encoder.layer(prepared, 1, prepared.embedded)

    with made.phase(declared):
        assert torch.equal(states(), states())
    assert not torch.equal(states(), states())
