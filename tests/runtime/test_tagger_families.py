"""Taggers of every family: the same tags and exits whatever the batch, and of some in a bundle."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from tests.export.bundles import BUNDLE_BACKENDS
from tests.model.families import FAMILIES, SIZES, tiny
from tests.tagged import TAGS, toy_sentences
from transformers import PreTrainedTokenizerBase

import de3bert
from de3bert import Classifier
from de3bert.exits import Policy, Trace, replay
from de3bert.exits.signals.parse import Signal
from de3bert.exits.sweep import signal_matrix
from de3bert.export.bundle import export_model
from de3bert.model import EarlyExitForTokenClassification

NEAR = 1e-4  # signals this near to the threshold may go either way
SENTENCES = [words for words, _ in toy_sentences(30, 21)] + [["film-movie", "good", "plot-a"]]


def opinionated(family: str, tokenizer: PreTrainedTokenizerBase, folder: Path) -> Path:
    """A random tagger that is sure of some words and not of others, in a folder."""
    with torch.random.fork_rng():
        torch.manual_seed(5)
        model = EarlyExitForTokenClassification.from_backbone(
            tiny(family), labels=TAGS, method="tokee", max_length=24
        )
    with torch.no_grad():
        for head in model.heads.exits:
            head.weight *= 10
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def middle(trace: Trace) -> float:
    """A threshold that some words and sentences pass and some do not, near to none of them."""
    entropy = Signal.parse("entropy")
    words = [entropy(trace.view(index)) for index in range(trace.exits - 1)]
    values = np.sort(np.append(signal_matrix(trace, entropy, "max"), words))
    some = values[len(values) // 4 : len(values) // 2]
    widest = int(np.diff(some).argmax())
    assert some[widest + 1] - some[widest] > 2 * NEAR
    return float(some[widest : widest + 2].mean())


def check(tagger: Classifier, reference: Classifier) -> None:
    """Sentences against a replay of the reference; single words, which no replay has, against its
    run one by one.
    """
    trace = reference.trace(SENTENCES)
    tau = middle(trace)
    whole = replay(trace, Policy.parse(f"entropy < {tau}"))
    tags = [reference.label_names[label] for label in whole.labels]
    single = said(reference, f"entropy < {tau} window 3", 1)
    for size in (1, 7, len(SENTENCES)):
        found = said(tagger, f"entropy < {tau}", size)
        assert found == (tags, whole.exit_layers.tolist())
        assert said(tagger, f"entropy < {tau} window 3", size) == single
    assert len(set(whole.exit_layers)) > 1
    assert len(set(single[1])) > 1


def said(tagger: Classifier, policy: str, size: int) -> tuple[list[str], list[int]]:
    """Tags and exits of all words."""
    found = tagger.predict(SENTENCES, policy=policy, batch_size=size)
    layers = [layer for each in found for layer in each.exit_layers]
    return [tag for each in found for tag in each.tags], layers


@pytest.mark.parametrize("family", FAMILIES)
def test_batching_never_changes_a_tag(family, tiny_tokenizer, tmp_path):
    tagger = de3bert.load(opinionated(family, tiny_tokenizer, tmp_path / "m"))
    check(tagger, tagger)


@pytest.mark.parametrize("family", ["bert", "roberta", "distilbert"])  # each takes seconds
def test_a_bundle_tags_as_its_model(family, tiny_tokenizer, tmp_path, monkeypatch):
    monkeypatch.setitem(SIZES, "num_hidden_layers", 2)
    model = de3bert.load(opinionated(family, tiny_tokenizer, tmp_path / "m"))
    export_model(tmp_path / "m", tmp_path / "b")
    for backend in BUNDLE_BACKENDS:
        check(de3bert.load(tmp_path / "b", backend=backend), model)
