"""Files of rows: spoiled cells, spoiled lines, spoiled bytes, in every format that is read."""

from __future__ import annotations

import csv
import gzip
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.budget import cases
from tests.fuzz.mutate import as_json, bites, bitten, edited, edits
from tests.fuzz.values import VALUES
from tests.fuzz.verbs import ON_ROWS, row_call

HEADER = ["id", "text", "label"]
ROWS = [
    ["0", "a great film", "pos"],
    ["1", "the worst story", "neg"],
    ["2", "it was fine, so fine", "pos"],
    ["3", 'an "awful" plot', "neg"],
]
SENTENCES = [
    {"tokens": ["good", "film", "the"], "tags": ["B-ART", "I-ART", "O"]},
    {"tokens": ["it", "movie"], "tags": ["O", "B-ART"]},
]
CONLL = b"good B-ART\nfilm I-ART\nthe O\n\nit O\nmovie B-ART\n"
NAMES = ("text", "label", "sentence", "sentence2", "tokens", "tags", "labels", "", "id", "\x1b[2J")

cells = st.tuples(st.integers(0, 4), st.integers(0, 3), st.sampled_from(list(VALUES)))
headers = st.tuples(st.integers(0, 2), st.sampled_from(NAMES))
shapes = st.sampled_from(["none", "ragged", "doubled column", "no rows", "no header", "one class"])
formats = st.sampled_from(["csv", "tsv", "jsonl", "json", "txt", "parquet"])


def spoiled(changed: list[Any], renamed: list[Any], shape: str) -> list[list[Any]]:
    """Header and rows after all changes."""
    table: list[list[Any]] = [list(row) for row in (HEADER, *ROWS)]
    for row, column, what in changed:
        line = table[row % len(table)]
        line[column % len(line)] = VALUES[what]
    for column, name in renamed:
        table[0][column] = name
    if shape == "ragged":
        table[2].append("more")
    elif shape == "doubled column":
        table = [[*line, line[1]] for line in table]
    elif shape == "no rows":
        table = table[:1]
    elif shape == "no header":
        table = table[1:]
    elif shape == "one class":
        table = [table[0], *([*line[:2], "pos"] for line in table[1:])]
    return table


def written(table: list[list[Any]], kind: str) -> bytes:
    if kind == "parquet":
        return _parquet(table)
    if kind in ("csv", "tsv"):
        text = io.StringIO()
        writer = csv.writer(text, delimiter="," if kind == "csv" else "\t")
        writer.writerows([[str(cell) for cell in line] for line in table])
        return text.getvalue().encode("utf-8", "surrogatepass")
    if kind == "txt":
        lines = [str(line[min(1, len(line) - 1)]) for line in table]
        return "\n".join(lines).encode("utf-8", "surrogatepass")
    objects = [
        dict(zip(map(str, table[0]), line, strict=False)) for line in table[1:]
    ]  # Raw values are plain strings here, which JSON quotes
    if kind == "json":
        return json.dumps(objects).encode()
    return "\n".join(json.dumps(each) for each in objects).encode()


def _parquet(table: list[list[Any]]) -> bytes:
    """As Arrow takes the columns; one of mixed kinds as text."""
    import pyarrow
    from pyarrow import parquet

    width = min(map(len, table))
    columns = {}
    for place in range(width):
        values = [line[place] for line in table[1:]]
        try:
            columns[str(table[0][place])] = pyarrow.array(values)
        except (pyarrow.ArrowException, OverflowError, UnicodeError, TypeError):
            plain = [str(value).encode("utf-8", "surrogatepass") for value in values]
            columns[str(table[0][place])] = pyarrow.array(plain)
    buffer = io.BytesIO()
    try:
        parquet.write_table(pyarrow.table(columns), buffer)
    except (pyarrow.ArrowException, UnicodeError):
        return b"PAR1"
    return buffer.getvalue()


@cases("tables")
@given(
    st.lists(cells, max_size=3), st.lists(headers, max_size=1), shapes, formats,
    st.sampled_from(ON_ROWS),
)  # fmt: skip
def test_tables(arena, changed, renamed, shape, kind, verb):
    case = arena.case("tables")
    rows = case.write(f"rows.{kind}", written(spoiled(changed, renamed, shape), kind))
    case.verb(*row_call(case, verb, arena.materials.bundle, rows))


@cases("bytes of data")
@given(bites, formats, st.sampled_from(ON_ROWS))
def test_bytes(arena, bitten_at, kind, verb):
    case = arena.case("bytes of data")
    sound = written([HEADER, *ROWS], kind)
    rows = case.write(f"rows.{kind}", bitten(sound, bitten_at))
    case.verb(*row_call(case, verb, arena.materials.bundle, rows))


