"""A promise about a number, and what was measured."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Bar"]


@dataclass(frozen=True)
class Bar:
    """One promise and what was measured."""

    name: str
    value: float
    bar: float
    at_least: bool = True
    remark: str = ""

    @property
    def passed(self) -> bool:
        return self.value >= self.bar if self.at_least else self.value <= self.bar

    def __str__(self) -> str:
        verdict, sign = "PASS" if self.passed else "MISS", ">=" if self.at_least else "<="
        return f"{verdict}  {self.name:<45} {self.value:8.3f}  {sign} {self.bar:<8.4g}{self.remark}"
