"""What a loaded classifier answers, explains and refuses."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.fixtures_trained import toy_rows
from tests.runtime.fakes import set_config

import de3bert
from de3bert import Prediction
from de3bert.errors import De3Error, UsageError
from de3bert.exits import OperatingPoint, Policy
from de3bert.model import EarlyExitForSequenceClassification
from de3bert.runtime.evaluate import evaluate
from de3bert.runtime.stored_points import store_points

TEXT = "the best film was a joy but the plot is dull"


def point(name: str, policy: str) -> OperatingPoint:
    seen = {"rows": 1, "metric": "accuracy", "score": 1.0, "score_interval": [0.9, 1.0],
            "layers_mean": 2.0, "layer_speedup": 2.0}  # fmt: skip
    return OperatingPoint(name, Policy.parse(policy), "layers=2.0", seen)


def test_a_prediction_names_label_score_and_layers(classifier):
    (answer,) = classifier.predict(["a great joy"], policy="layer(3)")
    assert (answer.label, answer.exit_layer, answer.layers) == ("pos", 3, 4)
    assert 0.5 <= answer.score <= 1
    assert set(answer.to_json()) == {"label", "score", "exit_layer", "layers"}


def test_without_a_point_the_default_counts_and_full_depth_before_there_is_one(model_copy):
    assert de3bert.load(model_copy).predict([TEXT])[0].exit_layer == 4
    store_points(model_copy, [point("early", "layer(1)"), point("mid", "layer(2)")])
    assert de3bert.load(model_copy).predict([TEXT])[0].exit_layer == 4
    store_points(model_copy, [point("third", "layer(3)")], default="mid")
    loaded = de3bert.load(model_copy)
    assert set(loaded.points) == {"early", "mid", "third"}
    assert loaded.predict([TEXT])[0].exit_layer == 2
    assert loaded.predict([TEXT], point="early")[0].exit_layer == 1
    assert loaded.predict([TEXT], point="full")[0].exit_layer == 4


def test_no_texts_no_answers(classifier):
    assert classifier.predict([]) == []


def test_one_string_is_one_text(classifier):
    assert classifier.predict("a good film") == classifier.predict(["a good film"])
    assert classifier.trace("a good film").rows == 1


@pytest.mark.parametrize("verb", ["predict", "trace"])
@pytest.mark.parametrize("size", [0, -3])
def test_a_batch_has_at_least_one_row(classifier, verb, size):
    with pytest.raises(UsageError, match=f"at least 1, got {size}"):
        getattr(classifier, verb)(["a good film"], batch_size=size)


@pytest.mark.parametrize("bad", ["", " \n\t", None, float("nan"), 3, ("good",), ("good", " ")])
def test_an_empty_text_is_refused_with_its_position(classifier, bad):
    with pytest.raises(UsageError, match="Text 3 of 4"):
        classifier.predict(["good", "bad", bad, "fine"])


@pytest.mark.parametrize("texts", [["good", ("good", "bad")], [("good", "bad"), "good film"]])
def test_single_texts_and_pairs_do_not_mix(classifier, texts):
    with pytest.raises(UsageError, match="Text 2 of 2"):
        classifier.predict(texts)


def test_a_long_text_is_cut_counted_and_answered(classifier):
    limit = classifier.info.max_length
    long = " ".join(["good"] * 100)
    fits = " ".join(["good"] * (limit - 2))
    short, cut = classifier.predict(["good film", long])
    assert (short.truncated, cut.truncated) == (False, True)
    assert short.label == "pos"
    (same,) = classifier.predict([fits])
    assert not same.truncated
    assert (cut.label, cut.score) == (same.label, pytest.approx(same.score, abs=1e-5))


def test_only_a_cut_text_says_so(classifier):
    short, long = classifier.predict(["good film", " ".join(["good"] * 100)])
    assert "truncated" not in repr(short)
    assert "truncated" not in short.to_json()
    assert repr(long).endswith("layers=4, truncated=True)")
    assert long.to_json()["truncated"] is True
    assert eval(repr(short), {"Prediction": type(short)}) == short
    assert classifier.explain("good " * 100).prediction.truncated
    assert "truncated" not in classifier.explain("good").to_json()["prediction"]
    assert classifier.trace(["good", "good " * 100]).info["truncated"] == 1
    assert classifier.encode(["good", "good " * 100]).cut == [False, True]


def test_a_point_that_does_not_exist_lists_those_that_do(model_copy):
    store_points(model_copy, [point("fast", "layer(1)"), point("safe", "layer(3)")])
    with pytest.raises(UsageError) as error:
        de3bert.load(model_copy).predict([TEXT], point="fsat")
    assert 'Did you mean "fast"?' in str(error.value)
    assert "Available: fast, full, safe." in str(error.value)
    assert "de3 calibrate" in str(error.value)


def test_a_point_or_a_policy_but_not_both(classifier):
    with pytest.raises(UsageError, match="not both"):
        classifier.predict([TEXT], point="full", policy="full")


def test_policies_that_do_not_fit_the_model(classifier):
    with pytest.raises(UsageError, match=r"no exit at layer 9\. Exits are at: 1, 2, 3, 4"):
        classifier.predict([TEXT], policy="layer(9)")
    with pytest.raises(UsageError, match="true labels"):
        classifier.predict([TEXT], policy="oracle")


@pytest.mark.parametrize("line", ["edr(lambda=2.0) < 0.2", "entropy < 0.5", "patience(2)", "full"])
def test_an_explanation_agrees_with_the_prediction(classifier, line):
    for text, _ in toy_rows(12, seed=31):
        found = classifier.explain(text, policy=line)
        (answer,) = classifier.predict([text], policy=line)
        assert isinstance(found.prediction, Prediction)
        assert (found.prediction.label, found.prediction.exit_layer) == (
            answer.label,
            answer.exit_layer,
        )
        assert found.prediction.score == pytest.approx(answer.score, abs=1e-5)
        assert [row.layer for row in found.layers if row.leaves] == [answer.exit_layer]
        assert found.policy == str(Policy.parse(line))


def test_the_numbers_of_an_explanation_follow_the_formulas(classifier):
    weight = 2.0
    found = classifier.explain(TEXT, policy=f"edr(lambda={weight}) < 0.2")
    trace = classifier.trace([TEXT])
    assert [row.layer for row in found.layers] == [1, 2, 3, 4]
    for index, row in enumerate(found.layers):
        logits = trace.logits[0, index].tolist()
        total = sum(math.exp(value) for value in logits)
        shares = [math.exp(value) / total for value in logits]
        first, second = sorted(range(2), key=shares.__getitem__, reverse=True)
        entropy = -sum(share * math.log(share) for share in shares) / math.log(2)
        assert row.label == classifier.label_names[first]
        assert row.score == pytest.approx(shares[first], abs=1e-5)
        assert row.entropy == pytest.approx(entropy, abs=1e-5)
        if row.layer == 4:
            assert (row.distance, row.runner_up_distance, row.distance_ratio, row.edr) == (
                None,
            ) * 4
            continue
        near, far = trace.distances[0, index, [first, second]].tolist()
        ratio = 0.5 * (1 + (near - far) / max(near, far))
        assert row.distance == pytest.approx(near, abs=1e-5)
        assert row.runner_up_distance == pytest.approx(far, abs=1e-5)
        assert row.distance_ratio == pytest.approx(ratio, abs=1e-4)
        edr = (weight + 1) / (weight / ratio + 1 / entropy)
        assert row.edr == pytest.approx(edr, abs=1e-4)


@pytest.mark.parametrize("pair", [("good film", "bad plot"), ["good film", "bad plot"]])
def test_an_explanation_prints_as_a_table(model_copy, pair):
    set_config(model_copy, text_pairs=None)
    found = de3bert.load(model_copy).explain(pair, policy="layer(2)")
    text, policy, header, *rows = str(found).splitlines()
    assert (text, policy) == ("good film | bad plot", "policy: layer(2)")
    assert header.split() == ["layer", "label", "score", "entropy", "distance", "next", "ratio",
                              "EDR"]  # fmt: skip
    assert [row.split()[0] for row in rows] == ["1", "2", "3", "4"]
    assert ["leaves here" in row for row in rows] == [False, True, False, False]
    assert rows[-1].split()[-4:] == ["-"] * 4


@pytest.fixture
def untrained(tiny_backbone, tmp_path, tiny_tokenizer):
    """A model folder with fresh exits, whose prototypes were never set."""

    def build(**options):
        folder = tmp_path / "untrained"
        model = EarlyExitForSequenceClassification.from_backbone(
            tiny_backbone, labels=["neg", "pos"], max_length=24, **options
        )
        model.save_pretrained(folder)
        tiny_tokenizer.save_pretrained(folder)
        return de3bert.load(folder)

    return build


def test_prototypes_that_were_never_set_are_named(untrained):
    fresh = untrained()
    with pytest.raises(De3Error, match="never set: neg, pos"):
        fresh.predict([TEXT], policy="edr(lambda=1.0) < 0.2")
    with pytest.raises(De3Error, match="never set: neg, pos"):
        fresh.trace([TEXT])
    # The way out that the message names works.
    assert fresh.predict([TEXT], policy="entropy < 0.2")[0].layers == 4
    assert fresh.explain(TEXT, policy="entropy < 0.2").layers[0].distance is None


def test_a_policy_on_distances_needs_prototypes(untrained):
    fresh = untrained(method="joint-entropy")
    with pytest.raises(UsageError, match=r"this model has none \(method joint-entropy\)"):
        fresh.predict([TEXT], policy="edr(lambda=1.0) < 0.2")
    assert fresh.trace([TEXT]).distances is None
    assert fresh.explain(TEXT, policy="entropy < 0.2").layers[0].edr is None


def test_one_exit_alone_needs_no_prototypes(untrained):
    only = untrained(method="full")
    trace = only.trace([TEXT])
    assert (trace.exit_layers, trace.distances) == ((4,), None)
    assert only.explain(TEXT).prediction.exit_layer == 4


def test_evaluation_counts_what_really_ran(classifier):
    from de3bert.data.read import read_table

    texts, labels = zip(*toy_rows(60, seed=32), strict=True)
    table = read_table({"text": list(texts), "label": list(labels)})
    found = evaluate(classifier, table, policy="edr(lambda=1.0) < 0.2", metric="f1", batch_size=7)
    answers = classifier.predict(list(texts), policy="edr(lambda=1.0) < 0.2")
    layers = [answer.exit_layer for answer in answers]
    right = np.mean([answer.label == label for answer, label in zip(answers, labels, strict=True)])
    assert found.scores["accuracy"] == pytest.approx(right)
    assert found.score == found.scores["f1"]
    assert found.layers_mean == pytest.approx(np.mean(layers))
    assert found.layer_speedup == pytest.approx(4 / np.mean(layers))
    assert found.exit_histogram == {layer: layers.count(layer) for layer in (1, 2, 3, 4)}
    low, high = found.score_interval
    assert low <= found.score <= high


def test_evaluation_names_the_point_that_was_used(model_copy):
    from de3bert.data.read import read_table

    table = read_table({"text": ["good", "bad"], "label": ["pos", "neg"]})
    assert evaluate(de3bert.load(model_copy), table).point == "full"
    store_points(model_copy, [point("mid", "layer(2)")], default="mid")
    loaded = de3bert.load(model_copy)
    assert evaluate(loaded, table).point == "mid"
    assert evaluate(loaded, table, point="full").point == "full"
    assert evaluate(loaded, table, policy="layer(1)").point is None


def test_unknown_metrics_and_unseen_labels_are_refused_before_anything_runs(
    classifier, monkeypatch
):
    from de3bert.data.read import read_table

    monkeypatch.setattr(classifier, "predict", None)
    table = read_table({"text": ["good", "bad"], "label": ["pos", "meh"]})
    with pytest.raises(UsageError, match=r'"meh" \(1x\)'):
        evaluate(classifier, table)
    with pytest.raises(UsageError, match="accuracy"):
        evaluate(classifier, table, metric="acuracy")
