"""The paper's analyses on any model or trace: numbers, tables and figures.

Each analysis is one file that registers itself in `ANALYSES`.
"""

from __future__ import annotations

from de3lab.analysis import (
    alpha,
    components,
    correctness,
    costs,
    exit_layers,
    homogeneity,
    indicator,
    lambdas,
    sample,
    shift,
    space,
    speed,
    strategies,
)
from de3lab.analysis.analysis import ANALYSES, Analysis
from de3lab.analysis.result import analyse, write_result
from de3lab.analysis.subject import Subject, read_subjects

__all__ = [
    "ANALYSES",
    "Analysis",
    "Subject",
    "alpha",
    "analyse",
    "components",
    "correctness",
    "costs",
    "exit_layers",
    "homogeneity",
    "indicator",
    "lambdas",
    "read_subjects",
    "sample",
    "shift",
    "space",
    "speed",
    "strategies",
    "write_result",
]
