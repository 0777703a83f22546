"""How many cases each target gets, and what became of them.

`make test` runs few cases, the same ones each time. `make fuzz CASES=20000` asks for many by
DE3_FUZZ_CASES: so many over all targets, drawn by the seed it gives.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, settings

__all__ = ["LONG", "SHARES", "TALLY", "cases", "summary"]

BOUNDED = 800
ASKED = int(os.environ.get("DE3_FUZZ_CASES") or 0)
LONG = ASKED > 0
# Target -> its share of the cases. A dear one gets few.
SHARES = {
    "tables": 16,
    "bytes of data": 10,
    "parquet": 6,
    "packed data": 4,
    "standard input": 10,
    "sentences": 8,
    "model config": 12,
    "model record": 3,
    "model tokenizer": 6,
    "model weights": 6,
    "model files": 5,
    "backbones": 4,
    "manifests": 14,
    "bundle config": 10,
    "bundle tokenizer": 5,
    "graphs": 10,
    "bundle files": 5,
    "profiles": 6,
    "recipes": 10,
    "studies": 6,
    "study records": 1,
    "traces": 8,
    "analyses": 2,
    "lines": 16,
    "lines to verbs": 8,
    "options": 14,
    "laboratory options": 2,
    "checkpoints": 6,
    "resumed trainings": 1,
}
OUTCOMES = ("success", "De3Error", "UsageError")
TALLY: Counter[tuple[str, str]] = Counter()


def cases(target: str) -> Callable[[Any], Any]:
    """Settings of hypothesis for a target: as many examples as are its share of the budget."""
    share = SHARES[target] / sum(SHARES.values())
    return settings(
        max_examples=max(3, round((ASKED or BOUNDED) * share)),
        derandomize=not LONG,
        database=None,
        deadline=None,  # a case has a limit of its own
        print_blob=False,
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )


def summary(tally: Counter[tuple[str, str]]) -> list[str]:
    """A line for each target: how many cases ran and how they ended."""
    lines = [f"{'target':20}{'cases':>8}" + "".join(f"{name:>12}" for name in OUTCOMES)]
    targets = dict.fromkeys(name for name, _ in tally)
    for target in sorted(targets):
        counts = [tally[target, outcome] for outcome in OUTCOMES]
        lines.append(f"{target:20}{sum(counts):8}" + "".join(f"{count:12}" for count in counts))
    totals = [sum(tally[target, each] for target in targets) for each in OUTCOMES]
    return [*lines, f"{'all':20}{sum(totals):8}" + "".join(f"{count:12}" for count in totals)]
