"""One reader per file format, by suffix. Each takes the bytes of a file and gives its columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from de3bert.data import parquet
from de3bert.data.columns import shown_names
from de3bert.data.decode import decode, read_bytes
from de3bert.data.delimited import Quoting, cells_of, checked_header
from de3bert.data.frame import Frame
from de3bert.data.objects import checked_object, parsed
from de3bert.errors import De3Error, UsageError
from de3bert.registry import Registry

__all__ = ["FORMATS", "Reader", "check_suffix", "read_file", "suffix_of", "supported"]

Reader = Callable[[bytes, str], Frame]
FORMATS: Registry[Reader] = Registry("file format")
FORMATS.register("parquet")(parquet.read_parquet)


def suffix_of(path: Path) -> str:
    """The format by name, without the dot and without .gz: `a/b.CSV.gz` is `csv`."""
    name = path.name.lower().removesuffix(".gz")
    return Path(name).suffix.removeprefix(".")


def supported() -> str:
    return ", ".join(f".{name}" for name in FORMATS) + " (each also with .gz)"


def check_suffix(path: Path) -> str:
    """The format of a file by its name; UsageError when it is none of ours."""
    suffix = suffix_of(path)
    if suffix not in FORMATS:
        given = f'"{path.suffix}"' if path.suffix else "no suffix"
        raise UsageError(f"{path} has {given}; data files end in {supported()}.")
    return suffix


def read_file(path: Path) -> Frame:
    """The columns of a file in any of the known formats."""
    suffix = check_suffix(path)
    data, sha256 = read_bytes(path)
    if not data.strip():
        raise De3Error(f"{path} is empty. It should have a text column and a label column.")
    return replace(FORMATS[suffix](data, str(path)), sha256=sha256)


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


def _delimited(text: str, source: str, delimiter: str, quoting: Quoting) -> Frame:
    found = cells_of(io.StringIO(text, newline=""), delimiter, quoting)
    header = checked_header(next(found, None), source)
    columns: dict[str, list[Any]] = {name: [] for name in header}
    numbers: list[int] = []
    for cells in found:
        if cells.fault:
            raise De3Error(f"{source}, row {cells.row} (ending on line {cells.end}): {cells.fault}")
        numbers.append(cells.row)
        for name, value in zip(header, cells.values, strict=True):
            columns[name].append(value)
    if not numbers:
        raise De3Error(f"{source} has a header ({shown_names(header)}) but no rows below it.")
    return Frame(columns, source, numbers, untyped=True)


@FORMATS.register("json")
def read_json(data: bytes, source: str) -> Frame:
    """One JSON list of objects, or JSON lines: both go by this suffix."""
    text = decode(data, source)
    if not text.lstrip().startswith("["):
        return read_jsonl(data, source)
    objects = parsed(text, source)
    return _from_objects(objects, source, range(1, len(objects) + 1), "row")


@FORMATS.register("jsonl")
def read_jsonl(data: bytes, source: str) -> Frame:
    # Not splitlines(): it also cuts at characters that are legal inside a JSON string.
    split = decode(data, source).split("\n")
    lines = [(number, line) for number, line in enumerate(split, start=1) if line.strip()]
    objects = [parsed(line, f"{source}, line {number}") for number, line in lines]
    return _from_objects(objects, source, [number for number, _ in lines], "line")


def _from_objects(
    objects: list[Any], source: str, numbers: Sequence[int], unit: Literal["row", "line"]
) -> Frame:
    for number, item in zip(numbers, objects, strict=True):
        checked_object(item, f"{source}, {unit} {number}")
    names = list(dict.fromkeys(name for item in objects for name in item))
    if not names:
        raise De3Error(f"{source} holds no rows.")
    columns = {name: [item.get(name) for item in objects] for name in names}
    return Frame(columns, source, numbers, unit=unit)
