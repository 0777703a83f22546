"""Heads of all kinds: what each computes, what it reads, what learns, how large it is."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tests.model.families import SIZES
from tests.model.readings import (
    CLASSES,
    EXITS,
    HIDDEN,
    LENGTHS,
    affine,
    gradient,
    made_heads,
    made_reading,
    one_row,
)
from torch import Tensor, nn
from transformers import AutoConfig

from de3bert.errors import UsageError
from de3bert.model import EarlyExitConfig, EarlyExitForSequenceClassification
from de3bert.model.attention_head import AttentionHead
from de3bert.model.heads import HEADS, Heads, HeadSettings, Reading
from de3bert.model.mixed_head import MixedHead

KINDS = ("attention", "fused", "linear", "mixed")
EACH = pytest.mark.parametrize("name", KINDS)
EACH_EXIT = pytest.mark.parametrize("index", range(EXITS))


def read(name: str, index: int) -> Reading:
    return made_reading(index, memory=HEADS[name].keeps_memory)


def size(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def made_large(name: str, classes: int = 2, exits: int = 12) -> Heads:
    with torch.device("meta"):
        return HEADS[name](HeadSettings(768, classes, exits, 0.1, {}))


def test_all_kinds_are_registered() -> None:
    assert tuple(HEADS) == (
        "attached",
        *KINDS,
    )  # that one has a foreign end: tests/training/test_attach
    with pytest.raises(UsageError, match="linear"):
        HEADS["liner"]


# What holds for every kind


@EACH
@EACH_EXIT
def test_a_row_does_not_see_other_rows_or_padding(name: str, index: int) -> None:
    heads, reading = made_heads(name), read(name, index)
    together = heads(reading, index)
    assert together.shape == (len(LENGTHS), CLASSES)
    alone = torch.cat([heads(one_row(reading, row), index) for row in range(len(LENGTHS))])
    torch.testing.assert_close(together, alone)
    noisy = torch.where(reading.mask[:, :, None] == 1, reading.tokens, 1e4)
    torch.testing.assert_close(heads(replace(reading, tokens=noisy), index), together)


@EACH
@EACH_EXIT
def test_every_exit_has_an_answer_of_its_own(name: str, index: int) -> None:
    heads = made_heads(name)
    answers = heads(read(name, index), index)
    assert answers.std(0).min() > 0.01  # rows differ
    other = (index + 1) % EXITS
    reading = replace(read(name, other), pooled=read(name, index).pooled)
    assert not torch.allclose(answers, heads(reading, other), atol=0.01)


class AtExit(nn.Module):
    """The heads at one exit, as a module of tensors alone."""

    def __init__(self, heads: Heads, index: int) -> None:
        super().__init__()
        self.heads, self.index = heads, index

    def forward(
        self, pooled: Tensor, memory: Tensor | None, tokens: Tensor, mask: Tensor
    ) -> Tensor:
        return self.heads(Reading(pooled, memory, tokens, mask), self.index)


@EACH
@pytest.mark.parametrize("index", [0, 2, EXITS - 1])
def test_it_can_be_traced_for_any_number_of_rows_and_tokens(name: str, index: int) -> None:
    module, memory = AtExit(made_heads(name), index), HEADS[name].keeps_memory
    rows, tokens = torch.export.Dim("rows"), torch.export.Dim("tokens")
    sample = made_reading(index, memory=memory, lengths=(3, 2))
    axes = (
        {0: rows},
        None if sample.memory is None else {0: rows},
        {0: rows, 1: tokens},
        {0: rows, 1: tokens},
    )
    traced = torch.export.export(module, _fields(sample), dynamic_shapes=axes).module()
    fields = _fields(made_reading(index, memory=memory))
    torch.testing.assert_close(traced(*fields), module(*fields))


def _fields(reading: Reading) -> tuple[Tensor | None, ...]:
    return reading.pooled, reading.memory, reading.tokens, reading.mask


@EACH
def test_dropout_acts_in_training_alone(name: str) -> None:
    heads, reading = made_heads(name, dropout=0.5), read(name, 1)
    answer = heads(reading, 1)
    assert torch.equal(answer, heads(reading, 1))
    heads.train()
    assert not torch.allclose(answer, heads(reading, 1))


@EACH
def test_an_exit_learns_from_its_own_loss(name: str) -> None:
    heads, reading = made_heads(name), read(name, 1)
    source = reading.tokens if name == "attention" else reading.pooled
    source.requires_grad_()
    heads(reading, 1).square().sum().backward()
    assert gradient(source) > 0
    if name != "fused":  # whose parts serve all exits
        assert all(gradient(parameter) > 0 for parameter in heads.exits[1].parameters())
        others = [*heads.exits[0].parameters(), *heads.exits[2].parameters()]
        assert all(parameter.grad is None for parameter in others)


@pytest.mark.parametrize("name", ["fused", "mixed"])
def test_a_wrong_number_of_earlier_vectors_is_refused(name: str) -> None:
    heads = made_heads(name, future=0.0)
    with pytest.raises(ValueError, match="exit 2 needs as many earlier vectors, got 1"):
        heads(made_reading(1, memory=True), 2)
    with pytest.raises(ValueError, match="got 0"):
        heads(made_reading(2, memory=False), 2)


@pytest.mark.parametrize("name", ["linear", "attention", "mixed"])
def test_the_final_head_alone_adds_nothing_internal(name: str) -> None:
    single = HEADS[name](HeadSettings(HIDDEN, CLASSES, 1, 0.1, {}))
    assert single.internal_parameters() == 0


def test_internal_parameters_of_linear_heads_are_the_published_ones() -> None:
    assert made_large("linear").internal_parameters() == 16_918
    assert made_large("linear", classes=3).internal_parameters() == 25_377
    assert made_large("linear", classes=14).internal_parameters() == 118_426


# Linear


@EACH_EXIT
def test_linear_heads_are_w_x_plus_b(index: int) -> None:
    heads, reading = made_heads("linear"), read("linear", index)
    expected = [affine(heads.exits[index], vector) for vector in reading.pooled.tolist()]
    torch.testing.assert_close(heads(reading, index), torch.tensor(expected))


# Mixed


@EACH_EXIT
def test_mixed_heads_read_a_weighted_sum_of_unit_length(index: int) -> None:
    heads, reading = made_heads("mixed"), read("mixed", index)
    head = heads.exits[index]
    assert isinstance(head, MixedHead)
    weights = head.weights.tolist()
    assert len(weights) == index + 1
    length = math.sqrt(sum(weight**2 for weight in weights))
    expected = []
    for row in range(len(LENGTHS)):
        past = [] if reading.memory is None else reading.memory[row].tolist()
        vectors = [*past, reading.pooled[row].tolist()]
        mixture = [
            sum(w / length * vector[i] for w, vector in zip(weights, vectors, strict=True))
            for i in range(HIDDEN)
        ]
        expected.append(affine(head.classifier, mixture))
    torch.testing.assert_close(heads(reading, index), torch.tensor(expected))


@EACH_EXIT
def test_mixed_heads_begin_as_linear_ones(index: int) -> None:
    mixed = HEADS["mixed"](HeadSettings(HIDDEN, CLASSES, EXITS, 0.1, {})).eval()
    linear, reading = made_heads("linear"), read("mixed", index)
    for ours, plain in zip(mixed.exits, linear.exits, strict=True):
        assert isinstance(ours, MixedHead)
        ours.classifier.load_state_dict(plain.state_dict())
    assert torch.equal(mixed(reading, index), linear(reading, index))


def test_mixed_heads_do_not_change_with_the_length_of_their_weights() -> None:
    heads, reading = made_heads("mixed"), read("mixed", 2)
    before = heads(reading, 2)
    with torch.no_grad():
        heads.exits[2].get_parameter("weights").mul_(7.0)
    torch.testing.assert_close(heads(reading, 2), before)


def test_mixed_heads_teach_the_earlier_exits_too() -> None:
    heads, reading = made_heads("mixed"), read("mixed", 2)
    assert reading.memory is not None
    reading.memory.requires_grad_()
    heads(reading, 2).square().sum().backward()
    assert reading.memory.grad is not None
    assert bool((reading.memory.grad.abs().amax((0, 2)) > 0).all())


def test_parameters_of_mixed_heads() -> None:
    assert size(made_large("mixed", exits=4)) == 4 * 1_538 + (1 + 2 + 3 + 4)
    assert made_large("mixed", exits=4).internal_parameters() == 3 * 1_538 + (1 + 2 + 3)


def test_reset_puts_all_weight_on_the_own_vector_unless_weights_were_read() -> None:
    head = MixedHead(HeadSettings(HIDDEN, CLASSES, EXITS, 0.1), 3)
    nn.init.constant_(head.weights, 5.0)
    head.weights._is_hf_initialized = True  # type: ignore[attr-defined]  # as the library marks it
    head.reset()
    assert head.weights.tolist() == [5.0, 5.0, 5.0]
    del head.weights._is_hf_initialized  # type: ignore[attr-defined]
    head.reset()
    assert head.weights.tolist() == [0.0, 0.0, 1.0]


def test_mixing_weights_survive_saving_and_loading(tmp_path: Path) -> None:
    config = EarlyExitConfig(
        backbone_config=AutoConfig.for_model("bert", **SIZES),
        method="joint-entropy",
        prototypes="none",
        heads="mixed",
    )
    model = EarlyExitForSequenceClassification(config)
    start = model.get_parameter("heads.exits.2.weights")
    assert start.tolist() == [0.0, 0.0, 1.0]
    with torch.no_grad():
        start.copy_(torch.tensor([0.5, -2.0, 1.0]))
    model.save_pretrained(tmp_path)
    loaded = EarlyExitForSequenceClassification.from_pretrained(tmp_path)
    assert loaded.get_parameter("heads.exits.2.weights").tolist() == [0.5, -2.0, 1.0]


# Attention


@EACH_EXIT
def test_attention_heads_match_a_slow_attention(index: int) -> None:
    heads, reading = made_heads("attention"), read("attention", index)
    head = heads.exits[index]
    assert isinstance(head, AttentionHead)
    expected = [
        _slow_attention(head, reading.tokens[row, :length].tolist())
        for row, length in enumerate(LENGTHS)
    ]
    torch.testing.assert_close(heads(reading, index), torch.tensor(expected))


def _slow_attention(head: AttentionHead, tokens: list[list[float]]) -> list[float]:
    narrow = [[math.tanh(x) for x in affine(head.narrow, token)] for token in tokens]
    query = affine(head.query, narrow[0])
    keys = [affine(head.key, token) for token in narrow]
    values = [affine(head.value, token) for token in narrow]
    half = len(query) // 2
    context: list[float] = []
    for part in (slice(0, half), slice(half, None)):
        scores = [math.exp(_dot(query[part], key[part]) / math.sqrt(half)) for key in keys]
        shares = [score / sum(scores) for score in scores]
        context.extend(_dot(shares, column) for column in zip(*(v[part] for v in values)))  # noqa: B905
    dense = [math.tanh(x) for x in affine(head.dense, affine(head.output, context))]
    return affine(head.classifier, dense)


def _dot(left: list[float], right: list[float] | tuple[float, ...]) -> float:
    return sum(a * b for a, b in zip(left, right, strict=True))


def test_parameters_of_attention_heads_are_the_published_ones() -> None:
    assert size(made_large("attention", exits=1)) == 181_250
    assert made_large("attention").internal_parameters() == 11 * 181_250


@pytest.mark.parametrize("value", [7.0, 0.0, -2.0, 8.5, math.nan, math.inf, "wide"])
def test_a_width_that_two_heads_cannot_share_is_refused(value: float | str) -> None:
    with pytest.raises(UsageError, match="such as 128, got"):
        HEADS["attention"](HeadSettings(HIDDEN, CLASSES, EXITS, 0.1, {"head_size": value}))
