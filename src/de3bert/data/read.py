"""Reads rows of text from wherever they are: a file, a table in memory, a hub id, plain lines."""

from __future__ import annotations

import difflib
import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import IO

from de3bert.data.columns import choose_columns
from de3bert.data.decode import decode, read_bytes, read_stream
from de3bert.data.formats import FORMATS, read_file, suffix_of, supported
from de3bert.data.frame import Frame, frame_of
from de3bert.data.hub import looks_like_id, read_hub
from de3bert.data.label_names import LabelNames
from de3bert.data.table import Table
from de3bert.data.values import checked_labels, checked_texts
from de3bert.errors import De3Error, UsageError

__all__ = ["STDIN", "no_file", "place_of", "read_frame", "read_inputs", "read_table"]

STDIN = "standard input"
SHOWN = 80  # characters of what was given that a message repeats


def read_table(
    source: object,
    *,
    text: str | None = None,
    text_pair: str | None = None,
    label: str | None = None,
    split: str | None = None,
    config: str | None = None,
    need_labels: bool = True,
    limit: int | None = None,
    label_names: LabelNames | None = None,
) -> Table:
    """Checked rows of text, with labels if they are needed or happen to be there.

    Args:
        source: A .csv, .tsv, .jsonl, .json or .parquet file (also with .gz); a dict of columns or
            a pandas, Arrow or `datasets` table; a hub id; a folder that `datasets` reads.
        text: Column of the text. By default the usual names are tried, pairs first.
        text_pair: Column of the second text.
        label: Column of the label.
        split: Split of a hub id or folder; may be left out when there is only one.
        config: Configuration of a hub id, such as "sst2" of "nyu-mll/glue".
        need_labels: Whether rows without labels are an error.
        limit: Read only this many rows from the start.
        label_names: What numbers among the labels stand for: names in the order of the numbers, or
            the name of each number. By default what the data itself says, if it does.

    Example:
        >>> table = read_table({"review": ["a joy", "a bore"], "label": ["pos", "neg"]})
        >>> table.texts, table.labels
        (['a joy', 'a bore'], ['pos', 'neg'])
    """
    if limit is not None and limit < 1:
        raise UsageError(f"The limit on rows must be 1 or more, got {limit}.")
    frame = read_frame(source, split, config).head(limit)
    return _table(frame, text, text_pair, label, need_labels, label_names)


def read_inputs(
    source: str | os.PathLike[str],
    stdin: IO[str] | IO[bytes] | None = None,
    text: str | None = None,
    text_pair: str | None = None,
) -> Table:
    """Rows to predict on: a file of rows, a .txt file of lines, or `-` for standard input.

    Standard input is taken as JSON lines when it starts with `{`, else as one text per line.
    """
    if os.fspath(source) == "-":
        if stdin is None:
            raise UsageError('"-" reads standard input, but there is no input.')
        data = read_stream(stdin, STDIN)
        if data.lstrip().startswith(b"{"):
            frame = replace(FORMATS["jsonl"](data, STDIN), sha256=_sha256(data))
            return _table(frame, text, text_pair, None, need_labels=False)
        return _line_table(data, STDIN, text or text_pair)
    path = place_of(source)
    if suffix_of(path) == "txt" and path.is_file():
        return _line_table(read_bytes(path)[0], str(path), text or text_pair)
    return read_table(source, text=text, text_pair=text_pair, need_labels=False)


def _table(
    frame: Frame,
    text: str | None,
    pair: str | None,
    label: str | None,
    need_labels: bool,
    names: LabelNames | None = None,
) -> Table:
    chosen = choose_columns(
        frame.columns, frame.source, text=text, pair=pair, label=label, need_labels=need_labels
    )
    texts = checked_texts(frame, chosen.text)
    pairs = checked_texts(frame, chosen.pair) if chosen.pair else None
    labels = None
    if chosen.label is not None:
        try:
            labels = checked_labels(frame, chosen.label, names)
        except De3Error:
            # A column that only looks like labels must not stop a prediction.
            if need_labels or label is not None:
                raise
    label_column = chosen.label if labels is not None else None
    return Table(
        texts=texts,
        pairs=pairs,
        labels=labels,
        columns=frame.columns,
        source=frame.source,
        sha256=frame.sha256,
        text_column=chosen.text,
        pair_column=chosen.pair,
        label_column=label_column,
        label_names=(names or frame.class_names.get(label_column)) if label_column else None,
    )


def read_frame(source: object, split: str | None, config: str | None) -> Frame:
    """The columns of a source, not yet looked at."""
    if not isinstance(source, str | os.PathLike):
        _refuse_parts(frame := frame_of(source), split, config)
        return frame
    path = place_of(source)
    if path.is_dir():
        return read_hub(str(path), config, split)
    if path.exists():
        _refuse_parts(frame := read_file(path), split, config)
        return frame
    named = str(source)
    if suffix_of(path) not in FORMATS and (looks_like_id(named) or split or config):
        return read_hub(named, config, split)
    raise UsageError(no_file(path))


def place_of(source: str | os.PathLike[str]) -> Path:
    """The path of a source; UsageError for what cannot be a path, such as a whole text."""
    try:
        path = Path(source).expanduser()
        path.exists()
    except (OSError, RuntimeError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f'"{str(source)[:SHOWN]}" cannot be read as a file ({reason}). Give a file, a hub id '
            "such as owner/name, or - for standard input."
        ) from error
    return path


def _refuse_parts(frame: Frame, split: str | None, config: str | None) -> None:
    if split or config:
        raise UsageError(
            f"{frame.source} has no splits or configurations "
            f"(got split {split!r}, config {config!r}): these belong to hub ids and folders."
        )


def no_file(path: Path) -> str:
    """Says that there is no such file, and which one may be meant."""
    folder = path.parent
    if not folder.is_dir():
        return f"There is no file {path}: the folder {folder} does not exist."
    listed = folder.iterdir() if os.access(folder, os.R_OK) else ()
    files = [item.name for item in listed if item.is_file()]
    close = difflib.get_close_matches(path.name, files, n=1)
    if close:
        return f'There is no file {path}. Did you mean "{folder / close[0]}"?'
    return f"There is no file {path}. Give a file ({supported()}) or a hub id such as owner/name."


def _lines(data: bytes, source: str) -> list[str]:
    content = decode(data, source)
    if not content.strip():
        raise De3Error(f"{source} is empty: give one text per line.")
    lines = [line.removesuffix("\r") for line in content.removesuffix("\n").split("\n")]
    empty = [number for number, line in enumerate(lines, start=1) if not line.strip()]
    if empty:
        raise De3Error(
            f"{source}: line {empty[0]} is empty ({len(empty)} of {len(lines)} lines are). "
            "Give one text per line."
        )
    return lines


def _line_table(data: bytes, source: str, column: str | None) -> Table:
    if column is not None:
        raise UsageError(
            f'{source} holds plain lines, which have no column "{column}". '
            "Leave out --text, or give JSON lines."
        )
    lines = _lines(data, source)
    return Table(lines, columns={"text": lines}, source=source, sha256=_sha256(data))


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
