"""What `benchmarks/latency.py` is made of, on a model of next to nothing."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from tests.bench.fakes import Time

import de3bert
from de3bert.errors import De3Error
from de3bert.exits import Policy
from de3lab.bench import course as courses
from de3lab.bench.course import prepare
from de3lab.bench.fresh import first_prediction
from de3lab.bench.made_up import Shape, token_rows, write_random_model
from de3lab.bench.rows import median_seconds, our_job, static_job

NEVER = Policy.parse("edr(lambda=1.0) < 0.0")
TINY = Shape(hidden=16, intermediate=32, heads=2, layers=3, vocabulary=40, pooling="mean")


@pytest.fixture(scope="module")
def course(bundle, trained_model, material):
    """Built over the graphs that are there already, so that nothing is exported."""
    folder = material.folder.parent / "course"
    folder.mkdir()
    (folder / "bundle").symlink_to(bundle)
    (folder / "graphs").symlink_to(material.folder)
    threads = torch.get_num_threads()
    yield prepare(folder, trained_model, ["hf"])
    torch.set_num_threads(threads)


def test_everybody_runs_the_same_rows(course):
    rows = course.rows([5, 9, 3, 3])
    assert [len(row["input_ids"]) for row in rows] == [5, 9, 3, 3]
    seen = []
    spy = courses.Static(**{**vars(course.statics["hf"]), "logits": seen.append})
    static_job(spy, rows, 2)(0)
    assert [[len(row["input_ids"]) for row in batch] for batch in seen] == [[3, 3], [5, 9]]


def test_imposed_layers_follow_their_rows_into_the_batches(course, monkeypatch):
    rows, left = course.rows([9, 5, 7, 3]), {}

    def spy(backend, batch, policy):
        left.update(zip((len(row["input_ids"]) for row in batch), policy.leave_at, strict=True))

    monkeypatch.setattr("de3lab.bench.rows.run_batch", spy)
    our_job(course.ours["fp32"], rows, NEVER, [2, 4, 2, 4], batch_size=3)(0)
    assert left == {9: 2, 5: 4, 7: 2, 3: 4}


def test_medians_over_rounds_without_the_first_run():
    time, costs = Time(), iter([100.0, 1.0, 5.0, 2.0])
    found = median_seconds({"a": lambda _: time.pass_by(next(costs))}, 3, clock=time.clock)
    assert found == {"a": pytest.approx(2.0)}


def test_a_contender_that_computes_something_else_is_not_timed(course):
    wrong = courses.Static(**{**vars(course.statics["hf"]), "logits": lambda rows: np.ones((3, 2))})
    spoilt = courses.Course(course.bundle, course.inputs, {"wrong": wrong}, course.ours)
    with pytest.raises(De3Error, match="should compute the same"):
        courses._check_same(spoilt)


def test_random_models_load_like_trained_ones(tmp_path):
    write_random_model(TINY, tmp_path / "model")
    classifier = de3bert.load(tmp_path / "model", device="cpu")
    (answer,) = classifier.predict(["w7 w8 w9"], policy="edr(lambda=1.0) < 0.0")
    assert (answer.exit_layer, answer.layers) == (3, 3)
    assert len(classifier.encode(["w7 w8 w9"]).rows[0]["input_ids"]) == 5
    with pytest.raises(De3Error, match="did not predict in a new process"):
        first_prediction(tmp_path, runs=1)


def test_rows_hold_what_the_model_reads():
    rows = token_rows([4, 2], 40, ("input_ids", "attention_mask"))
    assert [set(row) for row in rows] == [{"input_ids", "attention_mask"}] * 2
    assert all(5 <= token < 40 for row in rows for token in row["input_ids"])
    assert rows == token_rows([4, 2], 40, ("input_ids", "attention_mask"))


def test_a_bundle_starts_without_torch(bundle):
    found = first_prediction(bundle, runs=1)
    assert found.torch is False
    assert found.process > found.seconds > 0
    assert found.peak >= found.resident > 10e6
