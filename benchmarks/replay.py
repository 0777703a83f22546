"""How long curves take on one core: 40,000 rows, 12 exits, 3 classes; each job under 3 seconds.

    python benchmarks/replay.py [--json] [--rows 40000]

Exit code 1 when a job is too slow.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[variable] = "1"  # before numpy is imported, or it has no effect

import numpy as np  # noqa: E402

from de3bert.exits import Policy, Trace, calibrate, curve, replay  # noqa: E402
from de3bert.exits.calibrate import LAMBDA_GRID  # noqa: E402

LIMIT_SECONDS = 3.0
EXITS, CLASSES = 12, 3


def make_trace(rows: int) -> Trace:
    """Exits that grow surer and better with depth."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, CLASSES, rows)
    truth = np.eye(CLASSES)[labels][:, None, :]
    gain = np.linspace(0.5, 5.0, EXITS)[None, :, None]
    logits = gain * (truth + 0.6 * rng.normal(size=(rows, EXITS, CLASSES)))
    distances = np.clip(1.2 - truth + 0.4 * rng.normal(size=(rows, EXITS - 1, CLASSES)), 0, 2)
    return Trace(
        logits=logits.astype(np.float32),
        distances=distances.astype(np.float32),
        labels=labels,
        tokens=np.full(rows, 32, dtype=np.int32),
        exit_layers=tuple(range(1, EXITS + 1)),
        label_names=tuple(str(k) for k in range(CLASSES)),
    )


def jobs(trace: Trace) -> dict[str, Callable[[], object]]:
    def each_lambda(metric: str) -> list[int]:
        return [len(curve(trace, f"edr(lambda={weight})", metric)) for weight in LAMBDA_GRID]

    return {
        "edr curves, 5 lambdas": lambda: each_lambda("accuracy"),
        "edr curves, 5 lambdas, macro_f1": lambda: each_lambda("macro_f1"),
        "entropy x 2 curve": lambda: curve(trace, "entropy x 2"),
        "patience curve": lambda: curve(trace, "patience"),
        "one replay": lambda: replay(trace, Policy.parse("edr(lambda=1.0) < 0.3")),
        "calibrate layers=2.0": lambda: calibrate(trace, "layers=2.0", name="half"),
    }


def measure(trace: Trace) -> list[dict[str, object]]:
    results: list[dict[str, object]] = []
    for name, job in jobs(trace).items():
        start = time.perf_counter()
        job()
        seconds = time.perf_counter() - start
        results.append({"job": name, "seconds": seconds, "ok": seconds < LIMIT_SECONDS})
    return results


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print the results as JSON")
    parser.add_argument("--rows", type=int, default=40_000)
    options = parser.parse_args()
    results = measure(make_trace(options.rows))
    if options.json:
        print(json.dumps({"rows": options.rows, "limit": LIMIT_SECONDS, "results": results}))
    else:
        for each in results:
            verdict = "PASS" if each["ok"] else "FAIL"
            print(f"{verdict}  {each['seconds']:7.3f} s  {each['job']}")
    return 0 if all(each["ok"] for each in results) else 1


if __name__ == "__main__":
    sys.exit(main())
