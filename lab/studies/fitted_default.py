"""Which training comes before the fit by default: a rule on calibration rows, from stored records.

    python studies/fitted_default.py --results results/fitted

The rule, stated before the numbers: of `full+fitted`, `joint-entropy+fitted` and `mixed+fitted` the
one with the highest calibration score, as a mean over the speeds 2x, 3x and 4x, then over all tasks
and seeds for which all three are there. Within 0.2 points of the highest the first in this order is
taken: plain training is what people have already, and its encoder serves without exits as well.
Test rows have no say; their scores stand beside. One task decides nothing: the rule is applied when
at least three have all three trainings.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np

from de3bert.files import write_text
from de3lab.documents import RunRecord
from de3lab.tabular import markdown_table

ORDER = ("full+fitted", "joint-entropy+fitted", "mixed+fitted")
SPEEDS, MARGIN, FEWEST = ("2", "3", "4"), 0.002, 3


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=Path("results/fitted"))
    given = parser.parse_args()
    runs = read(given.results / "runs")
    shared = sorted({key for key in runs if all(method in runs[key] for method in ORDER)})
    text = page(runs, decided(runs, shared))
    write_text(given.results / "README.md", text)
    print(text)


def decided(
    runs: dict[tuple[str, int], dict[str, dict[str, Any]]], shared: list[tuple[str, int]]
) -> list[str]:
    """What the rule says, in lines; it says nothing before all three are there once."""
    tasks = len({task for task, _ in shared})
    if tasks < FEWEST:
        return [
            f"{tasks} task{'s' * (tasks != 1)} so far, so the rule has not been applied: until "
            "then the default is **full+fitted**, the first in the order.\n"
        ]
    means = {
        method: float(np.mean([runs[key][method]["calibration"] for key in shared]))
        for method in ORDER
    }
    best = max(means.values())
    chosen = next(method for method in ORDER if means[method] >= best - MARGIN)
    return [
        f"Over {', '.join(f'{task} (seed {seed})' for task, seed in shared)}:\n",
        *markdown_table(
            ("training and fit", "calibration score, mean of 2x, 3x, 4x"),
            [(method, f"{score:.4f}") for method, score in means.items()],
            right=False,
        ),
        f"\nChosen: **{chosen}**.\n",
    ]


def read(folder: Path) -> dict[tuple[str, int], dict[str, dict[str, Any]]]:
    """(task, seed) -> method -> mean calibration and test scores over the speeds."""
    found: dict[tuple[str, int], dict[str, dict[str, Any]]] = {}
    for path in sorted(folder.glob("*.json")):
        record = RunRecord.read(path)
        for name, seen in record.methods.items():
            test = next(iter(seen.tests.values()))
            chosen = [choice for s in SPEEDS if (choice := seen.choices.get(s)) is not None]
            scores = [at for s in SPEEDS if (at := test.at.get(s)) is not None]
            if len(chosen) == len(scores) == len(SPEEDS):
                found.setdefault((record.task, record.seed), {})[name] = {
                    "calibration": float(np.mean([each.calibration_score for each in chosen])),
                    "test": [each.score for each in scores],
                }
    return found


def page(runs: dict[tuple[str, int], dict[str, dict[str, Any]]], verdict: list[str]) -> str:
    lines = [
        "# Fitted exits\n",
        "`de3 compare studies/fitted.toml`, then `python studies/fitted_default.py`. A record per "
        "run in `runs/`, [table](table.md), a [page](index.html) to filter.\n",
        "## The default of `de3 train`\n",
        "\n".join((__doc__ or "").strip().splitlines()[4:]) + "\n",
        *verdict,
        "## Each run, test rows\n",
        "Scores at equal layer speed-up, family and lambda chosen on calibration rows.\n",
    ]
    rows = [
        (task, seed, method, *(f"{score:.4f}" for score in seen["test"]))
        for (task, seed), methods in sorted(runs.items())
        for method, seen in sorted(methods.items())
    ]
    columns = ("task", "seed", "method", "2x", "3x", "4x")
    return "\n".join([*lines, *markdown_table(columns, rows, right=False)]) + "\n"


if __name__ == "__main__":
    main()
