"""Everything that can be wrong with data is said in words: what came, where, what to do."""

import gzip
import sys

import pytest

from de3bert.data.read import read_table
from de3bert.errors import De3Error, UsageError


def refused(source, *words, kind=De3Error, **options):
    with pytest.raises(De3Error) as caught:
        read_table(source, **options)
    message = str(caught.value)
    assert type(caught.value) is kind, message
    for word in words:
        assert word in message
    return message


@pytest.fixture
def write(tmp_path):
    def _write(name, content):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return _write


def test_missing_file_names_the_nearest_one(write, tmp_path):
    write("train.csv", "text,label\na,1\n")
    refused(tmp_path / "trian.csv", "no file", "Did you mean", "train.csv", kind=UsageError)
    refused(tmp_path / "no" / "x.csv", "folder", "does not exist", kind=UsageError)
    refused("nothing-like-this.csv", ".parquet", "hub id", kind=UsageError)


@pytest.mark.parametrize("content", ["", " \n\n"])
@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet"])
def test_empty_file(write, name, content):
    refused(write(name, content), "is empty", name)


def test_header_only(write):
    refused(write("a.csv", "text,label\n"), "header (text, label)", "no rows")
    refused(write("a.json", "[]"), "no rows")
    refused({"text": [], "label": []}, "no rows")


def test_given_column_that_is_not_there(write):
    path = write("a.csv", "sentence,label\na,1\n")
    words = ('no column "sentense"', 'Did you mean "sentence"?', '"label"')
    refused(path, *words, kind=UsageError, text="sentense")
    refused(path, 'no column "y"', kind=UsageError, label="y")


def test_columns_that_cannot_be_guessed(write):
    refused(write("a.csv", "words,label\na,1\n"), "--text", '"words"', kind=UsageError)
    refused(write("b.csv", "text,stars\na,1\n"), "--label", '"stars"', kind=UsageError)
    refused(write("c.csv", "text;label\na;1\n"), "another separator", kind=UsageError)
    refused({"text": ["a"], "label": [1]}, "different columns", kind=UsageError, label="text")


def test_not_utf8(write):
    refused(write("a.csv", b"text,label\nfine,1\ncaf\xe9,0\n"), "line 3", "0xe9", "byte 21")
    refused(write("b.csv", b"\xef\xbb\xbftext,label\n\xe9,0\n"), "line 2", "byte 14")
    refused(write("c.csv", "text,label\na,1\n".encode("utf-16")), "UTF-16", "Save it again")


@pytest.mark.parametrize("empty", ["", "   ", '" \t"'])
def test_empty_text_names_the_rows_as_the_file_counts_them(write, empty):
    path = write("a.csv", f"text,label\na,1\n{empty},0\nb,1\n{empty},1\n")
    refused(path, "2 of 4 rows", 'empty "text"', "rows 3 and 5")


def test_missing_texts_of_tables_in_memory():
    pandas = pytest.importorskip("pandas")
    for nothing in (None, float("nan"), pandas.NA):
        frame = pandas.DataFrame({"text": ["a", nothing], "label": [0, 1]}, dtype=object)
        refused(frame, "1 of 2 rows", "row 2")
    many = {"text": ["a"] + [None] * 7, "label": [0] * 8}
    refused(many, "7 of 8 rows", "rows 2, 3, 4, 5, 6 ...")


def test_missing_second_text():
    refused({"premise": ["a"], "hypothesis": [" "], "label": [0]}, 'empty "hypothesis"')


def test_missing_labels(write):
    refused(write("a.csv", "text,label\na,1\nb,\n"), "no label", "row 3")
    refused(write("a.jsonl", '{"text": "a", "label": 1}\n\n{"text": "b"}\n'), "line 3")


def test_ragged_rows(write):
    message = refused(
        write("a.csv", 'text,label\n"a\nb",1\nx, y,0\n'), "row 3", "3 fields", "quotes"
    )
    assert "line 4" in message


def test_broken_quotes(write):
    refused(write("a.csv", 'text,label\n"never closed,1\nb,0\n'), "quotes are broken")
    refused(write("b.csv", "text,text\na,b\n"), "repeats 'text'")


