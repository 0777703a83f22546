"""Taggers as bundles: the tags and exits that torch gives, without torch."""

from __future__ import annotations

import json
import random
import shutil
import subprocess
import sys

import numpy as np
import pytest
from tests.export.test_time import made_up
from tests.fixtures_trained import once
from tests.runtime.test_onnx_light import HEAVY, WITHOUT
from tests.tagged import toy_sentences

import de3bert
from de3bert.data.words import read_words
from de3bert.errors import De3Error, UsageError
from de3bert.exits.signals.parse import Signal
from de3bert.exits.sweep import signal_matrix
from de3bert.export.bundle import export_model
from de3bert.runtime.calibrate_folder import calibrate_model
from de3bert.runtime.evaluate import evaluate
from de3bert.runtime.manifest import Manifest

NEAR = 1e-4
SENTENCES = [
    *(words for words, _ in toy_sentences(40, 31)),
    ["film-movie", "good", "plot-a"],
    ["film"] * 50,  # longer than the model's limit
    ["good"],
]


@pytest.fixture(scope="module")
def taggers(tmp_path_factory, sentee_model, tokee_model, de3_tagger):
    """name -> the model by torch, and its bundle."""
    made = {}
    for name, folder in (("sentee", sentee_model), ("tokee", tokee_model), ("de3", de3_tagger)):
        bundle = once(
            tmp_path_factory, f"bundle-{name}", lambda out, folder=folder: export_model(folder, out)
        )
        made[name] = de3bert.load(folder), de3bert.load(bundle)
    return made


def middle(tagger, signal="entropy", over="max"):
    """A threshold in the middle of what sentences have, near to none of them."""
    values = np.sort(signal_matrix(tagger.trace(SENTENCES), Signal.parse(signal), over).ravel())
    gaps, centre = np.diff(values), len(values) // 2
    widest = centre - 5 + int(gaps[centre - 5 : centre + 5].argmax())
    assert gaps[widest] > 2 * NEAR
    return float((values[widest] + values[widest + 1]) / 2)


def said(tagger, policy, sentences=SENTENCES, size=32):
    return [
        (answer.words, answer.tags, answer.exit_layers, answer.pieces)
        for answer in tagger.predict(sentences, policy=policy, batch_size=size)
    ]


@pytest.mark.parametrize("name", ["sentee", "tokee", "de3"])
def test_every_exit_says_the_same(taggers, name):
    model, bundle = taggers[name]
    theirs, ours = model.trace(SENTENCES), bundle.trace(SENTENCES)
    assert np.abs(theirs.logits - ours.logits).max() < NEAR
    assert theirs.sentence.tolist() == ours.sentence.tolist()
    assert theirs.tokens.tolist() == ours.tokens.tolist()
    if name == "de3":
        assert np.abs(theirs.distances - ours.distances).max() < NEAR


@pytest.mark.parametrize("rule", ["entropy < {tau}", "entropy < {tau} mean",
                                  "entropy < {tau} window 3", "layer(2)", "full"])  # fmt: skip
@pytest.mark.parametrize("name", ["sentee", "tokee"])
def test_a_bundle_tags_as_torch_does(taggers, name, rule):
    model, bundle = taggers[name]
    tau = middle(model, over="mean" if rule.endswith("mean") else "max")
    policy = rule.format(tau=tau)
    expected = said(model, policy)
    assert said(bundle, policy) == expected
    if "tau" in rule:
        assert len({layer for _, _, layers, _ in expected for layer in layers}) > 2


def test_edr_of_words_in_a_bundle(taggers):
    model, bundle = taggers["de3"]
    policy = f"edr(lambda=1.0) < {middle(model, 'edr(lambda=1.0)')}"
    assert said(bundle, policy) == said(model, policy)


@pytest.mark.parametrize("rule", ["entropy < {tau}", "entropy < {tau} window 3"])
@pytest.mark.parametrize("size", [1, 2, 7, 64])
def test_batches_order_and_padding_change_no_answer(taggers, rule, size):
    model, bundle = taggers["tokee"]
    policy = rule.format(tau=middle(model))
    expected = said(model, policy)
    order = random.Random(size).sample(range(len(SENTENCES)), len(SENTENCES))
    found = said(bundle, policy, [SENTENCES[at] for at in order], size)
    assert found == [expected[at] for at in order]


@pytest.mark.parametrize("kept", [[2], [1, 3]])
def test_words_halt_inside_a_stretch_of_several_layers(taggers, tokee_model, tmp_path, kept):
    """A halted word stays as it is in every layer of the next graph, not only behind it."""
    export_model(tokee_model, tmp_path / "b", exits=kept)
    bundle, model = de3bert.load(tmp_path / "b"), taggers["tokee"][0]
    assert bundle.backend.exit_layers == (*kept, 4)
    tau = middle(model)
    outcome = bundle.predict(SENTENCES, policy=f"entropy < {tau} window 3")
    # By torch: the same model, asked to look at these exits alone.
    backend = model.backend
    every, backend.exit_layers = backend.exit_layers, (*kept, 4)
    try:
        expected = model.predict(SENTENCES, policy=f"entropy < {tau} window 3")
    finally:
        backend.exit_layers = every
    assert [each.tags for each in outcome] == [each.tags for each in expected]
    assert [each.exit_layers for each in outcome] == [each.exit_layers for each in expected]
    for one, other in zip(outcome, expected, strict=True):
        known = [value for value in one.scores if value is not None]
        assert known == pytest.approx([v for v in other.scores if v is not None], abs=NEAR)
    assert any(len(set(each.exit_layers) - {None}) > 1 for each in outcome)


