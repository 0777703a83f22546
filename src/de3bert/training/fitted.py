"""Exits fitted after training, in closed form and by convex problems: no gradient step anywhere.

One pass keeps what every exit reads. Then, exit by exit, a logistic regression is its head, scaled
to be as sure as it agrees with the final exit, and the whitening of the covariance within classes
with the class means is its prototypical network.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from de3bert.data.tokens import TokenRow
from de3bert.errors import UsageError
from de3bert.fitting.logistic import STRENGTHS, Head, agreement, fit_head, fit_heads
from de3bert.fitting.moments import class_moments
from de3bert.fitting.whitening import Whitening, whitening_of
from de3bert.model import EarlyExitModel
from de3bert.model.pooling import POOLINGS, Pooling
from de3bert.model.tokens import TextEncoder
from de3bert.printable import cut_list
from de3bert.progress import track
from de3bert.training.rows import Rows
from de3bert.training.states import States, read_states

__all__ = ["FitRows", "FittedExits", "check_classes", "fit_exits"]

Model = EarlyExitModel
Singles = NDArray[np.float32]
Labels = NDArray[np.int64] | None

PROBE = 0.01  # the strength at which poolings are compared
Found = TypeVar("Found")


@dataclass(frozen=True)
class FitRows:
    """Token rows, and their classes where these are known."""

    rows: Sequence[TokenRow]
    labels: Labels = None  # (rows,)

    @classmethod
    def of(cls, rows: Rows, *, labels: bool) -> FitRows:
        """Rows of a training, with their labels or without."""
        plain: list[Any] = [{k: v for k, v in row.items() if k != "labels"} for row in rows.rows]
        known = np.array([row["labels"] for row in rows.rows]) if labels else None
        return cls(plain, known)


@dataclass(frozen=True)
class FittedExits:
    """What a fit gave: the record in the model's config.

    Attributes:
        rows: fitted to; `held` chose strengths and pooling.
        labels: `given`, or `answers` of the final exit.
        strengths: C of each exit's logistic regression, by layer.
        shrinkage: of each exit's covariance, by layer.
        scales: what each exit's logits were multiplied with, by layer.
        loss: mean cross-entropy of each exit with the final one's answers on held rows, by layer.
        accuracy: share of held rows whose label each exit gives, the final one included; without
            labels, whose answer by the final exit.
        pooling: what the exits read.
        seconds: of the pass through the encoder, and of the fit.
    """

    rows: int
    held: int
    labels: str
    strengths: dict[int, float]
    shrinkage: dict[int, float]
    scales: dict[int, float]
    loss: dict[int, float]
    accuracy: dict[int, float]
    pooling: str
    seconds: dict[str, float]

    def to_json(self) -> dict[str, Any]:
        """Without times: the same fit gives the same config."""
        document = {name: value for name, value in vars(self).items() if name != "seconds"}
        for name in ("strengths", "shrinkage", "scales", "loss", "accuracy"):
            document[name] = {str(k): round(v, 6) for k, v in getattr(self, name).items()}
        return document


def fit_exits(
    model: Model,
    encoder: TextEncoder,
    train: FitRows,
    held: FitRows,
    folder: Path,
    *,
    poolings: Sequence[str] = (),
    shrinkage: float | None = None,
    strengths: Sequence[float] = STRENGTHS,
    batch_size: int = 64,
    progress: bool = False,
    force: bool = False,
) -> FittedExits:
    """Fits every exit before the last, in place; the encoder and the final exit stay unchanged.

    Args:
        model: with linear exits before the last and linear maps to prototypes.
        train: with labels, or without: then the final exit's probabilities stand for them.
        held: other rows, on which strengths are chosen.
        folder: where states go that do not fit into memory.
        poolings: what exits may read instead of the model's own pooling; the one with the least
            loss on held rows is taken.
        shrinkage: of the covariance; None is chosen by the rows (Ledoit and Wolf).
        force: fits to rows that lack a class, too.
    """
    started = time.perf_counter()
    kinds = _poolings(model, poolings)
    asked = {"batch_size": batch_size}
    label = "reading texts" if progress else None
    states = read_states(model, encoder, train.rows, kinds, folder, progress=label, **asked)
    label = "reading held texts" if progress else None
    others = read_states(model, encoder, held.rows, kinds, folder, progress=label, **asked)
    read = time.perf_counter()
    targets, held_targets = _targets(states, train), _targets(others, held)
    check_classes(targets.argmax(axis=1), model.config.label_names, train.labels, force=force)
    targets = _completed(targets, states)
    answers = others.logits.argmax(axis=1)

    def fitted(vectors: Singles, apart: Singles) -> tuple[Head, Whitening]:
        moments = class_moments(vectors, targets)
        head = fit_heads(vectors, targets, moments, apart, answers, strengths)
        return head, whitening_of(moments, shrinkage=shrinkage)

    def probed(vectors: Singles, apart: Singles) -> float:
        head, _ = fit_head(vectors, targets, class_moments(vectors, targets), PROBE)
        return agreement(head.logits(apart), answers)[1]

    name = next(iter(kinds))
    if len(kinds) > 1:
        losses = {k: sum(_each_exit(probed, states, others, k, None)) for k in kinds}
        name = min(losses, key=losses.__getitem__)
    label = "fitting exits" if progress else None
    heads, maps = zip(*_each_exit(fitted, states, others, name, label), strict=True)
    _put(model, kinds, name, heads, maps)
    layers = (model.config.exit_layers or [])[:-1]
    found = FittedExits(
        rows=len(train.rows),
        held=len(held.rows),
        labels="answers" if train.labels is None else "given",
        strengths={m: head.strength for m, head in zip(layers, heads, strict=True)},
        shrinkage={m: each.shrinkage for m, each in zip(layers, maps, strict=True)},
        scales={m: head.scale for m, head in zip(layers, heads, strict=True)},
        loss={m: head.loss for m, head in zip(layers, heads, strict=True)},
        accuracy=_accuracy(model, others, name, heads, held_targets),
        pooling=name,
        seconds={"states": read - started, "fit": time.perf_counter() - read},
    )
    model.config.fitted = found.to_json()
    model.config.prototype_means = "all rows"
    return found


def check_classes(
    answers: NDArray[np.int64],
    label_names: Sequence[str],
    labels: Labels,
    *,
    force: bool = False,
) -> None:
    """Refuses rows that say nothing of some class.

    Args:
        answers: the class of every row, by its label or by what the final exit says, (rows,).
    """
    if len(answers) < len(label_names):
        raise UsageError(
            f"{len(answers)} rows are too few to fit exits for {len(label_names)} classes: at "
            "least one of each is needed, and hundreds are better."
        )
    absent = [n for k, n in enumerate(label_names) if not (answers == k).any()]
    if absent and not force:
        whose = "For these texts the final exit never predicts"
        whose = whose if labels is None else "The rows have none of"
        raise UsageError(
            f"{whose} {cut_list(absent)} ({len(absent)} of the model's {len(label_names)} "
            "classes), so exits could not learn to predict them. Give other or more texts, or pass "
            "--force (force=True) to fit the exits anyway."
        )


def _poolings(model: Model, names: Sequence[str]) -> dict[str, Pooling]:
    if not names:
        return {model.config.pooling: model.pooling}
    hidden, exits = model.config.hidden_size, len(model.config.exit_layers or ())
    return {name: POOLINGS[name](hidden, exits) for name in names}


def _targets(states: States, given: FitRows) -> Singles:
    """Labels as weights, (rows, classes): 1 for the class of a row, or what the final exit says."""
    if given.labels is None:
        return states.answers()
    return np.eye(states.logits.shape[1], dtype=np.float32)[given.labels]


def _completed(targets: Singles, states: States) -> Singles:
    """The same; where a class has no row at all, all rows weigh in it as the final exit says."""
    empty = targets.sum(axis=0) <= 0
    if not empty.any():
        return targets
    filled = np.where(empty, states.answers(), targets)
    return (filled / filled.sum(axis=1, keepdims=True)).astype(np.float32)


def _each_exit(
    work: Callable[[Singles, Singles], Found],
    states: States,
    others: States,
    name: str,
    progress: str | None,
) -> list[Found]:
    """`work` on the vectors of every exit, one exit per core.

    Each uses one thread: products with a few columns gain nothing by more, and threads that wait
    for one another lose a lot on a machine with other work to do.
    """
    pairs = zip(states.vectors[name], others.vectors[name], strict=True)
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(os.cpu_count()) as pool:
        begun = [pool.submit(work, *pair) for pair in pairs]
        return [each.result() for each in track(begun, progress)]


def _accuracy(
    model: Model, others: States, name: str, heads: Sequence[Head], targets: Singles
) -> dict[int, float]:
    """Layer -> share of held rows that the exit answers as wanted."""
    wanted = targets.argmax(axis=1)
    vectors = others.vectors[name]
    said: list[Any] = [head.logits(apart) for apart, head in zip(vectors, heads, strict=True)]
    shares = [float((each.argmax(axis=1) == wanted).mean()) for each in (*said, others.logits)]
    return dict(zip(model.config.exit_layers or [], shares, strict=True))


@torch.no_grad()
def _put(
    model: Model,
    kinds: dict[str, Pooling],
    name: str,
    heads: Sequence[Head],
    maps: Sequence[Whitening],
) -> None:
    """Into the model: heads, maps, prototypes, and the pooling that they read."""
    assert model.projectors is not None  # see the argument
    assert model.prototypes is not None
    model.pooling, model.config.pooling = kinds[name], name
    bank = model.prototypes
    for index, (head, found) in enumerate(zip(heads, maps, strict=True)):
        _set(model.heads.exits[index], head.weight, head.bias)
        _set(model.projectors[index], found.weight, found.bias)
        bank.vectors[index] = torch.from_numpy(found.prototypes).float()
    bank.initialised.fill_(True)
    bank.counts.copy_(torch.from_numpy(np.round(maps[0].mass)).long())


def _set(linear: torch.nn.Module, weight: NDArray[np.float64], bias: NDArray[np.float64]) -> None:
    assert isinstance(linear, torch.nn.Linear)
    linear.weight.copy_(torch.from_numpy(weight))
    linear.bias.copy_(torch.from_numpy(bias))
