"""Entities in rows of BIO tags: `B-PER I-PER O` holds one. Counts of them add up over sentences.

seqeval counts the same (a test holds both equal), but it needs scikit-learn, which a light install
has not, has had no release since 2020, and gives totals, where a curve moves sentence by sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

__all__ = ["Span", "has_spans", "span_counts", "spans"]

Span: TypeAlias = tuple[int, int, str]  # first word, one behind the last word, type
OUTSIDE = "O"


def has_spans(tags: Iterable[str]) -> bool:
    """Whether tags name entities: `O` and at least one `B-TYPE` or `I-TYPE`, nothing else."""
    named = [tag for tag in tags if tag != OUTSIDE]
    return bool(named) and all(tag[:2] in ("B-", "I-") and len(tag) > 2 for tag in named)


def spans(tags: Sequence[str | None]) -> set[Span]:
    """The entities of one sentence.

    An entity starts at `B-TYPE`, and at an `I-TYPE` that goes on nothing: after `O`, or after a
    word of another type. This is how the CoNLL scorer reads tags. None (a word without an answer)
    is outside.
    """
    found: set[Span] = set()
    start, kind = 0, ""  # of the entity that is open, if `kind` is set
    for place, tag in enumerate([*tags, OUTSIDE]):
        mark, _, own = (tag or OUTSIDE).partition("-")
        if kind and (mark != "I" or own != kind):
            found.add((start, place, kind))
            kind = ""
        if own and not kind:
            start, kind = place, own
    return found


def span_counts(actual: Sequence[str | None], given: Sequence[str | None]) -> tuple[int, int, int]:
    """Entities of one sentence: found with the right borders and type, given, and there."""
    gold, answered = spans(actual), spans(given)
    return len(gold & answered), len(answered), len(gold)
