"""All findings of the paper that are judged, in its order."""

from __future__ import annotations

from de3lab.paper.findings_costs import COSTS
from de3lab.paper.findings_curves import CURVES
from de3lab.paper.findings_signals import SIGNALS
from de3lab.paper.findings_speed import SPEED
from de3lab.paper.findings_study import STUDIES
from de3lab.paper.findings_weights import WEIGHTS
from de3lab.paper.stored import Stored
from de3lab.paper.verdict import Finding, Verdict

__all__ = ["FINDINGS", "judge_all"]

ORDER = (
    "oracle", "rules", "others", "cosee", "students", "entropy", "growing", "one-rate",
    "one-rate-growing", "regulariser", "networks", "backbone", "exits", "layers", "adjustment",
    "adjusted", "chinese", "lambda", "alpha", "correctness", "ranking", "shallow",
    "one-rate-ranking", "one-rate-shallow", "overheads", "training-time", "space", "correlation",
    "forms",
)  # fmt: skip
_ALL = {**CURVES, **STUDIES, **SIGNALS, **WEIGHTS, **SPEED, **COSTS}
FINDINGS: tuple[Finding, ...] = tuple(_ALL[name] for name in ORDER)


def judge_all(stored: Stored) -> dict[str, Verdict]:
    """The verdict of every finding by its name."""
    return {finding.name: finding.judge(stored) for finding in FINDINGS}
