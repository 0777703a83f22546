"""Chunks of similar length change the work, never the answer."""

from __future__ import annotations

import pytest
import torch
from transformers import BertConfig, BertModel

from de3bert.model import EarlyExitForSequenceClassification
from de3bert.model.chunks import ROWS, length_chunks


def padded_mask(lengths: list[int]) -> torch.Tensor:
    return (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None]).long()


LENGTHS = [3, 20, 4, 5, 19, 3, 4, 18, 6, 3, 5, 20, 4, 3]


@pytest.fixture
def model() -> EarlyExitForSequenceClassification:
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=60,
        hidden_size=32,
        num_hidden_layers=3,
        num_attention_heads=4,
        intermediate_size=48,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    return EarlyExitForSequenceClassification.from_backbone(BertModel(config), num_labels=2)


def test_chunks_hold_every_row_once_and_cut_behind_the_longest() -> None:
    mask = padded_mask(LENGTHS)
    chunks = length_chunks(mask)
    assert chunks is not None
    assert len(chunks) > 1
    assert sorted(torch.cat([rows for rows, _ in chunks]).tolist()) == list(range(len(LENGTHS)))
    for rows, longest in chunks:
        assert longest == max(LENGTHS[row] for row in rows.tolist())
    assert sum(len(rows) * longest for rows, longest in chunks) < mask.numel()


@pytest.mark.parametrize(
    ("why", "mask"),
    [
        ("few rows", padded_mask(LENGTHS[:ROWS])),
        ("little padding", padded_mask([20] * 15 + [18])),
        ("padding on the left", padded_mask(LENGTHS).flip(1)),
        ("a hole", padded_mask(LENGTHS) * torch.tensor([1, 0] + [1] * 18)),
        ("another device", padded_mask(LENGTHS).to("meta")),
    ],
)
def test_no_chunks_where_they_do_not_pay(why: str, mask: torch.Tensor) -> None:
    assert length_chunks(mask) is None, why


def test_loss_gradients_and_prototypes_are_those_of_the_whole_batch(
    model: EarlyExitForSequenceClassification, monkeypatch: pytest.MonkeyPatch
) -> None:
    mask = padded_mask(LENGTHS)
    ids = torch.randint(5, 60, mask.shape)
    labels = torch.randint(0, 2, (len(LENGTHS),))
    found = []
    for chunked in (True, False):
        if not chunked:
            monkeypatch.setattr("de3bert.model.early_exit.length_chunks", lambda mask: None)
        model.train()
        model.zero_grad()
        for buffer in model.prototypes.buffers():
            buffer.zero_()
        calls = count_layer_rows(model, monkeypatch)
        output = model(ids, mask, labels=labels)
        output.loss.backward()
        gradient = {name: p.grad.clone() for name, p in model.named_parameters()}
        found.append((output, gradient, model.prototypes.vectors.clone(), list(calls)))
    (a, grad_a, proto_a, calls_a), (b, grad_b, proto_b, calls_b) = found
    assert max(calls_a) <= ROWS < min(calls_b)
    torch.testing.assert_close(a.loss, b.loss)
    torch.testing.assert_close(a.exit_logits, b.exit_logits)
    torch.testing.assert_close(a.distances, b.distances)
    torch.testing.assert_close(proto_a, proto_b)
    for name, gradient in grad_a.items():
        torch.testing.assert_close(gradient, grad_b[name], atol=1e-5, rtol=1e-3, msg=name)


def count_layer_rows(
    model: EarlyExitForSequenceClassification, monkeypatch: pytest.MonkeyPatch
) -> list[int]:
    rows: list[int] = []
    layer = type(model.encoder).layer

    def spy(self, prepared, number, hidden):  # type: ignore[no-untyped-def]
        rows.append(hidden.shape[0])
        return layer(self, prepared, number, hidden)

    monkeypatch.setattr(type(model.encoder), "layer", spy)
    return rows
