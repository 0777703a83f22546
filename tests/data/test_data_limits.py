"""A small file that becomes a large one is refused before it has become one."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import pytest

from de3bert.data.read import read_inputs, read_table
from de3bert.data.stream import stream_texts
from de3bert.errors import De3Error, UsageError

MB = 1 << 20
WATCHED = """
import resource, sys
from de3bert.data.read import read_table
from de3bert.data.stream import stream_texts
from de3bert.errors import De3Error
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    for _ in (stream_texts(sys.argv[2]) if sys.argv[1] == "stream" else [read_table(sys.argv[2])]):
        pass
except De3Error as error:
    print(error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


def watched(kind: str, path: Path) -> tuple[str, int]:
    """What reading said, and how many MB it took."""
    command = [sys.executable, "-c", WATCHED, kind, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    *said, size = done.stdout.splitlines()
    return "\n".join(said), int(size)


@pytest.fixture(scope="module")
def bomb(tmp_path_factory) -> Path:
    """0.6 MB that unpack to 600 MB."""
    path = tmp_path_factory.mktemp("bomb") / "rows.csv.gz"
    with gzip.open(path, "wb") as file:
        file.write(b"text,label\na,")
        for _ in range(600):
            file.write(b"b" * MB)
    assert path.stat().st_size < MB
    return path


@pytest.mark.parametrize("kind", ["whole", "stream"])
def test_a_gzip_bomb(bomb, kind):
    said, size = watched(kind, bomb)
    assert "unpacks to more than" in said
    assert "KB and" in said
    assert "--limit unpacked=" in said
    assert size < (400 if kind == "whole" else 250)


def test_a_limit_that_was_raised_holds(monkeypatch, tmp_path):
    small = tmp_path / "small.csv.gz"
    small.write_bytes(gzip.compress(b"text,label\n" + b"x" * (70 * MB) + b",1\n"))
    monkeypatch.setenv("DE3_MAX_TEXT", "1GB")
    with pytest.raises(UsageError, match="unpacks to more than 64 MB"):
        read_table(small)
    with pytest.raises(UsageError, match="unpacks to more than 64 MB"):
        list(stream_texts(small))
    monkeypatch.setenv("DE3_MAX_UNPACKED", "100MB")
    assert len(read_table(small).texts[0]) == 70 * MB
    assert len(list(stream_texts(small))) == 1


def test_plain_files_are_looked_at_before_they_are_read(tmp_path, monkeypatch):
    monkeypatch.setenv("DE3_MAX_UNPACKED", "1KB")
    for name in ("a.csv", "a.jsonl", "a.txt", "a.parquet", "a.json"):
        (tmp_path / name).write_bytes(b"x" * 2000)
        with pytest.raises(UsageError, match=r"2 KB is more than the limit of 1 KB"):
            read_inputs(tmp_path / name)
    (tmp_path / "a.txt").write_text("some words\n" * 1000)
    assert len(list(stream_texts(tmp_path / "a.txt"))) == 1000  # nothing of it is held


def test_a_file_without_a_size_has_a_limit_too(tmp_path, monkeypatch):
    zeros = Path("/dev/zero")
    if not zeros.exists():
        pytest.skip("there is no /dev/zero")
    monkeypatch.setenv("DE3_MAX_UNPACKED", "1MB")
    (tmp_path / "a.csv").symlink_to(zeros)
    with pytest.raises(UsageError, match="more than 1 MB"):
        read_table(tmp_path / "a.csv")


def test_one_text_has_a_limit(tmp_path, monkeypatch):
    monkeypatch.setenv("DE3_MAX_TEXT", "1KB")
    (tmp_path / "a.csv").write_text(f"text,label\n{'y' * 2000},1\nb,0\n")
    with pytest.raises(De3Error, match="limit"):
        read_table(tmp_path / "a.csv")
    rows = list(stream_texts(tmp_path / "a.csv"))
    assert [bool(row.fault) for row in rows] == [True, False]
    with pytest.raises(UsageError, match=r'row 1: "text": 2 KB is more than the limit of 1 KB'):
        read_table({"text": ["z" * 2000], "label": [1]})


def test_parquet_is_refused_by_what_it_promises(tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "many.parquet"
    numbers = pyarrow.array([0] * 3_000_000, pyarrow.int32())
    texts = pyarrow.DictionaryArray.from_arrays(numbers, pyarrow.array(["a"]))
    parquet.write_table(pyarrow.table({"text": texts, "label": numbers}), path)
    assert path.stat().st_size < 100_000
    monkeypatch.setenv("DE3_MAX_UNPACKED", "100MB")
    with pytest.raises(UsageError, match=r"3,000,000 rows\): .*MB is more than the limit"):
        read_table(path)
    rows = stream_texts(path)
    assert next(rows).given == "a"


def test_one_long_text_in_a_dictionary_of_many_rows(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    path = tmp_path / "long.parquet"
    numbers = pyarrow.array([0] * 2000, pyarrow.int32())
    texts = pyarrow.DictionaryArray.from_arrays(numbers, pyarrow.array(["x" * (4 * MB)]))
    table = pyarrow.table({"text": texts, "label": numbers})
    parquet.write_table(table, path, dictionary_pagesize_limit=64 * MB, store_schema=False)
    assert path.stat().st_size < MB
    said, size = watched("whole", path)
    assert "its rows, written out" in said
    assert size < 300
    assert watched("stream", path)[1] < 300
