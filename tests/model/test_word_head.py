"""Heads that guess hidden words: any family's own, or a fresh one, without a table of their own."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.model.families import FAMILIES, batch, tiny, tiny_bert
from transformers import AutoModel, AutoModelForMaskedLM

from de3bert.errors import De3Error
from de3bert.model.word_head import HeadOf, WordHead, _split, fresh_head, load_masked_model


def masked(family: str):
    """A random masked language model whose head is not the same for all words."""
    with torch.random.fork_rng():
        torch.manual_seed(5)
        model = AutoModelForMaskedLM.from_config(FAMILIES[family]())
        for name, parameter in model.named_parameters():
            std = 0.15 if parameter.dim() > 1 else 0.05
            if parameter.dim() > 1 or name.endswith("bias"):
                torch.nn.init.normal_(parameter, std=std)
    return model.eval()


@pytest.mark.parametrize("family", sorted(FAMILIES))
def test_encoder_and_head_are_the_model_they_came_from(family: str, tmp_path: Path) -> None:
    model = masked(family)
    model.save_pretrained(tmp_path)
    loaded = load_masked_model(str(tmp_path))
    inputs = batch()
    with torch.no_grad():
        expected = model(**inputs).logits
        states = loaded.encoder(**inputs)[0]
        chosen = inputs["attention_mask"].bool()
        found = loaded.head(states[chosen])
    torch.testing.assert_close(found, expected[chosen], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("family", ["bert", "albert-1-group", "electra", "modernbert"])
def test_a_copy_learns_on_its_own(family: str, tmp_path: Path) -> None:
    masked(family).save_pretrained(tmp_path)
    loaded = load_masked_model(str(tmp_path))
    student = AutoModel.from_pretrained(tmp_path)
    table = student.get_input_embeddings().weight
    copy = loaded.head.copy(table)
    states = torch.randn(6, 32)
    before = loaded.head(states).detach()
    torch.testing.assert_close(copy(states), before)
    copy(states).square().sum().backward()
    assert all(weight.grad is not None for weight in copy.parameters())
    assert table.grad.abs().sum() > 0  # through the product with the table
    assert all(weight.grad is None for weight in loaded.head.parameters())
    with torch.no_grad():
        for weight in (*copy.parameters(), table):
            weight.add_(0.1)
    torch.testing.assert_close(loaded.head(states), before)
    assert not torch.allclose(copy(states), before)


@pytest.mark.parametrize("family", sorted(set(FAMILIES) - {"rembert", "eurobert"}))
def test_the_table_is_held_by_reference(family: str) -> None:
    """Two families have a table of their own behind the head; the others share the encoder's."""
    model = masked(family)
    words = model.get_input_embeddings().weight
    head = _split(model).head
    assert head.lent[1] is words
    assert head.table
    assert all(weight.numel() < words.numel() or weight.shape[0] != words.shape[0]
               for weight in head.parameters())  # fmt: skip
    assert all(key.startswith("own.") for key in head.state_dict())


def test_a_fresh_head_has_the_form_of_berts() -> None:
    words = tiny_bert().get_input_embeddings().weight
    torch.manual_seed(0)
    head = fresh_head(32, words)
    assert sum(weight.numel() for weight in head.parameters()) == 32 * 32 + 32 + 2 * 32 + 60
    states = torch.randn(4, 32)
    dense, bias, scale, shift, last = head.own
    inner = torch.nn.functional.gelu(states @ dense.T + bias)
    inner = torch.nn.functional.layer_norm(inner, (32,), scale, shift)
    torch.testing.assert_close(head(states), inner @ words.T + last)
    assert fresh_head(32, torch.nn.Parameter(torch.zeros(60, 16)))(states).shape == (4, 60)


def test_no_states_give_no_logits() -> None:
    assert _split(masked("bert")).head(torch.zeros(0, 32)).shape == (0, 60)
    assert fresh_head(32, tiny_bert().get_input_embeddings().weight)(torch.zeros(0, 32)).shape == (
        0,
        60,
    )


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet", "modernbert", "electra"])
def test_a_checkpoint_without_a_head_has_none(family: str, tmp_path: Path, caplog) -> None:
    tiny(family).save_pretrained(tmp_path)
    assert load_masked_model(str(tmp_path)) is None
    assert "newly initialized" not in caplog.text


def test_a_head_that_reads_more_than_states_is_refused(monkeypatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(WordHead, "forward", lambda self, states: torch.zeros(len(states), 60))
        with pytest.raises(De3Error, match="BertForMaskedLM does not run on its own: it reads"):
            _split(masked("bert"))

    def broken(self, states):
        raise AttributeError("no embeddings here")

    monkeypatch.setattr(HeadOf, "forward", broken)
    with pytest.raises(De3Error, match="no embeddings here"):
        _split(masked("bert"))
