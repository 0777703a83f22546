"""A word and its tag per line, a blank line between sentences: one sentence after another."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from de3bert.data.lines import decoded, lines_of
from de3bert.data.records import Record
from de3bert.errors import De3Error
from de3bert.limits import limit

__all__ = ["ACCEPTED", "LINES", "sentences_of"]

LINES = ("conll", "bio", "iob", "iob2", "txt")  # a word and its tag per line
ACCEPTED = (
    "Give .jsonl, .json or .parquet with a list of words and a list of tags in each row, or "
    f"{', '.join('.' + name for name in LINES)} with a word and its tag per line and a blank line "
    "between sentences."
)
DOCUMENT = "-DOCSTART-"  # stands between documents in CoNLL files, and is no word


def sentences_of(blocks: Iterable[bytes], source: str) -> Iterator[Record]:
    """Sentences by the line they start on: a word first on every line, and its tag last.

    What stands between is left out. A line that is wrong spoils its sentence, and no other.
    """
    sentence = _Sentence()
    empty = True
    for number, stored in enumerate(lines_of(blocks, source), start=1):
        if sentence.add(number, stored):
            continue
        if sentence.number:
            empty = False
            yield sentence.record()
        sentence = _Sentence(sentence.width)
    if sentence.number:
        empty = False
        yield sentence.record()
    if empty:
        raise De3Error(f"{source} holds no sentences. {ACCEPTED}")


class _Sentence:
    """The lines of a sentence so far; `width` is the fields of the first line of all."""

    def __init__(self, width: int = 0) -> None:
        self.width = width
        self.number = 0
        self.lines: list[list[str]] = []
        self.fault = ""
        self.size = 0

    def add(self, number: int, stored: bytes) -> bool:
        """Takes a line; False for one that stands between sentences."""
        try:
            line = decoded(stored).strip()
        except De3Error as error:
            self.number = self.number or number
            self.fault = self.fault or f"line {number}: {error}"
            return True
        cells = line.split("\t") if "\t" in line else line.split()
        if not cells or cells[0] == DOCUMENT:
            return False
        self.number = self.number or number
        self.width = self.width or len(cells)
        if len(cells) != self.width and not self.fault:
            self.fault = (
                f"line {number}: {len(cells)} fields where the first line has {self.width}. "
                "Every line is a word and its tag, a blank line ends a sentence."
            )
        self.size += len(stored)
        if self.size <= limit("text"):
            self.lines.append(cells)
        else:
            self.fault = self.fault or f"line {number}: longer than any sentence may be"
        return True

    def record(self) -> Record:
        if self.fault:
            return Record(self.number, {}, self.fault, self.size)
        columns: dict[str, list[str]] = {"words": [cells[0] for cells in self.lines]}
        if self.width > 1:
            columns["tags"] = [cells[-1] for cells in self.lines]
        return Record(self.number, columns, size=self.size)
