"""What `predict` takes: files of rows, plain lines, standard input."""

import gzip
import io

import pytest

from de3bert.data.read import read_inputs
from de3bert.errors import De3Error, UsageError


def lines_of(stream):
    return read_inputs("-", stream).texts


def test_lines_from_bytes_and_text():
    assert lines_of(io.BytesIO("é\r\nb \n".encode())) == ["é", "b "]
    assert lines_of(io.StringIO("a\nb")) == ["a", "b"]
    assert lines_of(io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbfa\n"), encoding="latin1")) == ["a"]


def test_lines_that_are_refused():
    with pytest.raises(De3Error, match=r"line 2 is empty \(2 of 3"):
        lines_of(io.BytesIO(b"a\n \n\n"))
    with pytest.raises(De3Error, match=r"standard input is not UTF-8: line 2.*0xff"):
        lines_of(io.TextIOWrapper(io.BytesIO(b"a\n\xff\n")))
    with pytest.raises(De3Error, match="empty"):
        lines_of(io.BytesIO(b"\n"))


def test_standard_input_of_lines():
    table = read_inputs("-", io.BytesIO(b"a\nb\n"))
    assert (table.texts, table.labels, table.columns) == (["a", "b"], None, {"text": ["a", "b"]})
    assert table.source == "standard input"
    with pytest.raises(UsageError, match="no column"):
        read_inputs("-", io.BytesIO(b"a\n"), text="review")
    with pytest.raises(UsageError, match="there is no input"):
        read_inputs("-")


def test_standard_input_of_json_lines():
    stdin = io.BytesIO(b'\n {"id": 7, "body": "a", "note": "b"}\n')
    table = read_inputs("-", stdin, text="body", text_pair="note")
    assert (table.inputs(), table.columns["id"]) == ([("a", "b")], [7])
    with pytest.raises(De3Error, match="standard input, line 1: not valid JSON"):
        read_inputs("-", io.BytesIO(b"{a joy}\n"))


def test_files(tmp_path):
    (tmp_path / "a.txt").write_text("a\nb\n", encoding="utf-8")
    (tmp_path / "a.txt.gz").write_bytes(gzip.compress(b"a\nb\n"))
    (tmp_path / "a.csv").write_text("text,score\na,0.5\nb,0.1\n", encoding="utf-8")
    for name in ("a.txt", "a.txt.gz", "a.csv"):
        assert read_inputs(tmp_path / name).texts == ["a", "b"]
    assert read_inputs(str(tmp_path / "a.csv")).columns["score"] == ["0.5", "0.1"]
    with pytest.raises(UsageError, match="no file"):
        read_inputs(tmp_path / "b.txt")
