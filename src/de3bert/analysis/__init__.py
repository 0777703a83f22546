"""The paper's analyses on any model or trace: numbers, tables and figures.

Each analysis is one file that registers itself in `ANALYSES`.
"""

from __future__ import annotations

from de3bert.analysis import (
    exit_layers,
)
from de3bert.analysis.analysis import ANALYSES, Analysis
from de3bert.analysis.result import analyse, read_result, write_result
from de3bert.analysis.subject import Subject, read_subjects

__all__ = [
    "ANALYSES",
    "Analysis",
    "Subject",
    "analyse",
    "exit_layers",
    "read_result",
    "read_subjects",
    "write_result",
]
