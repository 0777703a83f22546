"""One reader per file format, by suffix. Each takes the bytes of a file and gives its columns."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from de3bert.data.decode import decode, decompress
from de3bert.data.frame import Frame, frame_of
from de3bert.errors import De3Error, UsageError
from de3bert.registry import Registry

__all__ = ["FORMATS", "Reader", "read_file", "suffix_of", "supported"]

Reader = Callable[[bytes, str], Frame]
FORMATS: Registry[Reader] = Registry("file format")

# The csv module refuses fields over 128 KiB by default; whole documents can be longer than that.
LONGEST_FIELD = 2**31 - 1


def suffix_of(path: Path) -> str:
    """The format by name, without the dot and without .gz: `a/b.CSV.gz` is `csv`."""
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix.removeprefix(".")


def supported() -> str:
    return ", ".join(f".{name}" for name in FORMATS) + " (each also with .gz)"


def read_file(path: Path) -> Frame:
    """The columns of a file in any of the known formats."""
    suffix = suffix_of(path)
    if suffix not in FORMATS:
        given = f'"{path.suffix}"' if path.suffix else "no suffix"
        raise UsageError(f"{path} has {given}; files of rows end in {supported()}.")
    try:
        stored = path.read_bytes()
    except OSError as error:
        raise De3Error(f"Could not read {path}: {error.strerror}.") from error
    data = decompress(stored, str(path)) if path.name.lower().endswith(".gz") else stored
    if not data.strip():
        raise De3Error(f"{path} is empty. It should hold a text column and a label column.")
    frame = FORMATS[suffix](data, str(path))
    return replace(frame, sha256=hashlib.sha256(stored).hexdigest())


@FORMATS.register("csv")
def read_csv(data: bytes, source: str) -> Frame:
    return _delimited(decode(data, source), source, ",", csv.QUOTE_MINIMAL)


@FORMATS.register("tsv")
def read_tsv(data: bytes, source: str) -> Frame:
    text = decode(data, source)
    try:
        return _delimited(text, source, "\t", csv.QUOTE_MINIMAL)
    except De3Error as quoted:
        # Many published TSV files (GLUE's among them) do not quote: a quote there is just a quote.
        try:
            return _delimited(text, source, "\t", csv.QUOTE_NONE)
        except De3Error:
            raise quoted from None


def _delimited(text: str, source: str, delimiter: str, quoting: Any) -> Frame:
    csv.field_size_limit(LONGEST_FIELD)
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, quoting=quoting, strict=True
    )
    rows: list[list[str]] = []
    numbers: list[int] = []
    try:
        for number, cells in enumerate(reader, start=1):
            if not cells:
                continue
            if rows and len(cells) != len(rows[0]):
                raise De3Error(_ragged(source, number, reader.line_num, cells, rows[0]))
            rows.append(cells)
            numbers.append(number)
    except csv.Error as error:
        raise De3Error(
            f"{source}: the quotes are broken at or before line {reader.line_num} ({error}). "
            'A quote inside a quoted field is written twice: "".'
        ) from error
    header = _checked_header(rows[0], source)
    if len(rows) == 1:
        raise De3Error(f"{source} has a header ({', '.join(header)}) but no rows below it.")
    columns = [list(column) for column in zip(*rows[1:], strict=True)]
    named = dict(zip(header, columns, strict=True))
    return Frame(named, source, numbers[1:], untyped=True)


def _ragged(source: str, row: int, line: int, cells: list[str], header: list[str]) -> str:
    return (
        f"{source}: row {row} (ending on line {line}) has {len(cells)} fields, the header has "
        f"{len(header)} ({', '.join(header)}). Put fields that hold the separator in quotes."
    )


def _checked_header(cells: list[str], source: str) -> list[str]:
    header = [cell.strip() for cell in cells]
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise De3Error(f"{source}: the header repeats {', '.join(map(repr, repeated))}.")
    return header


@FORMATS.register("json")
def read_json(data: bytes, source: str) -> Frame:
    """One JSON list of objects, or JSON lines: both go by this suffix."""
    text = decode(data, source)
    if not text.lstrip().startswith("["):
        return read_jsonl(data, source)
    objects = _parsed(text, source)
    return _from_objects(objects, source, range(1, len(objects) + 1), "row")


@FORMATS.register("jsonl")
def read_jsonl(data: bytes, source: str) -> Frame:
    # Not splitlines(): it also cuts at characters that are legal inside a JSON string.
    split = decode(data, source).split("\n")
    lines = [(number, line) for number, line in enumerate(split, start=1) if line.strip()]
    objects = [_parsed(line, f"{source}, line {number}") for number, line in lines]
    return _from_objects(objects, source, [number for number, _ in lines], "line")


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise De3Error(f"{where}: not valid JSON ({error}).") from error


def _from_objects(
    objects: list[Any], source: str, numbers: Sequence[int], unit: Literal["row", "line"]
) -> Frame:
    for number, item in zip(numbers, objects, strict=True):
        if not isinstance(item, dict):
            raise De3Error(
                f"{source}, {unit} {number}: expected a JSON object such as "
                f'{{"text": "...", "label": "..."}}, got a {type(item).__name__}.'
            )
    names = list(dict.fromkeys(name for item in objects for name in item))
    if not names:
        raise De3Error(f"{source} holds no rows.")
    columns = {name: [item.get(name) for item in objects] for name in names}
    return Frame(columns, source, numbers, unit=unit)


@FORMATS.register("parquet")
def read_parquet(data: bytes, source: str) -> Frame:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise De3Error(
            "Reading Parquet needs pyarrow, which is not installed: pip install 'de3bert[train]'"
        ) from error
    try:
        table = parquet.read_table(pyarrow.BufferReader(data))
    except (pyarrow.ArrowException, OSError) as error:
        raise De3Error(
            f"{source} is not a sound Parquet file ({error}). Copy or write it again."
        ) from error
    return frame_of(table, source)
