"""Cutting rows into parts that share no row and keep the balance of the classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from de3bert.data.table import Table
from de3bert.errors import UsageError
from de3bert.printable import cut_list

__all__ = ["drop_repeats", "split_rows", "split_sentences"]

Indices = NDArray[np.int64]


def split_rows(
    labels: NDArray[np.integer],
    parts: Mapping[str, int | float],
    seed: int,
    names: Sequence[str] | None = None,
) -> dict[str, Indices]:
    """Row indices per part: disjoint, of exact size, with every class in its share.

    Args:
        labels: Class of each row, shape (rows,).
        parts: Size of each part, as a count (int) or a share of all rows (float). Rows that no
            part asks for are left out; shares that sum to 1 use every row.
        seed: The same seed gives the same rows.
        names: Of the classes, by number, for messages.

    Returns:
        Sorted indices per part, in the order of `parts`.
    """
    labels = np.asarray(labels)
    sizes = _sizes(parts, len(labels))
    classes, members = np.unique(labels, return_inverse=True)
    left = np.bincount(members, minlength=len(classes))
    shown = [f'"{names[k]}"' if names is not None else f"class {k}" for k in classes.tolist()]
    _check_room(sizes, dict(zip(shown, left.tolist(), strict=True)))
    generator = np.random.default_rng(seed)
    shuffled = [generator.permutation(np.flatnonzero(members == k)) for k in range(len(classes))]
    chosen: dict[str, Indices] = {}
    # From the smallest part up: a rare class then still has rows for the parts that follow.
    for name in sorted(sizes, key=lambda part: sizes[part]):
        counts = _per_class(sizes[name], left)
        used = [len(rows) - remaining for rows, remaining in zip(shuffled, left, strict=True)]
        taken = [
            rows[start : start + count]
            for rows, start, count in zip(shuffled, used, counts, strict=True)
        ]
        chosen[name] = np.sort(np.concatenate(taken)).astype(np.int64)
        left = left - counts
    return {name: chosen[name] for name in parts}


def split_sentences(numbers: Sequence[Indices], share: float, seed: int) -> tuple[Indices, Indices]:
    """Sentences to train on and a share of them to hold; a tag is never held alone.

    Args:
        numbers: The tags of each sentence, (words,) each.
    """
    rows = len(numbers)
    wanted = max(1, round(share * rows))
    if wanted >= rows:
        raise UsageError(f"{rows} sentences are too few to hold {share:g} of them for calibration.")
    mixed = np.random.default_rng(seed).permutation(rows).tolist()
    held, kept = mixed[:wanted], mixed[wanted:]
    trained = {tag for index in kept for tag in numbers[index].tolist()}
    for index in list(held):
        if not trained.issuperset(numbers[index].tolist()) and len(held) > 1:
            held.remove(index)
            kept.append(index)
            trained.update(numbers[index].tolist())
    return np.sort(kept), np.sort(held)


def drop_repeats(table: Table) -> tuple[Table, int]:
    """The first row of every text, and how many rows were dropped.

    Texts are compared without regard to case and spacing, pairs as pairs. A repeat with another
    label is dropped as well: it cannot be told which label is right, and the first one stays.
    """
    seen: set[tuple[str, ...]] = set()
    kept: list[int] = []
    for index, row in enumerate(table.inputs()):
        texts = (row,) if isinstance(row, str) else row
        key = tuple(" ".join(text.casefold().split()) for text in texts)
        if key not in seen:
            seen.add(key)
            kept.append(index)
    dropped = len(table) - len(kept)
    return (table.take(kept) if dropped else table), dropped


def _sizes(parts: Mapping[str, int | float], rows: int) -> dict[str, int]:
    """Counts per part; shares are rounded so that together they miss no row."""
    shares = {name: size for name, size in parts.items() if isinstance(size, float)}
    sound = all(size > 0 for size in parts.values()) and all(s <= 1 for s in shares.values())
    if not parts or not sound:
        raise UsageError(
            f"Parts are counts of 1 or more, or shares above 0 and up to 1; got {dict(parts)}."
        )
    sizes = {name: int(size) for name, size in parts.items()}
    sizes |= _rounded_shares(shares, rows)
    if sum(sizes.values()) > rows:
        asked = ", ".join(f"{name} {size}" for name, size in sizes.items())
        raise UsageError(f"The parts ask for more rows than there are ({rows}): {asked}.")
    return sizes


def _rounded_shares(shares: Mapping[str, float], rows: int) -> dict[str, int]:
    # Ends are rounded, not lengths: the rounding errors of neighbours then cancel out.
    ends = np.rint(np.cumsum(list(shares.values())) * rows).astype(int)
    return dict(zip(shares, np.diff(ends, prepend=0).tolist(), strict=True))


def _check_room(sizes: Mapping[str, int], counts: Mapping[str, int]) -> None:
    rare = [f"{name} (only {count})" for name, count in counts.items() if count < len(sizes)]
    if rare:
        listed = cut_list(rare)
        raise UsageError(
            f"Too few rows of {listed}: each of the {len(sizes)} parts "
            f"({', '.join(sizes)}) needs at least one row of every class."
        )
    small = [f"{name} ({size})" for name, size in sizes.items() if size < len(counts)]
    if small:
        raise UsageError(
            f"Too few rows in {', '.join(small)}: a part needs at least one row of each of the "
            f"{len(counts)} classes. Ask for more, or give more rows."
        )


def _per_class(size: int, left: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows of each class for one part: proportional to what is left, at least one of each."""
    ideal = size * left / left.sum()
    counts: NDArray[np.int64] = np.floor(ideal).astype(np.int64)
    most_cut = np.argsort(counts - ideal, kind="stable")
    counts[most_cut[: size - counts.sum()]] += 1
    for absent in np.flatnonzero(counts == 0):
        counts[np.argmax(counts)] -= 1
        counts[absent] = 1
    return counts