def test_the_manifest_says_the_task(taggers):
    bundle = taggers["sentee"][1]
    manifest = Manifest.read(bundle.backend.folder)
    assert manifest.task == "token-classification"
    assert manifest.unknown == "[UNK]"
    assert manifest.context["token_layers"] == ["rows", "tokens"]


@pytest.mark.parametrize(
    "change",
    [{"task": "text-classification"}, {"unknown": None}, {"task": "something else"}],
)
def test_parts_of_different_tasks_are_refused(taggers, tmp_path, change):
    folder = shutil.copytree(taggers["sentee"][1].backend.folder, tmp_path / "b")
    path = folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(De3Error, match="is damaged"):
        de3bert.load(folder)


def test_int8_points_are_calibrated_anew(sentee_model, word_data, tmp_path):
    folder = shutil.copytree(sentee_model, tmp_path / "m")
    table = read_words(word_data.calibration)
    calibrate_model(folder, "layers=1.5", "fast", table=table, default=True)
    done = export_model(folder, tmp_path / "b", int8=True)  # finds the rows by itself
    assert done.recalibrated is not None
    assert list(done.recalibrated.points) == ["fast"]
    bundle = de3bert.load(tmp_path / "b")
    found = evaluate(bundle, table)
    assert found.point == "fast"
    assert found.layer_speedup >= 1.5
    assert found.score == pytest.approx(bundle.points["fast"].measured["score"])


def test_points_on_a_bundle_run_as_they_were_measured(taggers, word_data, tmp_path):
    folder = shutil.copytree(taggers["de3"][1].backend.folder, tmp_path / "b")
    table = read_words(word_data.calibration)
    point = calibrate_model(folder, "layers=1.5", "fast", table=table)
    found = evaluate(de3bert.load(folder), table, point="fast")
    assert found.score == pytest.approx(point.measured["score"])
    assert found.layers_mean == pytest.approx(point.measured["layers_mean"])


LIGHT = """
import json
import de3bert
folder = sys.argv[1]
tagger = de3bert.load(folder)
sentences = [["a", "good", "film"], ["the", "plot-scene"], ["\\u200d", "film"]]
said = tagger.predict(sentences, policy="entropy < 0.3 window 3")
heavy = sorted(set(HEAVY) & {name.partition(".")[0] for name in sys.modules})
print(json.dumps([[list(each.tags) for each in said], [list(each.pieces) for each in said], heavy]))
"""


def test_without_torch(taggers):
    model, bundle = taggers["tokee"]
    code = f"HEAVY = {HEAVY!r}\n{WITHOUT}\n{LIGHT}"
    command = [sys.executable, "-c", code, str(bundle.backend.folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    tags, pieces, heavy = json.loads(done.stdout)
    sentences = [["a", "good", "film"], ["the", "plot-scene"], ["\u200d", "film"]]
    expected = model.predict(sentences, policy="entropy < 0.3 window 3")
    assert heavy == []
    assert tags == [list(each.tags) for each in expected]
    assert pieces == [list(each.pieces) for each in expected]


def test_texts_are_refused_by_a_bundle_of_a_tagger(taggers):
    with pytest.raises(UsageError, match="split texts into words first"):
        taggers["sentee"][1].predict(["a good film"])


def test_a_profile_of_a_tagger_and_a_point_by_its_times(taggers, word_data, tmp_path):
    from de3bert.runtime.evaluate import trace_table
    from de3bert.runtime.profile import known_profile, profile, write_profile

    folder = shutil.copytree(taggers["sentee"][1].source, tmp_path / "b")
    tagger = de3bert.load(folder)
    write_profile(folder, profile(tagger, batches=(2,), lengths=(4, 12), rounds=3))
    cost = known_profile(folder)
    assert sorted(cost.batches) == [1, 2]
    trace = trace_table(tagger, read_words(word_data.calibration))
    rows = tagger.encode(read_words(word_data.calibration).texts).rows
    lengths = [len(row["input_ids"]) for row in rows]
    assert trace.lengths.tolist() == lengths
    # What a machine measures of a toy is mostly noise: the point is chosen on times that are known.
    cost = made_up(tagger.weights_sha256)
    write_profile(folder, cost)
    wanted = float(cost.full(trace).mean()) * 0.9
    point = calibrate_model(
        folder, f"latency={wanted}ms", "quick", table=read_words(word_data.calibration)
    )
    assert point.measured["predicted_ms"] <= wanted + 1e-6
