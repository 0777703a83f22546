"""Losses on tokens: hidden words, the teacher's word probabilities, directions of states."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn

from de3bert.errors import UsageError
from de3bert.objective import ExitBatch
from de3bert.objective.masked_words import IGNORED, MaskedWords, TokenDirections, WordKnowledge

ROWS, TOKENS, HIDDEN, VOCABULARY = 3, 5, 4, 7
LENGTHS = (5, 3, 2)


def a_batch(**given: object) -> ExitBatch:
    generator = torch.Generator().manual_seed(1)
    words = torch.randint(VOCABULARY, (ROWS, TOKENS), generator=generator)
    words[:, ::2] = IGNORED
    present = (torch.arange(TOKENS) < torch.tensor(LENGTHS)[:, None]).long()
    words[present == 0] = IGNORED
    extras = {
        "words": words,
        "present": present,
        "teacher_tokens": torch.randn(
            ROWS, TOKENS, HIDDEN, generator=generator, requires_grad=True
        ),
    }
    extras |= given.pop("extras", {})
    tokens = torch.randn(ROWS, TOKENS, HIDDEN, generator=generator).requires_grad_()
    fields = {"tokens": tokens, **given}
    return ExitBatch(torch.zeros(ROWS, 1, 2), torch.zeros(ROWS).long(), None, {}, extras=extras,
                     **fields)  # fmt: skip


def a_head(seed: int) -> nn.Linear:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Linear(HIDDEN, VOCABULARY)


def hidden_words() -> MaskedWords:
    loss = MaskedWords(1, {})
    loss.head = a_head(0)
    return loss


def knowledge(**options: float | str) -> WordKnowledge:
    loss = WordKnowledge(1, options)
    loss.heads = a_head(0), a_head(1)
    return loss


def softmax(logits: Tensor, temperature: float = 1.0) -> list[float]:
    weights = [math.exp(z / temperature) for z in logits.double().tolist()]
    return [weight / sum(weights) for weight in weights]


def test_hidden_words_against_a_loop() -> None:
    loss, batch = hidden_words(), a_batch()
    values = []
    for row in range(ROWS):
        for place in range(TOKENS):
            word = int(batch.extras["words"][row, place])
            if word != IGNORED:
                guesses = softmax(loss.head(batch.tokens[row, place]).detach())
                values.append(-math.log(guesses[word]))
    assert len(values) == 4
    assert loss(batch).item() == pytest.approx(sum(values) / len(values), abs=1e-5)


@pytest.mark.parametrize("at", ["all", "masked"])
@pytest.mark.parametrize("temperature", [1.0, 2.0])
def test_the_teachers_words_against_a_loop(at: str, temperature: float) -> None:
    loss = knowledge(temperature=temperature, soft_words=at)
    batch = a_batch()
    student, teacher = loss.heads
    values = []
    for row in range(ROWS):
        for place in range(LENGTHS[row]):
            if at == "masked" and batch.extras["words"][row, place] == IGNORED:
                continue
            p = softmax(teacher(batch.extras["teacher_tokens"][row, place]).detach(), temperature)
            q = softmax(student(batch.tokens[row, place]).detach(), temperature)
            values.append(sum(a * math.log(a / b) for a, b in zip(p, q, strict=True)))
    assert len(values) == (4 if at == "masked" else sum(LENGTHS))
    expected = temperature**2 * sum(values) / len(values)
    assert loss(batch).item() == pytest.approx(expected, abs=1e-5)


def test_the_known_divergence_of_three_words() -> None:
    """z_t = [2, 0, -1], z_s = [1, 0.5, 0] at T = 2: 4 KL = 0.365228."""
    loss = WordKnowledge(1, {"temperature": 2.0})
    loss.heads = nn.Identity(), nn.Identity()
    extras = {
        "present": torch.ones(1, 1),
        "teacher_tokens": torch.tensor([[[2.0, 0.0, -1.0]]]),
    }
    batch = a_batch(tokens=torch.tensor([[[1.0, 0.5, 0.0]]]), extras=extras)
    assert loss(batch).item() == pytest.approx(0.365228, abs=1e-6)


def test_directions_against_a_loop() -> None:
    batch = a_batch()
    values = []
    for row in range(ROWS):
        for place in range(LENGTHS[row]):
            ours = batch.tokens[row, place].tolist()
            theirs = batch.extras["teacher_tokens"][row, place].tolist()
            product = sum(a * b for a, b in zip(ours, theirs, strict=True))
            values.append(1 - product / (math.hypot(*ours) * math.hypot(*theirs)))
    found = TokenDirections(1, {})(batch)
    assert found.item() == pytest.approx(sum(values) / len(values), abs=1e-5)


def touched(gradient: Tensor | None) -> bool:
    return gradient is not None and bool((gradient != 0).any())


@pytest.mark.parametrize("make", [hidden_words, knowledge, lambda: TokenDirections(1, {})])
def test_only_the_student_learns_and_only_where_there_is_text(make) -> None:
    loss, batch = make(), a_batch()
    loss(batch).backward()
    absent = batch.extras["present"] == 0
    assert touched(batch.tokens.grad)
    assert not touched(batch.tokens.grad[absent])
    assert not touched(batch.extras["teacher_tokens"].grad)
    if isinstance(loss, MaskedWords):
        assert touched(loss.head.weight.grad)
    if isinstance(loss, WordKnowledge):
        assert [touched(head.weight.grad) for head in loss.heads] == [True, False]


@pytest.mark.parametrize("make", [hidden_words, lambda: knowledge(soft_words="masked")])
def test_a_batch_without_hidden_words_costs_nothing(make) -> None:
    batch = a_batch(extras={"words": torch.full((ROWS, TOKENS), IGNORED)})
    value = make()(batch)
    assert value.item() == 0.0
    value.backward()
    assert batch.tokens.grad.isfinite().all()


def test_states_that_are_zero_give_no_nan() -> None:
    tokens = torch.zeros(ROWS, TOKENS, HIDDEN, requires_grad=True)
    for loss in (hidden_words(), knowledge(), TokenDirections(1, {})):
        value = loss(a_batch(tokens=tokens))
        assert value.isfinite()
        value.backward()
    assert tokens.grad.isfinite().all()


def test_half_precision_comes_out_in_full() -> None:
    batch = a_batch()
    half = {"teacher_tokens": batch.extras["teacher_tokens"].bfloat16()}
    for loss in (hidden_words(), knowledge(), TokenDirections(1, {})):
        found = loss(a_batch(tokens=batch.tokens.bfloat16(), extras=half))
        assert found.dtype == torch.float32
        assert found.item() == pytest.approx(loss(batch).item(), abs=0.05)


def test_the_head_is_kept_by_one_loss_alone() -> None:
    """Two owners would save it twice."""
    words, soft = hidden_words(), knowledge()
    soft.heads = words.head, a_head(1)
    assert set(words.state_dict()) == {"head.weight", "head.bias"}
    assert not soft.state_dict()
    assert not list(soft.parameters())
    words.head = None
    assert not words.state_dict()


@pytest.mark.parametrize(
    ("make", "name"),
    [
        (hidden_words, "words"),
        (knowledge, "present"),
        (knowledge, "teacher_tokens"),
        (lambda: knowledge(soft_words="masked"), "words"),
        (lambda: TokenDirections(1, {}), "present"),
        (lambda: TokenDirections(1, {}), "teacher_tokens"),
    ],
)
def test_a_missing_extra_is_named(make, name) -> None:
    batch = a_batch()
    left = {key: value for key, value in batch.extras.items() if key != name}
    object.__setattr__(batch, "extras", left)
    with pytest.raises(UsageError, match=f'needs "{name}"'):
        make()(batch)


def test_other_things_that_are_missing_are_named() -> None:
    for loss in (hidden_words(), knowledge(), TokenDirections(1, {})):
        with pytest.raises(UsageError, match="needs the states of all tokens"):
            loss(a_batch(tokens=None))
    for loss in (MaskedWords(1, {}), WordKnowledge(1, {})):
        with pytest.raises(UsageError, match="needs a masked-language-modelling head"):
            loss(a_batch())
    with pytest.raises(UsageError, match='soft_words "some"'):
        WordKnowledge(1, {"soft_words": "some"})
    with pytest.raises(UsageError, match="temperature must be a number above 0"):
        WordKnowledge(1, {"temperature": 0.0})
