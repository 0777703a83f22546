"""Bundles that are wrong, damaged or misused: said clearly, and the next call answers rightly."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.export.bundles import BUNDLE_BACKENDS, bundle_copy, pointed_model, trained_bundle
from tests.runtime.test_stopping import answers
from tokenizers import Tokenizer, models, pre_tokenizers, processors

import de3bert
from de3bert import Classifier
from de3bert.errors import De3Error, UsageError
from de3bert.runtime.manifest import sign

__all__ = ["bundle_copy", "pointed_model", "trained_bundle"]

TEXTS = ["a great joy", "the film was dull", "one scene was not so bad but the plot is a bore"]
FILES = ("layers-01-01.onnx", "layers-04-04.onnx", "distances-02.onnx", "tokenizer.json",
         "config.json")  # fmt: skip


@pytest.fixture(scope="module", params=BUNDLE_BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def bundle(trained_bundle: Path, backend: str) -> Classifier:
    return de3bert.load(trained_bundle, backend=backend)


def refused(folder: Path, kind: type[De3Error], *words: str, backend: str | None = None) -> None:
    with pytest.raises(De3Error) as error:
        de3bert.load(folder, backend=backend)
    assert type(error.value) is kind
    for word in words:
        assert word in str(error.value)
    assert "Traceback" not in str(error.value)


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_is_missing(bundle_copy, name):
    (bundle_copy / name).unlink()
    refused(bundle_copy, De3Error, "incomplete", f"{name} is missing")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
def test_a_file_that_was_cut_short(bundle_copy, name, share):
    path = bundle_copy / name
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    refused(bundle_copy, De3Error, "damaged", name)


@pytest.mark.parametrize("name", [name for name in FILES if name != "config.json"])
def test_a_file_with_one_bit_changed(bundle_copy, name):
    path = bundle_copy / name
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    refused(bundle_copy, De3Error, "was altered", name, "de3 export")


def test_a_config_that_was_altered_by_hand(bundle_copy):
    path = bundle_copy / "config.json"
    text = path.read_text()
    assert '"max_length": 24' in text
    path.write_text(text.replace('"max_length": 24', '"max_length": 42'))
    refused(bundle_copy, De3Error, "was altered", "config.json")
    path.write_text(text.replace('"max_length": 24', '"max_length": 24000'))
    refused(bundle_copy, De3Error, "damaged", "config.json")
    path.write_text(text)
    assert de3bert.load(bundle_copy).info.max_length == 24


def test_another_models_tokenizer(bundle_copy, backend):
    """Refused for what it is; even when signed, ids out of range are never read as others."""
    words = {word: index for index, word in enumerate(["[CLS]", "[SEP]", *map(str, range(5000))])}
    other = Tokenizer(models.WordLevel(words, unk_token="4999"))
    other.pre_tokenizer = pre_tokenizers.Whitespace()
    other.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 0), ("[SEP]", 1)]
    )
    other.save(str(bundle_copy / "tokenizer.json"))
    refused(bundle_copy, De3Error, "tokenizer.json", "de3 export")
    sign(bundle_copy, "tokenizer.json")
    foreign = de3bert.load(bundle_copy, backend=backend)
    with pytest.raises(De3Error, match=r"layers-01-01\.onnx failed at run time"):
        foreign.predict(TEXTS)


def test_a_graph_that_was_signed_but_is_none(bundle_copy, backend):
    (bundle_copy / "layers-02-02.onnx").write_bytes(b"not a graph")
    sign(bundle_copy, "layers-02-02.onnx")
    refused(bundle_copy, De3Error, "layers-02-02.onnx could not be loaded", backend=backend)


@pytest.mark.parametrize("text", ["", "{", "\x00", "null", "3", '"bundle"', "[]", "{}"])
def test_a_manifest_that_is_none(bundle_copy, text):
    (bundle_copy / "manifest.json").write_text(text)
    refused(bundle_copy, De3Error, "manifest.json is damaged", "de3 export")


def test_a_manifest_that_is_not_utf8(bundle_copy):
    (bundle_copy / "manifest.json").write_bytes(b'{"schema": "\xff"}')
    refused(bundle_copy, De3Error, "manifest.json is damaged")


def change(folder: Path, **changes: Any) -> None:
    path = folder / "manifest.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.mark.parametrize("schema", ["de3bert-bundle/2", "another/1", 1, None])
def test_a_manifest_of_another_version(bundle_copy, schema):
    change(bundle_copy, schema=schema)
    refused(bundle_copy, UsageError, f'"{schema}"', '"de3bert-bundle/1"', "de3 export")


@pytest.mark.parametrize(
    "changes",
    [
        {"graphs": 3},
        {"graphs": [{"first": 1}]},
        {"inputs": None},
        {"prototypes_unset": 1},
        {"files": []},
        {"files": {"config.json": {}}},
        {"more": 1},
    ],
)
def test_a_manifest_with_senseless_values(bundle_copy, changes):
    change(bundle_copy, **changes)
    refused(bundle_copy, De3Error, "manifest.json is damaged", "de3 export")


def test_without_its_manifest_it_is_no_bundle(bundle_copy):
    (bundle_copy / "manifest.json").unlink()
    refused(bundle_copy, De3Error, "no weights")


def test_what_others_write_into_a_bundle_is_theirs(bundle_copy, bundle):
    """The card and a machine's measurements may change; files that nobody named do no harm."""
    for name in ("README.md", "profile.json", "notes.txt"):
        (bundle_copy / name).write_text("{}")
    assert answers(de3bert.load(bundle_copy).predict(TEXTS)) == answers(bundle.predict(TEXTS))


