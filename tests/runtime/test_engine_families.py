"""The engine on other families: masks, position biases and rotary tables of the rows that stay."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.fixtures_trained import toy_rows
from tests.model.families import FAMILIES, tiny
from tests.runtime.spies import watch
from tests.runtime.test_stopping import answers, clear_cut
from transformers import PreTrainedTokenizerBase

from de3bert import Classifier
from de3bert.exits import Policy, replay
from de3bert.model import EarlyExitForSequenceClassification
from de3bert.model.tokens import TextEncoder
from de3bert.runtime.torch_backend import TorchBackend

TEXTS = [text for text, _ in toy_rows(30, seed=21)]


def opinionated(family: str, tokenizer: PreTrainedTokenizerBase) -> Classifier:
    """A random model whose every exit is sure of some of the texts and not of others."""
    with torch.random.fork_rng():
        torch.manual_seed(5)
        model = EarlyExitForSequenceClassification.from_backbone(
            tiny(family), labels=["neg", "pos"], pooling="mean", max_length=24
        )
        assert model.prototypes is not None
        model.prototypes.vectors.normal_()
        model.prototypes.initialised.fill_(True)
    classifier = Classifier(TorchBackend(model, TextEncoder(tokenizer, 24)), family)
    logits = torch.from_numpy(classifier.trace(TEXTS).logits)
    with torch.no_grad():
        for index, head in enumerate(model.heads.exits):
            gap = logits[:, index, 1] - logits[:, index, 0]
            head.bias[1] -= gap.median()
            head.weight *= 3 / gap.std()
            head.bias *= 3 / gap.std()
    return classifier


@pytest.mark.parametrize("family", FAMILIES)
def test_batching_never_changes_an_answer(family, tiny_tokenizer, monkeypatch):
    classifier = opinionated(family, tiny_tokenizer)
    trace = classifier.trace(TEXTS, batch_size=7)
    # The median of all signals: about half of the rows leave at every exit.
    signal = Policy.parse("edr(lambda=1.0) < 1").signal
    assert signal is not None
    middle = float(np.median([signal(trace.view(index)) for index in range(trace.exits - 1)]))
    policy = Policy.parse(f"edr(lambda=1.0) < {middle}")
    expected = replay(trace, policy)
    kept = clear_cut(trace, policy)
    assert kept.sum() > 20
    assert len(set(expected.exit_layers[kept])) >= 3
    work = watch(classifier, monkeypatch)
    for size in (1, 4, 30):
        work.clear()
        predictions = classifier.predict(TEXTS, policy=policy, batch_size=size)
        assert work.row_layers == sum(each.exit_layer for each in predictions)
        found = answers(predictions)
        for row in np.flatnonzero(kept):
            name = classifier.label_names[expected.labels[row]]
            assert found[row] == (name, expected.exit_layers[row])
    clear = np.flatnonzero(kept).tolist()
    leaves, length = expected.exit_layers, trace.tokens
    early, late = next(
        (i, j) for i in clear for j in clear if leaves[i] < leaves[j] and length[i] > length[j]
    )
    work.clear()
    pair = classifier.predict([TEXTS[early], TEXTS[late]], policy=policy)
    assert answers(pair) == [found[early], found[late]]
    # The padding of the short text goes with the long one.
    assert (work.layers[0][2], work.layers[-1][2]) == (length[early], length[late])
