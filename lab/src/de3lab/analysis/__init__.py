"""The paper's analyses on any model or trace: numbers, tables and figures.

Each analysis is one file that registers itself in `ANALYSES`.
"""

from __future__ import annotations

# Each registers its analysis.
from de3lab.analysis import (  # noqa: F401
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

__all__ = ["ANALYSES", "Analysis", "Subject", "analyse", "read_subjects", "write_result"]
