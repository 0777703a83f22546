"""A bundle run graph by graph: one graph per stretch between exits, no torch anywhere.

Which library runs a graph is not known here: it is opened by whatever `open_graph` a back end
brings, and called through `OpenGraph`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from de3bert.data.tokens import TokenRow, first_pieces
from de3bert.errors import De3Error
from de3bert.exits import Policy
from de3bert.exits.rule_form import RuleForm
from de3bert.exits.token_layers import TokenLayers
from de3bert.runtime.later import Later
from de3bert.runtime.load import read_info
from de3bert.runtime.manifest import Graph, Manifest, Single
from de3bert.runtime.model_info import ModelInfo
from de3bert.runtime.tokens import BundleEncoder
from de3bert.tasks import TASKS

if TYPE_CHECKING:
    from de3bert.runtime.one_file import OneFile

__all__ = ["BundleBackend", "OpenGraph", "read_bundle"]

# What a graph reads, and under which name the one before it gives it.
HIDDEN, NEXT = "hidden", "hidden_out"
MEMORY, NEXT_MEMORY = "memory", "memory_out"
LIMITS = "token_layers"  # of a tagger: the last layer that changes each token, (rows, tokens)


class OpenGraph(Protocol):
    """A graph file that a library has made ready to run. Several threads may run it at once."""

    @property
    def inputs(self) -> Sequence[str]:
        """The names it reads."""

    @property
    def outputs(self) -> Sequence[str]:
        """The names it gives."""

    @property
    def widths(self) -> Mapping[str, int | None]:
        """The size of the last axis of each output; None where the graph leaves it open."""

    def run(self, feeds: Mapping[str, NDArray[Any]]) -> Sequence[NDArray[Any]]:
        """All outputs, in their order; arrays that no later call writes into.

        Args:
            feeds: everything in `inputs`, and possibly more.

        Raises:
            Exception: of any kind; the first line of its message is what users are told.
        """


@dataclass
class BundleState:
    """A batch between two graphs.

    Attributes:
        feeds: what the next graph may read, by name: token ids at first, then states, context and,
            for heads that look back, the vectors of the exits so far, (rows, exits so far, hidden).
        lengths: tokens of each row, (rows,).
        pooled: what the last exit's distances are taken of, (units, hidden).
        certainty: what the last exit's router says, (units,).
        layer: the last layer run.
        word_ids: of a tagger, the word of each token, (rows, tokens); units are words then.
    """

    feeds: dict[str, NDArray[Any]]
    lengths: NDArray[np.int64]
    pooled: NDArray[np.float32] | None = None
    certainty: NDArray[np.float32] | None = None
    layer: int = 0
    word_ids: NDArray[np.int64] | None = None


class StretchGraphs:
    """A stretch of layers and the exit behind it: its graph, and the graph of its distances."""

    def __init__(self, folder: Path, graph: Graph, open_graph: Callable[[Path], OpenGraph]) -> None:
        self.name = graph.file
        self.graph = open_graph(folder / graph.file)
        self.inputs, self.outputs = self.graph.inputs, self.graph.outputs
        self.classes = self.graph.widths.get("logits")
        self.distances = None
        if graph.distances is not None:
            self.distances = open_graph(folder / graph.distances)

    def run(self, feeds: dict[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
        try:
            results = self.graph.run(feeds)
        except Exception as error:  # the libraries' errors have no public base
            raise _failed(self.name, error) from error
        return dict(zip(self.outputs, results, strict=True))


class SingleGraph:
    """The graph of single rows, and the form of the rule in it."""

    def __init__(
        self, folder: Path, single: Single, open_single: Callable[[Path], OneFile]
    ) -> None:
        self.name = single.file
        self.form = RuleForm.parse(single.rule)
        self.opened = Later(lambda: self._checked(open_single(folder / single.file)))

    def _checked(self, file: OneFile) -> OneFile:
        if file.form != self.form:
            raise De3Error(
                f"The bundle is damaged: {self.name} has the rule {file.form}, its manifest says "
                f"{self.form}. Export it again."
            )
        return file


class BundleBackend:
    """Runs a bundle.

    Args:
        open_graph: makes a graph file ready to run.
        threads: how many it runs on; only told.
        open_single: the same for the graph of single rows, where the library runs such graphs.
            That graph and the others have the same weights, so each is opened when a row comes
            that needs it.
    """

    def __init__(
        self,
        folder: Path,
        info: ModelInfo,
        manifest: Manifest,
        open_graph: Callable[[Path], OpenGraph],
        *,
        threads: int,
        open_single: Callable[[Path], OneFile] | None = None,
    ) -> None:
        self.folder = folder
        self.info = info
        self.manifest = manifest
        self.threads = threads
        self.exit_layers = tuple(graph.last for graph in manifest.graphs)
        self.classes = len(info.label_names)
        self.has_prototypes = info.prototypes != "none" and len(self.exit_layers) > 1
        self.has_router = info.router != "none" and len(self.exit_layers) > 1
        self.prototypes_unset = manifest.prototypes_unset
        self.token_layers = TokenLayers.load(folder, self.exit_layers[-1], info.method_options)
        self.encoder = BundleEncoder.read(
            folder / "tokenizer.json",
            info.max_length,
            manifest.inputs,
            manifest.padding,
            manifest.unknown,
        )
        self._check_parts()
        self._stretches = Later(lambda: self._opened(open_graph))
        self._single: SingleGraph | None = None
        if manifest.single is not None and open_single is not None:
            self._single = SingleGraph(folder, manifest.single, open_single)
        else:  # what is wrong with the graphs is said on loading
            self._stretches()
        hidden: list[str | int] = ["rows", "tokens", info.hidden_size]
        self.axes = {**manifest.context, HIDDEN: hidden}

    @property
    def stretches(self) -> dict[int, StretchGraphs]:
        """The graphs by the layer they end at."""
        return self._stretches()

    def _opened(self, open_graph: Callable[[Path], OpenGraph]) -> dict[int, StretchGraphs]:
        made = {g.last: StretchGraphs(self.folder, g, open_graph) for g in self.manifest.graphs}
        self._check_stretches(made)
        return made

    def _check_parts(self) -> None:
        """Config and manifest must be of one model."""
        if self.info.exit_layers != self.exit_layers:
            raise self._damaged(
                f"its graphs end at layers {list(self.exit_layers)}, its config has exits at "
                f"{list(self.info.exit_layers)}"
            )
        words = TASKS[self.info.task].splits_words
        told = self.manifest.unknown is not None and LIMITS in self.manifest.context
        if self.info.task != self.manifest.task or words > told:
            raise self._damaged(
                f"its config is of the task {self.info.task}, its graphs of {self.manifest.task}"
            )
        without = [graph.last for graph in self.manifest.graphs[:-1] if graph.distances is None]
        if self.has_prototypes and without:
            raise self._damaged(f"the exit at layer {without[0]} has no graph of distances")

    def _check_stretches(self, stretches: Mapping[int, StretchGraphs]) -> None:
        """Graphs must read what the ones before them give, and answer for every class."""
        reads = set(self.manifest.inputs)
        for layer, stretch in stretches.items():
            strange = sorted(set(stretch.inputs) - reads)
            if strange:
                raise self._damaged(
                    f"{stretch.name} reads {strange[0]!r:.60}, which no graph provides"
                )
            final = layer == self.exit_layers[-1]
            needed = {"logits"} if final else {"logits", NEXT}
            needed |= {"certainty"} if self.has_router and not final else set()
            absent = sorted(needed - set(stretch.outputs))
            if absent:
                raise self._damaged(f"{stretch.name} does not provide {absent[0]!r}")
            classes = stretch.classes
            if classes is not None and classes != self.classes:
                raise self._damaged(
                    f"{stretch.name} has {classes} classes, its config has {self.classes}"
                )
            reads = {HIDDEN, *self.manifest.context}
            reads |= {MEMORY} if NEXT_MEMORY in stretch.outputs else set()

    def _damaged(self, reason: str) -> De3Error:
        return De3Error(
            f"The bundle {self.folder} is damaged: {reason}. Its parts come from different models; "
            "export it again."
        )

    def size(self) -> dict[str, Any]:
        return {
            "bundle": self.manifest.precision,
            "bytes": sum(known.bytes for known in self.manifest.files.values()),
            "graphs": [f"{graph.first}-{graph.last}" for graph in self.manifest.graphs],
            "threads": self.threads,
            "made": self.manifest.made,
        }

    def alone(self, policy: Policy) -> bool:
        """Whether the graph of single rows has this policy."""
        return self._single is not None and self._single.form.fits(policy)

    def answer_one(
        self, row: TokenRow, policy: Policy, at_most: int | None = None
    ) -> tuple[int, NDArray[np.float32]] | None:
        """What the graph of single rows says, where it has this policy; see `AnswersAlone`.

        Args:
            at_most: the deepest layer the row may run to, whatever the policy says.
        """
        if self._single is None or not self.alone(policy):
            return None
        file = self._single.opened()
        try:
            layer, logits = file.answer(row, policy, at_most)
        except Exception as error:  # the libraries' errors have no public base
            raise _failed(self._single.name, error) from error
        if logits.shape != (1, self.classes):
            raise self._damaged(f"{self._single.name} gives logits of {logits.shape}")
        # From exit to exit it turns out which logit is not a number.
        return None if np.isnan(logits).any() else (layer, logits)

    def start(self, rows: Sequence[TokenRow]) -> BundleState:
        lengths = np.array([len(row["input_ids"]) for row in rows], dtype=np.int64)
        feeds: dict[str, NDArray[Any]] = dict(self.encoder.pad(rows))
        return BundleState(feeds, lengths, word_ids=feeds.pop("word_ids", None))

    def advance(
        self, state: BundleState, layer: int, *, read: bool
    ) -> tuple[BundleState, NDArray[np.float32] | None]:
        results = self.stretches[layer].run(state.feeds)
        logits, ids = results.pop("logits"), state.word_ids
        shape = (len(state.lengths),) if ids is None else ids.shape
        if logits.shape != (*shape, self.classes):
            raise self._damaged(f"{self.stretches[layer].name} gives logits of {logits.shape}")
        pooled, certainty = results.pop("pooled", None), results.pop("certainty", None)
        if ids is not None:  # of each word its first token
            first = first_pieces(ids)
            logits = logits[first]
            pooled = None if pooled is None else pooled[first]
            certainty = None if certainty is None else certainty[first]
        if layer == self.exit_layers[-1]:
            return state, logits
        carried = {HIDDEN: results.pop(NEXT)}
        if NEXT_MEMORY in results:
            carried[MEMORY] = results.pop(NEXT_MEMORY)
        # What is left after the first graph is the context, which all later ones share.
        feeds = {**(results or state.feeds), **carried}
        after = BundleState(feeds, state.lengths, pooled, certainty, layer, ids)
        return after, logits if read else None

    def distances(self, state: BundleState, layer: int) -> NDArray[np.float32]:
        graph = self.stretches[layer].distances
        assert graph is not None  # the policy was checked against the model's prototypes
        assert state.pooled is not None  # the exit was read
        try:
            return graph.run({"pooled": state.pooled})[0]
        except Exception as error:
            raise _failed(f"the distances of layer {layer}", error) from error

    def certainty(self, state: BundleState, layer: int) -> NDArray[np.float32]:
        assert state.certainty is not None  # the policy was checked against the model's router
        return state.certainty

    def keep(self, state: BundleState, keep: NDArray[np.bool_]) -> BundleState:
        lengths = state.lengths[keep]
        longest = int(lengths.max())  # the rows that stay may need less padding
        try:
            feeds = {n: _cut(state.feeds[n], axes, keep, longest) for n, axes in self.axes.items()}
        except (LookupError, ValueError) as error:
            raise self._damaged("its graphs do not pass on what its manifest says") from error
        if MEMORY in state.feeds:
            feeds[MEMORY] = np.compress(keep, state.feeds[MEMORY], axis=0)
        ids = None if state.word_ids is None else state.word_ids[keep, :longest]
        return BundleState(feeds, lengths, layer=state.layer, word_ids=ids)

    def halt(self, state: BundleState, done: NDArray[np.bool_]) -> BundleState:
        ids = state.word_ids
        assert ids is not None  # only words halt by themselves
        number = np.cumsum(first_pieces(ids)).reshape(ids.shape) - 1
        halted = done[np.maximum(number, 0)] & (ids > 0)
        limits = state.feeds[LIMITS]
        now = np.where(halted, np.minimum(limits, state.layer), limits)
        return replace(state, feeds={**state.feeds, LIMITS: now})


def read_bundle(folder: Path) -> tuple[ModelInfo, Manifest]:
    """What a bundle says of itself, all of its files checked; no graph is opened yet."""
    manifest = Manifest.read(folder)
    return read_info(folder), manifest


def _cut(
    array: NDArray[Any], axes: Sequence[str | int], keep: NDArray[np.bool_], longest: int
) -> NDArray[Any]:
    """Takes out rows and trims padding; padding is on the right, so the front is what stays."""
    window = tuple(slice(longest) if axis == "tokens" else slice(None) for axis in axes)
    array = array[window]
    rows = axes.index("rows") if "rows" in axes else None
    return np.ascontiguousarray(array if rows is None else np.compress(keep, array, axis=rows))


def _failed(name: str, error: Exception) -> De3Error:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return De3Error(f"{name} failed at run time: {reason}")
