"""One row, layer by layer: what each exit says, how sure it seems, and whether it is right."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from de3bert.data.table import Table
from de3bert.errors import UsageError
from de3bert.exits import Trace, signals
from de3lab.analysis.analysis import ANALYSES, Analysis
from de3lab.analysis.arguments import one_lambda
from de3lab.analysis.misled import Contest, contest, signals_of, surest_mistake
from de3lab.analysis.subject import Subject, data_hash
from de3lab.figures.sample import draw_sample
from de3lab.tabular import Grid

__all__ = ["measure_sample"]

LONGEST_TEXT = 300  # letters of it in a table
MISLED, MENDED = "misled by entropy", "wrong and sure"  # what a row was searched for


def measure_sample(subjects: Sequence[Subject], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Every exit on the row asked for, or on the one that shows the paper's point best.

    That is the row which, at most layer speed-ups, entropy lets go with a wrong label and EDR, at
    the same speed-up, later and with the right one; where there is none, the row that an exit is
    surest of and wrong about before a later one is right. Finding it takes labels.
    """
    (subject,), wanted = subjects, settings["row"]
    weight = one_lambda("sample", settings, subject)
    searched, split, misled = None, None, None
    if wanted is None:
        found = contest(subject.with_distances, weight)
        searched, row = _search(subject, found)
        split, misled = found.at(row), int(found.misled.any(axis=0).sum())
        trace, rows = subject.trace.take(np.array([row])), subject.trace.rows
    else:
        row = wanted - 1
        trace, rows = _trace_of(subject, row)
    return {
        "label": subject.label,
        "row": row + 1,
        "rows": rows,
        "searched": searched,
        "misled": misled,
        **_text(subject, row),
        "truth": None if trace.labels is None else trace.label_names[int(trace.labels[0])],
        "lambda": weight,
        "split": split,
        "layers": _layers(trace, weight),
    }


def _search(subject: Subject, found: Contest) -> tuple[str, int]:
    """By which point a row was found, and the row."""
    row = found.best()
    if row is not None:
        return MISLED, row
    row = surest_mistake(subject.trace)
    if row is None:
        raise UsageError(
            f"No row of {subject.path} has an exit that is wrong and a later one that is right, so "
            "there is none to show. Name a row with --row."
        )
    return MENDED, row


def _trace_of(subject: Subject, row: int) -> tuple[Trace, int]:
    """The trace of one row, from 0, and how many there are; a model is run on that row alone."""
    rows = subject.trace.rows if subject.is_trace else len(subject.rows)
    if not 0 <= row < rows:
        raise UsageError(f"There is no row {row + 1}: {subject.path} has rows 1 to {rows}.")
    if subject.is_trace:
        return subject.trace.take(np.array([row])), rows
    from de3bert.runtime.evaluate import trace_table

    return trace_table(subject.classifier, subject.rows.take([row])), rows


def _text(subject: Subject, row: int) -> dict[str, str | None]:
    """The text of the row, where there is one; the rows of a trace must be those of the file."""
    table = subject.table
    if table is None:
        return {"text": None, "pair": None}
    if subject.is_trace:
        _check_same_data(subject, table)
    return {"text": table.texts[row], "pair": None if table.pairs is None else table.pairs[row]}


def _check_same_data(subject: Subject, table: Table) -> None:
    known = data_hash(subject.trace)
    if len(table) != subject.trace.rows or (known and table.sha256 and known != table.sha256):
        raise UsageError(
            f"{subject.path} was not made from {table.source} (--data): it has "
            f"{subject.trace.rows} rows of other data than the {len(table)} there. Give the file "
            "that it was made from, or leave --data out."
        )


def _layers(trace: Trace, weight: float) -> list[dict[str, Any]]:
    """One entry per exit of a trace of one row; the final exit has no prototypes."""
    _, ratio, fused = (values[0] for values in signals_of(trace, weight))
    logits = trace.logits[0].astype(np.float64)
    chances, local = signals.max_probability(logits), signals.entropy(logits)
    return [
        {
            "layer": layer,
            "prediction": trace.label_names[int(trace.predictions[0, index])],
            "probability": float(chances[index]),
            "entropy": float(local[index]),
            "distance_ratio": float(ratio[index]) if index < len(ratio) else None,
            "edr": float(fused[index]) if index < len(fused) else None,
            "right": None if trace.labels is None else bool(trace.correct[0, index]),
        }
        for index, layer in enumerate(trace.exit_layers)
    ]


def _tables(numbers: Mapping[str, Any]) -> list[Grid]:
    columns = ("layer", "prediction", "probability", "entropy", "distance ratio", "EDR", "right")
    rows = tuple(
        (
            str(each["layer"]),
            each["prediction"],
            *(
                None if each[name] is None else f"{each[name]:.3f}"
                for name in ("probability", "entropy", "distance_ratio", "edr")
            ),
            each["right"],
        )
        for each in numbers["layers"]
    )
    return [Grid("One row, layer by layer", columns, rows, _note(numbers))]


def _note(numbers: Mapping[str, Any]) -> str:
    said = [f"Row {numbers['row']} of {numbers['rows']}, lambda = {numbers['lambda']:g}."]
    if numbers["truth"] is not None:
        said.append(f"Its class is {numbers['truth']}.")
    if numbers["searched"] == MENDED:
        said.append(
            "It was searched for: at no layer speed-up does entropy let a row go too early with a "
            "wrong label and EDR later with the right one, so this is the row of which an exit is "
            "surest, by entropy, while it is wrong and a later one right."
        )
    if (split := numbers["split"]) is not None:
        said.append(
            f"It was searched for: of the {numbers['misled']} rows that entropy, at some layer "
            "speed-up, lets go too early with a wrong label and EDR later with the right one, it "
            f"is the one at most speed-ups ({split['speeds']} of {split['of_speeds']} tried). At "
            f"{split['layer_speedup']:.2f}x entropy (threshold {split['entropy_tau']:.3f}) lets it "
            f"go at layer {split['entropy_layer']}, EDR (threshold {split['edr_tau']:.3f}) at "
            f"layer {split['edr_layer']}."
        )
    whole = " / ".join(text for text in (numbers["text"], numbers["pair"]) if text)
    if whole:
        said.append(f'Text: "{textwrap.shorten(whole, LONGEST_TEXT, placeholder=" ...")}"')
    return " ".join(said)


ANALYSES.add(
    "sample",
    Analysis(
        name="sample",
        title="One text, layer by layer",
        summary="what each exit says of one text, how sure it seems, and whether it is right",
        paper="Fig. 1",
        measure=measure_sample,
        tables=_tables,
        draw=draw_sample,
        settings={"row": None, "lambdas": None},
        seeds=False,
    ),
)
