"""Did all contenders give the same answers? A fast one with other answers has won nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from de3bert.bench.measure import Measured
from de3bert.data.table import Table
from de3bert.errors import UsageError
from de3bert.runtime.classifier import FULL, Classifier
from de3bert.runtime.evaluate import numbers_of
from de3bert.tasks.task import Task

__all__ = ["Labels", "Reference", "find_reference", "is_exact", "reference_of", "right_labels"]

MODEL_ITSELF = "hf"
Labels: TypeAlias = list[tuple[str | None, ...]]


@dataclass(frozen=True)
class Reference:
    """What counts as the model's own answers at full depth.

    Attributes:
        labels: what is said of every unit of every text, (texts,) of (units,).
    """

    name: str
    task: Task[Any]
    label_names: tuple[str, ...]
    labels: Labels

    def differ(self, answers: Sequence[Any]) -> int:
        """How many texts got another label, or sentences another tag."""
        pairs = zip(answers, self.labels, strict=True)
        return sum(self.task.said(answer) != labels for answer, labels in pairs)

    def same(self, measured: Measured) -> bool:
        """Whether every text got this label, alone and in a batch."""
        return not (self.differ(measured.answers) or self.differ(measured.batched))

    def warning(self, measured: Measured) -> str | None:
        """What to say of a contender that should have given the same labels and did not."""
        if not is_exact(measured) or self.same(measured):
            return None
        alone, batched = self.differ(measured.answers), self.differ(measured.batched)
        return (
            f"{measured.contender.name} runs the same model at full depth, but on {alone} of "
            f"{len(self.labels)} texts its label differs from that of {self.name} (in batches: "
            f"{batched}); its times are not comparable"
        )


def is_exact(measured: Measured) -> bool:
    """Whether a contender has no excuse for another label: all layers, no coarser numbers."""
    return measured.contender.full_depth and measured.contender.precision == "fp32"


def find_reference(
    measured: Sequence[Measured], bundle: Classifier[Any], texts: Sequence[Any]
) -> Reference:
    """The answers of `hf` where it takes part, or else of the bundle at full depth."""
    eager = next((each for each in measured if each.contender.name == MODEL_ITSELF), None)
    if eager is not None:
        return reference_of(MODEL_ITSELF, bundle, eager.answers)
    answers = [bundle.predict([text], policy=FULL)[0] for text in texts]
    return reference_of(f"ours:{FULL}", bundle, answers)


def reference_of(name: str, bundle: Classifier[Any], answers: Sequence[Any]) -> Reference:
    """These answers, whose task and classes are the bundle's."""
    said = [bundle.task.said(answer) for answer in answers]
    return Reference(name, bundle.task, bundle.label_names, said)


def right_labels(bundle: Classifier[Any], table: Table[Any], warnings: list[str]) -> Labels | None:
    """The right classes of all units by name, where the table has them in the model's terms."""
    if table.labels is None:
        return None
    try:
        numbers = numbers_of(bundle.info, table)
    except UsageError as error:
        # Times need no labels: a column that only looks like them must not stop the run.
        warnings.append(f"labels are not used: {error}")
        return None
    return [tuple(bundle.label_names[number] for number in np.atleast_1d(row)) for row in numbers]
