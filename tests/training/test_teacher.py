"""What a fine-tuned teacher is asked before a phase."""

from __future__ import annotations

import pytest
import torch

from de3bert.errors import De3Error, UsageError
from de3bert.model import EarlyExitForSequenceClassification
from de3bert.training.distillation import matched_layers
from de3bert.training.hook import HOOKS


@pytest.mark.parametrize(
    ("student", "teacher", "match", "expected"),
    [
        (6, 12, "skip", [2, 4, 6, 8, 10]),
        (6, 12, "last", [7, 8, 9, 10, 11]),
        (3, 12, "skip", [4, 8]),
        (3, 12, "last", [10, 11]),
        (2, 4, "skip", [2]),
        (2, 4, "last", [3]),
        (2, 5, "skip", [2]),
        (4, 4, "skip", [1, 2, 3]),
        (4, 4, "last", [1, 2, 3]),
    ],
)
def test_layers_that_are_matched(student, teacher, match, expected) -> None:
    assert matched_layers(student, teacher, {"match": match}) == expected


def test_layers_that_cannot_be_matched(context) -> None:
    with pytest.raises(UsageError, match="take layers=2 to layers=12"):
        matched_layers(1, 12, {})
    with pytest.raises(UsageError, match="student of 6 layers cannot follow"):
        matched_layers(6, 4, {})
    with pytest.raises(UsageError, match='match "first"'):
        HOOKS["teacher_states"](context("pkd", match="first")).check()
    with pytest.raises(UsageError, match="student of 1 layers"):
        HOOKS["teacher_states"](context("pkd", layers=1)).check()


@pytest.mark.parametrize(("match", "layer"), [("skip", 2), ("last", 3)])
def test_logits_and_states_are_the_teachers(context, teacher, match, layer) -> None:
    made = context("pkd", teacher, match=match)
    before = {name: value.clone() for name, value in made.model.state_dict().items()}
    hook = HOOKS["teacher_states"](made)
    hook.check()
    hook.before()
    logits, states = made.rows.extras["teacher_logits"], made.rows.extras["teacher_states"]
    assert logits.shape == (24, 2)
    assert (states.shape, states.dtype) == ((24, 1, 32), torch.float16)
    whole = EarlyExitForSequenceClassification.from_pretrained(str(teacher)).eval()
    with torch.no_grad():
        for index, row in enumerate(made.rows.rows):
            inputs = made.encoder.pad([{k: v for k, v in row.items() if k != "labels"}])
            torch.testing.assert_close(logits[index], whole(**inputs).logits[0], atol=1e-5, rtol=0)
            prepared = whole.encoder.prepare(**inputs)
            hidden = prepared.embedded
            for number in range(1, layer + 1):
                hidden = whole.encoder.layer(prepared, number, hidden)
            direction = hidden[0, 0] / hidden[0, 0].norm()
            torch.testing.assert_close(states[index, 0].float(), direction, atol=1e-3, rtol=0)
    after = made.model.state_dict()
    assert all(torch.equal(after[name], before[name]) for name in before)


def test_the_student_is_not_asked_about_its_teacher(context, teacher) -> None:
    made = context("pd", teacher)
    HOOKS["teacher_logits"](made).before()
    assert set(made.rows.extras) == {"teacher_logits"}


@pytest.mark.parametrize("name", ["teacher_logits", "teacher_states", "replacing"])
def test_a_teacher_of_other_labels_is_refused(context, teacher, name) -> None:
    made = context({"teacher_logits": "pd", "teacher_states": "pkd", "replacing": "theseus"}[name])
    HOOKS[name](made).check()  # no teacher yet
    made.teacher = teacher
    HOOKS[name](made).check()
    made.model.config.id2label = {0: "pos", 1: "neg"}
    with pytest.raises(UsageError, match=r"for the labels neg, pos, but the .* have pos, neg"):
        HOOKS[name](made).check()


def test_a_phase_without_its_teacher_says_so(context) -> None:
    with pytest.raises(De3Error, match="none was trained"):
        HOOKS["teacher_logits"](context("pd")).before()
