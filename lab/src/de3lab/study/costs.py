"""What a method costs at a speed besides layers: operations per text."""

from __future__ import annotations

from typing import Any

from de3lab.documents import TestScores
from de3lab.documents.study import OWN
from de3lab.study.flops import flops_at
from de3lab.study.lines import speed_key
from de3lab.study.results import Results

__all__ = ["flops_table"]


def flops_table(results: Results) -> dict[str, Any]:
    """Task -> method -> speed -> operations, by the first finished seed."""
    table: dict[str, Any] = {}
    for task in results.tasks:
        rows = {}
        for method in results.spec.methods:
            for seed, found in results.each(task, method)[:1]:
                record = results.records_of[task, method, seed]
                if record.flops is not None:
                    rows[method] = {
                        key: flops_at(record.flops, record.exit_layers, record.base_depth / speed)
                        for key, speed in _speeds(results, found).items()
                    }
        table[task] = rows
    return table


def _speeds(results: Results, found: TestScores) -> dict[str, float]:
    """The study's speeds that were reached, or the one there is."""
    if found.point is not None:
        return {OWN: found.point.layer_speedup}
    keys = {speed_key(speed): speed for speed in results.spec.speeds}
    return {key: speed for key, speed in keys.items() if found.at[key] is not None}
