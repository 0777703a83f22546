"""The project's bars on time: each ratio beside its bar, PASS or MISS.

    python benchmarks/latency.py [--quick] [--rounds 7] [--work runs/latency]
                                 [--small-model FOLDER] [--out results/latency.json]

Two sizes, 12 layers each: `base` (768 wide) and `small` (384 wide). Weights are random and exit
layers imposed, since only the cost of layers and tests is measured; the test at every exit is the
real one, and always the whole of it. Rows have exact lengths, tokenising is left out on all sides.
Everybody runs in turn, in this process, on one pool of threads; a time is the median over rounds of
a whole set of rows. Models and graphs stay in the work folder and are used again.

Exit code 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import functools
import logging
import os
import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from de3bert.bench.measure import BATCH_SIZES
from de3bert.exits import Policy
from de3bert.files import write_json
from de3bert.machine import machine, versions
from de3lab.bench.bar import Bar
from de3lab.bench.course import Course, prepare
from de3lab.bench.fresh import first_prediction
from de3lab.bench.imposed import spread
from de3lab.bench.made_up import Shape
from de3lab.bench.rows import median_seconds, our_job, static_job

SHAPES = {"base": Shape(), "small": Shape(hidden=384, intermediate=1536, pooling="mean")}
STATICS = {"base": ("ort", "ort-fused", "hf"), "small": ("ort", "ort-fused")}
POINTS = {"fp32": ("2x", "3x"), "int8": ("3x",)}  # what the bars ask for, by precision
ROWS = {16: 24, 32: 20, 64: 12, 128: 10}  # tokens -> rows in a set; long rows take long
MIXED_ROWS = 96
NEVER = Policy.parse("edr(lambda=1.0) < 0.0")
DEPTH = 12

# Rows of a thousand that leave after each layer: a 12 x 384 model on SST-2 calibration rows, EDR
# calibrated to layers=2.0 and layers=3.0 (the model of studies/sst2_gte_small.py, seed 42).
EXITS = {
    "2x": {2: 10, 3: 28, 4: 48, 5: 349, 6: 317, 7: 89, 8: 62, 9: 67, 10: 12, 11: 2, 12: 16},
    "3x": {1: 135, 2: 148, 3: 124, 4: 115, 5: 229, 6: 189, 7: 42, 8: 7, 9: 6, 10: 3, 12: 2},
}
# Rows of a hundred that have so many tokens: the first 20,000 rows of SST-2's train split.
TOKENS = {
    3: 3, 4: 7, 5: 9, 6: 9, 7: 6, 8: 7, 9: 5, 10: 5, 11: 4, 12: 4, 13: 4, 14: 3, 15: 3, 16: 3,
    17: 2, 18: 3, 19: 2, 20: 2, 21: 1, 22: 2, 23: 1, 24: 2, 25: 1, 26: 1, 27: 1, 28: 1, 29: 1,
    30: 1, 31: 1, 33: 1, 34: 1, 36: 1, 39: 1, 43: 1, 49: 1,
}  # fmt: skip

# The bars, by size, by precision, by number of tokens; efficiency against one fused graph of all
# layers, the fastest that runs without exits.
EFFICIENCY = {"base": 0.92, "small": 0.85}
NOTHING_LEAVES = 1.06
EAGER = {"fp32": {16: 5.0, 32: 5.0}, "int8": {16: 10.0, 32: 8.0, 128: 6.0}}
THROUGHPUT = 2.6
FRESH_SECONDS = 3.0
FRESH_BYTES = (1.6, 150e6)  # times the bundle's bytes, and so many more


def main() -> int:
    options = arguments()
    quieten()
    rounds = options.rounds or (2 if options.quick else 7)
    start, load = time.perf_counter(), os.getloadavg()[0]
    if load > os.cpu_count() / 2:
        print(f"this machine is busy with other work (load {load:.1f})", file=sys.stderr)
    bars: list[Bar] = []
    medians: dict[str, dict[str, float]] = {}
    for size in SHAPES:
        course = course_of(size, options.work, options.small_model)
        found = size_bars(size, course, rounds, options.quick, medians)
        print("\n".join(map(str, found)), flush=True)
        bars += found
    seconds, met = time.perf_counter() - start, sum(bar.passed for bar in bars)
    print(f"{met} of {len(bars)} bars met, {seconds:.0f} s, {machine()}")
    if options.out:
        info = {"rounds": rounds, "quick": options.quick, "load": load, "seconds": seconds}
        write_json(options.out, document(bars, medians, info))
    return 0 if met == len(bars) else 1


def size_bars(
    size: str, course: Course, rounds: int, quick: bool, medians: dict[str, dict[str, float]]
) -> list[Bar]:
    """All bars of one size; the times behind them go to `medians`."""
    bars = fresh_bars(course.bundle) if size == "small" else []
    for length, count in ROWS.items():
        layers = {point: spread(EXITS[point], 8 if quick else count) for point in EXITS}
        times = medians[f"{size}, {length} tokens"] = one_by_one(course, length, layers, rounds)
        bars += batch_one_bars(size, length, layers, times)
    count = MIXED_ROWS // 2 if quick else MIXED_ROWS
    return [*bars, throughput_bar(size, course, count, rounds)]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few rows and rounds: only a proof")
    parser.add_argument("--rounds", type=int, help="how often each set of rows is timed")
    parser.add_argument("--work", type=Path, default=Path("runs/latency"), help="kept models")
    parser.add_argument("--small-model", type=Path, help="a trained model in place of `small`")
    parser.add_argument("--out", type=Path, help="write the results as JSON")
    return parser.parse_args()


def course_of(size: str, work: Path, small_model: Path | None) -> Course:
    given = small_model if size == "small" else None
    folder = work / (f"small-{given.resolve().name}" if given else size)
    model, int8 = given or SHAPES[size], size == "base"
    return prepare(
        folder, model, STATICS[size], int8=int8, note=lambda line: print(line, file=sys.stderr)
    )


def quieten() -> None:
    """No progress bars and no advice of the libraries between the results."""
    os.environ.update(HF_HUB_DISABLE_PROGRESS_BARS="1", TRANSFORMERS_VERBOSITY="error")
    logging.disable(logging.WARNING)


def one_by_one(
    course: Course, length: int, layers: dict[str, list[int]], rounds: int
) -> dict[str, float]:
    """Median seconds of a set of rows, each row alone, by contender."""
    rows = course.rows([length] * len(layers["2x"]))
    eager = any(length in bars for bars in EAGER.values())  # slow, so only where a bar asks
    statics = {name: each for name, each in course.statics.items() if eager or name != "hf"}
    jobs = {name: static_job(each, rows) for name, each in statics.items()}
    for precision, backend in course.ours.items():
        for point in POINTS[precision]:
            jobs[f"{precision} {point}"] = our_job(backend, rows, NEVER, layers[point])
    jobs["fp32 never"] = our_job(course.ours["fp32"], rows, NEVER)
    pools = {name: each.pool for name, each in statics.items()}
    return median_seconds(jobs, rounds, pools=pools)


def batch_one_bars(
    size: str, length: int, layers: dict[str, list[int]], times: dict[str, float]
) -> list[Bar]:
    """Bars on rows that come alone."""
    bars = []
    for point, leave_at in layers.items():
        speedup = DEPTH / float(np.mean(leave_at))
        plain, best = (times[name] / times[f"fp32 {point}"] for name in ("ort", "ort-fused"))
        name, remark = f"efficiency at {point}", f"against ort {plain / speedup:.3f}"
        bars.append(Bar(name, best / speedup, EFFICIENCY[size], remark=remark))
    if size == "base":
        plain, best = (times["fp32 never"] / times[name] for name in ("ort", "ort-fused"))
        remark = f"against ort {plain:.3f}"
        bars.append(Bar("nothing leaves, time / fused", best, NOTHING_LEAVES, False, remark))
        for precision in (each for each in EAGER if length in EAGER[each]):
            faster = times["hf"] / times[f"{precision} 3x"]
            bars.append(Bar(f"eager / {precision} at 3x", faster, EAGER[precision][length]))
    return [Bar(**{**vars(bar), "name": f"{size}, {length:3d} tokens: {bar.name}"}) for bar in bars]


def throughput_bar(size: str, course: Course, count: int, rounds: int) -> Bar:
    """Mixed lengths at 3x, each side at the batch size that suits it best."""
    rows, leave_at = course.rows(spread(TOKENS, count, seed=1)), spread(EXITS["3x"], count)
    ort, ours = course.statics["ort"], course.ours["fp32"]
    makers = {
        "ort": lambda part, size: static_job(ort, rows[part], size),
        "ours": lambda part, size: our_job(ours, rows[part], NEVER, leave_at[part], size),
    }
    jobs, sizes = {}, {}
    for name, make in makers.items():
        half = functools.partial(make, slice(None, None, 2))
        probe = median_seconds({str(size): half(size) for size in BATCH_SIZES}, 1)
        sizes[name] = int(min(probe, key=probe.__getitem__))
        jobs[name] = make(slice(None), sizes[name])
    times = median_seconds(jobs, rounds)
    rates = [f"{name} {count / times[name]:.0f} rows/s in {sizes[name]}s" for name in jobs]
    name, faster = f"{size}, mixed: throughput / ort at 3x", times["ort"] / times["ours"]
    return Bar(name, faster, THROUGHPUT, remark=", ".join(rates))


def fresh_bars(bundle: Path) -> list[Bar]:
    """Load and first prediction in a new interpreter, its own start included."""
    best, size = first_prediction(bundle), sum(path.stat().st_size for path in bundle.iterdir())
    allowed = (FRESH_BYTES[0] * size + FRESH_BYTES[1]) / 1e6
    memory = f"at its peak {best.peak / 1e6:.0f}, bundle {size / 1e6:.0f}"
    alone = f"without the interpreter {best.seconds:.2f}"
    return [
        Bar("small: first prediction, seconds", best.process, FRESH_SECONDS, False, alone),
        Bar("small: resident memory, MB", best.resident / 1e6, allowed, False, memory),
        Bar("small: torch imported", float(best.torch), 0.0, False),
    ]


def document(
    bars: list[Bar], medians: dict[str, dict[str, float]], info: dict[str, object]
) -> dict[str, object]:
    return {
        "schema": 1,
        "benchmark": "latency bars",
        "command": " ".join(["python", *sys.argv]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "versions": versions(),
        "threads": len(os.sched_getaffinity(0)),
        **info,
        "exits": EXITS,
        "tokens": TOKENS,
        "bars": [{**asdict(bar), "passed": bar.passed} for bar in bars],
        "median_seconds": medians,
    }


if __name__ == "__main__":
    sys.exit(main())
