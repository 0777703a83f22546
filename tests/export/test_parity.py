"""Every family as a bundle: the signals, labels and exits of the model it was made of.

Whichever back end runs the bundle, and for 8-bit weights the two back ends against one another.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.export.bundles import BUNDLE_BACKENDS, ROUNDING, apart
from tests.fixtures_trained import toy_rows
from tests.model.families import FAMILIES, SIZES, tiny
from tests.runtime.test_stopping import answers
from transformers import PreTrainedTokenizerBase

import de3bert
from de3bert import Classifier
from de3bert.data.tokens import TextInput
from de3bert.exits import Policy, Signal, Trace, replay
from de3bert.exits.replay import margin
from de3bert.export.bundle import export_model
from de3bert.export.one_file import add_single
from de3bert.export.quantise import quantise_graph
from de3bert.model import EarlyExitForSequenceClassification
from de3bert.model.tokens import TextEncoder
from de3bert.runtime.manifest import Manifest
from de3bert.runtime.torch_backend import TorchBackend

STEP = 0.02  # how far signals of 8-bit weights may be from one another
WORDS = [text for text, _ in toy_rows(30, seed=21)]
SINGLES = [*WORDS, "good", " ".join(WORDS[:4]), "🙂 猫 naïve", "a"]
PAIRS = [*zip(WORDS, reversed(WORDS), strict=True), ("joy", " ".join(WORDS[:4])), ("a", "b")]


def opinionated(family: str, tokenizer: PreTrainedTokenizerBase, folder: Path) -> Classifier:
    """A random model whose every exit is sure of some of the texts and not of others; saved."""
    with torch.random.fork_rng():
        torch.manual_seed(5)
        model = EarlyExitForSequenceClassification.from_backbone(
            tiny(family), labels=["neg", "pos"], pooling="mean", max_length=24, exit_layers=[1]
        )
        assert model.prototypes is not None
        model.prototypes.vectors.normal_()
        model.prototypes.initialised.fill_(True)
    classifier = Classifier(TorchBackend(model, TextEncoder(tokenizer, 24)), str(folder))
    logits = np.concatenate([classifier.trace(texts).logits for texts in (SINGLES, PAIRS)])
    with torch.no_grad():
        for index, head in enumerate(model.heads.exits):
            gap = logits[:, index, 1] - logits[:, index, 0]
            head.bias[1] -= middle(gap)
            for part in (head.weight, head.bias):
                part *= 3 / float(gap.std())
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return classifier


def middle(values: NDArray[np.floating]) -> float:
    """About the median, in the widest gap between two neighbours there."""
    ordered = np.sort(values, axis=None)
    some = ordered[int(0.4 * len(ordered)) : int(0.6 * len(ordered)) + 1]
    widest = int(np.diff(some).argmax())
    return float(some[widest : widest + 2].mean())


def median_policy(trace: Trace, name: str) -> Policy:
    """About half of the rows that reach an exit leave there."""
    signal = Signal.parse(name)
    values = np.array([signal(trace.view(index)) for index in range(trace.exits - 1)])
    return Policy.parse(f"{signal} < {middle(values)!r}")


def clear_cut(trace: Trace, policy: Policy) -> NDArray[np.bool_]:
    """Rows that no rounding decides otherwise: neither signal nor class is a near tie."""
    ordered = np.sort(trace.logits, axis=-1)
    gap = (ordered[..., -1] - ordered[..., -2]).min(axis=1)
    return (margin(trace, policy) > ROUNDING) & (gap > ROUNDING)


def check_answers(
    bundle: Classifier, trace: Trace, texts: Sequence[TextInput], policy: Policy
) -> int:
    """All batch sizes and orders against a replay of the model; returns the rows set aside."""
    expected, clear = replay(trace, policy), clear_cut(trace, policy)
    assert len(set(expected.exit_layers[clear].tolist())) >= 2  # not all leave at one place
    wanted = [
        (bundle.label_names[label], layer)
        for label, layer in zip(expected.labels, expected.exit_layers, strict=True)
    ]
    shuffled = np.random.default_rng(5).permutation(len(texts))
    for order, size in ((range(len(texts)), 1), (shuffled, 3), (shuffled[::-1], len(texts))):
        found = answers(
            bundle.predict([texts[row] for row in order], policy=policy, batch_size=size)
        )
        for row, answer in zip(order, found, strict=True):
            assert not clear[row] or answer == wanted[row]
    return int((~clear).sum())


@pytest.mark.parametrize("family", FAMILIES)
def test_a_bundle_answers_as_its_model(family, tiny_tokenizer, tmp_path, monkeypatch):
    # Two stretches, the first layer and all others: tracing takes long, and more show nothing new.
    monkeypatch.setitem(SIZES, "num_hidden_layers", 2)
    model = opinionated(family, tiny_tokenizer, tmp_path / "model")
    made = export_model(tmp_path / "model", tmp_path / "bundle")
    assert made.single["rule"] == "edr"  # single rows have a graph of their own
    for backend in BUNDLE_BACKENDS:
        bundle = de3bert.load(tmp_path / "bundle", backend=backend)
        assert bundle.backend.exit_layers == made.exit_layers == (1, model.depth)
        check_parity(model, bundle, f"{family}, {backend}")
    check_eight_bits(tmp_path / "bundle")


def check_parity(model: Classifier, bundle: Classifier, name: str) -> None:
    """Traces and stopping, in batches of all sizes, against the model in torch."""
    compared = aside = 0
    for texts in (SINGLES, PAIRS):
        theirs = model.trace(texts, batch_size=8)
        for size in (1, 5, len(texts)):
            ours = bundle.trace(texts, batch_size=size)
            assert apart(theirs, ours) <= ROUNDING
            assert (ours.tokens == theirs.tokens).all()
        for signal in ("edr(lambda=1.0)", "entropy"):
            aside += check_answers(bundle, theirs, texts, median_policy(theirs, signal))
            compared += len(texts)
    print(f"{name}: {aside} of {compared} rows set aside")
    assert aside <= 0.05 * compared


def check_eight_bits(folder: Path) -> None:
    """The bundle with 8-bit weights says the same by every back end, for any batch.

    Nearly: a number on the border of two steps of 8 bits may fall to either side, and what follows
    then differs by a step.
    """
    manifest = Manifest.read(folder)
    for graph in manifest.graphs:
        quantise_graph(folder / graph.file)
    (folder / "single.onnx").unlink()
    manifest.model_copy(update={"precision": "int8", "single": None}).write(folder)
    single, told = add_single(folder)
    assert single is not None, told
    (folder / "single.onnx").unlink()  # what is compared below are stretches
    first, *others = (de3bert.load(folder, backend=backend) for backend in BUNDLE_BACKENDS)
    for size, other in itertools.product((1, 5, len(SINGLES)), others):
        theirs, ours = (each.trace(SINGLES, batch_size=size) for each in (first, other))
        assert np.median(np.abs(ours.logits - theirs.logits)) <= ROUNDING
        assert apart(ours, theirs) <= STEP
