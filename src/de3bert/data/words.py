"""Sentences as lists of words with a tag each: list columns, or a word and its tag per line."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, SupportsIndex

from de3bert.data.columns import SINGLES
from de3bert.data.decode import decode, decompress
from de3bert.data.formats import FORMATS, read_file, suffix_of
from de3bert.data.frame import Frame, frame_of
from de3bert.data.hub import looks_like_id, read_hub
from de3bert.data.label_names import LabelNames
from de3bert.data.labels import label_value
from de3bert.errors import De3Error, UsageError

__all__ = ["WordTable", "read_word_inputs", "read_words"]

WORDS = ("tokens", "words")
TAGS = ("tags", "ner_tags", "labels", "label")
LINES = ("conll", "bio", "iob", "iob2", "txt")  # a word and its tag per line
ACCEPTED = (
    "Give .jsonl, .json or .parquet with a list of words and a list of tags in each row, or "
    f"{', '.join('.' + name for name in LINES)} with a word and its tag per line and a blank line "
    "between sentences."
)
DOCUMENT = "-DOCSTART-"  # stands between documents in CoNLL files, and is no word
STDIN = "standard input"


@dataclass(frozen=True)
class WordTable:
    """Checked sentences: none is empty, and there is one tag for each word.

    Attributes:
        sentences: The words of each sentence.
        tags: Their tags as given (`LabelSet` turns them into numbers); None when there are none.
        columns: Every column of the source, to be echoed beside predictions.
        source: Where the sentences came from.
        sha256: Hash of the source.
        label_names: What integer tags stand for, where the data or the user says it.
    """

    sentences: list[list[str]]
    tags: list[list[str | int]] | None = None
    columns: dict[str, list[Any]] = field(default_factory=dict)
    source: str = ""
    sha256: str = ""
    label_names: LabelNames | None = None

    def __len__(self) -> int:
        return len(self.sentences)

    def inputs(self) -> list[list[str]]:
        """What a tokenizer takes."""
        return list(self.sentences)

    @property
    def known_tags(self) -> list[list[str | int]]:
        """The tags, or a UsageError when there are none."""
        if self.tags is None:
            raise UsageError(f"{self.source} has no tags; name their column with --label.")
        return self.tags

    def take(self, indices: Sequence[SupportsIndex]) -> WordTable:
        """The sentences at `indices`, in that order."""
        chosen = [int(index) for index in indices]
        return replace(
            self,
            sentences=[self.sentences[index] for index in chosen],
            tags=None if self.tags is None else [self.tags[index] for index in chosen],
            columns={name: [col[i] for i in chosen] for name, col in self.columns.items()},
        )


def read_words(
    source: object,
    *,
    words: str | None = None,
    tags: str | None = None,
    split: str | None = None,
    config: str | None = None,
    need_tags: bool = True,
    limit: int | None = None,
    label_names: LabelNames | None = None,
) -> WordTable:
    """Checked sentences, with tags if they are needed or happen to be there.

    Args:
        source: A file (list columns, or CoNLL lines), a dict of columns or another table, a hub id.
        words: Column of the word lists; by default `tokens` or `words`.
        tags: Column of the tag lists; by default `tags`, `ner_tags` or `labels`.
        label_names: What integer tags stand for, where the data does not say it.

    Example:
        >>> read_words({"words": [["Ada", "wrote"]], "tags": [["B-PER", "O"]]}).tags
        [['B-PER', 'O']]
    """
    if limit is not None and limit < 1:
        raise UsageError(f"The limit on sentences must be 1 or more, got {limit}.")
    frame = _read(source, split, config).head(limit)
    table = _table(frame, words, tags, need_tags)
    return table if label_names is None else replace(table, label_names=label_names)


def read_word_inputs(
    source: str | os.PathLike[str],
    stdin: IO[bytes] | None = None,
    words: str | None = None,
) -> WordTable:
    """Sentences to predict on: a file, or `-` for standard input.

    Standard input is JSON lines when it starts with `{`, else one sentence per line, its words
    parted by spaces.
    """
    if os.fspath(source) != "-":
        return read_words(source, words=words, need_tags=False)
    if stdin is None:
        raise UsageError('"-" reads standard input, but there is none here.')
    data = stdin.read()
    if not data.strip():
        raise De3Error(f"{STDIN} is empty: give one sentence per line.")
    digest = hashlib.sha256(data).hexdigest()
    if data.lstrip().startswith(b"{"):
        frame = replace(FORMATS["jsonl"](data, STDIN), sha256=digest)
        return _table(frame, words, None, need_tags=False)
    lines = [line.split() for line in decode(data, STDIN).removesuffix("\n").split("\n")]
    numbers = range(1, len(lines) + 1)
    frame = Frame({"words": lines}, STDIN, numbers, sha256=digest, unit="line")
    return _table(frame, None, None, need_tags=False)


def _read(source: object, split: str | None, config: str | None) -> Frame:
    if not isinstance(source, str | os.PathLike):
        return frame_of(source)
    path = Path(source).expanduser()
    if path.is_dir() or (not path.exists() and (looks_like_id(str(source)) or split or config)):
        return read_hub(str(source), config, split)
    if not path.exists():
        raise UsageError(f"There is no file {path}. {ACCEPTED}")
    if suffix_of(path) in LINES:
        return _read_lines(path)
    if suffix_of(path) in ("csv", "tsv") or suffix_of(path) not in FORMATS:
        raise UsageError(f"{path} cannot hold lists of words. {ACCEPTED}")
    return read_file(path)


def _read_lines(path: Path) -> Frame:
    """A word first and its tag last on every line; what stands between is left out."""
    try:
        stored = path.read_bytes()
    except OSError as error:
        raise De3Error(f"Could not read {path}: {error.strerror}.") from error
    packed = path.name.lower().endswith(".gz")
    text = decode(decompress(stored, str(path)) if packed else stored, str(path))
    groups: list[list[list[str]]] = [[]]
    numbers: list[int] = []  # the line each sentence starts on
    for number, line in enumerate(text.split("\n"), start=1):
        cells = line.strip().split("\t") if "\t" in line.strip() else line.split()
        if not cells or cells[0] == DOCUMENT:
            if groups[-1]:
                groups.append([])
            continue
        if not groups[-1]:
            numbers.append(number)
        groups[-1].append(cells)
        _check_width(groups[0][0], cells, path, number)
    rows = [group for group in groups if group]
    if not rows:
        raise De3Error(f"{path} holds no sentences. {ACCEPTED}")
    columns: dict[str, list[Any]] = {"words": [[cells[0] for cells in row] for row in rows]}
    if len(rows[0][0]) > 1:
        columns["tags"] = [[cells[-1] for cells in row] for row in rows]
    digest = hashlib.sha256(stored).hexdigest()
    return Frame(columns, str(path), numbers, sha256=digest, unit="line")


def _check_width(first: list[str], cells: list[str], path: Path, number: int) -> None:
    if len(cells) != len(first):
        raise De3Error(
            f"{path}, line {number}: {len(cells)} fields where the first line has {len(first)}. "
            "Every line is a word and its tag, a blank line ends a sentence."
        )


def _table(frame: Frame, words: str | None, tags: str | None, need_tags: bool) -> WordTable:
    column = _column(frame, words, WORDS, "words", "--text")
    assert column is not None  # words are always needed
    sentences = [_words(value, frame, column, at) for at, value in enumerate(frame.columns[column])]
    chosen = _column(frame, tags, TAGS, "tags", "--label", needed=need_tags)
    found = None
    if chosen is not None:
        found = [
            _tags(value, len(sentences[at]), frame, chosen, at)
            for at, value in enumerate(frame.columns[chosen])
        ]
    names = frame.class_names.get(chosen) if chosen is not None else None
    return WordTable(sentences, found, frame.columns, frame.source, frame.sha256, names)


def _column(
    frame: Frame,
    given: str | None,
    usual: tuple[str, ...],
    what: str,
    option: str,
    needed: bool = True,
) -> str | None:
    if given is not None and given not in frame.columns:
        have = ", ".join(frame.columns)
        raise UsageError(f'{frame.source} has no column "{given}". Columns found: {have}.')
    by_name = {name.strip().lower(): name for name in reversed(list(frame.columns))}
    chosen = given or next((by_name[name] for name in usual if name in by_name), None)
    if chosen is None and needed:
        hint = ""
        if any(name in by_name for name in SINGLES):
            hint = " It looks like rows of text: leave out the task words to classify them."
        raise UsageError(
            f"{frame.source} has no column of {what} (usual names: {', '.join(usual)}); name yours "
            f"with {option}. Columns found: {', '.join(frame.columns)}.{hint}"
        )
    return chosen


def _words(value: object, frame: Frame, column: str, at: int) -> list[str]:
    place = f'{frame.source}, {frame.places([at])}: "{column}"'
    if isinstance(value, str) or not hasattr(value, "__len__"):
        raise UsageError(f"{place} is a {type(value).__name__}, not a list of words. {ACCEPTED}")
    found: list[str] = list(value)  # type: ignore[call-overload]
    if not found:
        raise De3Error(f"{place} is an empty sentence. Remove the row.")
    bad = next((word for word in found if not isinstance(word, str) or not word.strip()), None)
    if bad is not None or None in found:
        raise De3Error(f"{place} holds {bad!r}, which is not a word. Repair or remove the row.")
    return found


def _tags(value: object, words: int, frame: Frame, column: str, at: int) -> list[str | int]:
    place = f"{frame.source}, {frame.places([at])}"
    if isinstance(value, str) or not hasattr(value, "__len__"):
        kind = type(value).__name__
        raise UsageError(f'{place}: "{column}" is a {kind}, not a list with a tag for each word.')
    found = [label_value(tag, place) for tag in value]  # type: ignore[attr-defined]
    if len(found) != words:
        raise De3Error(f"{place}: {words} words but {len(found)} tags. Every word needs one tag.")
    return found
