"""Texts as Python users hold them: folder and bundle take the same, and refuse it in our words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from tests.export.bundles import pointed_model, trained_bundle
from tests.runtime.fakes import set_config

import de3bert
from de3bert.errors import UsageError
from de3bert.exits import Policy
from de3bert.model import EarlyExitForTokenClassification

__all__ = ["pointed_model", "trained_bundle"]

TEXTS = ["a great joy", "the film was dull", "so bad"]
PAIRS = [("good film", "bad plot"), ("dull", "great joy")]
HELD = {
    "list": lambda rows: rows,
    "tuple": tuple,
    "generator": lambda rows: (row for row in rows),
    "map": lambda rows: map(str, rows),
    "keys": lambda rows: dict.fromkeys(rows).keys(),
    "numpy": np.array,
    "numpy objects": lambda rows: np.array(rows, dtype=object),
    "numpy strings in a list": lambda rows: [np.str_(row) for row in rows],
    "numpy's own strings": lambda rows: np.array(rows, dtype=np.dtypes.StringDType()),
    "pandas": pd.Series,
    "pandas with an index": lambda rows: pd.Series(rows, index=[7, 3, 1]),
    "pandas objects": lambda rows: pd.Series(rows, dtype=object),
    "pandas categories": lambda rows: pd.Series(rows, dtype="category"),
    "pandas index": pd.Index,
    "pandas array": lambda rows: pd.array(rows, dtype="string"),
    "Arrow": pa.array,
    "Arrow chunks": lambda rows: pa.chunked_array([rows[:1], rows[1:]]),
}


@pytest.fixture(scope="module", params=["folder", "bundle"])
def either(request, pointed_model, trained_bundle):
    return de3bert.load(pointed_model if request.param == "folder" else trained_bundle)


@pytest.fixture(params=["folder", "bundle"])
def of_pairs(request, pointed_model, trained_bundle, tmp_path):
    """The same models, as if they had been trained on pairs."""
    import shutil

    source = pointed_model if request.param == "folder" else trained_bundle
    return de3bert.load(set_config(shutil.copytree(source, tmp_path / "pairs"), text_pairs=True))


@pytest.mark.parametrize("kind", HELD)
def test_texts_in_whatever_holds_them(either, kind):
    expected = either.predict(TEXTS)
    assert either.predict(HELD[kind](TEXTS)) == expected
    assert list(either.predict_iter(HELD[kind](TEXTS))) == expected
    assert either.trace(HELD[kind](TEXTS)).rows == 3


def test_one_text_is_one_row(either):
    for one in (TEXTS[0], np.str_(TEXTS[0]), np.array(TEXTS)[0]):
        assert either.predict(one) == either.predict(TEXTS[:1])
        assert list(either.predict_iter(one)) == either.predict(TEXTS[:1])


def test_nothing_in_nothing_out(either):
    for nothing in ([], (), iter(()), np.array([], dtype=str), pd.Series([], dtype=str)):
        assert either.predict(nothing) == []


def test_pairs_in_whatever_holds_them(of_pairs):
    expected = of_pairs.predict(PAIRS)
    assert len(expected) == 2
    rows = [list(pair) for pair in PAIRS]
    held = (rows, tuple(PAIRS), iter(PAIRS), zip(*zip(*PAIRS, strict=True), strict=True),
            [np.array(pair) for pair in PAIRS], pd.Series(PAIRS), pa.array(rows),
            pd.MultiIndex.from_tuples(PAIRS))  # fmt: skip
    for given in held:
        assert of_pairs.predict(given) == expected
    assert of_pairs.predict(PAIRS[0]) == list(of_pairs.predict_iter(PAIRS[0])) == expected[:1]
    assert of_pairs.explain(rows[0]).prediction.label == expected[0].label


BAD = {
    "None": (None, "is missing (None)"),
    "NaN": (float("nan"), "is missing (nan)"),
    "numpy NaN": (np.float64("nan"), "is missing"),
    "NA": (pd.NA, "is missing (<NA>)"),
    "NaT": (pd.NaT, "is missing (NaT)"),
    "int": (3, "is not a text but an int: 3"),
    "float": (0.5, "is not a text but a float"),
    "truth": (True, "is not a text but a bool"),
    "bytes": (b"good", "is not a text but a bytes"),
    "dict": ({"text": "good"}, "is not a text but a dict"),
    "set": ({"good"}, "is not a text but a set"),
    "object": (object(), "is not a text but an object"),
    "empty": ("", "is empty: ''"),
    "blank": (" \n\t\u2003", "is empty"),
    "surrogate": ("good \ud800 film", "half of a surrogate pair at character 6"),
    "one of two": (["good"], "is a list of 1"),
    "three of two": (("good", "bad", "fine"), "is a tuple of 3"),
    "nothing of two": ((), "is a tuple of 0"),
    "half a pair": (("good", None), "its second part, is missing"),
    "nested": ([["good"], ["bad"]], "its first part, is not a text but a list"),
    "a text of parts": (("good", " "), "its second part, is empty"),
}


@pytest.mark.parametrize("kind", BAD)
@pytest.mark.parametrize("verb", ["predict", "trace", "encode"])
def test_what_is_no_text_is_named_with_its_place(either, kind, verb):
    bad, words = BAD[kind]
    with pytest.raises(UsageError) as error:
        getattr(either, verb)(["good", "bad", bad, "fine"])
    assert "Text 3 of 4" in str(error.value)
    assert words in str(error.value)


@pytest.mark.parametrize("kind", BAD)
def test_a_stream_counts_its_own_rows(either, kind):
    bad, words = BAD[kind]
    stream = either.predict_iter(iter([*["good"] * 40, bad]), batch_size=1)
    with pytest.raises(UsageError) as error:
        list(stream)
    assert "Text 41" in str(error.value)
    assert words in str(error.value)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (None, "not texts but a NoneType"),
        (7, "not texts but an int"),
        (b"good", "not texts but a bytes"),
        (bytearray(b"good"), "not texts but a bytearray"),
        ({"text": "good"}, "not texts but a dict"),
        ({"good", "bad"}, "not texts but a set"),
        (np.array("good"), "not texts but a ndarray"),
        (np.float64(1), "not texts but a float64"),
        (np.array([["a", "b"]]), "2 dimensions; give one column"),
        (pd.DataFrame({"text": ["good"]}), "2 dimensions; give one column"),
        (np.array([1, 2]), "Text 1 of 2 is not a text but an int"),
        (pd.Series(["good", None]), "Text 2 of 2 is missing"),
        (pa.array(["good", None]), "Text 2 of 2 is missing"),
        (pa.table({"text": ["good"]}), "Text 1 of 1 is not a text but a dict"),
        (len, "not texts but a builtin_function_or_method"),
    ],
)
def test_what_holds_no_texts(either, given, words):
    for verb in (either.predict, either.trace):
        with pytest.raises(UsageError) as error:
            verb(given)
        assert words in str(error.value)
        assert "Give one text, or texts in a list" in str(error.value)
    with pytest.raises(UsageError) as error:
        list(either.predict_iter(given))
    assert words.replace(" of 1", "").replace(" of 2", "") in str(error.value)


def test_a_message_is_short_and_steers_no_terminal(either):
    with pytest.raises(UsageError) as error:
        either.predict([{"\x1b[31m" + "x" * 5000: list(range(5000))}])
    assert len(str(error.value)) < 500
    assert "\x1b" not in str(error.value)


def test_a_text_beyond_the_limit(either, monkeypatch):
    monkeypatch.setenv("DE3_MAX_TEXT", "2MB")
    assert either.predict(["good " * 300_000])
    with pytest.raises(UsageError, match=r"Text 2 of 2: 3.*limit text="):
        either.predict(["good", "good " * 700_000])


def test_single_texts_on_a_model_of_pairs(of_pairs):
    for verb in (of_pairs.predict, of_pairs.trace, of_pairs.encode):
        with pytest.raises(UsageError, match="reads pairs of texts, but text 1 of 3 is a single"):
            verb(TEXTS)
    for one in (of_pairs.explain, of_pairs.predict):
        with pytest.raises(UsageError, match=r"Give pairs: \[\(\"first text\", \"second text\"\)"):
            one(TEXTS[0])
    with pytest.raises(UsageError, match="text 1 is a single"):
        list(of_pairs.predict_iter(iter(TEXTS)))
    with pytest.raises(UsageError, match="text 1 of 2 is a single"):
        of_pairs.predict(["good film", "bad plot"])  # a list of two is two texts


def test_pairs_on_a_model_of_single_texts(either):
    for verb in (either.predict, either.trace, either.encode):
        with pytest.raises(UsageError, match="reads single texts, but text 1 of 2 is a pair"):
            verb(PAIRS)
    with pytest.raises(UsageError, match=r"Give single texts: \[\"text\""):
        either.explain(PAIRS[0])


@pytest.mark.parametrize("size", [0, -1, 2.5, "4", None, True])
@pytest.mark.parametrize("verb", ["predict", "trace", "predict_iter"])
def test_batch_sizes(either, verb, size):
    with pytest.raises(UsageError, match="batch_size must be"):
        getattr(either, verb)(TEXTS, batch_size=size)
    assert either.predict(TEXTS, batch_size=np.int64(2)) == either.predict(TEXTS)


@pytest.mark.parametrize("wrong", [3, 0.5, b"fast", ["fast"], {"a": 1}, True])
def test_points_and_policies_of_the_wrong_type(either, wrong):
    with pytest.raises(UsageError, match="point is given by its name"):
        either.predict(TEXTS, wrong)
    with pytest.raises(UsageError, match="A policy is one line of text"):
        either.predict(TEXTS, policy=wrong)
    with pytest.raises(UsageError, match='Unknown operating point ""'):
        either.predict(TEXTS, "")


# --- taggers

SENTENCES = [["good", "film"], ["the", "plot", "was", "dull"]]


@pytest.fixture(scope="module")
def tagger(tiny_backbone, tiny_tokenizer, tmp_path_factory):
    folder = tmp_path_factory.mktemp("words")
    model = EarlyExitForTokenClassification.from_backbone(
        tiny_backbone, labels=["B", "I", "O"], max_length=24, method="sentee"
    )
    model.save_pretrained(folder)
    tiny_tokenizer.save_pretrained(folder)
    return de3bert.load(folder)


def test_sentences_in_whatever_holds_them(tagger):
    expected = tagger.predict(SENTENCES)
    assert [each.words for each in expected] == [tuple(words) for words in SENTENCES]
    for given in (
        tuple(map(tuple, SENTENCES)),
        (words for words in SENTENCES),
        [(word for word in words) for words in SENTENCES],
        [np.array(words) for words in SENTENCES],
        np.array([np.array(words, dtype=object) for words in SENTENCES], dtype=object),
        pd.Series(SENTENCES),
        [pd.Series(words, index=range(9, 9 + len(words))) for words in SENTENCES],
        pa.array(SENTENCES),
    ):
        assert tagger.predict(given) == expected
    assert len(tagger.trace(iter(SENTENCES)).logits) == 6
    assert tagger.predict(np.array([["good", "film"]])[:, :].tolist()) == expected[:1]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("a film", "for one sentence pass [words]"),
        (["a film"], "Sentence 1 of 1 is not a list of non-empty words: 'a film'"),
        (["good", "film"], "split texts into words first"),
        ([["good"], []], "Sentence 2 of 2 is not a list of non-empty words"),
        ([["good"], None], "Sentence 2 of 2 is not a list of non-empty words"),
        ([["good"], 3], "Sentence 2 of 2 is not a list of non-empty words"),
        ([["good", None]], "Sentence 1 of 1, word 2, is missing (None)"),
        ([["good", 3]], "Sentence 1 of 1, word 2, is not a text but an int"),
        ([["good", b"x"]], "Sentence 1 of 1, word 2, is not a text but a bytes"),
        ([["good", " "]], "Sentence 1 of 1, word 2, is empty"),
        ([["good", "\ud800"]], "word 2, holds half of a surrogate pair"),
        ([[["good"], ["film"]]], "Sentence 1 of 1, word 1, is not a text but a list"),
        ([{"words": ["good"]}], "not texts but a dict"),
        (None, "not texts but a NoneType"),
        (7, "not texts but an int"),
        (np.array([["good", "film"]]), "2 dimensions"),
    ],
)
def test_what_are_no_sentences(tagger, given, words):
    for verb in (tagger.predict, tagger.trace):
        with pytest.raises(UsageError) as error:
            verb(given)
        assert words in str(error.value)


@pytest.mark.parametrize("wrong", [3, ["fast"], {"full": 1}])
def test_arguments_of_a_tagger(tagger, wrong):
    with pytest.raises(UsageError, match="A policy is one line of text"):
        tagger.predict(SENTENCES, policy=wrong)
    with pytest.raises(UsageError, match="point is given by its name"):
        tagger.predict(SENTENCES, wrong)
    for size in (0, "4", True):
        with pytest.raises(UsageError, match="batch_size must be"):
            tagger.predict(SENTENCES, batch_size=size)


def test_a_tagger_takes_a_policy_as_text_or_as_a_policy(tagger):
    for line in ("full", "entropy < 0.9", "entropy < 0.9 window 3"):
        said = tagger.predict(SENTENCES, policy=line)
        assert tagger.predict(SENTENCES, policy=Policy.parse(line)) == said
