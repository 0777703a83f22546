"""`de3 inspect`: what a model folder is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from de3bert.cli.options import Backend, Json, Model, Quiet
from de3bert.cli.output import Voice, brief, grid
from de3bert.limits import shown_size
from de3bert.methods.poolings import pooling_words
from de3bert.printable import cut_list

EXAMPLE = "Example: de3 inspect runs/demo/model"

MEASURED = ("score", "layers_mean", "layer_speedup", "rows")
STALE = (
    "\n-: not measured since the prototypes were adapted. With labelled rows: de3 calibrate "
    "{model} --data FILE --target ... --name ..."
)
DEEPEST = 2  # a fact of a fact; what lies deeper is for --json
# Values that need an explanation.
MEANINGS: dict[str, Callable[[Any], str]] = {
    "bytes": shown_size,
    "exit_parameter_share": lambda share: f"{share:.2%} of the backbone's",
    "numbered_labels": lambda known: (
        "0, 1, 2 ... are the classes in this order" if known else "not used as classes"
    ),
    "pooling": lambda name: name if (words := pooling_words(name)) == name else f"{name}: {words}",
    "text_pairs": lambda pairs: (
        "not known" if pairs is None else "pairs of texts" if pairs else "single texts"
    ),
}
NAMES = {"numbered_labels": "numbers as labels", "text_pairs": "a row is", "bytes": "size"}


def run(model: Model, backend: Backend = None, json: Json = False, quiet: Quiet = False) -> None:
    """Summarise a model: backbone, exits, sizes, operating points."""
    voice = Voice(json, quiet)
    from de3bert.runtime.load import load
    from de3bert.runtime.summary import summarise

    found = summarise(load(model, backend=backend))
    points = [
        [name, brief(point["policy"]), point["target"], *(seen.get(key) for key in MEASURED)]
        for name, point in found["points"].items()
        for seen in [point["measured"]]
    ]
    facts = list(_rows({key: value for key, value in found.items() if key != "points"}))
    columns = ["point", "policy", "target", "score", "mean layers", "layer speed-up", "rows"]
    shown = grid(columns, points) if points else "no operating points yet (de3 calibrate)"
    stale = [STALE.format(model=model)] if any(row[3] is None for row in points) else []
    said = [*_promises(found["points"]), *_warnings(found["points"])]
    voice.result(found, grid(["", model], facts), "", shown, *stale, *said)


def _promises(points: Mapping[str, Any]) -> list[str]:
    """What is promised of points."""
    return [
        f"\n{name}: {point['measured']['guarantee'].get('promise')}"
        for name, point in points.items()
        if "guarantee" in point["measured"]
    ]


def _warnings(points: Mapping[str, Any]) -> list[str]:
    """What was said when the points were calibrated."""
    return [
        f"\n{name}: {warning}"
        for name, point in points.items()
        for warning in point["measured"].get("warnings", [])
    ]


def _rows(facts: Mapping[str, Any], before: str = "", depth: int = 1) -> Iterator[list[str]]:
    """One line for each fact; the facts of a fact follow under its name."""
    for key, value in facts.items():
        name = before + NAMES.get(key, key.replace("_", " "))
        if isinstance(value, Mapping) and any(isinstance(v, Mapping) for v in value.values()):
            if depth < DEEPEST:
                yield from _rows(value, f"{name}, ", depth + 1)
            else:
                yield [name, f"{len(value)} entries (see --json)"]
        else:
            yield [name, MEANINGS[key](value) if key in MEANINGS else _shown(value)]


def _shown(value: Any) -> str:
    if isinstance(value, Mapping):
        return cut_list(f"{key} {_shown(inner)}" for key, inner in value.items()) or "none"
    if isinstance(value, list | tuple):
        return cut_list(map(_shown, value)) or "none"
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
