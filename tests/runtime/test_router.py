"""Routers in the engine: asked when the policy asks, recorded, explained, refused where none is."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.exits.traces import random_trace
from tests.runtime.fakes import fake, texts_of

import de3bert
from de3bert.errors import UsageError
from de3bert.exits import Policy, Trace, replay
from de3bert.model import EarlyExitForSequenceClassification
from de3bert.runtime.model_info import ModelInfo

TRACE = replace(
    random_trace(rows=60, exits=5, seed=8),
    distances=None,
    tokens=np.random.default_rng(1).integers(3, 40, 60),
)
TEXTS = texts_of(TRACE)


@pytest.mark.parametrize("line", ["certainty > 0.8", "certainty >= 0.6 x 2", "certainty > 1.0"])
@pytest.mark.parametrize("size", [1, 7, 60])
def test_running_is_replaying(line, size):
    answers = fake(TRACE).predict(TEXTS, policy=line, batch_size=size)
    expected = replay(TRACE, Policy.parse(line))
    assert [answer.exit_layer for answer in answers] == expected.exit_layers.tolist()
    names = [TRACE.label_names[label] for label in expected.labels]
    assert [answer.label for answer in answers] == names


def test_rows_leave_at_many_exits():
    """Or else the test above would say little."""
    left = Counter(replay(TRACE, Policy.parse("certainty > 0.8")).exit_layers.tolist())
    assert len(left) == 5


def test_the_router_is_asked_only_when_the_policy_asks():
    classifier = fake(TRACE)
    for line in ("entropy < 0.0", "patience(3)", "layer(3)", "full", "bandit"):
        classifier.predict(TEXTS, policy=line)
    assert classifier.backend.asked == []
    classifier.predict(TEXTS[:1], policy="certainty > 1.0")
    assert classifier.backend.asked == [1, 2, 3, 4]  # never at the final exit


def test_a_trace_has_the_certainty():
    classifier = fake(TRACE)
    found = classifier.trace(TEXTS, TRACE.labels, batch_size=7)
    assert np.array_equal(found.certainty, TRACE.certainty)
    assert np.array_equal(found.logits, TRACE.logits)
    assert found.distances is None
    assert fake(replace(TRACE, certainty=None)).trace(TEXTS).certainty is None


def test_a_model_without_a_router_refuses_such_a_policy():
    plain = fake(replace(TRACE, certainty=None))
    assert (plain.has_router, fake(TRACE).has_router) == (False, True)
    with pytest.raises(
        UsageError, match=r"router.*none \(method joint-entropy\).*`entropy < 0\.2`"
    ):
        plain.predict(TEXTS, policy="certainty > 0.9")


def test_an_explanation_shows_it():
    explained = fake(TRACE).explain("3", policy="certainty > 0.0")
    shown = [row.certainty for row in explained.layers]
    assert shown == [*TRACE.certainty[3].tolist(), None]
    header, *rows = str(explained).splitlines()[2:]
    assert header.endswith("EDR  certainty")
    assert f"  {TRACE.certainty[3, 0]:.3f}" in rows[0][-30:]
    assert rows[-1].split()[-1] == "-"
    plain = fake(replace(TRACE, certainty=None)).explain("3")
    assert "certainty" not in str(plain)
    assert plain.layers[0].certainty is None


CONFIG = {
    "id2label": {"0": "a", "1": "b"},
    "backbone_config": {"model_type": "bert", "hidden_size": 8},
    "exit_layers": [2, 4, 6],
    "max_length": 64,
    "method": "de3",
    "pooling": "mean",
    "prototypes": "linear",
}


@pytest.mark.parametrize("empty", [{}, {"router": None, "base_depth": None}])
def test_facts_of_a_config_that_says_nothing_of_either(empty):
    info = ModelInfo.of({**CONFIG, **empty})
    assert (info.router, info.base_depth) == ("none", 6)


def test_facts_of_a_config_that_does():
    info = ModelInfo.of({**CONFIG, "router": "lte", "base_depth": 12})
    assert (info.router, info.base_depth) == ("lte", 12)


def test_a_real_model_with_a_router(tiny_backbone, tiny_tokenizer, tmp_path):
    model = EarlyExitForSequenceClassification.from_backbone(
        tiny_backbone, labels=["neg", "pos"], max_length=24, method="berxit"
    )
    with torch.random.fork_rng(), torch.no_grad():  # a fresh router is unsure of everything alike
        torch.manual_seed(5)
        for weights in model.router.parameters():
            weights.normal_()
    model.save_pretrained(tmp_path / "model")
    tiny_tokenizer.save_pretrained(tmp_path / "model")
    classifier = de3bert.load(tmp_path / "model")
    texts = ["a good film", "the worst plot was a bore", "joy", "dull dull dull dull"]
    trace = classifier.trace(texts, batch_size=1)
    assert trace.certainty.shape == (4, 3)
    trace.save(tmp_path / "a.trace")
    again = Trace.load(tmp_path / "a.trace")
    assert np.array_equal(again.certainty, trace.certainty)
    # A threshold between the rows, so that some leave and some stay.
    ordered = np.sort(trace.certainty[:, 0])
    policy = Policy.parse(f"certainty > {float(ordered[1] + ordered[2]) / 2}")
    expected = replay(trace, policy).exit_layers.tolist()
    assert sorted(expected)[:2] == [1, 1]
    assert max(expected) > 1
    for size in (1, 4):
        answers = classifier.predict(texts, policy=policy, batch_size=size)
        assert [answer.exit_layer for answer in answers] == expected
