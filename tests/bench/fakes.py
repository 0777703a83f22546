"""Contenders whose times are known, and the clock that they move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from de3bert.bench.timing import TimeSource
from de3bert.data.tokens import TextInput, TokenRow
from de3bert.tasks.answers import Prediction


@dataclass
class Time:
    """A clock that stands still unless it is moved."""

    now: float = 0.0
    worked: float = 0.0
    spins_until: float = 0.0
    slept: list[float] = field(default_factory=list)

    def pass_by(self, seconds: float) -> None:
        self.now += seconds

    @property
    def clock(self) -> TimeSource:
        return TimeSource(lambda: self.now, self._sleep, lambda: self.worked)

    def spin(self, seconds: float) -> None:
        """A pool goes on spinning from now on."""
        self.spins_until = self.now + seconds

    def _sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.worked += max(0.0, min(seconds, self.spins_until - self.now))
        self.now += seconds


@dataclass
class Fake:
    """Takes `per_batch` seconds per batch and `per_text` per text, and says `label`."""

    name: str
    time: Time
    per_text: float
    per_batch: float = 0.0
    label: str = "pos"
    precision: str = "fp32"
    full_depth: bool = True
    pool: str = "fake"

    def tokenise(self, texts: Sequence[TextInput]) -> list[TokenRow]:
        self.time.pass_by(0.001 * len(texts))
        return [{"input_ids": [1]} for _ in texts]

    def predict(self, texts: Sequence[TextInput], batch_size: int) -> list[Prediction]:
        batches = -(-len(texts) // batch_size)
        # Long texts take longer, so that texts differ and intervals have something to do.
        self.time.pass_by(self.per_batch * batches + self.per_text * sum(map(len, texts)))
        return [Prediction(self.label, 1.0, 4, 4) for _ in texts]