def _columns() -> dict[str, Any]:
    """Columns of every kind that Arrow has."""
    import pyarrow

    three = pyarrow.array(["a", "b", "c"])
    return {
        "texts": three,
        "numbers": pyarrow.array([1, 2, 3]),
        "floats": pyarrow.array([0.5, float("nan"), float("inf")]),
        "lists": pyarrow.array([["a"], [], None]),
        "objects": pyarrow.array([{"a": 1}, {"a": None}, None]),
        "bytes": pyarrow.array([b"\xff", b"", b"a\x00"]),
        "times": pyarrow.array([0, 1, 2**62], pyarrow.timestamp("ns")),
        "days": pyarrow.array([0, 1, -(2**31)], pyarrow.date32()),
        "clock": pyarrow.array([0, 1, 2], pyarrow.time64("ns")),
        "spans": pyarrow.array([0, 1, 2**62], pyarrow.duration("s")),
        "nothing": pyarrow.nulls(3),
        "truths": pyarrow.array([True, False, None]),
        "words": three.dictionary_encode(),
        "decimals": pyarrow.array([1, 2, 3]).cast(pyarrow.decimal128(38, 2)),
        "large": three.cast(pyarrow.large_string()),
        "unsigned": pyarrow.array([0, 1, 2**64 - 1], pyarrow.uint64()),
        "maps": pyarrow.array([[("a", 1)], [], None], pyarrow.map_("string", "int64")),
        "bad text": pyarrow.Array.from_buffers(
            pyarrow.string(), 3, pyarrow.array([b"\xff", b"\x80", b"a"]).buffers()
        ),
    }


KINDS = ("texts", "numbers", "floats", "lists", "objects", "bytes", "times", "days", "clock",
         "spans", "nothing", "truths", "words", "decimals", "large", "unsigned", "maps",
         "bad text")  # fmt: skip


@cases("parquet")
@given(
    st.sampled_from(KINDS), st.sampled_from(KINDS), st.sampled_from(KINDS), st.booleans(),
    bites, st.sampled_from(ON_ROWS),
)  # fmt: skip
def test_parquet(arena, text, label, other, spoil, bitten_at, verb):
    import pyarrow
    from pyarrow import parquet

    case = arena.case("parquet")
    known = _columns()
    table = pyarrow.table([known[text], known[label], known[other]], ["text", "label", "more"])
    buffer = io.BytesIO()
    parquet.write_table(table, buffer)
    data = bitten(buffer.getvalue(), bitten_at) if spoil else buffer.getvalue()
    case.verb(*row_call(case, verb, arena.materials.bundle, case.write("rows.parquet", data)))


@cases("packed data")
@given(bites, bites, formats, st.sampled_from(["inside", "outside", "both", "twice"]))
def test_packed(arena, inside, outside, kind, where):
    case = arena.case("packed data")
    sound = written([HEADER, *ROWS], kind)
    data = gzip.compress(bitten(sound, inside) if where in ("inside", "both") else sound, mtime=0)
    if where == "twice":
        data = gzip.compress(data, mtime=0)
    if where in ("outside", "both"):
        data = bitten(data, outside)
    rows = case.write(f"rows.{kind}.gz", data)
    case.verb("predict", arena.materials.bundle, rows)


LINES = (b"a great film\n", b"\n", b"   \n", b"\xff\xfe\n", b"\x1b[31mred\x07\n", b"\x00\n",
         b'{"text": "a great film"}\n', b'{"text": ""}\n', b'{"text": null}\n', b'{"text": 3}\n',
         b'{"text": "\\ud800"}\n', b'{"text": "\\u001b[2J", "id": "\\u009b"}\n', b"{\n",
         b'{"a": 1}\n', b"[]\n", b"[1, 2]\n", b"[" * 5000 + b"\n", b'{"a":' * 5000 + b"\n",
         b'{"text": "x", "label": 1e999, "n": 123456789012345678901234567890}\n',
         b'{"text": "x", "sentence2": "y"}\n', b'{"text": ["a"]}\n', b"a\r\n",
         b"\xe2\x80\xa8\n", b"x" * 200_000 + b"\n", b'{"text": "a", "text": "b"}\n',
         b'{"text": "a", "score": 1, "label": "\\u202e", "error": "x"}\n',
         b'{"text": NaN}\n', b"no newline at the end")  # fmt: skip


@cases("standard input")
@given(
    st.lists(st.sampled_from(LINES), max_size=5), bites, st.booleans(),
    st.sampled_from([(), ("--json",), ("--batch-size", "1"), ("--text", "text"), ("--quiet",)]),
    st.sampled_from(["bundle", "bundle", "bundle", "words"]),
)  # fmt: skip
def test_standard_input(arena, lines, bitten_at, spoil, options, model):
    case = arena.case("standard input")
    data = b"".join(lines)
    place = getattr(arena.materials, model)
    case.verb("predict", place, *options, stdin=bitten(data, bitten_at) if spoil else data)


@cases("sentences")
@given(
    edits, bites, st.sampled_from(["conll", "bio", "txt", "jsonl", "json"]), st.booleans(),
    st.sampled_from(["evaluate", "predict", "calibrate"]),
)  # fmt: skip
def test_sentences(arena, edited_at, bitten_at, kind, spoil, verb):
    case = arena.case("sentences")
    if kind in ("jsonl", "json"):
        objects = edited(SENTENCES, edited_at)
        listed = objects if isinstance(objects, list) and kind == "jsonl" else [objects]
        data = b"\n".join(as_json(each) for each in listed)
    else:
        data = bitten(CONLL, bitten_at)
    rows = case.write(f"rows.{kind}", bitten(data, bitten_at) if spoil else data)
    case.verb(*row_call(case, verb, arena.materials.words, rows))


@pytest.mark.parametrize("kind", ["csv", "tsv", "jsonl", "json", "txt", "parquet"])
def test_what_is_spoiled_was_sound(arena, kind):
    """Else every case would be refused for the same reason."""
    case = arena.case("tables")
    rows = case.write(f"rows.{kind}", written([HEADER, *ROWS], kind))
    assert case.verb("predict", arena.materials.bundle, rows).kind == "success"
