"""Which columns hold the text, its pair and the label: as given, or by their usual names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from de3bert.errors import UsageError
from de3bert.printable import cut_list

__all__ = ["LABELS", "PAIRS", "SINGLES", "Chosen", "choose_columns", "shown_names"]

SINGLES = (
    "text", "sentence", "review", "content", "title",
    "utterance", "query", "question", "comment", "tweet", "message", "body", "document",
    "description", "headline", "abstract", "post",
)  # fmt: skip
PAIRS = (
    ("text_a", "text_b"),
    ("sentence1", "sentence2"),
    ("premise", "hypothesis"),
    ("question1", "question2"),
    ("question", "sentence"),
    ("text1", "text2"),
)
LABELS = (
    "label", "labels", "class", "target", "category", "gold_label",
    "sentiment", "intent", "topic", "label_text", "class_name",
)  # fmt: skip
LONGEST = 80  # characters of a name that are shown


@dataclass(frozen=True)
class Chosen:
    text: str
    pair: str | None
    label: str | None


def choose_columns(
    columns: Iterable[str],
    source: str,
    *,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    need_labels: bool = True,
) -> Chosen:
    """Names of the columns to use. Given names must exist; a pair wins over a single text."""
    found = list(columns)
    for given in (text, pair, label):
        if given is not None and given not in found:
            raise UsageError(_absent(f'"{given}"', given, found, source))
    if text is None:
        text, pair = _guess_text(found, pair)
    if text is None:
        raise UsageError(
            _absent("of text", None, found, source)
            + f" Common names are {cut_list(SINGLES)}, or pairs such as sentence1 and sentence2; "
            "name yours with --text (and --text-pair)."
        )
    label = label or _first(LABELS, [name for name in found if name not in (text, pair)])
    if label is None and need_labels:
        raise UsageError(
            _absent("of labels", None, found, source)
            + f" Common names are {cut_list(LABELS)}; name yours with --label."
        )
    used = [name for name in (text, pair, label) if name is not None]
    if len(set(used)) < len(used):
        raise UsageError(
            f"{source}: text, pair and label must be different columns, got {shown_names(used)}."
        )
    return Chosen(text, pair, label)


def shown_names(names: Iterable[str]) -> str:
    """Names as a message shows them: the first few, none of them at any length."""
    return cut_list(name[:LONGEST] for name in names)


def _guess_text(found: list[str], pair: str | None) -> tuple[str | None, str | None]:
    by_name = {name.strip().lower(): name for name in reversed(found)}
    for first, second in PAIRS:
        if first in by_name and second in by_name and pair in (None, by_name[second]):
            return by_name[first], by_name[second]
    return _first(SINGLES, [name for name in found if name != pair]), pair


def _first(usual: tuple[str, ...], found: list[str]) -> str | None:
    by_name = {name.strip().lower(): name for name in reversed(found)}
    return next((by_name[name] for name in usual if name in by_name), None)


def _absent(what: str, name: str | None, found: list[str], source: str) -> str:
    close = difflib.get_close_matches(name, found, n=1) if name else []
    hint = f' Did you mean "{close[0]}"?' if close else ""
    if len(found) == 1 and any(mark in found[0] for mark in ";\t|"):
        hint += " The fields seem to use another separator than the file suffix suggests."
    listed = cut_list(f'"{column[:LONGEST]}"' for column in found) or "none"
    return f"{source} has no column {what}.{hint} Columns found: {listed}."
