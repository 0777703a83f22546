"""`de3 trace`: one full-depth pass, every exit recorded in a file."""

from __future__ import annotations

from de3bert.cli.options import (
    Backend,
    BatchSize,
    Data,
    DataOptions,
    Json,
    Model,
    Out,
    Quiet,
    Threads,
)
from de3bert.cli.output import Voice
from de3bert.files import check_file_place

EXAMPLE = "Example: de3 trace runs/demo/model --data dev.csv --out dev.trace"


def run(
    model: Model,
    data: Data,
    out: Out,
    read: DataOptions,
    batch_size: BatchSize = 32,
    threads: Threads = None,
    backend: Backend = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Record logits and prototype distances of all exits for every row."""
    voice = Voice(json, quiet)
    check_file_place(out)
    from de3bert.runtime.evaluate import trace_table
    from de3bert.runtime.load import load, task_of_model

    task = task_of_model(model)
    table = task.read(data, need_labels=False, **read.named())
    classifier = load(model, threads=threads, backend=backend)
    recorded = trace_table(
        classifier, table, batch_size=batch_size, progress=voice.progress("tracing")
    )
    recorded.save(out)
    cut = recorded.info["truncated"]
    if cut:
        limit = classifier.info.max_length
        voice.warn(task.cut.format(count=f"{cut} of {len(table)}", limit=limit))
    document = {
        "trace": str(out),
        "rows": recorded.rows,
        "exits": list(recorded.exit_layers),
        "classes": list(recorded.label_names),
        "labelled": recorded.labels is not None,
        "distances": recorded.distances is not None,
        "truncated": cut,
    }
    voice.result(document, f"{out}: {recorded.rows} rows, {recorded.exits} exits")