@pytest.mark.parametrize("device", ["cuda", "cuda:0", "mps"])
def test_a_bundle_runs_on_the_processor_alone(trained_bundle, device):
    with pytest.raises(UsageError, match=f'runs on the CPU, got device="{device}"'):
        de3bert.load(trained_bundle, device=device)
    assert de3bert.load(trained_bundle, device="cpu").predict(TEXTS)


@pytest.mark.parametrize("threads", [0, -2])
def test_there_is_at_least_one_thread(trained_bundle, threads):
    with pytest.raises(UsageError, match=f"at least 1, got {threads}"):
        de3bert.load(trained_bundle, threads=threads)


def test_the_pool_of_threads_is_sized_once(trained_bundle):
    bundle = de3bert.load(trained_bundle)
    threads = bundle.backend.threads
    with pytest.raises(UsageError, match=f"already runs bundles on {threads} threads"):
        de3bert.load(trained_bundle, threads=threads + 1)
    again = de3bert.load(trained_bundle, threads=threads)
    assert again.backend.threads == threads
    assert again.predict(TEXTS) == bundle.predict(TEXTS)


@pytest.mark.parametrize("verb", ["predict", "trace", "predict_iter"])
def test_a_batch_has_at_least_one_row(bundle, verb):
    with pytest.raises(UsageError, match="at least 1, got 0"):
        getattr(bundle, verb)(TEXTS, batch_size=0)


def test_a_point_that_does_not_exist(bundle):
    with pytest.raises(UsageError, match=r'Did you mean "fast"\?'):
        bundle.predict(TEXTS, point="fsat")


def test_policies_that_do_not_fit(bundle):
    with pytest.raises(UsageError, match=r"no exit at layer 9\. Exits are at: 1, 2, 3, 4"):
        bundle.predict(TEXTS, policy="layer(9)")
    with pytest.raises(UsageError, match="true labels"):
        bundle.predict(TEXTS, policy="oracle")


@pytest.mark.parametrize("bad", ["", " \n\t", None, 3, ("good",), ("good", " ")])
def test_an_empty_text_is_refused_with_its_position(bundle, bad):
    with pytest.raises(UsageError, match="Text 2 of 3"):
        bundle.predict(["good", bad, "fine"])
    assert bundle.predict([]) == []


