"""Reading sentences of words with tags."""

from __future__ import annotations

import gzip
import io
import json

import numpy as np
import pytest

from de3bert.data.labels import LabelSet
from de3bert.data.stream import stream_sentences
from de3bert.data.words import read_words
from de3bert.errors import De3Error, UsageError
from de3bert.tasks import TASKS

SENTENCES = [["Ada", "wrote", "it"], ["Rome"]]
TAGS = [["B-PER", "O", "O"], ["B-LOC"]]
LINES = "-DOCSTART- -X- O\n\nAda NNP B-PER\nwrote VB O\nit PR O\n\n\nRome NNP B-LOC\n"


def jsonl(path, rows):
    path.write_text("\n".join(json.dumps(row) for row in rows))
    return path


@pytest.mark.parametrize("names", [("tokens", "ner_tags"), ("words", "tags"), ("tokens", "labels")])
def test_list_columns(tmp_path, names):
    rows = [dict(zip(names, row, strict=True)) for row in zip(SENTENCES, TAGS, strict=True)]
    table = read_words(jsonl(tmp_path / "a.jsonl", [{"id": 7, **row} for row in rows]))
    assert table.texts == SENTENCES
    assert table.labels == TAGS
    assert table.columns["id"] == [7, 7]
    assert len(table.sha256) == 64
    assert read_words({names[0]: SENTENCES, names[1]: TAGS}).labels == TAGS


def test_parquet_lists_and_numbered_tags(tmp_path):
    import pyarrow as pa
    from pyarrow import parquet

    numbered = [[1, 0, 0], [3]]
    parquet.write_table(pa.table({"tokens": SENTENCES, "tags": numbered}), tmp_path / "a.parquet")
    assert read_words(tmp_path / "a.parquet").labels == numbered
    arrays = {"tokens": SENTENCES, "tags": [np.array(row) for row in numbered]}
    assert read_words(arrays).labels == numbered


@pytest.mark.parametrize("suffix", ["conll", "txt", "bio"])
def test_a_word_and_its_tag_per_line(tmp_path, suffix):
    path = tmp_path / f"a.{suffix}"
    path.write_text(LINES)
    assert read_words(path).texts == SENTENCES
    assert read_words(path).labels == TAGS
    path.write_text(LINES.replace(" ", "\t").replace("\n", "\r\n"))
    assert read_words(path).labels == TAGS
    packed = tmp_path / f"b.{suffix}.gz"
    packed.write_bytes(gzip.compress(LINES.encode()))
    assert read_words(packed).texts == SENTENCES


def test_tags_may_be_absent_where_they_are_not_needed(tmp_path):
    path = tmp_path / "a.conll"
    path.write_text("Ada\nwrote\n\nRome\n")
    assert read_words(path, need_tags=False).labels is None
    with pytest.raises(UsageError, match="no column of tags"):
        read_words(path)
    classes, table = LabelSet(("O", "B-PER")), read_words(path, need_tags=False)
    with pytest.raises(UsageError, match="has no tags"):
        TASKS["token-classification"].numbers(classes, table)


def test_given_columns_limit_and_take():
    columns = {"w": SENTENCES, "t": TAGS}
    table = read_words(columns, words="w", tags="t")
    assert table.take([1]).texts == [["Rome"]]
    assert table.take([1]).labels == [["B-LOC"]]
    assert len(read_words(columns, words="w", tags="t", limit=1)) == 1
    with pytest.raises(UsageError, match='no column "x"'):
        read_words(columns, words="x")


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"words": [["a", "b"]], "tags": [["O"]]}, "row 1: 2 words but 1 tags"),
        ({"words": [["a"], []], "tags": [["O"], []]}, "row 2: .*empty sentence"),
        ({"words": [["a", " "]], "tags": [["O", "O"]]}, "which is not a word"),
        ({"words": [["a", None]], "tags": [["O", "O"]]}, "None, which is not a word"),
        ({"words": [["a", 3]], "tags": [["O", "O"]]}, "3, which is not a word"),
        ({"words": ["a b"], "tags": [["O", "O"]]}, "is a str, not a list of words"),
        ({"words": [["a"]], "tags": ["O"]}, "not a list with a tag for each word"),
        ({"words": [["a"]], "tags": [[0.5]]}, "not a whole number"),
        ({"text": ["a"], "label": ["x"]}, "no column of words.*rows of text"),
    ],
)
def test_what_is_wrong_is_named(columns, message):
    with pytest.raises(De3Error, match=message):
        read_words(columns)


