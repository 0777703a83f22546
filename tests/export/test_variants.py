"""Models of every make as bundles: poolings, kinds of prototypes, methods without exits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.export.bundles import ROUNDING, apart
from tests.fixtures_trained import toy_rows
from tests.model.families import tiny_bert
from tests.runtime.test_stopping import answers

import de3bert
from de3bert import Classifier
from de3bert.errors import De3Error, UsageError
from de3bert.export.bundle import export_model
from de3bert.model import EarlyExitForSequenceClassification

TEXTS = [text for text, _ in toy_rows(20, seed=61)]
Build = Callable[..., tuple[Classifier, Classifier]]


@pytest.fixture
def both(tmp_path: Path, tiny_tokenizer: Any) -> Build:
    """A random model of two layers and its bundle."""

    def build(*, set_prototypes: bool = True, **options: Any) -> tuple[Classifier, Classifier]:
        with torch.random.fork_rng():
            backbone = tiny_bert(num_hidden_layers=2)
            model = EarlyExitForSequenceClassification.from_backbone(
                backbone, labels=["neg", "mixed", "pos"], max_length=24, **options
            )
            for head in model.heads.exits:
                torch.nn.init.normal_(head.weight)
            if model.prototypes is not None and set_prototypes:
                model.prototypes.vectors.normal_()
                model.prototypes.initialised.fill_(True)
        model.save_pretrained(tmp_path / "model")
        tiny_tokenizer.save_pretrained(tmp_path / "model")
        export_model(tmp_path / "model", tmp_path / "bundle")
        return de3bert.load(tmp_path / "model"), de3bert.load(tmp_path / "bundle")

    return build


@pytest.mark.parametrize(
    ("pooling", "prototypes"),
    [
        ("mean", "identity"),
        ("cls", "linear"),
        ("own_pooler", "identity"),
        ("mean_own_pooler", "linear"),
    ],
)
def test_every_pooling_and_kind_of_prototypes(both, pooling, prototypes):
    model, bundle = both(pooling=pooling, prototypes=prototypes)
    theirs = model.trace(TEXTS)
    for size in (1, 6, 20):
        ours = bundle.trace(TEXTS, batch_size=size)
        assert apart(ours, theirs) <= ROUNDING
        assert ours.distances.shape == (20, 1, 3)
    assert (bundle.info.pooling, bundle.info.prototypes) == (pooling, prototypes)
    policy = "edr(lambda=1.0) < 0.5"
    assert bundle.backend.alone(bundle.policy(policy=policy))
    for size in (1, 6):
        assert answers(bundle.predict(TEXTS, policy=policy, batch_size=size)) == answers(
            model.predict(TEXTS, policy=policy)
        )


def test_a_method_with_entropy_alone(both):
    model, bundle = both(method="joint-entropy", pooling="shared_pooler")
    assert not bundle.has_prototypes
    assert list(Path(bundle.source).glob("distances*")) == []
    ours = bundle.trace(TEXTS)
    assert ours.distances is None
    assert apart(ours, model.trace(TEXTS)) <= ROUNDING
    assert answers(bundle.predict(TEXTS, policy="entropy < 0.5")) == answers(
        model.predict(TEXTS, policy="entropy < 0.5")
    )
    assert bundle.explain(TEXTS[0], policy="entropy < 0.5").layers[0].edr is None
    with pytest.raises(UsageError, match=r"this model has none \(method joint-entropy\)"):
        bundle.predict(TEXTS, policy="edr(lambda=1.0) < 0.2")


def test_a_method_without_early_exits_is_one_graph(both):
    model, bundle = both(method="full")
    assert [path.name for path in Path(bundle.source).glob("*.onnx")] == ["layers-01-02.onnx"]
    assert "no exit but the last" in bundle.backend.manifest.made["single"]["refused"]
    assert bundle.backend.exit_layers == (2,)
    assert apart(bundle.trace(TEXTS), model.trace(TEXTS)) <= ROUNDING
    found = bundle.predict(TEXTS, batch_size=6)
    assert answers(found) == answers(model.predict(TEXTS))
    assert {each.exit_layer for each in found} == {2}
    with pytest.raises(UsageError, match="no exit at layer 1"):
        bundle.predict(TEXTS, policy="layer(1)")
    with pytest.raises(UsageError, match="this model has none"):
        bundle.predict(TEXTS, policy="edr(lambda=1.0) < 0.2")


def test_prototypes_that_were_never_set_are_named(both):
    model, bundle = both(set_prototypes=False)
    manifest = json.loads((Path(bundle.source) / "manifest.json").read_text())
    assert manifest["prototypes_unset"] == ["neg", "mixed", "pos"]
    for each in (model, bundle):
        with pytest.raises(De3Error, match="never set: neg, mixed, pos"):
            each.predict(TEXTS, policy="edr(lambda=1.0) < 0.2")
        with pytest.raises(De3Error, match="never set: neg, mixed, pos"):
            each.trace(TEXTS)
    # The way out that the message names works.
    assert answers(bundle.predict(TEXTS, policy="entropy < 0.5")) == answers(
        model.predict(TEXTS, policy="entropy < 0.5")
    )
    assert bundle.explain(TEXTS[0], policy="entropy < 0.5").layers[0].distance is None
