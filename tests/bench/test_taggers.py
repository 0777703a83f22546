"""`de3 bench` on a tagger's bundle: every contender gives a tag for every word."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.bench.test_cli import DOCUMENT, ROW, one_torch_thread, run
from tests.fixtures_trained import once

import de3bert
from de3bert.bench.contender import find
from de3bert.bench.material import BenchMaterial, load_bundle
from de3bert.data.words import read_words
from de3bert.export.bundle import export_model
from de3bert.runtime.calibrate_folder import calibrate_model

__all__ = ["one_torch_thread"]

LONG = ["film-movie", "good"] * 20  # longer than the model's limit


@pytest.fixture(scope="module")
def bundle(tmp_path_factory, sentee_model, word_data):
    def build(out):
        export_model(sentee_model, out, exits=(2, 4))
        calibrate_model(out, "layers=1.3", "half", table=read_words(word_data.calibration))

    return once(tmp_path_factory, "bench-tagger", build)


@pytest.fixture(scope="module")
def material(bundle, tmp_path_factory):
    made = BenchMaterial(load_bundle(bundle), None, tmp_path_factory.mktemp("graphs"))
    made.threads = 1
    yield made
    made.close()


@pytest.mark.parametrize("name", ["hf", "ort", "ort-fused", "openvino", "layer-2"])
def test_tags_are_the_models(material, sentee_model, word_data, name):
    if name == "openvino":
        pytest.importorskip("openvino")
    sentences = [*read_words(word_data.test).texts[:20], LONG]
    layer = 2 if name == "layer-2" else 4
    right = de3bert.load(sentee_model).predict(sentences, policy=f"layer({layer})")
    contender = find(name)(material, name)()
    for size in (1, 4, 64):
        said = contender.predict(sentences, size)
        assert [(a.words, a.tags, a.exit_layers) for a in said] == [
            (a.words, a.tags, a.exit_layers) for a in right
        ]
    assert said[-1].tags[-1] is None  # cut off, by everybody
    known = [score for answer in said for score in answer.scores if score is not None]
    expected = [score for answer in right for score in answer.scores if score is not None]
    np.testing.assert_allclose(known, expected, atol=1e-4)


def test_the_document_of_a_tagger(bundle, word_data):
    asked = ("--data", word_data.test, "--texts", "10", "--rounds", "2", "--against", "hf")
    document = json.loads(run(bundle, *asked, "--json").stdout)
    assert set(document) == DOCUMENT
    assert document["answers_ok"] is True
    rows = {row["name"]: row for row in document["contenders"]}
    assert list(rows) == ["hf", "ours:full", "ours:half"]
    words = sum(rows["ours:full"]["exit_histogram"].values())
    assert words > 10  # a count of words, not of sentences
    for row in rows.values():
        assert set(row) >= ROW
        assert 0.3 < row["accuracy"] <= 1
    assert rows["hf"]["layers_mean"] == 4
    assert rows["ours:half"]["layer_speedup"] == pytest.approx(4 / rows["ours:half"]["layers_mean"])
    assert rows["ours:half"]["same_answers"] <= 1


def test_what_a_tagger_cannot_read(bundle, word_data, tmp_path):
    from de3bert.errors import UsageError

    rows = tmp_path / "rows.csv"
    rows.write_text("text,label\na good film,pos\n")
    with pytest.raises(UsageError, match="cannot hold lists of words"):
        run(bundle, "--data", rows)
    with pytest.raises(UsageError, match="leave out --text-pair"):
        run(bundle, "--data", word_data.test, "--text-pair", "b")
