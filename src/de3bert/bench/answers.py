"""Did all contenders give the same answers? A fast one with other answers has won nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from de3bert.bench.measure import Measured
from de3bert.data.table import Table
from de3bert.data.tokens import TextInput
from de3bert.errors import UsageError
from de3bert.runtime.classifier import FULL, Classifier
from de3bert.runtime.evaluate import class_numbers
from de3bert.tasks.answers import Prediction

__all__ = ["Reference", "find_reference", "is_exact", "right_labels"]

MODEL_ITSELF = "hf"


@dataclass(frozen=True)
class Reference:
    """The labels that count as the model's own at full depth, (texts,)."""

    name: str
    labels: list[str]

    def differ(self, answers: Sequence[Prediction]) -> int:
        """How many texts got another label."""
        pairs = zip(answers, self.labels, strict=True)
        return sum(answer.label != label for answer, label in pairs)

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
    measured: Sequence[Measured], bundle: Classifier, texts: Sequence[TextInput]
) -> Reference:
    """The answers of `hf` where it takes part, or else of the bundle at full depth."""
    for each in measured:
        if each.contender.name == MODEL_ITSELF:
            return Reference(MODEL_ITSELF, [answer.label for answer in each.answers])
    answers = [bundle.predict([text], policy=FULL)[0] for text in texts]
    return Reference(f"ours:{FULL}", [answer.label for answer in answers])


def right_labels(bundle: Classifier, table: Table, warnings: list[str]) -> list[str] | None:
    """The right classes by name, where the table has them in the model's terms."""
    if table.labels is None:
        return None
    try:
        numbers = class_numbers(bundle, table)
    except UsageError as error:
        # Times need no labels: a column that only looks like them must not stop the run.
        warnings.append(f"labels are not used: {error}")
        return None
    return [bundle.label_names[number] for number in numbers]
