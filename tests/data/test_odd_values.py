"""Files that only look like data: an answer or a De3Error, whatever is in them."""

from __future__ import annotations

import datetime
import decimal
import json
import subprocess
import sys
from pathlib import Path

import pytest

from de3bert.data.frame import class_names_of
from de3bert.data.read import read_table
from de3bert.data.stream import stream_texts
from de3bert.errors import De3Error, UsageError

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")


def stored(folder: Path, columns: dict, metadata: dict | None = None) -> Path:
    table = pyarrow.table(columns)
    if metadata is not None:
        table = table.replace_schema_metadata(metadata)
    parquet.write_table(table, folder / "a.parquet")
    return folder / "a.parquet"


def invalid_text() -> object:
    """A column of strings of which the second is no UTF-8."""
    return pyarrow.array([b"good", b"\xff\xfe", b"bad"]).cast(pyarrow.binary()).view("string")


@pytest.mark.parametrize(
    "values",
    [
        [b"a", b"b"],
        [["a"], ["b"]],
        [{"x": 1}, {"x": 2}],
        [decimal.Decimal("1.5"), decimal.Decimal("2.5")],
        [datetime.datetime(2026, 1, 1), datetime.datetime(2026, 1, 2)],
        [None, None],
        pyarrow.array([{"k": 1}, {"k": 2}], pyarrow.map_(pyarrow.string(), pyarrow.int32())),
    ],
    ids=["bytes", "list", "struct", "decimal", "timestamp", "null", "map"],
)
def test_columns_of_other_types(tmp_path, values):
    as_text = stored(tmp_path, {"text": values, "label": [0, 1]})
    with pytest.raises(De3Error):
        read_table(as_text)
    assert all(row.fault for row in stream_texts(as_text))
    beside = stored(tmp_path, {"text": ["a", "b"], "label": [0, 1], "more": values})
    assert read_table(beside).texts == ["a", "b"]
    assert [row.given for row in stream_texts(beside)] == ["a", "b"]


def test_a_date_that_is_none_does_not_spoil_its_neighbours(tmp_path):
    far = pyarrow.array([0, 2**62], pyarrow.timestamp("us"))
    path = stored(tmp_path, {"text": ["a", "b"], "label": [0, 1], "when": far})
    assert read_table(path).texts == ["a", "b"]
    rows = list(stream_texts(path))
    assert [row.given for row in rows] == ["a", "b"]
    assert "unreadable" in str(rows[1].columns["when"])


def test_text_of_parquet_that_is_no_utf8(tmp_path):
    path = stored(tmp_path, {"text": invalid_text(), "label": [0, 1, 0]})
    with pytest.raises(De3Error, match='row 2: "text" cannot be read'):
        read_table(path)
    rows = list(stream_texts(path))
    assert [row.given for row in rows] == ["good", None, "bad"]
    with pytest.raises(De3Error, match='"text" cannot be read'):
        read_table(pyarrow.table({"text": invalid_text(), "label": [0, 1, 0]}))


@pytest.mark.parametrize(
    "described",
    [
        b"{", b"[]", b"null", b"5", b"\xff", b"[" * 5000,
        *(json.dumps({"info": {"features": {"label": feature}}}).encode() for feature in (
            5, "x", None, [], {"names": "negative"}, {"names": {"0": "x"}}, {"names": [0, 1]},
            {"names": ["a", "a"]}, {"feature": [1]}, {"feature": {"names": 3}},
        )),
        b'{"info": {"features": [1]}}', b'{"info": 3}',
    ],
)  # fmt: skip
def test_class_names_that_are_none(tmp_path, described):
    path = stored(tmp_path, {"text": ["a", "b"], "label": [0, 1]}, {b"huggingface": described})
    assert read_table(path).label_names is None


def test_class_names_in_a_schema():
    named = json.dumps({"info": {"features": {"label": {"names": ["no", "yes"]}}}}).encode()
    schema = pyarrow.schema([("label", pyarrow.int64())], metadata={b"huggingface": named})
    assert class_names_of(schema) == {"label": ["no", "yes"]}


def test_parquet_without_columns_or_rows(tmp_path):
    parquet.write_table(pyarrow.table({}), tmp_path / "a.parquet")
    parquet.write_table(
        pyarrow.table({"text": pyarrow.array([], "string")}), tmp_path / "b.parquet"
    )
    for name in ("a.parquet", "b.parquet"):
        with pytest.raises(De3Error, match="holds no rows"):
            read_table(tmp_path / name)
        with pytest.raises(De3Error, match="holds no rows"):
            list(stream_texts(tmp_path / name))


