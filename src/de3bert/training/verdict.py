"""The result of a training: how good its exits are, and what the user should know."""

from __future__ import annotations

from de3bert.model import EarlyExitModel
from de3bert.model.tokens import TextEncoder
from de3bert.training.inference import exit_logits
from de3bert.training.rows import Rows

__all__ = ["exit_accuracy", "notes_on", "separation"]

MERGED = 1e-6  # cosine distance; vectors share a large common part, so sound ones lie near too


def exit_accuracy(
    model: EarlyExitModel,
    held: Rows,
    encoder: TextEncoder,
    progress: str | None,
) -> dict[int, float]:
    """Layer -> accuracy of its exit on the calibration rows."""
    said = exit_logits(model, held, encoder, progress)
    right = said.argmax(-1) == held.unit_labels()[:, None]
    shares = right.double().mean(0).tolist()
    return dict(zip(model.config.exit_layers or [], shares, strict=True))


def notes_on(
    model: EarlyExitModel,
    accuracy: dict[int, float],
    held: Rows,
    truncated: int,
    rows: int,
) -> list[str]:
    """What the user should know: truncated texts, exits at chance, merging prototypes."""
    notes = []
    if truncated:
        notes.append(
            f"{truncated} of {rows} training texts were truncated to {model.config.max_length} "
            "tokens"
        )
    labels = held.unit_labels()
    majority = float(labels.bincount().max()) / len(labels)
    at_chance = [m for m, value in accuracy.items() if value <= majority + 0.02]
    if at_chance:
        listed = ", ".join(map(str, at_chance))
        notes.append(
            f"the exits at layers {listed} are no better than always predicting the most frequent "
            f'class; they read "{model.config.pooling}", try another pooling (mean, '
            "shared_pooler), a higher `head_rate` or more epochs"
        )
    merged = [layer for layer, distance in separation(model).items() if distance < MERGED]
    if merged:
        notes.append(f"prototypes of different classes have merged at layers {merged}")
    return notes


def separation(model: EarlyExitModel) -> dict[int, float]:
    """Layer -> the smallest distance between the prototypes of two classes."""
    if model.prototypes is None:
        return {}
    nearest = model.prototypes.separation().tolist()
    return dict(zip(model.config.exit_layers or [], nearest, strict=False))
