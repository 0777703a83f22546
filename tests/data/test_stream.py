"""Rows one by one: the same as read in a whole, with what is wrong with a row in its place."""

from __future__ import annotations

import gzip
import io
import itertools
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from de3bert.data.lines import lines_of
from de3bert.data.read import read_inputs
from de3bert.data.stream import Row, stream_texts
from de3bert.errors import De3Error, UsageError

TEXTS = ["a joy", 'says "no", twice', "naïve 🙂", "two\nlines"]
GOOD = b'{"text": "a"}\n'


def faults(rows: list[Row]) -> list[tuple[int, str]]:
    return [(row.number, row.fault) for row in rows if row.fault]


def stdin(data: bytes, **options: str) -> list[Row]:
    return list(stream_texts("-", io.BytesIO(data), **options))


def write(folder: Path, name: str) -> Path:
    """The same rows in the format of the name."""
    import csv

    kind = name.removesuffix(".gz").rsplit(".", 1)[-1]
    rows = [{"id": str(index), "text": text} for index, text in enumerate(TEXTS)]
    path = folder / name
    if kind == "parquet":
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        out = pyarrow.BufferOutputStream()
        parquet.write_table(pyarrow.Table.from_pylist(rows), out)
        data = out.getvalue().to_pybytes()
    elif kind in ("csv", "tsv"):
        text = io.StringIO(newline="")
        writer = csv.DictWriter(text, ["id", "text"], delimiter="," if kind == "csv" else "\t")
        writer.writeheader()
        writer.writerows(rows)
        data = text.getvalue().encode()
    elif kind == "json":
        data = json.dumps(rows).encode()
    else:
        data = "".join(json.dumps(row) + "\n" for row in rows).encode()
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "json", "parquet"])
def test_the_same_rows_as_a_whole_and_one_by_one(tmp_path, kind, packed):
    path = write(tmp_path, f"rows.{kind}{packed}")
    rows = list(stream_texts(path))
    assert [row.given for row in rows] == read_inputs(path).texts == TEXTS
    assert [row.columns["id"] for row in rows] == ["0", "1", "2", "3"]
    assert not faults(rows)


@pytest.mark.parametrize("packed", [False, True])
def test_lines_of_a_file(tmp_path, packed):
    path = tmp_path / ("a.txt.gz" if packed else "a.txt")
    data = "\ufeffé\r\nb ".encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    assert [(row.given, row.columns) for row in stream_texts(path)] == [
        ("é", {"text": "é"}),
        ("b ", {"text": "b "}),
    ]


def test_bad_lines_stand_in_their_place():
    rows = stdin(b"\na\n\n \nb\xff\nc")
    assert [row.given for row in rows] == [None, "a", None, None, None, "c"]
    assert [number for number, _ in faults(rows)] == [1, 3, 4, 5]
    assert "empty" in rows[0].fault
    assert "0xff" in rows[4].fault


def test_bad_json_lines():
    lines = [
        b'{"text": "a", "id": 1}', b"", b'{"text": ', b"[1]", b'{"id": 2}', b'{"text": null}',
        b'{"text": ["a"]}', b'{"text": "\\ud83d"}', b'{"text": "\xff"}', b'{"text": 7}',
        b'{"text": "a", "x": ' + b"[" * 5000 + b"]" * 5000 + b"}", b'{"text": NaN}',
        b'{"text": ' + b"9" * 5000 + b"}", b'{"text": "\\u0000", "text": "b"}',
    ]  # fmt: skip
    rows = stdin(b"\n".join(lines))
    expected = {
        3: "not valid JSON", 4: "expected a JSON object", 5: 'has no "text"', 6: "empty",
        7: "holds a list", 8: "surrogate", 9: "UTF-8", 11: "JSON", 12: "empty", 13: "JSON",
    }  # fmt: skip
    assert [number for number, _ in faults(rows)] == list(expected)
    for number, fault in faults(rows):
        assert expected[number] in fault, fault
    assert [row.given for row in rows if not row.fault] == ["a", "7", "b"]
    assert next(row for row in rows if row.number == 5).columns == {"id": 2}