def test_files_that_cannot_be_sentences(tmp_path):
    with pytest.raises(UsageError, match=r"There is no file .*none\.conll"):
        read_words(tmp_path / "none.conll")
    (tmp_path / "a.csv").write_text("words,tags\na,O\n")
    with pytest.raises(UsageError, match="cannot hold lists of words"):
        read_words(tmp_path / "a.csv")
    (tmp_path / "b.conll").write_text("\n\n")
    with pytest.raises(De3Error, match="no sentences"):
        read_words(tmp_path / "b.conll")
    (tmp_path / "c.conll").write_text("Ada O\nwrote\n")
    with pytest.raises(De3Error, match="line 2: 1 fields where the first line has 2"):
        read_words(tmp_path / "c.conll")


def test_standard_input_is_lines_of_words_or_json():
    given = stream_sentences("-", io.BytesIO(b"Ada wrote it\nRome\n"))
    assert [row.given for row in given] == SENTENCES
    lines = b'{"words": ["Ada", "wrote", "it"]}\n{"words": ["Rome"]}\n'
    assert [row.given for row in stream_sentences("-", io.BytesIO(lines))] == SENTENCES
    with pytest.raises(De3Error, match="is empty"):
        list(stream_sentences("-", io.BytesIO(b"\n")))


def test_a_bad_sentence_stands_in_its_place(tmp_path):
    rows = list(stream_sentences("-", io.BytesIO(b"Ada\n\nRome\xff\nhere\n")))
    assert [row.given for row in rows] == [["Ada"], None, None, ["here"]]
    assert "line is empty" in rows[1].fault
    assert "0xff" in rows[2].fault
    (tmp_path / "a.conll").write_bytes(b"Ada O\n\nsits\nin O\n\nRo\xffme O\n\nit O\n")
    rows = list(stream_sentences(tmp_path / "a.conll"))
    assert [(row.number, row.given) for row in rows] == [
        (1, ["Ada"]), (3, None), (6, None), (8, ["it"]),
    ]  # fmt: skip
    assert "line 3: 1 fields where the first line has 2" in rows[1].fault
    lines = b'{"words": ["Ada"]}\n{"words": "Ada"}\n{"words": []}\n{"words": ["", 3]}\n{"x": 1}\n'
    faults = [row.fault for row in stream_sentences("-", io.BytesIO(lines))]
    expected = ["", "not a list of words", "empty sentence", "not a word", 'has no "words"']
    assert all(words in fault for words, fault in zip(expected, faults, strict=True))
    assert bool(faults[0]) is False


def test_the_same_sentences_as_a_whole_and_one_by_one(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"tokens": SENTENCES, "tags": [["O"] * len(words) for words in SENTENCES]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "a.parquet")
    (tmp_path / "a.json").write_text(json.dumps([{"tokens": words} for words in SENTENCES]))
    (tmp_path / "a.iob").write_text("Ada O\nwrote O\nit O\n\nRome O\n")
    for name in ("a.parquet", "a.json", "a.iob"):
        assert [row.given for row in stream_sentences(tmp_path / name)] == SENTENCES
    with pytest.raises(UsageError, match="no column of words"):
        list(stream_sentences("-", io.BytesIO(b'{"text": "Ada"}\n')))
    (tmp_path / "a.csv").write_text("words,tags\na,O\n")
    with pytest.raises(UsageError, match="cannot hold lists of words"):
        stream_sentences(tmp_path / "a.csv")
