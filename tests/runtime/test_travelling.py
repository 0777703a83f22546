"""Classifiers and what they answer, pickled, copied, sent to processes and shared by threads."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
import shutil
import subprocess
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from operator import methodcaller
from pathlib import Path

import pytest
from tests.exits.traces import random_trace
from tests.export.bundles import BUNDLE_BACKENDS, pointed_model, trained_bundle
from tests.fixtures_trained import toy_rows
from tests.runtime.fakes import fake, texts_of
from tests.warm import python

import de3bert
from de3bert.errors import De3Error
from de3bert.exits import Policy
from de3bert.model import EarlyExitForTokenClassification

__all__ = ["pointed_model", "trained_bundle"]

TEXTS = [text for text, _ in toy_rows(60, seed=71)]


@pytest.fixture(scope="module", params=["torch", *BUNDLE_BACKENDS])
def backend(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def folder(backend, pointed_model, trained_bundle) -> Path:
    return pointed_model if backend == "torch" else trained_bundle


@pytest.fixture(scope="module")
def loaded(folder, backend) -> de3bert.Classifier:
    return de3bert.load(folder, backend=backend)


@pytest.mark.parametrize("send", [lambda it: pickle.loads(pickle.dumps(it)), copy.deepcopy,
                                  copy.copy], ids=["pickle", "deepcopy", "copy"])  # fmt: skip
def test_a_copy_answers_the_same(loaded, send):
    again = send(loaded)
    assert again is not loaded
    assert again.predict(TEXTS) == loaded.predict(TEXTS)
    assert again.opening == loaded.opening
    assert pickle.loads(pickle.dumps(again)).predict(TEXTS[:1]) == loaded.predict(TEXTS[:1])


def test_what_travels_is_small_and_finds_its_folder_from_anywhere(
    folder, backend, tmp_path, monkeypatch
):
    monkeypatch.chdir(folder.parent)
    packed = pickle.dumps(de3bert.load(folder.name, device="cpu", backend=backend))
    assert len(packed) < 1000
    monkeypatch.chdir(tmp_path)
    again = pickle.loads(packed)
    assert (again.opening.device, again.opening.backend) == ("cpu", backend)
    assert again.weights_sha256 == de3bert.load(folder).weights_sha256


def test_a_spawned_process_opens_it_again(loaded):
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as pool:
        assert pool.submit(methodcaller("predict", TEXTS), loaded).result() == loaded.predict(TEXTS)


def test_threads_are_asked_for_again(folder, backend):
    code = (
        "import pickle, sys, de3bert\n"
        "clf = de3bert.load(sys.argv[1], threads=1, backend=sys.argv[2])\n"
        "again = pickle.loads(pickle.dumps(clf))\n"
        "same = again.predict('a joy') == clf.predict('a joy')\n"
        "print(again.opening.threads, again.opening.backend, same)\n"
    )
    command = [*python(), "-c", code, str(folder), backend]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stdout.split() == ["1", backend, "True"], done.stderr


def test_taggers_travel_too(tiny_backbone, tiny_tokenizer, tmp_path):
    model = EarlyExitForTokenClassification.from_backbone(
        tiny_backbone, labels=["B", "I", "O"], max_length=24, method="sentee"
    )
    model.save_pretrained(tmp_path / "words")
    tiny_tokenizer.save_pretrained(tmp_path / "words")
    tagger = de3bert.load(tmp_path / "words")
    sentences = [["good", "film"], ["the", "plot", "was", "dull"]]
    expected = tagger.predict(sentences)
    assert pickle.loads(pickle.dumps(tagger)).predict(sentences) == expected
    assert copy.deepcopy(tagger).predict(sentences) == expected
    assert pickle.loads(pickle.dumps(expected)) == expected
    with ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda size: tagger.predict(sentences, batch_size=size), [1, 2] * 20):
            assert [each.tags for each in found] == [each.tags for each in expected]


def test_a_folder_that_is_gone(folder, backend, tmp_path):
    place = Path(shutil.copytree(folder, tmp_path / "model"))
    packed = pickle.dumps(de3bert.load(place, backend=backend))
    shutil.rmtree(place)
    with pytest.raises(De3Error, match="that folder no longer exists"):
        pickle.loads(packed)


def test_one_that_was_never_loaded_says_so():
    with pytest.raises(De3Error, match="was not loaded from a folder"):
        pickle.dumps(fake(random_trace(rows=3, exits=2, seed=1)))


def test_what_a_bandit_learned_stays_behind(loaded):
    policy = "bandit(c=0.2, mu=0.02)"
    loaded.forget()
    first = loaded.predict(TEXTS, policy=policy)
    again = copy.deepcopy(loaded)
    assert again.predict(TEXTS, policy=policy) == first
    loaded.forget()


def test_answers_travel(loaded):
    values = [
        loaded.predict(TEXTS[:2]),
        loaded.explain(TEXTS[0]),
        loaded.points,
        Policy.parse("bandit(c=0.2)"),
        *(each.policy for each in loaded.points.values()),
    ]
    for value in values:
        assert pickle.loads(pickle.dumps(value)) == value
        assert copy.deepcopy(value) == value
    trace = loaded.trace(TEXTS[:4])
    again = pickle.loads(pickle.dumps(trace))
    assert again.exit_layers == trace.exit_layers
    assert (again.logits == trace.logits).all()


# --- threads

WORK = [
    (texts, options, size)
    for size in (1, 3, 32)
    for texts in (TEXTS[:7], TEXTS[7:40], [f"good {' film' * 80}", *TEXTS[:2]], TEXTS[::-3])
    for options in ({"point": "fast"}, {"point": "full"}, {"policy": "patience(2)"},
                    {"point": "second"}, {"policy": "entropy < 0.4"})
]  # fmt: skip


def turned(jobs, number):
    """Three jobs for a thread, others than those of its neighbours at any moment."""
    return (jobs[number:] + jobs[:number])[:3]


def test_eight_threads_get_what_each_would_get_alone(folder, backend):
    classifier = de3bert.load(folder, backend=backend)
    start = threading.Barrier(8)

    def run(job):
        texts, options, size = job
        found = classifier.predict(texts, batch_size=size, **options)
        return found, list(classifier.predict_iter(iter(texts), batch_size=size, **options))

    def worker(number):
        start.wait()
        return [run(job) for job in turned(WORK, number)]

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(worker, range(8)))
    alone = [run(job) for job in WORK]
    for number, answers in enumerate(found):
        for mine, own in zip(answers, turned(alone, number), strict=True):
            assert same(mine[0], own[0])
            assert same(mine[1], own[1])


def same(first, second) -> bool:
    scores = [each.score for each in second]
    return [(each.label, each.exit_layer, each.truncated) for each in first] == [
        (each.label, each.exit_layer, each.truncated) for each in second
    ] and [each.score for each in first] == pytest.approx(scores, abs=1e-5)


def test_more_policies_than_are_remembered(loaded):
    def worker(number):
        return [
            str(loaded.policy(policy=f"entropy < 0.{digits:04d}{number}")) for digits in range(200)
        ]

    with ThreadPoolExecutor(8) as pool:
        assert all(len(lines) == 200 for lines in pool.map(worker, range(8)))


def test_a_bandit_answers_one_call_after_another(monkeypatch):
    trace = random_trace(rows=40, exits=4, seed=9)
    classifier, policy = fake(trace), Policy.parse("bandit(c=0.2)")
    start = classifier.backend.start

    def slow_start(rows):
        time.sleep(1e-4)  # lets the other threads have their turn
        return start(rows)

    monkeypatch.setattr(classifier.backend, "start", slow_start)
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(lambda _: classifier.predict(texts_of(trace), policy=policy), range(16)):
            pass
    assert classifier.backend.batches == [[row] for row in range(40)] * 16
    assert sum(classifier._learner(policy.rule).plays) == 16 * 40
