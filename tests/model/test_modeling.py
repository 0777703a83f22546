"""The model class: sizes, what is taken over from the backbone, saving, precision."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from transformers import (
    AlbertConfig,
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertModel,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaModel,
    pipeline,
)

from de3bert.errors import De3Error, UsageError
from de3bert.model import EarlyExitConfig, EarlyExitForSequenceClassification
from de3bert.model.modeling import _dropout
from de3bert.model.prototypes import cosine_distance

from .families import SIZES, batch, tiny

LABELS = torch.tensor([0, 1, 1])
build = EarlyExitForSequenceClassification.from_backbone


def tiny_bert(**changes: object) -> BertModel:
    torch.manual_seed(1)
    return BertModel(BertConfig(**{**SIZES, **changes}))


def size(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


# --- sizes


@pytest.mark.parametrize(
    ("classes", "classifiers", "total"),
    [(2, 16_918, 6_513_430), (3, 25_377, 6_521_889), (14, 118_426, 6_614_938)],
)
def test_exits_of_bert_base_cost_what_the_paper_says(
    classes: int, classifiers: int, total: int
) -> None:
    with torch.device("meta"):
        model = build(BertModel(BertConfig()), num_labels=classes)
    assert model.config.pooling == "shared_pooler"
    counts = model.exit_parameters()
    assert counts["classifiers"] == classifiers
    assert sum(counts.values()) == total
    final_head = 768 * classes + classes
    assert size(model) - total - final_head == 109_482_240  # the pooler is now the pooling's


def test_a_pooler_per_exit_is_counted() -> None:
    with torch.device("meta"):
        model = build(BertModel(BertConfig()), num_labels=2, pooling="own_pooler")
    assert model.exit_parameters()["poolers"] == 11 * 590_592


# --- what comes from the backbone


def test_pooling_follows_the_backbone(tmp_path: Path) -> None:
    def pooling(folder: Path) -> str:
        return build(folder, num_labels=2).config.pooling

    with_pooler, without, embedder = (tmp_path / name for name in ("plain", "bare", "sentences"))
    tiny_bert().save_pretrained(with_pooler)
    assert pooling(with_pooler) == "shared_pooler"
    BertForMaskedLM(tiny_bert().config).save_pretrained(without)
    assert pooling(without) == "mean"
    tiny_bert().save_pretrained(embedder)
    (embedder / "modules.json").write_text("[]")
    assert pooling(embedder) == "mean"
    named = tmp_path / "all-MiniLM-L6"
    tiny_bert().save_pretrained(named)
    assert pooling(named) == "mean"
    inside = tmp_path / "e5-experiments" / "plain"  # where a folder lies says nothing about it
    tiny_bert().save_pretrained(inside)
    assert pooling(inside) == "shared_pooler"


@pytest.mark.parametrize("pooling", ["shared_pooler", "own_pooler", "mean", "cls"])
def test_pretrained_weights_are_kept_bit_for_bit(pooling: str, tmp_path: Path) -> None:
    original = tiny_bert()
    original.save_pretrained(tmp_path)
    model = build(tmp_path, num_labels=2, pooling=pooling)
    for number, layer in enumerate(original.encoder.layer):
        for name, weight in layer.state_dict().items():
            assert torch.equal(model.encoder.layers[number].state_dict()[name], weight)
    for name, weight in original.embeddings.state_dict().items():
        assert torch.equal(model.encoder.backbone.embeddings.state_dict()[name], weight)
    poolers = {
        "shared_pooler": lambda: [model.pooling.dense],
        "own_pooler": lambda: list(model.pooling.dense),
    }.get(pooling, list)()
    assert len(poolers) == {"shared_pooler": 1, "own_pooler": 3}.get(pooling, 0)
    for pooler in poolers:
        assert torch.equal(pooler.weight, original.pooler.dense.weight)
        assert torch.equal(pooler.bias, original.pooler.dense.bias)
        assert pooler.weight is not original.pooler.dense.weight


def test_an_untrained_pooler_is_not_taken_over(tmp_path: Path) -> None:
    BertForMaskedLM(tiny_bert().config).save_pretrained(tmp_path)
    model = build(tmp_path, num_labels=2, pooling="shared_pooler")
    assert model.pooling.dense.bias.abs().sum() == 0
    assert model.pooling.dense.weight.std() < 0.03


def test_a_model_with_a_head_gives_its_encoder() -> None:
    torch.manual_seed(1)
    model = build(BertForSequenceClassification(BertConfig(**SIZES)), num_labels=2)
    assert type(model.encoder.backbone) is BertModel


def test_half_precision_folders_are_read_as_full_precision(tmp_path: Path) -> None:
    tiny_bert().half().save_pretrained(tmp_path)
    assert json.loads((tmp_path / "config.json").read_text())["dtype"] == "float16"
    model = build(tmp_path, num_labels=2)
    assert {parameter.dtype for parameter in model.parameters()} == {torch.float32}
    model.save_pretrained(tmp_path / "saved")
    again = EarlyExitForSequenceClassification.from_pretrained(tmp_path / "saved")
    assert {parameter.dtype for parameter in again.parameters()} == {torch.float32}


def test_a_new_model_is_in_evaluation_mode_throughout() -> None:
    for backbone in (tiny_bert(), tiny_bert().eval()):
        model = build(backbone, num_labels=2)
        assert not any(module.training for module in model.modules())
        assert all(module.training for module in model.train().modules())


def test_a_broken_or_absent_backbone_is_named(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(De3Error, match="does not load as an encoder"):
        build(tmp_path, num_labels=2)
    tiny_bert().save_pretrained(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\0" * 100)
    with pytest.raises(De3Error, match="could not be read"):
        build(tmp_path, num_labels=2)


def test_dropout_is_that_of_the_familys_own_classifier() -> None:
    assert _dropout(BertConfig(hidden_dropout_prob=0.3)) == 0.3
    assert _dropout(BertConfig(hidden_dropout_prob=0.3, classifier_dropout=0.0)) == 0.0
    assert _dropout(AlbertConfig(hidden_dropout_prob=0.0, classifier_dropout_prob=0.2)) == 0.2


def test_the_length_never_exceeds_the_positions_of_the_backbone() -> None:
    assert build(tiny_bert(), num_labels=2).config.max_length == 64
    assert build(tiny_bert(), num_labels=2, max_length=16).config.max_length == 16
    roberta = RobertaModel(RobertaConfig(**{**SIZES, "pad_token_id": 1}))
    model = build(roberta, num_labels=2)
    assert model.config.max_length == 62  # positions start behind the padding index
    model(torch.full((1, model.config.max_length), 7))


# --- exits


def test_pooled_vectors_are_what_distances_are_measured_from() -> None:
    model = build(tiny_bert(), num_labels=2, prototypes="identity")
    assert model.projectors is None
    assert set(model.exit_parameters()) == {"classifiers"}
    model.train()(**batch(), labels=LABELS)
    model.eval()
    with torch.no_grad():
        output = model(**batch())
        prepared = model.encoder.prepare(**batch())
        hidden = prepared.embedded
        for layer in (1, 2):
            hidden = model.encoder.layer(prepared, layer, hidden)
            pooled = model.pooled(hidden, prepared.mask, layer)
            torch.testing.assert_close(output.projected[:, layer - 1], pooled)
            prototypes = model.prototypes.vectors[layer - 1 : layer]
            expected = cosine_distance(pooled[:, None], prototypes)[:, 0]
            torch.testing.assert_close(output.distances[:, layer - 1], expected)
            torch.testing.assert_close(model.distances(pooled, layer), expected)
            torch.testing.assert_close(output.exit_logits[:, layer - 1], model.classify(pooled, layer))


def test_without_prototypes_there_are_no_distances() -> None:
    model = build(tiny_bert(), num_labels=2, method="joint-entropy")
    assert model.config.prototypes == "none"
    output = model(**batch(), labels=LABELS)
    assert output.distances is None
    assert output.projected is None
    assert output.loss.isfinite()
    with pytest.raises(UsageError, match="no distances"):
        model.distances(torch.zeros(1, 32), 1)


def test_exits_at_chosen_layers_read_those_layers() -> None:
    everywhere = build(tiny_bert(), num_labels=2)
    chosen = build(tiny_bert(), num_labels=2, exit_layers=[2])
    assert chosen.config.exit_layers == [2, 3]  # the last layer always has its head
    for at, source in ((0, 1), (1, 2)):
        chosen.classifiers[at].load_state_dict(everywhere.classifiers[source].state_dict())
    with torch.no_grad():
        few, all_of_them = chosen(**batch()), everywhere(**batch())
    assert few.exit_logits.shape == (3, 2, 2)
    assert few.projected.shape == (3, 1, 32)
    assert torch.equal(few.exit_logits, all_of_them.exit_logits[:, 1:])
    assert torch.equal(few.logits, few.exit_logits[:, -1])
    for wrong in ([0], [4], [-1, 2]):
        with pytest.raises(UsageError, match=r"exit_layers must lie in 1\.\.3"):
            build(tiny_bert(), num_labels=2, exit_layers=wrong)


def test_dropout_acts_on_the_classifier_alone() -> None:
    quiet = tiny_bert(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
    quiet.config.classifier_dropout = 0.5
    model = build(quiet, num_labels=2).train()
    first, second = model(**batch()), model(**batch())
    assert torch.equal(first.projected, second.projected)
    assert not torch.equal(first.exit_logits, second.exit_logits)


@pytest.mark.parametrize("pooling", ["cls", "mean", "shared_pooler", "own_pooler"])
def test_poolings_agree_with_their_definition(pooling: str) -> None:
    model = build(tiny_bert(), num_labels=2, pooling=pooling)
    hidden, mask = torch.randn(3, 7, 32), batch()["attention_mask"]
    with torch.no_grad():
        found = model.pooling(hidden, mask, 1)
        for row, length in enumerate((7, 4, 2)):
            first = hidden[row, 0]
            if pooling == "cls":
                expected = first
            elif pooling == "mean":
                expected = sum(hidden[row, token] for token in range(length)) / length
            else:
                dense = model.pooling.dense if pooling == "shared_pooler" else model.pooling.dense[1]
                expected = torch.tanh(dense.weight @ first + dense.bias)
            torch.testing.assert_close(found[row], expected)


# --- wrong requests


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"num_labels": 1}, "at least two classes, got 1"),
        ({}, "at least two classes, got 0"),
        ({"num_labels": 3, "labels": ["no", "yes"]}, "num_labels=3, but 2 labels were named"),
        ({"num_labels": 2, "method": "de4"}, 'Unknown method "de4". Did you mean "de3"'),
        ({"num_labels": 2, "pooling": "meen"}, 'Unknown pooling "meen". Did you mean "mean"'),
        ({"num_labels": 2, "prototypes": "lineal"}, 'prototypes "lineal". Did you mean "linear"'),
        ({"num_labels": 2, "alfa": 0.1}, 'option of method de3 "alfa". Did you mean "alpha"'),
        ({"num_labels": 2, "dar": "centre"}, 'form of dar "centre". Did you mean "center"'),
        ({"num_labels": 2, "dar": 1.0}, "Option dar of method de3 is a word"),
    ],
)
def test_wrong_requests_are_refused_before_the_backbone_is_touched(
    request_: dict[str, object], message: str
) -> None:
    backbone = tiny_bert()
    before = set(backbone.state_dict())
    with pytest.raises(UsageError, match=message):
        build(backbone, **request_)
    assert set(backbone.state_dict()) == before


# --- config, saving, precision


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
    assert model.classifiers[0].weight.dtype == dtype
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
    assert torch.equal(again(ids).logits, expected)


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