def test_bad_rows_of_csv(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(
        b'id,text\n1,a\n2\n\n3,b,c\n4,\n5,caf\xe9\n6,"x"y\n7,"two\nlines"\n8,c\0d\n9,"open\n'
    )
    rows = list(stream_texts(path))
    assert [(row.number, row.given) for row in rows if not row.fault] == [
        (2, "a"), (9, "two\nlines"), (11, "c\0d"),
    ]  # fmt: skip
    expected = {3: "1 fields", 5: "3 fields", 6: "empty", 7: "0xe9", 8: "quotes", 12: "quotes"}
    assert [number for number, _ in faults(rows)] == list(expected)
    for number, fault in faults(rows):
        assert expected[number] in fault, fault
    assert next(row for row in rows if row.number == 7).columns == {"id": "5", "text": "caf\ufffd"}


def test_a_tsv_that_does_not_quote(tmp_path):
    (tmp_path / "a.tsv").write_text('text\tn\n"half a quote\t1\n"whole"\t2\nplain\t3\n')
    rows = list(stream_texts(tmp_path / "a.tsv"))
    assert [row.given for row in rows] == read_inputs(tmp_path / "a.tsv").texts
    assert not faults(rows)


def test_lines_that_end_as_of_old(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"text,n\ra,1\rb,2\r")
    assert [row.given for row in stream_texts(tmp_path / "a.csv")] == ["a", "b"]


def test_columns_of_json_lines_are_found_in_the_first_row_that_has_them():
    rows = stdin(b'{"id": 1}\n{\n{"id": 2, "review": "a"}\n{"review": "b"}\n')
    assert [row.given for row in rows] == [None, None, "a", "b"]
    assert [row.number for row in rows] == [1, 2, 3, 4]
    with pytest.raises(UsageError, match=r'no column of text.*"id"'):
        stdin(b'{"id": 1}\n' * 3)
    with pytest.raises(UsageError, match='no column "body"'):
        stdin(b'{"text": "a"}\n' * 3, text="body")


def test_a_column_is_not_looked_for_for_ever():
    taken = []

    def endless():
        for number in itertools.count():
            taken.append(number)
            yield b'{"id": 1}\n'

    class Stream:
        def __init__(self):
            self.blocks = endless()

        def read(self, size):
            return next(self.blocks)

    with pytest.raises(UsageError, match="no column of text"):
        list(stream_texts("-", Stream()))
    assert len(taken) < 1000


def test_a_row_is_given_before_the_next_is_read():
    """What `tail -f` needs."""
    asked = []

    class Stream:
        def read(self, size):
            asked.append(size)
            return f"line {len(asked)}\n".encode()

    rows = stream_texts("-", Stream())
    for number in (1, 2, 3):
        assert next(rows).given == f"line {number}"
        assert len(asked) == number


def test_pairs():
    rows = stdin(b'{"premise": "a", "hypothesis": "b"}\n{"premise": "a"}\n')
    assert [row.given for row in rows] == [("a", "b"), None]
    assert 'no "hypothesis"' in rows[1].fault


@pytest.mark.parametrize(
    ("name", "data", "words", "kind"),
    [
        ("none.csv", None, "no file", UsageError),
        ("a.xyz", b"a", "data files end in", UsageError),
        ("a.csv", b"", "is empty", De3Error),
        ("a.csv", b"text,n\n", "no rows below it", De3Error),
        ("a.csv", b"text,text\na,b\n", "repeats", De3Error),
        ("a.csv", b"words,n\na,1\n", "no column of text", UsageError),
        ("a.csv", "text\na\n".encode("utf-16"), "UTF-16", De3Error),
        ("a.csv.gz", b"text\na\n", "not a valid gzip", De3Error),
        ("a.jsonl", b"\n\n", "is empty", De3Error),
        ("a.txt", b"\n \n", "is empty", De3Error),
        ("a.txt.gz", b"", "is empty", De3Error),
        ("a.parquet", b"PAR1", "not a valid Parquet", De3Error),
        ("a.json", b"[1]", "expected a JSON object", De3Error),
        ("x" * 300, None, "cannot be read as a file", UsageError),
    ],
)
def test_errors_about_the_whole_source(tmp_path, name, data, words, kind):
    if data is not None:
        (tmp_path / name).write_bytes(data)
    with pytest.raises(De3Error, match=words) as caught:
        list(stream_texts(tmp_path / name))
    assert type(caught.value) is kind
    assert len(str(caught.value)) < 1000


def collect(source: Iterator[Row], rows: list[Row]) -> None:
    for row in source:
        rows.append(row)


def until(error: str, path: Path) -> list[Row]:
    """The rows before the source broke off with this error."""
    rows: list[Row] = []
    with pytest.raises(De3Error, match=error):
        collect(stream_texts(path), rows)
    return rows


@pytest.mark.parametrize("name", ["a.txt.gz", "a.csv.gz", "a.jsonl.gz", "a.tsv.gz"])
def test_what_was_read_before_the_end_broke_off_is_given(tmp_path, name):
    path = tmp_path / name
    row = '{{"text": "{}"}}\n' if "json" in name else "some words of line {}\n"
    lines = "".join(row.format(number**5) for number in range(40_000))
    lines = lines if "json" in name else f"text\n{lines}"
    path.write_bytes(gzip.compress(lines.encode())[:-2000])
    rows = until("is truncated", path)
    assert len(rows) > 10_000
    assert not faults(rows)


def test_parquet_that_breaks_in_the_middle(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "a.parquet"
    table = pyarrow.table({"text": [f"row {number} {number**5}" for number in range(4000)]})
    parquet.write_table(table, path, row_group_size=1000, compression="gzip", use_dictionary=False)
    data = bytearray(path.read_bytes())
    data[len(data) // 2 : len(data) // 2 + 200] = b"\0" * 200
    path.write_bytes(data)
    rows = until("not a valid Parquet file", path)
    assert [row.given for row in rows[:1]] == ["row 0 0"]
    assert len(rows) >= 1000


def test_plain_lines_have_no_columns_and_no_stdin_is_an_error():
    with pytest.raises(UsageError, match="plain lines"):
        stdin(b"a\n", text="review")
    with pytest.raises(UsageError, match="there is no input"):
        list(stream_texts("-"))


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60), st.integers(1, 7))
def test_lines_do_not_depend_on_the_blocks(data, size):
    blocks = [data[start : start + size] for start in range(0, len(data), size)]
    try:
        expected = list(lines_of([data] if data else [], "x"))
    except De3Error:
        return
    assert list(lines_of(blocks, "x")) == expected
    assert b"".join(expected) == data.removeprefix(b"\xef\xbb\xbf")


def test_a_line_without_an_end_is_not_held(monkeypatch):
    monkeypatch.setenv("DE3_MAX_TEXT", "1KB")
    rows = list(stream_texts("-", io.BytesIO(b"a\n" + b"x" * 5_000_000 + b"\nb\n")))
    assert [row.given for row in rows] == ["a", None, "b"]
    assert "more than the limit of 1 KB" in rows[1].fault
    held = [len(line) for line in lines_of(itertools.repeat(b"x" * 100, 1000), "x")]
    assert held == [1025]
