"""The forms of the distance-aware regulariser against loops."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from de3bert.errors import UsageError
from de3bert.objective import ExitBatch
from de3bert.objective.distance import DAR_FORMS, distance

NAN = float("nan")


def slow(form: str, distances: Tensor, labels: list[int], beta: float) -> list[float]:
    """One row at a time, in the words of the definition."""
    result = []
    for exit_index in range(distances.shape[1]):
        center, alienation = [], []
        for row, label in enumerate(labels):
            measured = distances[row, exit_index].tolist()
            own = measured[label]
            if math.isnan(own):
                continue
            center.append(own)
            others = [r for k, r in enumerate(measured) if k != label and not math.isnan(r)]
            if others:
                nearest = min(others)
                alienation.append(0.5 * (1 + (own - nearest) / max(own, nearest)))
        c = sum(center) / len(center) if center else 0.0
        a = sum(alienation) / len(alienation) if alienation else 0.0
        forms = {"center": c, "alienation": a, "combined": c + beta * a, "none": 0.0}
        result.append(forms[form])
    return result


@pytest.mark.parametrize("form", DAR_FORMS)
@pytest.mark.parametrize("missing", [(), (1,), (0, 2), (0, 1, 2)])
def test_forms_agree_with_a_loop(form: str, missing: tuple[int, ...]) -> None:
    generator = torch.Generator().manual_seed(6)
    distances = 2 * torch.rand(7, 4, 3, generator=generator)
    for label in missing:  # classes that were never seen have no prototype
        distances[..., label] = NAN
    labels = [0, 1, 2, 2, 1, 0, 1]
    found = DAR_FORMS[form](distances, torch.tensor(labels), 0.7)
    assert found.shape == (4,)
    assert found.tolist() == pytest.approx(slow(form, distances, labels, 0.7), abs=1e-6)


def test_known_numbers() -> None:
    distances, labels = torch.tensor([[[0.2, 0.5, 0.9]]]), torch.tensor([0])
    assert DAR_FORMS["center"](distances, labels, 0.5).item() == pytest.approx(0.2)
    assert DAR_FORMS["alienation"](distances, labels, 0.5).item() == pytest.approx(0.2)
    assert DAR_FORMS["combined"](distances, labels, 0.5).item() == pytest.approx(0.3)
    assert DAR_FORMS["none"](distances, labels, 0.5).item() == 0.0


@pytest.mark.parametrize("form", DAR_FORMS)
@pytest.mark.parametrize(
    "measured",
    [[0.0, 0.0, 0.0], [0.0, 0.4, NAN], [0.3, 0.0, 0.0], [NAN, 0.1, NAN], [0.2, NAN, NAN]],
)
def test_gradients_are_finite_at_the_corners(form: str, measured: list[float]) -> None:
    distances = torch.tensor([[measured]], requires_grad=True)
    value = DAR_FORMS[form](distances, torch.tensor([0]), 1.0).sum()
    assert value.isfinite()
    if value.requires_grad:
        value.backward()
        assert distances.grad is not None
        assert distances.grad.isfinite().all()


def test_the_option_chooses_the_form() -> None:
    distances, labels = torch.tensor([[[0.2, 0.5]]]), torch.tensor([1])
    for form, expected in (("center", 0.5), ("alienation", 0.8), ("combined", 0.5 + 2 * 0.8)):
        batch = ExitBatch(torch.zeros(1, 2, 2), labels, distances, {"dar": form, "beta": 2.0})
        assert distance(batch).item() == pytest.approx(expected)
    batch = ExitBatch(torch.zeros(1, 2, 2), labels, distances, {"dar": "centre", "beta": 2.0})
    with pytest.raises(UsageError, match='Did you mean "center"'):
        distance(batch)
