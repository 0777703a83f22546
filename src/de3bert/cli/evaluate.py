"""`de3 evaluate`: scores at an operating point, with real stopping."""

from __future__ import annotations

from typing import TYPE_CHECKING

from de3bert.cli.options import (
    Backend,
    BatchSize,
    Data,
    DataOptions,
    Json,
    Metric,
    Model,
    Point,
    PolicyLine,
    Quiet,
    Threads,
)
from de3bert.cli.output import Voice, grid, ratio_text

if TYPE_CHECKING:
    from de3bert.runtime.evaluate import Evaluation

EXAMPLE = "Example: de3 evaluate runs/mine --data test.csv --point 2x"


def run(
    model: Model,
    data: Data,
    read: DataOptions,
    point: Point = None,
    policy: PolicyLine = None,
    metric: Metric = None,
    batch_size: BatchSize = 32,
    threads: Threads = None,
    backend: Backend = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Score a model on labelled rows; rows really stop at their exits."""
    voice = Voice(json, quiet)
    from de3bert.runtime.evaluate import check_request, evaluate
    from de3bert.runtime.load import load, task_of_model

    task = task_of_model(model)
    table = task.read(data, **read.named())
    check_request(model, table, point, policy, metric)
    classifier = load(model, threads=threads, backend=backend)
    found = evaluate(
        classifier, table, point=point, policy=policy, metric=metric, batch_size=batch_size,
        progress=voice.progress("evaluating"),
    )  # fmt: skip
    if found.truncated:
        count = f"{found.truncated} of {len(table)}"
        voice.warn(task.cut.format(count=count, limit=classifier.info.max_length))
    low, high = found.score_interval
    summary = [
        ["policy", found.policy],
        [found.metric, f"{found.score:.4f} (95 % interval {low:.4f} to {high:.4f})"],
        *([name, f"{value:.4f}"] for name, value in found.scores.items() if name != found.metric),
        ["mean layers", f"{found.layers_mean:.2f} of {classifier.depth}"],
        *_sentence_lines(found),
        ["layer speed-up", ratio_text(found.layer_speedup, found.layer_speedup_interval)],
        *_target_lines(found),
        *_token_lines(found),
        ["rows", f"{found.rows} in {found.seconds:.1f} s"],
        ["exits", "  ".join(f"{m}:{n}" for m, n in found.exit_histogram.items())],
    ]
    if found.off_target:
        voice.warn(_off_target(found))
    classes = [list(row.values()) for row in found.per_class]
    voice.result(
        found.to_json(),
        grid(["", found.point or "policy"], summary),
        "",
        grid(list(found.per_class[0]), classes),
    )


def _target_lines(found: Evaluation) -> list[list[str]]:
    """What the point was calibrated for."""
    if found.target is None:
        return []
    wanted = found.wanted_layer_speedup
    return [["wanted", found.target if wanted is None else f"{wanted:.2f} ({found.target})"]]


def _off_target(found: Evaluation) -> str:
    """These rows are easier or harder than those that the threshold was chosen on."""
    seen = ratio_text(found.layer_speedup, found.layer_speedup_interval)
    return (
        f"the point {found.point} was calibrated for a layer speed-up of "
        f"{found.wanted_layer_speedup:.2f} and has {seen} on these rows. Calibrate on rows like "
        "these, or with --unlabelled texts from where it is used"
    )


def _sentence_lines(found: Evaluation) -> list[list[str]]:
    """Where rows are words: those above are layers of a mean piece of one."""
    if found.sentence_layers_mean is None:
        return []
    mean = f"{found.sentence_layers_mean:.2f}, {found.sentences} sentences"
    return [["mean layers per sentence", mean]]


def _token_lines(found: Evaluation) -> list[list[str]]:
    """Where single tokens stop; not to be compared with layers of whole texts."""
    if found.token_layers_mean is None or found.token_layer_speedup is None:
        return []
    mean, ratio = found.token_layers_mean, found.token_layer_speedup
    return [
        ["token layers", f"{mean:.2f} per token, {ratio:.2f} times fewer (not a ratio of times)"]
    ]