def test_json_that_is_not_json_or_not_an_object(write):
    refused(write("a.jsonl", '{"text": "a", "label": 1}\n{"text": \n'), "line 2", "not valid JSON")
    refused(write("b.jsonl", '{"text": "a", "label": 1}\n["a", 1]\n'), "line 2", "object", "list")
    refused(write("c.jsonl", '["a", 1]\n["b", 0]\n'), "line 1", "object")
    refused(write("d.json", '[{"text": "a", "label": 1}, 5]'), "row 2", "object", "int")
    refused(write("e.jsonl", "[" * 100_000), "line 1", "not valid JSON")


@pytest.mark.parametrize("value", [["a"], {"a": 1}, b"a"])
def test_text_that_is_not_text(value):
    refused({"text": ["a", value], "label": [0, 1]}, "row 2", "not a text", kind=UsageError)


def test_half_of_a_surrogate_pair(write):
    path = write("a.jsonl", '{"text": "\\ud83d", "label": 1}\n')
    refused(path, "line 1", "not valid Unicode")


def test_unsupported_suffix(write):
    refused(write("a.xlsx", "x"), '".xlsx"', ".csv", ".parquet", ".gz", kind=UsageError)
    refused(write("rows", "x"), "no suffix", ".jsonl", kind=UsageError)


def test_broken_gzip(write):
    whole = gzip.compress(b"text,label\n" + b"some words,1\n" * 200, mtime=0)
    refused(write("a.csv.gz", whole[:-12]), "is truncated", "again")
    refused(write("b.csv.gz", "text,label\na,1\n"), "not a valid gzip file")


def test_broken_parquet(write):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    out = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.table({"text": ["a"] * 100, "label": [0] * 100}), out)
    whole = out.getvalue().to_pybytes()
    refused(write("a.parquet", whole[: len(whole) // 2]), "not a valid Parquet file")
    refused(write("b.parquet", "text,label\na,1\n"), "not a valid Parquet file")


def test_labels_that_are_not_classes(write):
    refused(write("a.csv", "text,label\na,1\nb,0.5\n"), "row 3", "regression", kind=UsageError)
    refused({"text": ["a"], "label": [0.25]}, "regression is not supported", kind=UsageError)
    refused({"text": ["a"], "label": [["x", "y"]]}, "multi-label", "row 1", kind=UsageError)
    asked_for = {"need_labels": False, "label": "score"}
    refused({"text": ["a"], "score": [0.5]}, "regression", kind=UsageError, **asked_for)
    refused({"text": ["a"], "label": [{"x": 1}]}, "got dict", kind=UsageError)


def test_tables_in_memory_of_the_wrong_shape():
    refused({"text": ["a"], "label": [0, 1]}, "differ in length", kind=UsageError)
    refused({"text": "abc", "label": [0]}, "list of values", kind=UsageError)
    refused({"text": 5, "label": [0]}, "not a list", kind=UsageError)
    refused(5, "Cannot read rows", "the given int", kind=UsageError)


def test_splits_belong_to_hub_ids(write):
    path = write("a.csv", "text,label\na,1\n")
    refused(path, "no splits", "'train'", kind=UsageError, split="train")


@pytest.mark.parametrize(
    ("module", "source"), [("pyarrow", "a.parquet"), ("datasets", "owner/name")]
)
def test_what_to_install_when_a_library_is_missing(write, monkeypatch, module, source):
    monkeypatch.setitem(sys.modules, module, None)
    path = write(source, "PAR1") if source.endswith("parquet") else source
    refused(path, "not installed", "pip install 'de3bert[train]'")


def test_a_folder_is_no_suggestion_for_a_missing_file(tmp_path):
    (tmp_path / "docs").mkdir()
    with pytest.raises(UsageError) as caught:
        read_table(tmp_path / "docs.csv")
    assert "Did you mean" not in str(caught.value)
    (tmp_path / "dogs.csv").write_text("text,label\na,b\n")
    with pytest.raises(UsageError, match=r"Did you mean .*dogs\.csv"):
        read_table(tmp_path / "docs.csv")
