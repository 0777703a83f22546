"""What an answer costs in time: a small model of one machine, fitted to measurements.

The time of a batch of texts of one length is close to a straight line in what was done for it:

    milliseconds = fixed + layer * layers run + test * internal exits tested

with three numbers for each batch size and text length. So a handful of measurements tells what
any policy would take, row by row, on any trace, without running the network again. The numbers
hold for the machine, the threads, the back end and the weights they were measured with, and for
nothing else; `info` says which those were.
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from de3bert.errors import De3Error, UsageError
from de3bert.exits.line import COUNT, shown
from de3bert.exits.trace import Trace

__all__ = ["BatchCost", "CostModel", "TimeSample"]

Floats: TypeAlias = NDArray[np.float64]
Numbers: TypeAlias = tuple[float, ...]

FORMAT, VERSION = "de3bert-cost", 1
LARGEST = 10**15  # milliseconds or tokens: anything larger was not measured
AGAIN = "Measure again with `de3 profile`."


class TimeSample(NamedTuple):
    """One measurement: a batch of `batch` texts of `tokens` tokens each, without tokenising."""

    batch: int
    tokens: int
    layers: int
    tests: int
    milliseconds: float


@dataclass(frozen=True)
class BatchCost:
    """Milliseconds for one batch size at each measured length; every tuple is (points,).

    Attributes:
        tokens: the measured lengths, increasing.
        fixed: what is spent whatever the depth: embeddings, final head, calls.
        layer: for each layer run.
        test: for each internal exit tested.
    """

    tokens: Numbers
    fixed: Numbers
    layer: Numbers
    test: Numbers

    def __post_init__(self) -> None:
        for name in ("fixed", "layer", "test"):
            _check_table(self.tokens, getattr(self, name), name)
        if not all(fixed + layer > 0 for fixed, layer in zip(self.fixed, self.layer, strict=True)):
            raise _bad("running the model must take time at every length")

    def at(self, tokens: ArrayLike, layers: ArrayLike, tests: ArrayLike) -> Floats:
        """fixed + layer * layers + test * tests at these lengths; shapes broadcast."""
        fixed, layer, test = (
            _by_length(tokens, self.tokens, column)
            for column in (self.fixed, self.layer, self.test)
        )
        total: Floats = fixed + layer * np.asarray(layers) + test * np.asarray(tests)
        return total


@dataclass(frozen=True)
class CostModel:
    """Predicted milliseconds on the machine it was measured on. Checked when made.

    Between measured lengths everything is linear; below the shortest it stays constant,
    above the longest it continues with the last slope, and it is never negative.

    Attributes:
        batches: the costs by batch size; 1 is always there.
        tokenise: (lengths, milliseconds to tokenise one text of that length).
        info: what was measured: machine, threads, back end, weights, date. Must fit in JSON.

    Example:
        >>> model = CostModel.fit(samples, tokenise={16: 0.05, 128: 0.2})
        >>> model.milliseconds(tokens=40, layers=6, tests=5)
    """

    batches: Mapping[int, BatchCost]
    tokenise: tuple[Numbers, Numbers] = ((0.0,), (0.0,))
    info: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if 1 not in self.batches or any(batch < 1 for batch in self.batches):
            raise _bad(f"it needs batch sizes of at least 1, including 1, got {list(self.batches)}")
        _check_table(*self.tokenise, "tokenise")

    def milliseconds(
        self, tokens: ArrayLike, layers: ArrayLike, tests: ArrayLike, batch: int = 1
    ) -> Floats:
        """The time of a batch, without tokenising, for arrays of cases; shapes broadcast.

        Args:
            tokens: the length of the batch's texts.
            layers: how many layers run.
            tests: how many internal exits are tested.
            batch: how many texts; one of the measured sizes.
        """
        if batch not in self.batches:
            known = ", ".join(str(size) for size in sorted(self.batches))
            raise UsageError(f"Batch size {batch} was not measured. Measured: {known}.")
        return self.batches[batch].at(tokens, layers, tests)

    def tokenising(self, tokens: ArrayLike) -> Floats:
        """Milliseconds to tokenise one text of each length. Shape unchanged."""
        return _by_length(tokens, *self.tokenise)

    def row_costs(
        self,
        trace: Trace,
        exit_layers: Iterable[int] | None = None,
        *,
        tests: Sequence[int] | None = None,
    ) -> Floats:
        """What each text or sentence costs if it leaves at each exit, alone. (sentences, exits)

        Tokenising is included.

        Args:
            trace: whose `lengths` count.
            exit_layers: the exits the model has, the final one always; by default the trace's.
            tests: how many exits have been tested when a row leaves at each one, (exits,). By
                default all internal exits up to it, as a threshold or patience does.
        """
        numbers = trace.exit_numbers(trace.exit_layers if exit_layers is None else exit_layers)
        layers = np.asarray(trace.exit_layers)[numbers]
        if tests is None:
            tests = [*range(1, len(layers)), len(layers) - 1]
        lengths = trace.lengths[:, None]
        return self.milliseconds(lengths, layers, tests) + self.tokenising(lengths)

    def full(self, trace: Trace) -> Floats:
        """The same at full depth with no exit tested. (sentences,)"""
        return self.milliseconds(trace.lengths, trace.depth, 0) + self.tokenising(trace.lengths)

    def to_json(self) -> dict[str, Any]:
        lengths, milliseconds = self.tokenise
        return {
            "format": FORMAT,
            "version": VERSION,
            "batches": {
                str(batch): {key: list(value) for key, value in vars(cost).items()}
                for batch, cost in sorted(self.batches.items())
            },
            "tokenise": {"tokens": list(lengths), "milliseconds": list(milliseconds)},
            "info": dict(self.info),
        }

    @classmethod
    def from_json(cls, document: object) -> CostModel:
        """Reads what `to_json` wrote; De3Error names the part that is missing or wrong."""
        if not isinstance(document, Mapping) or document.get("format") != FORMAT:
            raise De3Error(f"This is not a cost model. {AGAIN}")
        if document.get("version") != VERSION:
            raise De3Error(
                f"This cost model has format {reprlib.repr(document.get('version'))}; this version "
                f"of de3bert reads {VERSION}. {AGAIN}"
            )
        parts = _section(document, "batches")
        names = ("tokens", "fixed", "layer", "test")
        batches = {
            _size(size): BatchCost(**_columns(_section(parts, size), names)) for size in parts
        }
        tokenise = _columns(_section(document, "tokenise"), ("tokens", "milliseconds"))
        info = dict(_section(document, "info"))
        return cls(batches, (tokenise["tokens"], tokenise["milliseconds"]), info)

    @classmethod
    def fit(
        cls,
        samples: Iterable[TimeSample | tuple[int, int, int, int, float]],
        tokenise: Mapping[int, float] | None = None,
        info: Mapping[str, Any] | None = None,
    ) -> CostModel:
        """The model nearest to measured times, by least squares with no negative cost.

        Each batch size and length is fitted separately, so each needs samples at two depths and
        with different numbers of exits tested; where none is ever tested, a test counts as free.

        Args:
            samples: (batch, tokens, layers, tests, milliseconds) each, without tokenising.
            tokenise: milliseconds to tokenise one text, by its length; by default nothing.
            info: what was measured.
        """
        from de3bert.exits.cost_fit import fit_batches

        table = sorted((tokenise or {0: 0.0}).items())
        lengths, spent = (tuple(column) for column in zip(*table, strict=True))
        return cls(fit_batches(samples), (lengths, spent), info or {})


def _by_length(tokens: ArrayLike, grid: Numbers, values: Numbers) -> Floats:
    """Linear between grid points, level before the first, on with the last slope, never < 0."""
    lengths = np.asarray(tokens, dtype=np.float64)
    found = np.interp(lengths, grid, values)
    if len(grid) > 1:
        slope = (values[-1] - values[-2]) / (grid[-1] - grid[-2])
        found = found + slope * np.maximum(lengths - grid[-1], 0.0)
    return np.asarray(np.maximum(found, 0.0))


def _check_table(tokens: Numbers, values: Numbers, name: str) -> None:
    if not tokens or len(tokens) != len(values):
        raise _bad(f"{name} has {len(values)} values for {len(tokens)} lengths")
    if not all(np.isfinite(value) and value >= 0 for value in (*tokens, *values)):
        raise _bad(f"{name} must be finite and not negative, got {values} at lengths {tokens}")
    if any(low >= high for low, high in pairwise(tokens)):
        raise _bad(f"the lengths of {name} must increase, got {tokens}")


def _section(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    section = document.get(name)
    if not isinstance(section, Mapping):
        raise _bad(f'"{name}" must be a JSON object, got {reprlib.repr(section)}')
    return section


def _columns(section: Mapping[str, Any], names: Sequence[str]) -> dict[str, Numbers]:
    """The named lists of numbers of a JSON object."""
    columns = {}
    for name in names:
        values = section.get(name)
        if not isinstance(values, list) or not all(map(_is_number, values)):
            raise _bad(f'"{name}" must be a list of numbers, got {reprlib.repr(values)}')
        columns[name] = tuple(values)
    return columns


def _is_number(value: object) -> bool:
    if isinstance(value, int):  # of any size in JSON, and numpy takes only some
        return not isinstance(value, bool) and abs(value) <= LARGEST
    return isinstance(value, float)


def _size(text: str) -> int:
    if not COUNT.fullmatch(text):
        raise _bad(f'a batch size must be a whole number, got "{shown(text)}"')
    return int(text)


def _bad(reason: str) -> De3Error:
    return De3Error(f"This is not a valid cost model: {reason}. {AGAIN}")
