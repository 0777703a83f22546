"""Does one file answer as the bundle it was made of? Text by text, at thresholds that matter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de3bert.exits import Policy, Signal, Trace
from de3bert.exits.replay import margin, replay
from de3bert.exits.rule_form import RuleForm
from de3bert.export.check import CLOSE, of_any_kind
from de3bert.runtime.bundle_backend import BundleBackend
from de3bert.runtime.classifier import Classifier
from de3bert.runtime.one_file import OneFile

__all__ = ["Alike", "compare_one"]

# 8-bit numbers on the border of two steps may fall to either side.
STEP = 0.02
SHARES = (0.1, 0.5, 0.9)  # of the signals, where thresholds are tried


@dataclass(frozen=True)
class Alike:
    """How one file compares with its bundle.

    Attributes:
        answers: texts times policies.
        set_aside: of these, how many were too near to a threshold to compare.
        logit: the largest difference among the others; `other_layers` left elsewhere.
    """

    answers: int
    set_aside: int
    logit: float
    other_layers: int
    allowed: float

    @property
    def equal(self) -> bool:
        return self.other_layers == 0 and self.logit <= self.allowed

    @property
    def difference(self) -> str:
        return (
            f"of {self.answers - self.set_aside} answers {self.other_layers} left at another "
            f"layer, and logits differ by up to {self.logit:.2g}"
        )

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def compare_one(bundle: Classifier[Any], file: OneFile) -> Alike:
    """Asks both for the stored points, full depth and thresholds amid the signals."""
    backend = bundle.backend
    assert isinstance(backend, BundleBackend)
    near = CLOSE if backend.manifest.precision == "fp32" else STEP
    answers = aside = others = 0
    apart = 0.0
    own = of_any_kind(bundle)
    for texts in bundle.task.samples:
        rows = own.encode(texts).rows
        trace = own.trace(texts, batch_size=1, distances=file.form.needs_distances)
        stored = [point.policy for point in bundle.points.values() if file.form.fits(point.policy)]
        for policy in (*stored, Policy.parse("full"), *_tried(file.form, trace)):
            expected, clear = replay(trace, policy), _clear(trace, policy, near)
            for number in np.flatnonzero(clear):
                layer, logits = file.answer(rows[number], policy)
                if layer != expected.exit_layers[number]:
                    others += 1
                    continue
                said = trace.logits[number, trace.exit_layers.index(layer)]
                apart = max(apart, float(np.abs(logits[0] - said).max()))
            answers += len(rows)
            aside += int((~clear).sum())
    return Alike(answers, aside, apart, others, near)


def _tried(form: RuleForm, trace: Trace) -> Iterator[Policy]:
    """Policies of the form at which some texts leave early and others do not."""
    counts = range(1, 4) if form.counted else range(1, 2)
    if form.signal is None:
        yield from (Policy.parse(f"patience({count})") for count in counts)
        return
    signal = Signal.parse(form.signal)
    values = np.array([signal(trace.view(number)) for number in range(trace.exits - 1)])
    sign = ">" if form.rising else "<"
    for share in SHARES:
        threshold = float(np.quantile(values, share))
        yield from (Policy.parse(f"{signal} {sign} {threshold!r} x {count}") for count in counts)


def _clear(trace: Trace, policy: Policy, near: float) -> NDArray[np.bool_]:
    """Rows that no rounding decides otherwise: neither signal nor class is a near tie. (rows,)"""
    ordered = np.sort(trace.logits, axis=-1)
    gap = (ordered[..., -1] - ordered[..., -2]).min(axis=1)
    clear: NDArray[np.bool_] = (margin(trace, policy) > near) & (gap > near)
    return clear
