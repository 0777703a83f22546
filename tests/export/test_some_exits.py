"""`exits=`: the engine runs longer stretches, and the points are chosen again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.export.bundles import POINTS, ROUNDING, apart
from tests.fixtures_trained import toy_rows
from tests.runtime.test_stopping import answers

import de3bert
from de3bert import Classifier
from de3bert.errors import UsageError
from de3bert.exits import Policy, replay
from de3bert.exits.calibrate import measure
from de3bert.export.bundle import Exported, export_model
from de3bert.runtime.evaluate import trace_table

TEXTS = [text for text, _ in toy_rows(30, seed=51)]


@pytest.fixture(scope="module")
def made(pointed_model, tmp_path_factory) -> Exported:
    out = tmp_path_factory.mktemp("some") / "bundle"
    return export_model(pointed_model, out, exits=[1])


@pytest.fixture(scope="module")
def some(made) -> Classifier:
    return de3bert.load(made.folder)


def test_the_last_layer_always_stays(made, some):
    assert made.exit_layers == some.backend.exit_layers == (1, 4)
    config = json.loads((Path(made.folder) / "config.json").read_text())
    assert config["exit_layers"] == [1, 4]
    assert sorted(path.name for path in Path(made.folder).glob("*.onnx")) == [
        "distances-01.onnx",
        "layers-01-01.onnx",
        "layers-02-04.onnx",
        "single.onnx",
    ]


def test_the_exits_that_stay_say_what_they_said(some, classifier):
    ours, theirs = some.trace(TEXTS), classifier.trace(TEXTS).only((1, 4))
    assert apart(ours, theirs) <= ROUNDING
    (answer,) = some.predict(["a good film"], policy="layer(1)")
    assert (answer.exit_layer, answer.layers) == (1, 4)
    with pytest.raises(UsageError, match=r"no exit at layer 2\. Exits are at: 1, 4"):
        some.predict(["a good film"], policy="layer(2)")


def test_the_engine_runs_from_exit_to_exit(some, monkeypatch):
    runs = []
    for layer, stretch in some.backend.stretches.items():
        run = stretch.run
        monkeypatch.setattr(
            stretch, "run", lambda feeds, run=run, layer=layer: runs.append(layer) or run(feeds)
        )
    some.predict(["a good film", "a bad one"], policy="full")
    assert runs == [1, 4]


def test_every_point_is_chosen_again(made, some, classifier, toy_data):
    from de3bert.data.read import read_table

    again = made.recalibrated
    assert again is not None
    assert again.rows == 120
    assert again.full["model"] == again.full["bundle"]  # the last exit is the same
    assert set(some.points) | set(again.dropped) == set(POINTS)
    assert some.info.default_point == "fast"
    trace = trace_table(classifier, read_table(toy_data.calibration)).only((1, 4))
    for name, stored in some.points.items():
        assert stored.target == classifier.points[name].target
        assert again.points[name]["policy"] == [
            str(classifier.points[name].policy), str(stored.policy)
        ]  # fmt: skip
        assert set(map(int, stored.measured["exit_histogram"])) == {1, 4}
        score = measure(trace, stored.policy)["score"]
        assert stored.measured["score"] == pytest.approx(score, abs=2 / 120)
    # Layer 2 is gone, and with it the point there; the first exit meets its target as well.
    assert classifier.points["second"].policy == Policy.parse("layer(2)")
    assert some.points["second"].policy == Policy.parse("layer(1)")


def test_its_answers_are_those_of_a_replay(some, classifier):
    trace = classifier.trace(TEXTS).only((1, 4))
    policy = Policy.parse("entropy < 0.4")
    expected = replay(trace, policy)
    found = answers(some.predict(TEXTS, policy=policy, batch_size=7))
    assert [layer for _, layer in found] == expected.exit_layers.tolist()
    assert len(set(expected.exit_layers.tolist())) >= 2


@pytest.mark.parametrize("exits", [[], [0], [2, 9], [-1]])
def test_exits_that_the_model_has_not(pointed_model, tmp_path, exits):
    with pytest.raises(UsageError, match=r"must be among.*exits after layers 1, 2, 3, 4"):
        export_model(pointed_model, tmp_path / "bundle", exits=exits)
    assert list(tmp_path.iterdir()) == []


def test_all_exits_named_is_no_change(pointed_model, ready_graphs, tmp_path):
    made = export_model(pointed_model, tmp_path / "bundle", exits=[1, 2, 3])
    assert made.exit_layers == (1, 2, 3, 4)
    assert made.recalibrated is None
