"""Saving, precision and the habits of Hugging Face users."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.model.families import batch, tiny, tiny_bert
from torch import Tensor
from transformers import BertConfig, PreTrainedTokenizerFast, pipeline

from de3bert.model import EarlyExitConfig, EarlyExitForSequenceClassification

LABELS = torch.tensor([0, 1, 1])
build = EarlyExitForSequenceClassification.from_backbone


def test_the_config_survives_json(tmp_path: Path) -> None:
    model = build(tiny_bert(), labels=["no", "yes"], exit_layers=[1, 3], **{"lambda": 1.5})
    assert model.config.method_options["lambda"] == 1.5
    assert model.config.label_names == ("no", "yes")
    point = {"policy": {"threshold": 0.2}, "measured": {"accuracy": 0.9, "layers": 1.75}}
    model.config.operating_points = {"2x": point}
    model.config.default_point = "2x"
    model.save_pretrained(tmp_path)
    again = EarlyExitConfig.from_pretrained(tmp_path)
    assert again.to_dict() == EarlyExitConfig.from_dict(model.config.to_dict()).to_dict()
    assert again.operating_points == {"2x": point}
    assert again.default_point == "2x"
    assert again.exit_layers == [1, 3]
    assert again.method_options == model.config.method_options
    assert again.label_names == ("no", "yes")
    assert again.label2id == {"no": 0, "yes": 1}
    assert type(again.backbone_config) is BertConfig
    assert (again.depth, again.hidden_size, again.vocab_size) == (3, 32, 60)


def test_fresh_prototypes_are_empty_and_trained_ones_are_saved(tmp_path: Path) -> None:
    model = build(tiny_bert(), num_labels=3)
    for fresh in (model, EarlyExitForSequenceClassification(model.config)):
        assert fresh.prototypes.vectors.abs().sum() == 0
        assert not fresh.prototypes.initialised.any()
        assert fresh.prototypes.counts.tolist() == [0, 0, 0]
        assert fresh(**batch()).distances.isnan().all()
    model.train()(**batch(), labels=LABELS)
    model.save_pretrained(tmp_path)
    again = EarlyExitForSequenceClassification.from_pretrained(tmp_path)
    assert again.prototypes.initialised.tolist() == [True, True, False]
    assert again.prototypes.counts.tolist() == [1, 2, 0]
    assert torch.equal(again.prototypes.vectors, model.prototypes.vectors)


def test_prototypes_missing_from_a_checkpoint_come_up_empty(tmp_path: Path) -> None:
    model = build(tiny_bert(), num_labels=3)
    state = {k: v for k, v in model.state_dict().items() if "prototypes" not in k}
    model.save_pretrained(tmp_path, state_dict=state)
    again, info = EarlyExitForSequenceClassification.from_pretrained(
        tmp_path, output_loading_info=True
    )
    assert len(info["missing_keys"]) == 3
    assert again.prototypes.vectors.abs().sum() == 0
    assert not again.prototypes.initialised.any()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("how", ["load", "cast"])
def test_half_precision_keeps_prototypes_and_distances_in_fp32(
    dtype: torch.dtype, how: str, tmp_path: Path
) -> None:
    model = build(tiny_bert(), num_labels=2)
    model.train()(**batch(), labels=LABELS)
    model.eval()
    full = model(**batch()).distances
    vectors = model.prototypes.vectors.clone()
    if how == "load":
        model.save_pretrained(tmp_path)
        model = EarlyExitForSequenceClassification.from_pretrained(tmp_path, dtype=dtype)
    else:
        model = model.to(dtype)
    assert model.heads.exits[0].weight.dtype == dtype
    assert model.prototypes.vectors.dtype == torch.float32
    assert torch.equal(model.prototypes.vectors, vectors)
    with torch.no_grad():
        output = model(**batch())
    assert output.exit_logits.dtype == dtype
    assert output.distances.dtype == torch.float32
    assert output.distances.isfinite().all()
    torch.testing.assert_close(output.distances, full, atol=0.02, rtol=0.05)


def test_mixed_precision_training_gives_finite_gradients() -> None:
    model = build(tiny_bert(), num_labels=2).train()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        output = model(**batch(), labels=LABELS)
    assert output.loss.dtype == output.distances.dtype == torch.float32
    output.loss.backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


# --- Hugging Face habits


def test_a_tuple_on_request() -> None:
    model = build(tiny_bert(), num_labels=2)
    named = model(**batch(), labels=LABELS)
    loss, logits, *rest = model(**batch(), labels=LABELS, return_dict=False)
    torch.testing.assert_close(loss, named.loss, equal_nan=True)
    assert torch.equal(logits, named.logits)
    assert [part.shape for part in rest] == [(3, 3, 2), (3, 2, 2), (3, 2, 32)]


def test_an_evaluation_loss_before_any_training_is_a_number() -> None:
    output = build(tiny_bert(), num_labels=2)(**batch(), labels=LABELS)
    assert output.distances.isnan().all()
    assert output.loss.isfinite()


def test_new_tokens_can_be_added(tmp_path: Path) -> None:
    model = build(tiny_bert(), num_labels=2)
    model.resize_token_embeddings(63)
    assert model.config.vocab_size == 63
    ids = torch.tensor([[7, 62, 61]])
    expected = model(ids).logits
    model.save_pretrained(tmp_path)
    again = EarlyExitForSequenceClassification.from_pretrained(tmp_path)
    assert again.get_input_embeddings().num_embeddings == 63
    own, loaded = model.state_dict(), again.state_dict()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in own.items())
    torch.testing.assert_close(again(ids).logits, expected, atol=1e-7, rtol=0)


def test_the_attention_implementation_can_be_changed() -> None:
    model = build(tiny("bert"), num_labels=2)
    before = model(**batch()).exit_logits
    model.set_attn_implementation("eager")
    assert model.encoder.backbone.config._attn_implementation == "eager"
    torch.testing.assert_close(model(**batch()).exit_logits, before, atol=1e-5, rtol=1e-4)


def test_the_standard_pipeline_runs_it(
    tiny_backbone: Path, tiny_tokenizer: PreTrainedTokenizerFast, tmp_path: Path
) -> None:
    model = build(tiny_backbone, labels=["bad", "good"])
    model.save_pretrained(tmp_path)
    tiny_tokenizer.save_pretrained(tmp_path)
    classify = pipeline("text-classification", model=str(tmp_path), tokenizer=str(tmp_path))
    texts = ["the movie was great", "awful and dull plot"]
    answers = classify(texts, top_k=None)
    for text, answer in zip(texts, answers, strict=True):
        logits: Tensor = model(**tiny_tokenizer(text, return_tensors="pt")).logits
        expected = dict(zip(("bad", "good"), logits.softmax(-1)[0].tolist(), strict=True))
        assert {one["label"]: one["score"] for one in answer} == pytest.approx(expected, abs=1e-5)
    again = pipeline("text-classification", model=model, tokenizer=tiny_tokenizer)
    assert again(texts[0])[0]["label"] == answers[0][0]["label"]


def test_a_pipeline_says_once_that_it_runs_full_depth(
    tiny_backbone: Path,
    tiny_tokenizer: PreTrainedTokenizerFast,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: list[str] = []
    monkeypatch.setattr("de3bert.model.full_depth.logger.warning", said.append)
    model = build(tiny_backbone, labels=["bad", "good"])
    classify = pipeline("text-classification", model=model, tokenizer=tiny_tokenizer)
    silent = classify("the movie was great")
    assert not said  # no points, nothing to miss
    model.config.operating_points = {"fast": {}}
    model.train()(**batch(), labels=LABELS)
    model.eval()(**batch(), labels=LABELS)
    assert not said  # that is training and scoring
    assert classify("the movie was great")[0]["label"] == silent[0]["label"]
    classify("the movie was great")
    (line,) = said
    assert "runs all its 4 layers" in line
    assert "de3bert.load" in line
