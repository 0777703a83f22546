"""Documents with everything they must have, made by hand; what a test is about is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from de3lab.documents import AnalysisResult, RunRecord, StudyResult

MADE = {"machine": "m", "versions": {}, "date": "2026-01-01T00:00:00+00:00", "command": "de3"}


def run_record(**parts: Any) -> RunRecord:
    """A record of a run that scored nothing, but for what is given."""
    usual = {
        "key": "k", "task": "t", "training": "de3", "seed": 1, "teacher": None, "backbone": "b",
        "settings": {}, "sha256": {}, "rows": {}, "training_record": {}, "exit_layers": [1, 2],
        "base_depth": 2, "label_names": ["a", "b"], "exit_accuracy": {}, "parameters": {},
        "flops": None, "methods": {},
        "scored_as": {"scoring": 1, "methods": [], "metrics": [], "speeds": [], "tests": []},
    }  # fmt: skip
    return RunRecord.made(**{**MADE, **usual, **parts})


def method(name: str, **parts: Any) -> dict[str, Any]:
    usual = {"group": "g", "summary": "", "citation": "", "ranked": True, "training": name}
    return {"name": name, **usual, **parts}


def task(name: str, metrics: tuple[str, ...] = ("accuracy",), **parts: Any) -> dict[str, Any]:
    usual = {"metric": "+".join(metrics), "metrics": list(metrics), "test": "dev", "seeds": [1]}
    return {"name": name, **usual, "rows": None, **parts}


def score(values: Mapping[str, float], **parts: Any) -> dict[str, Any]:
    mean = sum(values.values()) / len(values)
    seen = {"mean": mean, "sd": None, "n": len(values), "values": dict(values)}
    return {**seen, "each": {"accuracy": mean}, **parts}


def study_result(**parts: Any) -> StudyResult:
    """A result of a study with nothing in it, but for what is given."""
    tables = ("scores", "averages", "ranks", "tests", "areas", "points", "curves", "exits",
              "base_depth", "calibrated", "flops")  # fmt: skip
    empty: dict[str, Any] = {name: {} for name in tables}
    usual = {
        "title": "T", "machines": ["m"], "backbone": "b", "speeds": [2.0], "methods": [],
        "progress": {"done": 0, "of": 0, "missing": []}, "tasks": [], "significant_below": 0.05,
        "complete_tasks": [], "chosen": "de3", "latency": None,
    }  # fmt: skip
    made = {name: value for name, value in MADE.items() if name != "machine"}
    return StudyResult.made(**{**made, **empty, **usual, **parts})


def analysis_result(numbers: Mapping[str, Any], **parts: Any) -> AnalysisResult:
    usual = {"analysis": "a", "title": "T", "paper": "", "seed": None, "settings": {}}
    return AnalysisResult.made(**{**MADE, **usual, "subjects": [], "numbers": numbers, **parts})
