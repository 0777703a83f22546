"""Where single tokens stop: every vocabulary id has a last layer of its own (HashEE).

Written once for numpy and torch arrays: the model computes with it, and so does whoever reports
what a text has cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import array_api_compat
import numpy as np
from numpy.typing import NDArray

from de3bert.errors import De3Error, UsageError

__all__ = ["DRAWN", "FILE", "OCCURRENCE", "TokenLayers", "bucket_layers", "last_layers"]

FILE = "token_layers.npy"  # of a bundle
OCCURRENCE = "occurrence"  # the hash that draws a layer for every place
DRAWN = 0  # in a table: not the id has a layer, but each place where it stands
MOST_BUCKETS = 1_000_000
PRIME = 2_147_483_647


def bucket_layers(buckets: int, last: int) -> tuple[int, ...]:
    """The layer of every bucket, evenly spread up to `last`: 6 and 12 give 2, 4, 6, 8, 10, 12.

    With more buckets than layers, neighbours share one.
    """
    if buckets < 1 or last < 1:
        raise UsageError(f"buckets and layers count from 1, got {buckets} and {last}.")
    return tuple(-(-number * last // buckets) for number in range(1, buckets + 1))


def last_layers(ids: Any, table: Any, last: int, buckets: Any = None) -> Any:
    """The last layer that changes each token, (rows, tokens).

    Args:
        ids: vocabulary ids, (rows, tokens) int64.
        table: the layer of every id, (vocabulary,) int64. Ids beyond it get `last`.
        buckets: layers to draw from where the table says 0, (buckets,) int64. The draw depends on
            the id and its place in the text alone, so that no other text changes it.
    """
    xp = array_api_compat.array_namespace(ids)
    inside = ids < table.shape[0]
    found = table[xp.where(inside, ids, 0)]
    found = xp.where(inside, found, last)
    if buckets is None:
        return found
    places = xp.arange(ids.shape[1], device=array_api_compat.device(ids))
    mixed = (ids * 48_271 + (places + 1) * 69_621) % PRIME
    mixed = (mixed * mixed + mixed) % PRIME  # squared: else a step to the right is always the same
    drawn = buckets[mixed // 1024 % buckets.shape[0]]
    return xp.where(found == DRAWN, drawn, found)


@dataclass(frozen=True)
class TokenLayers:
    """The table of a model, to say what texts cost in layers per token.

    Attributes:
        table: (vocabulary,) int64.
        last: the deepest layer.
        buckets: layers that are drawn from, (buckets,), for tables that leave it open.
    """

    table: NDArray[np.int64]
    last: int
    buckets: NDArray[np.int64] | None = None

    def mean(self, rows: Sequence[Sequence[int]]) -> float:
        """Layers per token, over all tokens of all texts: vocabulary ids without padding."""
        if not rows:
            raise UsageError("No rows: the mean number of layers per token is not defined.")
        found = [self(np.asarray([row], dtype=np.int64)) for row in rows]
        return float(sum(int(each.sum()) for each in found) / sum(each.size for each in found))

    def __call__(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """(rows, tokens) -> (rows, tokens)"""
        return np.asarray(last_layers(ids, self.table, self.last, self.buckets))

    def save(self, folder: Path) -> None:
        np.save(folder / FILE, self.table, allow_pickle=False)

    @classmethod
    def load(cls, folder: Path, last: int, options: Mapping[str, Any]) -> TokenLayers | None:
        """The table stored with a bundle's graphs; None for a model whose texts stop as a whole.

        Args:
            options: of the method.
        """
        path = folder / FILE
        if not path.exists():
            return None
        try:
            with path.open("rb") as file:  # np.load would take archives as well
                table = np.lib.format.read_array(file, allow_pickle=False)
        except (OSError, ValueError, EOFError, MemoryError) as error:
            raise De3Error(f"{path} is damaged: {error}") from error
        if table.ndim != 1 or not len(table) or table.dtype.kind not in "iu":
            raise De3Error(
                f"{path} is damaged: it must hold a layer for every token, a list of whole "
                f"numbers, got {table.dtype} of shape {table.shape}"
            )
        if table.min() < DRAWN or table.max() > last:
            raise De3Error(f"{path} is damaged: its layers must lie in 0 to {last}")
        table = table.astype(np.int64)
        if options.get("hash") != OCCURRENCE:
            return cls(table, last)
        buckets = options.get("buckets")
        if not isinstance(buckets, int | float) or not 1 <= buckets <= MOST_BUCKETS:
            raise De3Error(f"The model's config is damaged: hashee has no valid buckets: {buckets}")
        return cls(table, last, np.asarray(bucket_layers(int(buckets), last)))
