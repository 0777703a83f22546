"""Two complete models in a row: each is what it would be alone, and a row pays for both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from tests.export.bundles import ROUNDING, apart
from tests.export.test_parity import PAIRS, SINGLES, check_answers, median_policy, middle
from tests.fixtures_trained import ToyData, toy_recipe
from tests.model.families import FAMILIES, SIZES, batch, tiny, tiny_bert
from tests.runtime.spies import watch
from transformers import BertConfig, BertModel, PreTrainedTokenizerBase

import de3bert
from de3bert import Classifier
from de3bert.errors import UsageError
from de3bert.exits import Policy, Trace
from de3bert.exits.calibrate import measure
from de3bert.exits.replay import replay
from de3bert.export.bundle import export_model
from de3bert.methods import METHODS
from de3bert.model import EarlyExitForSequenceClassification
from de3bert.model.cascade import Cascade
from de3bert.model.tokens import TextEncoder
from de3bert.objective import Clock
from de3bert.objective.difficulty_margin import difficulty_margin
from de3bert.objective.objective import ExitBatch
from de3bert.runtime.torch_backend import TorchBackend
from de3bert.training.fit import fit
from de3bert.training.recipe import recipe_from

Model = EarlyExitForSequenceClassification
LABELS = torch.tensor([0, 1, 1])


def build(family: str = "bert", *, small: int = 1, **changes: Any) -> Model:
    """A cascade whose two models have no weight in common."""
    with torch.random.fork_rng():
        torch.manual_seed(5)
        model = Model.from_backbone(
            tiny(family), num_labels=2, method="cascade-truncated", small=small, **changes
        )
        parts = (*model.encoder.small.parameters(), *model.pooling.parameters())
        with torch.no_grad():
            for part in parts:
                part += 0.1 * torch.randn_like(part)
    return model


def alone(model: Model, family: str, index: int) -> Model:
    """One model of the cascade as a model of its own, its parts taken over."""
    part = (model.encoder.small, model.encoder.big)[index]
    method = "full" if index else "layers-k"
    options = {} if index else {"layers": float(part.depth)}
    pooling = model.config.pooling
    single = Model.from_backbone(
        tiny(family), num_labels=2, method=method, pooling=pooling, **options
    )
    single.encoder.load_state_dict(part.state_dict())
    single.heads.exits[0].load_state_dict(model.heads.exits[index].state_dict())
    if "own" in pooling:
        single.pooling.dense[0].load_state_dict(model.pooling.dense[index].state_dict())
    return single.eval()


# --- what it costs


def test_known_speed_up_of_the_published_log() -> None:
    """321 of 408 rows leave after 2 layers, the others pay for 14: 12 * 408 / 1860."""
    logits = np.zeros((408, 2, 2), dtype=np.float32)
    logits[:321, 0, 0] = 3.0
    logits[321:, 0, 0] = 1.0  # a probability of 0.73
    labels, tokens = np.zeros(408, dtype=np.int64), np.full(408, 9)
    trace = Trace(logits, None, labels, tokens, (2, 14), ("a", "b"), base_depth=12)
    found = measure(trace, Policy.parse("max_probability > 0.8"))
    assert found["layer_speedup"] == pytest.approx(2.632258, abs=5e-7)
    assert found["layer_speedup"] == 12 * 408 / (321 * 2 + 87 * 14)


def test_the_rule_is_strict() -> None:
    family = METHODS["cascadebert"].families
    assert family == ("max_probability",)
    logits = np.zeros((1, 2, 2), dtype=np.float32)  # a probability of exactly one half
    trace = Trace(logits, None, None, np.array([3]), (2, 14), ("a", "b"), base_depth=12)
    assert replay(trace, Policy.parse("max_probability > 0.5")).exit_layers.tolist() == [14]
    assert replay(trace, Policy.parse("max_probability > 0.4999")).exit_layers.tolist() == [2]


def test_layers_count_those_of_both_models() -> None:
    model = build(small=2)
    assert model.config.exit_layers == [2, 5]
    assert (model.config.depth, model.encoder.depth, model.config.base_depth) == (5, 5, 3)
    assert model.config.encoder_config.num_hidden_layers == 3
    assert model.encoder.small.backbone.config.num_hidden_layers == 2


# --- each model is what it would be alone


@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_each_exit_is_its_model_alone(family: str) -> None:
    model = build(family)
    found = model(**batch()).exit_logits
    assert found.shape == (3, 2, 2)
    for index in (0, 1):
        single = alone(model, family, index)
        torch.testing.assert_close(found[:, index], single(**batch()).logits, atol=1e-6, rtol=1e-5)
    assert not torch.allclose(found[:, 0], found[:, 1], atol=1e-3)


@torch.no_grad()
def test_both_models_are_told_which_text_of_a_pair_a_token_is_of() -> None:
    model, inputs = build(), batch()
    second = {**inputs, "token_type_ids": (torch.arange(7) > 1).long().expand(3, 7)}
    found, plain = model(**second).exit_logits, model(**inputs).exit_logits
    for index in (0, 1):
        expected = alone(model, "bert", index)(**second).logits
        torch.testing.assert_close(found[:, index], expected, atol=1e-6, rtol=1e-5)
        assert not torch.allclose(found[:, index], plain[:, index], atol=1e-3)


@torch.no_grad()
def test_neither_model_reads_anything_of_the_other() -> None:
    model = build(small=2)
    before = model(**batch()).exit_logits
    for index, part in enumerate((model.encoder.small, model.encoder.big)):
        kept = [parameter.clone() for parameter in part.parameters()]
        for parameter in part.parameters():
            parameter.normal_()
        after = model(**batch()).exit_logits
        assert torch.equal(after[:, 1 - index], before[:, 1 - index])
        assert not torch.allclose(after[:, index], before[:, index], atol=1e-3)
        for parameter, old in zip(part.parameters(), kept, strict=True):
            parameter.copy_(old)


def test_a_fresh_small_model_has_the_first_layers_of_the_backbone() -> None:
    backbone = tiny_bert()
    expected = {name: tensor.clone() for name, tensor in backbone.state_dict().items()}
    model = Model.from_backbone(backbone, num_labels=2, method="cascade-truncated", small=2)
    for part in (model.encoder.small, model.encoder.big):
        for number, layer in enumerate(part.layers):
            for name, tensor in layer.state_dict().items():
                assert torch.equal(tensor, expected[f"encoder.layer.{number}.{name}"])
        words = part.backbone.get_input_embeddings().weight
        assert torch.equal(words, expected["embeddings.word_embeddings.weight"])
    assert model.config.pooling == "own_pooler"
    for pooler in model.pooling.dense:
        assert torch.equal(pooler.weight, expected["pooler.dense.weight"])
    owners = [id(parameter) for parameter in model.parameters()]
    addresses = {parameter.data_ptr() for parameter in model.parameters()}
    assert len(addresses) == len(owners)  # nothing is shared


# --- engine, files, graphs


def opinionated(
    family: str, tokenizer: PreTrainedTokenizerBase, folder: Path
) -> tuple[Classifier, Model]:
    """A cascade whose small model is sure of some of the texts and not of others; saved."""
    model = build(family, max_length=24, pooling="mean")
    model.config.id2label, model.config.label2id = {0: "neg", 1: "pos"}, {"neg": 0, "pos": 1}
    classifier = Classifier(TorchBackend(model.eval(), TextEncoder(tokenizer, 24)), str(folder))
    logits = np.concatenate([classifier.trace(texts).logits for texts in (SINGLES, PAIRS)])
    with torch.no_grad():
        for index, head in enumerate(model.heads.exits):
            gap = logits[:, index, 1] - logits[:, index, 0]
            head.bias[1] -= middle(gap)
            for part in (head.weight, head.bias):
                part *= 3 / float(gap.std())
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return classifier, model


@pytest.mark.parametrize("family", ["bert", "modernbert", "deberta-v2", "albert-1-group"])
def test_batching_never_changes_an_answer(
    family: str,
    tiny_tokenizer: PreTrainedTokenizerBase,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    classifier, _ = opinionated(family, tiny_tokenizer, tmp_path)
    work = watch(classifier, monkeypatch)
    for texts in (SINGLES, PAIRS):
        trace = classifier.trace(texts, batch_size=7)
        policy = median_policy(trace, "entropy")
        assert check_answers(classifier, trace, texts, policy) <= 0.1 * len(texts)
        work.clear()
        answers = classifier.predict(texts, policy=policy, batch_size=4)
        assert work.row_layers == sum(answer.exit_layer for answer in answers)


def test_the_big_model_is_not_touched_by_rows_that_leave_before_it(
    tiny_tokenizer: PreTrainedTokenizerBase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    classifier, model = opinionated("bert", tiny_tokenizer, tmp_path)
    counts = {"small": 0, "big": 0}
    for name, part in (("small", model.encoder.small), ("big", model.encoder.big)):

        def counted(*inputs: Any, own: Any = part.prepare, at: str = name, **more: Any) -> Any:
            counts[at] += len(more["input_ids"])
            return own(*inputs, **more)

        monkeypatch.setattr(part, "prepare", counted)
    classifier.predict(SINGLES, policy="layer(1)")
    assert counts == {"small": len(SINGLES), "big": 0}
    trace = classifier.trace(SINGLES)
    policy = median_policy(trace, "entropy")
    staying = int((replay(trace, policy).exit_layers > 1).sum())
    counts.update(small=0, big=0)
    classifier.predict(SINGLES, policy=policy, batch_size=64)
    assert 0 < staying < len(SINGLES)
    assert counts == {"small": len(SINGLES), "big": staying}


@pytest.mark.parametrize("family", ["bert", "modernbert", "deberta-v2"])
def test_a_bundle_answers_as_its_model(
    family: str,
    tiny_tokenizer: PreTrainedTokenizerBase,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(SIZES, "num_hidden_layers", 2)
    model, trained = opinionated(family, tiny_tokenizer, tmp_path / "model")
    export_model(tmp_path / "model", tmp_path / "bundle")
    bundle = de3bert.load(tmp_path / "bundle")
    assert bundle.backend.exit_layers == (1, trained.encoder.depth)
    assert bundle.info.base_depth == trained.encoder.depth - 1
    for texts in (SINGLES, PAIRS):
        theirs = model.trace(texts, batch_size=8)
        for size in (1, 5, len(texts)):
            assert apart(theirs, bundle.trace(texts, batch_size=size)) <= ROUNDING
        check_answers(bundle, theirs, texts, median_policy(theirs, "entropy"))
    vocabulary = trained.config.vocab_size
    for path in (tmp_path / "bundle").glob("*.onnx"):  # each graph has its own embeddings alone
        shapes = [tuple(each.dims) for each in onnx.load(path).graph.initializer]
        assert sum(shape[:1] == (vocabulary,) for shape in shapes) == 1


def test_a_saved_cascade_comes_back_the_same(tmp_path: Path) -> None:
    model = build(small=2)
    model.save_pretrained(tmp_path)
    again, info = Model.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"]
    assert not info["unexpected_keys"]
    assert (again.config.cascade, again.config.exit_layers) == (2, [2, 5])
    assert isinstance(again.encoder, Cascade)
    with torch.no_grad():
        assert torch.equal(model(**batch()).exit_logits, again(**batch()).exit_logits)


def test_new_tokens_can_be_added(tmp_path: Path) -> None:
    model = build()
    model.resize_token_embeddings(63)
    ids = torch.tensor([[7, 62, 61]])
    expected = model(ids).exit_logits
    for part in (model.encoder.small, model.encoder.big):
        assert part.backbone.get_input_embeddings().num_embeddings == 63
    model.save_pretrained(tmp_path)
    again = Model.from_pretrained(tmp_path)
    torch.testing.assert_close(again(ids).exit_logits, expected, atol=1e-7, rtol=0)


def test_both_models_follow_a_change_of_attention() -> None:
    model = build()
    before = model(**batch()).exit_logits
    model.set_attn_implementation("eager")
    for part in (model.encoder.small, model.encoder.big):
        assert part.backbone.config._attn_implementation == "eager"
    torch.testing.assert_close(model(**batch()).exit_logits, before, atol=1e-5, rtol=1e-4)


# --- training


def test_the_loss_is_both_cross_entropies_and_the_margin() -> None:
    model = build()
    difficult = torch.tensor([True, False, False])
    found = model(**batch(), labels=LABELS, extras={"difficult": difficult})
    logits = found.exit_logits.detach()
    entropies = [float(torch.nn.functional.cross_entropy(logits[:, m], LABELS)) for m in (0, 1)]
    seen = ExitBatch(
        logits, LABELS, None, {"margin": 0.5}, clock=Clock(), extras={"difficult": difficult}
    )
    margin = float(difficulty_margin(seen))
    assert margin > 0.01
    assert found.loss.item() == pytest.approx(sum(entropies) + 0.5 * margin, abs=1e-6)
    # Rows that are only evaluated have no difficulty: the margin is left out.
    assert model(**batch(), labels=LABELS).loss.item() == pytest.approx(sum(entropies), abs=1e-6)


def test_the_gradient_reaches_every_parameter_of_both_models() -> None:
    model = build(small=2).train()
    extras = {"difficult": torch.tensor([True, False, False])}
    model(**batch(), labels=LABELS, extras=extras).loss.backward()
    assert not [name for name, each in model.named_parameters() if each.grad is None]


def test_training_teaches_both_models(
    tiny_backbone: Path, toy_data: ToyData, tmp_path: Path
) -> None:
    settings = {
        **toy_recipe(tiny_backbone, toy_data),
        "method": "cascade-truncated",
        "method_options": {"small": 1.0},
    }
    done = fit(recipe_from(settings), tmp_path / "model", progress=False)
    assert done.exit_accuracy.keys() == {1, 5}
    assert min(done.exit_accuracy.values()) > 0.8
    record = json.loads((tmp_path / "model" / "training.json").read_text(encoding="utf-8"))
    (together,) = record["phases"]
    # 3 epochs of 480 rows, and of the 320 that each judge may see half as many.
    assert together["steps"] == 3 * 480 // 16 + 3 * (320 * 3 // 16 // 2)
    losses = [entry["loss"] for entry in record["log"] if "loss" in entry]
    assert np.mean(losses[-10:]) < 0.7 * np.mean(losses[:10])
    classifier = de3bert.load(tmp_path / "model")
    assert (classifier.depth, classifier.info.base_depth) == (5, 4)
    size = classifier.backend.size()
    assert size["exit_parameters"]["small model"] > 0


# --- counting and refusing


def test_the_small_model_is_counted_as_what_exits_add() -> None:
    """4 layers, embeddings and pooler of a BERT of 768: 52,779,264 parameters, and a head."""
    with torch.device("meta"):
        backbone = BertModel(BertConfig())
        model = Model.from_backbone(backbone, num_labels=2, method="cascade-truncated", small=4)
    added = model.exit_parameters()
    assert added["small model"] + added["poolers"] == 52_779_264
    assert added["classifiers"] == 768 * 2 + 2
    assert model.config.exit_layers == [4, 16]
    assert model.config.base_depth == 12


@pytest.mark.parametrize("small", [0.0, 3.0, 4.0, 1.5, -1.0])
def test_a_small_model_that_is_none_is_refused(small: float) -> None:
    accepted = r"backbone has 3 layers; take a small model of 1 to 2"
    if small < 1 or small % 1:  # which no backbone has
        accepted = "small must be a whole number from 1 on"
    with pytest.raises(UsageError, match=accepted):
        Model.from_backbone(tiny_bert(), num_labels=2, method="cascade-truncated", small=small)


def test_exits_within_a_model_are_refused() -> None:
    with pytest.raises(UsageError, match=r"exit_layers=\[1, 4\]; got \[2\]"):
        Model.from_backbone(
            tiny_bert(), num_labels=2, method="cascade-truncated", small=1, exit_layers=[2]
        )
    asked = Model.from_backbone(
        tiny_bert(), num_labels=2, method="cascade-truncated", small=1, exit_layers=[1]
    )
    assert asked.config.exit_layers == [1, 4]