def test_a_text_of_a_megabyte_is_cut_counted_and_answered(bundle):
    limit = bundle.info.max_length
    long = "good " * 200_000
    assert len(long) == 1_000_000
    fits = " ".join(["good"] * (limit - 2))
    (same,) = bundle.predict([fits])
    assert not same.truncated
    short, cut = bundle.predict(["good film", long])
    assert (short.truncated, cut.truncated) == (False, True)
    assert cut.label == same.label
    assert cut.score == pytest.approx(same.score, abs=1e-5)
    assert short.label == "pos"
    assert bundle.predict([long]) == [replace(same, truncated=True)]


@pytest.mark.parametrize("text", ["🙂", "🙂🙃👩‍👩‍👧" * 50, "\x00\x01", "\u200b\u200d", "猫" * 500])
def test_texts_without_a_known_word_are_answered(bundle, text):
    (answer,) = bundle.predict([text])
    assert answer.label in bundle.label_names
    assert 0.5 <= answer.score <= 1


class Broken:
    """A graph that fails."""

    def __init__(self, failure: BaseException) -> None:
        self.failure = failure

    def run(self, *_: object) -> object:
        raise self.failure


FAILURES: dict[str, Callable[[], BaseException]] = {
    "with a message": lambda: RuntimeError("[ONNXRuntimeError] : 6 : out of luck\nmore"),
    "without one": RuntimeError,
    "for want of memory": MemoryError,
}


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("part", ["graph", "distances"])
@pytest.mark.parametrize("layer", [1, 3])
def test_a_graph_that_fails_fails_that_call_alone(bundle, monkeypatch, part, layer, failure):
    policy = "edr(lambda=1.0) < 0.2"
    before = bundle.predict(TEXTS, policy=policy)
    assert max(each.exit_layer for each in before) == 4  # layer 3 is reached
    with monkeypatch.context() as patch:
        error = FAILURES[failure]()
        patch.setattr(bundle.backend.stretches[layer], part, Broken(error))
        with pytest.raises(De3Error, match="failed at run time") as raised:
            bundle.predict(TEXTS, policy=policy)
    where = f"layers-0{layer}-0{layer}.onnx" if part == "graph" else f"distances of layer {layer}"
    assert where in str(raised.value)
    assert (str(error).split("\n")[0] or type(error).__name__) in str(raised.value)
    assert raised.value.__cause__ is error
    assert bundle.predict(TEXTS, policy=policy) == before


def test_an_interrupted_call_leaves_nothing_behind(bundle, monkeypatch):
    before = bundle.predict(TEXTS)
    with monkeypatch.context() as patch:
        patch.setattr(bundle.backend.stretches[2], "graph", Broken(KeyboardInterrupt()))
        with pytest.raises(KeyboardInterrupt):
            bundle.predict(TEXTS, policy="full")
    assert bundle.predict(TEXTS) == before


def test_a_stream_that_fails_in_the_middle_can_be_begun_again(bundle, monkeypatch):
    texts = TEXTS * 20
    expected = answers(bundle.predict(texts))
    stream = bundle.predict_iter(texts, batch_size=1)
    found = [next(stream) for _ in range(16)]
    with monkeypatch.context() as patch:
        patch.setattr(bundle.backend, "_single", None)
        patch.setattr(bundle.backend.stretches[1], "graph", Broken(RuntimeError("no")))
        with pytest.raises(De3Error, match="failed at run time"):
            next(stream)
    assert answers(found) == expected[:16]
    assert answers(list(bundle.predict_iter(texts, batch_size=1))) == expected


def test_sleeping_threads_after_a_shared_pool_are_refused(trained_bundle: Path) -> None:
    """ONNX Runtime would fail with words about its own options."""
    de3bert.load(trained_bundle)
    with pytest.raises(UsageError, match="spin=False before any other bundle"):
        de3bert.load(trained_bundle, spin=False)
