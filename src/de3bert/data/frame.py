"""Columns as they were read, before anybody has decided which of them is the text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeGuard, cast

from de3bert.errors import De3Error, UsageError
from de3bert.printable import cut_list

__all__ = ["Frame", "Unreadable", "class_names_of", "frame_of"]


class Unreadable:
    """Stands in a column for a value that is not what its type says."""

    def __init__(self, reason: str) -> None:
        self.reason = reason

    def __str__(self) -> str:
        return f"unreadable: {self.reason}"


@dataclass(frozen=True)
class Frame:
    """Raw columns of equal length.

    Attributes:
        row_numbers: The number of each row as an editor or a spreadsheet shows it.
        unit: What those numbers count.
        class_names: Names of the classes, for integer columns that carry them.
        untyped: Every value is a string (CSV), so that numbers still have to be recognised.
    """

    columns: dict[str, list[Any]]
    source: str
    row_numbers: Sequence[int]
    sha256: str = ""
    unit: Literal["row", "line"] = "row"
    class_names: dict[str, list[str]] = field(default_factory=dict)
    untyped: bool = False

    def __len__(self) -> int:
        return len(self.row_numbers)

    def head(self, limit: int | None) -> Frame:
        """The first `limit` rows."""
        if limit is None or limit >= len(self):
            return self
        return replace(
            self,
            columns={name: values[:limit] for name, values in self.columns.items()},
            row_numbers=self.row_numbers[:limit],
        )

    def places(self, positions: Sequence[int], shown: int = 5) -> str:
        """Names the rows at `positions`, the first few of them: `rows 2, 5 and 9`."""
        numbers = [str(self.row_numbers[position]) for position in positions[:shown]]
        if len(positions) > shown:
            return f"{self.unit}s {', '.join(numbers)} ..."
        if len(numbers) == 1:
            return f"{self.unit} {numbers[0]}"
        return f"{self.unit}s {', '.join(numbers[:-1])} and {numbers[-1]}"


def frame_of(data: object, source: str | None = None) -> Frame:
    """A frame from a dict of columns or a pandas, polars, Arrow or `datasets` table."""
    source = source or f"the given {type(data).__name__}"
    columns = {name: _values(values, name, source) for name, values in _pairs(data, source)}
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        listed = cut_list(f"{name} {length}" for name, length in lengths.items())
        raise UsageError(f"{source}: the columns differ in length: {listed}.")
    rows = max(lengths.values(), default=0)
    if not rows:
        raise De3Error(f"{source} holds no rows.")
    return Frame(
        columns=columns,
        source=source,
        row_numbers=range(1, rows + 1),
        sha256=_content_hash(columns),
        class_names=class_names_of(data),
    )


def _pairs(data: object, source: str) -> list[tuple[str, object]]:
    if isinstance(data, Mapping):
        return [(str(name), values) for name, values in data.items()]
    names = getattr(data, "column_names", None)  # Arrow and `datasets`
    if names is None:
        names = getattr(data, "columns", None)  # pandas and polars
    if names is None or not hasattr(data, "__getitem__"):
        raise UsageError(
            f"Cannot read rows from {source}. Give a file, a hub id, a dict of columns, or a "
            "pandas, Arrow or datasets table."
        )
    names = list(names)
    if len(set(map(str, names))) < len(names):
        raise UsageError(f"{source} has two columns of the same name: {cut_list(names)}.")
    return [(str(name), data[name]) for name in names]


def _values(values: object, name: str, source: str) -> list[Any]:
    if isinstance(values, str | bytes | Mapping):
        raise UsageError(
            f'{source}: column "{name}" is one {type(values).__name__}; give a list of values.'
        )
    method = next((m for m in ("to_pylist", "tolist", "to_list") if hasattr(values, m)), None)
    try:
        return list(getattr(values, method)() if method else cast(Iterable[Any], values))
    except TypeError as error:
        raise UsageError(f'{source}: column "{name}" is not a list of values.') from error
    except Exception as error:  # Arrow, of a value that is not what its type says
        raise De3Error(f'{source}: column "{name}" cannot be read ({error}).') from error


def class_names_of(data: object) -> dict[str, list[str]]:
    """Names kept in the features of `datasets`, or in the schema when it wrote a Parquet file."""
    features = getattr(data, "features", None)
    if isinstance(features, Mapping):
        # A list of labels, as in tagged sentences, names them inside.
        inner = {name: getattr(feature, "feature", feature) for name, feature in features.items()}
        named = {name: getattr(feature, "names", None) for name, feature in inner.items()}
    else:
        named = {
            name: _inside(_inside(feature, "feature") or feature, "names")
            for name, feature in _described(data).items()
        }
    return {str(name): list(names) for name, names in named.items() if _are_names(names)}


def _described(data: object) -> Mapping[str, Any]:
    """What `datasets` wrote of the columns into the schema; anybody can write there."""
    metadata = getattr(getattr(data, "schema", data), "metadata", None)
    try:
        described = json.loads(_inside(metadata, b"huggingface") or b"{}")
    except (ValueError, RecursionError):
        return {}
    features = _inside(_inside(described, "info"), "features")
    return features if isinstance(features, Mapping) else {}


def _inside(value: object, name: str | bytes) -> Any:
    return value.get(name) if isinstance(value, Mapping) else None


def _are_names(names: object) -> TypeGuard[list[str]]:
    """Whether it is a list of class names that can be told apart."""
    return (
        isinstance(names, list)
        and bool(names)
        and all(isinstance(name, str) for name in names)
        and len(set(names)) == len(names)
    )


def _content_hash(columns: dict[str, list[Any]]) -> str:
    digest = hashlib.sha256()
    for name, values in columns.items():
        try:
            written = json.dumps([name, values], default=str, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError):  # keys that are no texts, lists in lists
            written = repr((name, values))
        digest.update(written.encode("utf-8", "surrogatepass"))
    return digest.hexdigest()