@pytest.mark.parametrize(
    "content",
    [
        b'[{"text": "a", "label": ' + b"[" * 3000 + b"]" * 3000 + b"}]",
        b'{"text": "a", "label": ' + b"9" * 5000 + b"}",
        b'{"text": "a", "label": Infinity}',
        b'{"text": "a", "label": {}}',
        b'{"text": "a", "label": "\\ud800"}\n{"text": "b"}',
        b"[" * 100_000,
        b"[1, 2",
        b"\xef\xbb\xbf",
        b"\0\0\0\0",
        b"[]",
        b"[{}]",
        b"{}",
        b'{"": ""}',
        b'"text"',
    ],
)
@pytest.mark.parametrize("name", ["a.json", "a.jsonl", "a.csv", "a.tsv"])
def test_odd_content_is_refused_in_words(tmp_path, content, name):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(De3Error) as caught:
        read_table(tmp_path / name)
    assert len(str(caught.value)) < 2000
    try:
        rows = list(stream_texts(tmp_path / name))
    except De3Error:
        return
    assert all(row.given or row.fault for row in rows)


def test_long_names_and_texts_do_not_fill_a_message(tmp_path):
    wide = {f"column {number} {'x' * 500}": ["a"] for number in range(500)}
    with pytest.raises(UsageError) as caught:
        read_table(wide)
    assert len(str(caught.value)) < 2000
    assert "and 490 more" in str(caught.value)


def test_names_of_labels_are_given(tmp_path):
    data = {"text": ["a", "b"], "label": [1, 0]}
    assert read_table(data).label_names is None
    assert read_table(data, label_names=["no", "yes"]).label_names == ["no", "yes"]
    assert read_table(data, label_names={0: "no", 1: "yes"}).label_names == {0: "no", 1: "yes"}
    with pytest.raises(UsageError, match="labels 1 have no name among those given"):
        read_table(data, label_names=["no"])
    with pytest.raises(UsageError, match="Name every number"):
        read_table(data, label_names={1: "yes", 2: "maybe"})
    named = json.dumps({"info": {"features": {"label": {"names": ["no", "yes"]}}}}).encode()
    path = stored(tmp_path, data, {b"huggingface": named})
    assert read_table(path).label_names == ["no", "yes"]
    assert read_table(path, label_names=["other", "own"]).label_names == ["other", "own"]


@pytest.mark.parametrize("name", ["sentiment", "category", "class", "target", "intent"])
def test_usual_names_of_labels(name):
    assert read_table({"text": ["a"], name: ["x"]}).label_column == name
    assert read_table({"text": ["a"], name: ["x"], "label": ["y"]}).label_column == "label"


@pytest.mark.parametrize(
    "name", ["utterance", "query", "comment", "tweet", "message", "body", "document"]
)
def test_usual_names_of_texts(name):
    assert read_table({name: ["a"], "label": ["x"]}).text_column == name
    both = {name: ["a"], "review": ["b"], "label": ["x"]}
    assert read_table(both).text_column == "review"


EVERY_BYTE = """
import sys
from pathlib import Path
import pyarrow
from pyarrow import parquet
from de3bert.data.read import read_table
from de3bert.data.stream import stream_texts
from de3bert.errors import De3Error
path = Path(sys.argv[1])
parquet.write_table(pyarrow.table({"text": ["a", "b"], "label": [0, 1]}), path, store_schema=False)
data = path.read_bytes()
start = len(data) - 8 - int.from_bytes(data[-8:-4], "little")
for place in range(start, len(data)):
    for other in (0, 255, data[place] ^ 1, data[place] ^ 4):
        path.write_bytes(data[:place] + bytes([other]) + data[place + 1 :])
        for read in (read_table, lambda path: list(stream_texts(path))):
            try:
                read(path)
            except De3Error:
                pass
print("done")
"""


def test_no_damage_of_a_parquet_footer_brings_the_process_down(tmp_path):
    """Errors in Arrow's own language end the process where nobody there catches them."""
    command = [sys.executable, "-c", EVERY_BYTE, str(tmp_path / "a.parquet")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-2000:]
