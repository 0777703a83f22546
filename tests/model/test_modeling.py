"""The model class: sizes, what is taken over from the backbone, saving, precision."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
from tests.model.families import SIZES, batch, tiny_bert
from torch import nn
from transformers import (
    AlbertConfig,
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertModel,
    RobertaConfig,
    RobertaModel,
)

from de3bert.errors import De3Error, UsageError
from de3bert.model import EarlyExitForSequenceClassification
from de3bert.model.building import dropout_of
from de3bert.model.prototypes import cosine_distance

OWN = ("own_pooler", "mean_own_pooler")
LABELS = torch.tensor([0, 1, 1])
build = EarlyExitForSequenceClassification.from_backbone


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


@pytest.mark.parametrize("pooling", OWN)
def test_a_pooler_per_exit_is_counted(pooling: str) -> None:
    with torch.device("meta"):
        model = build(BertModel(BertConfig()), num_labels=2, pooling=pooling)
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


@pytest.mark.parametrize("pooling", ["shared_pooler", *OWN, "mean", "cls"])
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
        **dict.fromkeys(OWN, lambda: list(model.pooling.dense)),
    }.get(pooling, list)()
    assert len(poolers) == {"shared_pooler": 1, **dict.fromkeys(OWN, 3)}.get(pooling, 0)
    for pooler in poolers:
        assert torch.equal(pooler.weight, original.pooler.dense.weight)
        assert torch.equal(pooler.bias, original.pooler.dense.bias)
        assert pooler.weight is not original.pooler.dense.weight


# Method, options, what is asked for -> pooling on a BERT and on a sentence embedder, and whether
# the poolers are the backbone's.
BUILT = [
    ("gpfee", {}, None, "own_pooler", "mean_own_pooler", False),
    ("gpfee", {}, "mean", "mean_own_pooler", "mean_own_pooler", False),
    ("gpfee", {"poolers": "copied"}, "cls", "own_pooler", "own_pooler", True),
    ("gpfee", {"poolers": "none"}, None, "shared_pooler", "mean", True),
    ("berxit", {}, None, "own_pooler", "mean_own_pooler", True),
    ("berxit", {"poolers": "fresh"}, "mean", "mean_own_pooler", "mean_own_pooler", False),
    ("berxit", {"poolers": "none"}, "mean", "mean", "mean", True),
    ("deebert", {}, None, "shared_pooler", "mean", True),
    ("deebert", {}, "mean_own_pooler", "mean_own_pooler", "mean_own_pooler", True),
    ("deebert", {"poolers": "copied"}, None, "own_pooler", "mean_own_pooler", True),
    ("cascade-truncated", {}, None, "own_pooler", "mean_own_pooler", True),
]


@pytest.mark.parametrize(("method", "options", "asked", "plain", "embedder", "copied"), BUILT)
def test_poolers_of_a_methods_own_stand_on_what_the_backbone_is_read_by(
    method: str,
    options: dict[str, str],
    asked: str | None,
    plain: str,
    embedder: str,
    copied: bool,
    tmp_path: Path,
) -> None:
    original = tiny_bert()
    for name, expected in (("plain", plain), ("gte-tiny", embedder)):
        original.save_pretrained(tmp_path / name)
        model = build(tmp_path / name, num_labels=2, method=method, pooling=asked, **options)
        assert model.config.pooling == expected
        own = "own" in expected
        poolers = list(model.pooling.dense) if own else list(model.pooling.children())
        for pooler in poolers:
            assert torch.equal(pooler.weight, original.pooler.dense.weight) == copied
        assert model.pooling.fresh == (own and not copied)  # then they learn at the heads' rate
        added = len(poolers) - 1 if own else 0
        assert model.exit_parameters().get("poolers", 0) == added * (32 * 32 + 32)


def test_an_untrained_pooler_is_copied_by_nobody(tmp_path: Path) -> None:
    BertForMaskedLM(tiny_bert().config).save_pretrained(tmp_path)
    model = build(tmp_path, num_labels=2, method="berxit")
    first, second, _ = model.pooling.dense
    assert (model.config.pooling, model.pooling.fresh) == ("mean_own_pooler", True)
    assert not torch.equal(first.weight, second.weight)


def test_parts_that_were_put_into_the_backbone_later_are_kept_too() -> None:
    backbone = tiny_bert()
    backbone.embeddings.word_embeddings = nn.Embedding(70, 32)  # as after adding tokens by hand
    backbone.encoder.layer[1].output.dense = nn.Linear(64, 32)
    words = backbone.embeddings.word_embeddings.weight.clone()
    dense = backbone.encoder.layer[1].output.dense.weight.clone()
    model = build(backbone, num_labels=2)
    assert torch.equal(model.get_input_embeddings().weight, words)
    assert torch.equal(model.encoder.layers[1].output.dense.weight, dense)


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
    assert dropout_of(BertConfig(hidden_dropout_prob=0.3)) == 0.3
    assert dropout_of(BertConfig(hidden_dropout_prob=0.3, classifier_dropout=0.0)) == 0.0
    assert dropout_of(AlbertConfig(hidden_dropout_prob=0.0, classifier_dropout_prob=0.2)) == 0.2


def test_the_length_never_exceeds_the_positions_of_the_backbone() -> None:
    assert build(tiny_bert(), num_labels=2).config.max_length == 64
    assert build(tiny_bert(), num_labels=2, max_length=16).config.max_length == 16
    for padding, longest in ((1, 62), (3, 60)):  # positions start behind the padding index
        roberta = RobertaModel(RobertaConfig(**{**SIZES, "pad_token_id": padding}))
        model = build(roberta, num_labels=2)
        assert model.config.max_length == longest
        model(torch.full((1, longest), 7))
        with pytest.raises((IndexError, RuntimeError), match="out of"):
            model(torch.full((1, longest + 1), 7))


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
            pooled, logits = model.read(hidden, prepared.mask, layer)
            torch.testing.assert_close(output.projected[:, layer - 1], pooled)
            prototypes = model.prototypes.vectors[layer - 1 : layer]
            expected = cosine_distance(pooled[:, None], prototypes)[:, 0]
            torch.testing.assert_close(output.distances[:, layer - 1], expected)
            torch.testing.assert_close(model.distances(pooled, layer), expected)
            torch.testing.assert_close(output.exit_logits[:, layer - 1], logits)


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
        chosen.heads.exits[at].load_state_dict(everywhere.heads.exits[source].state_dict())
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


@pytest.mark.parametrize("pooling", ["cls", "mean", "shared_pooler", *OWN])
def test_poolings_agree_with_their_definition(pooling: str) -> None:
    model = build(tiny_bert(), num_labels=2, pooling=pooling)
    hidden, mask = torch.randn(3, 7, 32), batch()["attention_mask"]
    with torch.no_grad():
        found = model.pooling(hidden, mask, 1)
        for row, length in enumerate((7, 4, 2)):
            expected = hidden[row, 0]
            if pooling.startswith("mean"):
                expected = sum(hidden[row, token] for token in range(length)) / length
            if pooling.endswith("pooler"):
                dense = model.pooling.dense
                dense = dense if pooling == "shared_pooler" else dense[1]
                expected = torch.tanh(dense.weight @ expected + dense.bias)
            torch.testing.assert_close(found[row], expected)
        weights = model.pooling.weights(mask, hidden.dtype)
        assert torch.equal(model.pooling.read(hidden, weights, 1), found)


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
