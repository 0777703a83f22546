"""One table or figure of the paper and how ours is made, shown and judged: a declaration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from de3lab.tabular import Grid

if TYPE_CHECKING:
    from de3lab.paper.judging import Verdict
    from de3lab.paper.stored import Stored

__all__ = ["Finding", "Item", "Measurement", "Training", "Varied"]

EVERY = "*"


@dataclass(frozen=True)
class Varied:
    """An option of a method that takes several values; the study is trained once for each."""

    method: str
    option: str
    values: tuple[float, ...]

    def label(self, value: float) -> str:
        return f"{value:g}"


@dataclass(frozen=True)
class Training:
    """The trainings an item needs.

    Attributes:
        study: the name of a study file.
        methods: those of its methods that are needed; none stands for all.
        tasks: likewise.
        varied: an option that takes several values.
    """

    study: str
    methods: tuple[str, ...] = ()
    tasks: tuple[str, ...] = ()
    varied: Varied | None = None

    @property
    def filters(self) -> list[str]:
        """As `task/method`, what `de3 compare --only` takes."""
        return [
            f"{task}/{method}"
            for task in self.tasks or (EVERY,)
            for method in self.methods or (EVERY,)
        ]


@dataclass(frozen=True)
class Measurement:
    """An analysis of the trained models, one result for each task.

    Attributes:
        analysis: its name.
        labels: label -> method; the analysis compares them. With a varied option its values are the
            labels, and this names the one method.
        rows: task -> the test file it is made on, where that is not the main one.
        settings: task -> settings of the analysis that differ from its own.
        of: what it reads: traces, models, or traces with the rows' texts beside them.
        seeds: all that are finished, or the first.
        adapted: label -> the label whose models, adapted to the test rows, stand under it.
    """

    analysis: str
    labels: Mapping[str, str]
    rows: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    of: Literal["traces", "models", "texts"] = "traces"
    seeds: Literal["all", "first"] = "all"
    adapted: Mapping[str, str] = field(default_factory=dict)

    def settings_of(self, task: str) -> dict[str, Any]:
        return dict(self.settings.get(task, {}))


@dataclass(frozen=True)
class Finding:
    """Something the paper says, and how it is judged here.

    Attributes:
        name: a short one, for programs.
        claim: what the paper says, in our words.
    """

    name: str
    claim: str
    judge: Callable[[Stored], Verdict]


def _no_tables(stored: Stored) -> list[Grid]:
    return []


@dataclass(frozen=True)
class Item:
    """A table or figure of the paper, or two that belong together; or what stands beside one.

    Attributes:
        name: as `de3 paper run NAME` has it.
        references: as the paper prints them.
        labels: their labels in the paper's source.
        title: what it shows, in a few words.
        shows: what the paper says about it, in a sentence or two of ours.
        setting: how the paper measured it; empty where there is nothing to measure.
        published: its numbers.
        training: what must be trained; None for what needs no model.
        measurement: the analysis; None for tables that come out of a study.
        tables: ours beside the published numbers.
        of_study: whether its tables are those of methods compared in a study.
        findings: what is judged by it.
        beside: for what the paper does not show, the figure it belongs to; such an item has no
            references.
    """

    name: str
    references: tuple[str, ...]
    labels: tuple[str, ...]
    title: str
    shows: str
    setting: str = ""
    published: Mapping[str, Any] = field(default_factory=dict)
    training: Training | None = None
    measurement: Measurement | None = None
    tables: Callable[[Stored], list[Grid]] = _no_tables
    of_study: bool = False
    findings: tuple[Finding, ...] = ()
    beside: str = ""

    @property
    def reference(self) -> str:
        return f"Beside {self.beside}" if self.beside else ", ".join(self.references)

    @property
    def command(self) -> str:
        """What makes it."""
        if self.training is None:
            return "de3 paper all"
        return f"de3 paper run {self.name}"
