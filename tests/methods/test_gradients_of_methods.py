"""What learns in a step: one backward pass of every phase of every method."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.methods.phases import Toy, toy, without_dropout
from torch import Tensor, nn
from transformers import PreTrainedTokenizerFast

from de3bert.methods import METHODS
from de3bert.objective import Clock

START, NEXT, END = Clock(0, 10, seed=1), Clock(1, 10, seed=1), Clock(10, 10, seed=1)
# Softmax does not see what is added to all its inputs: biases of keys never learn.
NEVER = re.compile(r".*key\.bias")

ALL = r".*"
INTERNAL = r"heads\.exits\.[012]\..*"
# Which parameters learn, of 4 layers; the names of the others do not match.
CASES = [
    *[
        (name, "train", START, ALL)
        for name in ("full", "layers-k", "joint-entropy", "cosee", "de-cosee", "de3", "de3-v2",
                     "de3-v3", "de3-no-pn", "de3-no-pn-no-dar", "leebert", "pkd", "hashee",
                     "sentee", "de3-words")
    ],
    # The one vector of the first exit is its own mixture, whatever its weight.
    ("righttool", "train", START, r"(?!heads\.exits\.0\.weights).*"),
    # Even steps leave the internal heads alone, though the router still teaches their poolers.
    ("berxit", "train", START, r"(encoder|pooling|router|heads\.exits\.3)\..*"),
    ("berxit", "train", NEXT, ALL),
    ("mixed", "fine-tune", START, r"(encoder|pooling|heads\.exits\.3)\..*"),
    ("mixed", "together", START, ALL),
    ("deebert", "fine-tune", START, r"(encoder|pooling|heads\.exits\.3)\..*"),
    ("deebert", "exits", START, INTERNAL),
    # Attention heads read tokens: nobody reads the pooled vector.
    ("fastbert", "fine-tune", START, r"(encoder|heads\.exits\.3)\..*"),
    ("fastbert", "distil", START, INTERNAL),
    ("consistentee", "exits", START, r"(encoder|pooling|heads)\..*"),
    ("consistentee", "policy", START, r"router\..*"),
    ("consistentee", "together", START, ALL),
    ("cascadebert", "together", START, ALL),
    ("cascade-truncated", "together", START, ALL),
    # At first nothing below the second layer learns, at the end all of it. No exit is before the
    # first, so nobody predicts that one's vector.
    ("gpfee", "train", START,
     r"encoder\.layers\.[23]\..*|pooling\..*|heads\.(?!predictors\.0\.).*"),
    ("gpfee", "train", END, r"(encoder|pooling)\..*|heads\.(?!predictors\.0\.).*"),
    # With hidden words the classifier has no part; the head that guesses them is the loss's own.
    ("distilbert", "words", START, r"(encoder|objective)\..*"),
    ("distilbert", "fine-tune", START, ALL),
    ("pd", "words", START, r"(encoder|objective)\..*"),
    ("pd", "distil", START, ALL),
    ("pd", "fine-tune", START, ALL),
    ("theseus", "train", END, r"encoder\.layers\..*"),
    ("tokee", "joint", START, ALL),
    ("tokee", "self-sampling", START, ALL),
]  # fmt: skip
# Where a teacher runs along; others are asked once, before the phase.
TAUGHT = {("distilbert", "words"), ("theseus", "train")}

Make = Callable[..., Toy]


@pytest.fixture
def make(
    tiny_backbone: Path,
    masked_backbone: Path,
    teacher: Path,
    tiny_tokenizer: PreTrainedTokenizerFast,
) -> Make:
    """A fresh model, with the backbone, the teacher and the pooling that its method needs."""

    def build(name: str, **options: float | str) -> Toy:
        taught = METHODS[name].teacher is not None
        return toy(
            name,
            masked_backbone if name == "distilbert" else tiny_backbone,
            tiny_tokenizer,
            teacher=teacher if taught else None,
            pooling="mean" if taught else None,  # the teacher's
            **options,
        )

    return build


def is_moved(parameter: Tensor) -> bool:
    return parameter.grad is not None and bool(parameter.grad.any())


def test_every_phase_is_in_the_table() -> None:
    own = [name for name in METHODS if METHODS[name].training is None]
    declared = {(name, phase.name) for name in own for phase in METHODS[name].phases}
    assert declared == {(name, phase) for name, phase, _, _ in CASES}


@pytest.mark.parametrize(
    ("name", "phase", "clock", "learns"),
    CASES,
    ids=[f"{name}-{phase}-{clock.step}" for name, phase, clock, _ in CASES],
)
def test_a_step_teaches_these_parameters_and_no_others(
    name: str, phase: str, clock: Clock, learns: str, make: Make
) -> None:
    made = make(name)
    (declared,) = (each for each in METHODS[name].phases if each.name == phase)
    with made.phase(declared) as running:
        model = without_dropout(made.model)
        running.at(clock)
        model(**made.batch()).loss.backward()
        moved = {key for key, each in model.named_parameters() if is_moved(each)}
        wanted = {key for key, _ in model.named_parameters() if re.fullmatch(learns, key)}
        kept = [] if running.hook is None else vars(running.hook).values()
    assert wanted
    assert moved <= wanted
    assert not [key for key in wanted - moved if not NEVER.fullmatch(key)]
    teachers = [part for part in kept if isinstance(part, nn.Module)]
    assert bool(teachers) == ((name, phase) in TAUGHT)
    for part in teachers:
        assert not any(is_moved(each) or each.requires_grad for each in part.parameters())
    if model.prototypes is not None:
        assert bool(model.prototypes.initialised.all())  # moved, but not by a gradient
        assert not any(buffer.requires_grad for buffer in model.prototypes.buffers())


@pytest.mark.parametrize("name", ["de3", "de3-v2", "de3-v3", "de-cosee", "de3-words"])
def test_prototypical_networks_learn_from_the_regulariser_alone(name: str, make: Make) -> None:
    made = make(name, alpha=0.0)
    with made.phase(METHODS[name].phases[0]):
        without_dropout(made.model)(**made.batch()).loss.backward()
    networks = {id(each) for each in made.model.projectors.parameters()}
    for key, parameter in made.model.named_parameters():
        assert is_moved(parameter) != (id(parameter) in networks) or NEVER.fullmatch(key), key


# Method, phase, exit from 0, and what its cross-entropy counts in the loss.
OWN = [
    ("joint-entropy", 0, 1, 2 / 10),
    ("de3", 0, 2, 3 / 10),
    ("de3-no-pn", 0, 0, 1 / 10),
    ("consistentee", 0, 1, 2 / 10),
    ("sentee", 0, 3, 4 / 10),
    ("berxit", 0, 1, 1.0),  # of an odd step
    ("deebert", 1, 2, 1.0),
    ("cascadebert", 0, 0, 1.0),
]


@pytest.mark.parametrize(("name", "phase", "number", "share"), OWN)
def test_a_head_learns_from_its_own_cross_entropy_alone(
    name: str, phase: int, number: int, share: float, make: Make
) -> None:
    made = make(name, **({"difficulty": 0.0} if name == "cascadebert" else {}))  # or its margin too
    with made.phase(METHODS[name].phases[phase]) as running:
        model = without_dropout(made.model)
        running.at(NEXT)
        batch = made.batch()
        found = model(**batch)
        labels = batch["labels"][batch["labels"] >= 0]  # of texts, or of all words
        own = nn.functional.cross_entropy(found.exit_logits[:, number], labels)
        weight = model.heads.exits[number].weight
        (whole,) = torch.autograd.grad(found.loss, [weight], retain_graph=True)
        (alone,) = torch.autograd.grad(own, [weight])
    assert alone.abs().max() > 1e-4
    torch.testing.assert_close(whole, share * alone)
