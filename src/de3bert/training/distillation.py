"""Hooks that ask a fine-tuned teacher, once, about every training row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor
from torch.nn import functional

from de3bert.data.tokens import by_length
from de3bert.errors import UsageError
from de3bert.methods.method import OptionValue
from de3bert.model import EarlyExitConfig, EarlyExitModel
from de3bert.model.pretrained import from_pretrained
from de3bert.model.tokens import TextEncoder
from de3bert.objective.needs import word
from de3bert.printable import cut_list
from de3bert.progress import track
from de3bert.training.hook import HOOKS, Hook, PhaseContext
from de3bert.training.inference import BATCH, exit_logits
from de3bert.training.rows import Rows, collate

__all__ = ["TeacherLogits", "TeacherStates", "check_labels", "first_token_states", "matched_layers"]


@HOOKS.register("teacher_logits")
class TeacherLogits(Hook):
    """`extras["teacher_logits"]`: what the teacher's last exit says, (rows, classes)."""

    def check(self) -> None:
        check_labels(self.context)

    def before(self) -> None:
        teacher = self.context.teacher_model()
        if torch.cuda.is_available():
            torch.nn.Module.to(teacher, "cuda")  # the subclass's wrapper hides its signature
        self.ask(teacher)

    def ask(self, teacher: EarlyExitModel) -> None:
        context, rows = self.context, self.context.rows
        said = exit_logits(teacher, rows, context.encoder, context.label("asking the teacher"))
        rows.extras["teacher_logits"] = said[:, -1]


@HOOKS.register("teacher_states")
class TeacherStates(TeacherLogits):
    """The same and `extras["teacher_states"]`, (rows, student's layers - 1, hidden) (BERT-PKD).

    They are the teacher's first-token states after the layers that `matched_layers` names. The
    loss reads their directions alone, so they are kept at length 1 and in half precision.
    """

    def check(self) -> None:
        super().check()
        config = self.context.model.config
        matched_layers(config.depth, config.base_depth or config.depth, self.context.options)

    def ask(self, teacher: EarlyExitModel) -> None:
        super().ask(teacher)
        context = self.context
        layers = matched_layers(context.model.config.depth, teacher.config.depth, context.options)
        states = first_token_states(
            teacher, context.rows, context.encoder, layers, context.label("the teacher's states")
        )
        context.rows.extras["teacher_states"] = states


def matched_layers(student: int, teacher: int, options: Mapping[str, OptionValue]) -> list[int]:
    """The teacher's layers that the student's layers 1..L-1 follow, counted from 1.

    Option `match`: `skip`, evenly spread (2 4 6 8 10 for 6 of 12), or `last`, those before the
    teacher's last (7 8 9 10 11).
    """
    match = word(options, "match", ("skip", "last"))
    if student < 2 or student > teacher:
        raise UsageError(
            f"A student of {student} layers cannot follow the states of a teacher of {teacher}: "
            f"its last layer is not matched, so take layers=2 to layers={teacher}."
        )
    numbers = range(1, student)
    if match == "skip":
        return [number * teacher // student for number in numbers]
    return [teacher - student + number for number in numbers]


def check_labels(context: PhaseContext) -> None:
    """Refuses a teacher that was made for other labels than the student."""
    if context.teacher is None:
        return
    theirs = from_pretrained(EarlyExitConfig, str(context.teacher)).label_names
    ours = context.model.config.label_names
    if theirs != ours:
        raise UsageError(
            f"The teacher {context.teacher} was made for the labels {cut_list(theirs)}, but the "
            f"training rows have {cut_list(ours)}. Take a teacher trained on the same labels."
        )


@torch.no_grad()
def first_token_states(
    teacher: EarlyExitModel,
    rows: Rows,
    encoder: TextEncoder,
    layers: Sequence[int],
    progress: str | None = None,
) -> Tensor:
    """First-token states after some layers, each of length 1, (rows, layers, hidden) float16."""
    found = torch.empty(len(rows), len(layers), teacher.config.hidden_size, dtype=torch.float16)
    for chosen in track(by_length(rows.lengths, BATCH), progress):
        batch = collate(encoder, [rows[index] for index in chosen])
        given = {k: v.to(teacher.device) for k, v in batch.items() if k not in ("labels", "extras")}
        prepared = teacher.encoder.prepare(**given)
        hidden, states = prepared.embedded, []
        for number in range(1, max(layers) + 1):
            hidden = teacher.encoder.layer(prepared, number, hidden)
            if number in layers:
                states.append(hidden[:, 0])
        found[chosen] = functional.normalize(torch.stack(states, 1).float(), dim=-1).half().cpu()
    return found
