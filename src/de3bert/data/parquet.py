"""Parquet: whole or batch by batch, after a look at what it promises to be."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from de3bert.data.frame import Frame, Unreadable, class_names_of
from de3bert.errors import De3Error, UsageError
from de3bert.limits import check_limit
from de3bert.printable import cut_list

__all__ = ["parquet_batches", "read_parquet"]

VALUE_COST = 64  # bytes that one value takes, about, once it is an object of Python
BATCH_BYTES, BATCH_ROWS = 4 << 20, 256
READ_AHEAD = 1 << 20
# A column is kept as numbers of the texts in its dictionary where that is so much of it: one long
# text in it, and a million rows that point there, would be a great many copies.
DICTIONARY_SHARE = 1 / 8

Batch = dict[str, list[Any]]


def read_parquet(data: bytes, source: str) -> Frame:
    """All rows. Refused by its own description if they would not fit the limit."""
    with _sound(source):
        file = _opened(data)
        promised = f"{source} ({file.metadata.num_rows:,} rows)"
        check_limit("unpacked", _cost(file.metadata), promised)
        columns: Batch = {name: [] for name in _names(file, source)}
        named = class_names_of(file.schema_arrow)
    size = rows = 0
    for batch in _batches(file, data, source):
        for name, values in batch.items():
            columns[name] += values
            size += sum(len(value) for value in values if isinstance(value, str))
        rows += len(values)
        taken = size + rows * len(columns) * VALUE_COST  # a file may promise less than it holds
        check_limit("unpacked", taken, f"{source} (its rows, written out)")
    return Frame(columns, source, range(1, rows + 1), class_names=named)


def parquet_batches(stored: bytes | Path, source: str) -> tuple[list[str], Iterator[Batch]]:
    """The names of the columns, and the rows some at a time: their values by column."""
    with _sound(source):
        file = _opened(stored)
        return _names(file, source), _batches(file, stored, source)


@contextmanager
def _sound(source: str) -> Iterator[None]:
    """Whatever Arrow says of a damaged file is a De3Error; its own errors have no common type."""
    try:
        yield
    except De3Error:
        raise
    except Exception as error:
        raise De3Error(
            f"{source} is not a valid Parquet file ({str(error)[:200]}). Copy or write it again."
        ) from error


def _opened(stored: bytes | Path, **more: Any) -> Any:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise De3Error(
            "Reading Parquet needs pyarrow, which is not installed: pip install 'de3bert[train]'"
        ) from error
    place = pyarrow.BufferReader(stored) if isinstance(stored, bytes) else str(stored)
    return parquet.ParquetFile(place, buffer_size=READ_AHEAD, **more)


def _names(file: Any, source: str) -> list[str]:
    names = list(file.schema_arrow.names)
    if not names or not file.metadata.num_rows:
        raise De3Error(f"{source} holds no rows.")
    if len(set(names)) < len(names):
        raise UsageError(f"{source} has two columns of the same name: {cut_list(names)}.")
    return names


def _cost(metadata: Any) -> int:
    """Bytes that the rows take in memory at least, by what the file says of itself."""
    values = metadata.num_rows * max(metadata.num_columns, 1)
    groups = range(metadata.num_row_groups)
    stored = sum(metadata.row_group(group).total_byte_size for group in groups)
    return int(values * VALUE_COST + stored)


def _batches(file: Any, stored: bytes | Path, source: str) -> Iterator[Batch]:
    with _sound(source):
        metadata = file.metadata
        for group in range(metadata.num_row_groups):
            # Arrow's reader says what is wrong with a group; asking for the description of its
            # columns before brings the whole process down where that is damaged.
            next(file.iter_batches(batch_size=1, row_groups=[group]), None)
            described = metadata.row_group(group)
            size = max(described.total_byte_size, 1)
            rows = max(1, min(BATCH_ROWS, BATCH_BYTES * described.num_rows // size))
            repeated = _repeated(file, described)
            reader = _opened(stored, metadata=metadata, read_dictionary=repeated)
            for batch in reader.iter_batches(batch_size=rows, row_groups=[group]):
                yield {name: _values(batch.column(name)) for name in batch.schema.names}


def _repeated(file: Any, group: Any) -> list[str]:
    """Columns of texts that are mostly a dictionary."""
    from pyarrow import types

    texts = {field.name for field in file.schema_arrow if types.is_string(field.type)}
    chunks = map(group.column, range(group.num_columns))
    return [
        chunk.path_in_schema
        for chunk in chunks
        if chunk.path_in_schema in texts and _dictionary_share(chunk) >= DICTIONARY_SHARE
    ]


def _dictionary_share(chunk: Any) -> float:
    if not chunk.has_dictionary_page or not chunk.dictionary_page_offset:
        return 0.0
    pages = chunk.data_page_offset - chunk.dictionary_page_offset
    return float(pages / max(chunk.total_compressed_size, 1))


def _values(array: Any) -> list[Any]:
    """The values as objects of Python; repeated texts are one object."""
    indices = getattr(array, "indices", None)
    if indices is not None:
        numbers = indices.to_pylist()
        texts = {number: _value(array.dictionary[number]) for number in {*numbers} - {None}}
        return [texts.get(number) for number in numbers]
    try:
        found: list[Any] = array.to_pylist()
    except Exception:  # one value that is no UTF-8, or no date, must not spoil its neighbours
        return [_value(scalar) for scalar in array]
    return found


def _value(scalar: Any) -> Any:
    try:
        return scalar.as_py()
    except Exception as error:
        return Unreadable(str(error))
