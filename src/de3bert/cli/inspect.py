"""`de3 inspect`: what a model folder is."""

from __future__ import annotations

from de3bert.cli.options import Json, Model, Quiet
from de3bert.cli.output import Voice, grid

EXAMPLE = "Example: de3 inspect runs/demo/model"

MEASURED = ("score", "layers_mean", "layer_speedup", "rows")
STALE = (
    "\n-: not measured since the prototypes were adapted. With labelled rows: de3 calibrate "
    "{model} --data FILE --target ... --name ..."
)


def run(model: Model, json: Json = False, quiet: Quiet = False) -> None:
    """Summarise a model: backbone, exits, sizes, operating points."""
    voice = Voice(json, quiet)
    from de3bert.runtime.load import load
    from de3bert.runtime.summary import summarise

    found = summarise(load(model))
    points = [
        [name, point["policy"], point["target"], *(seen.get(key) for key in MEASURED)]
        for name, point in found["points"].items()
        for seen in [point["measured"]]
    ]
    facts = [[key, str(value)] for key, value in found.items() if key != "points"]
    columns = ["point", "policy", "target", "score", "mean layers", "layer speed-up", "rows"]
    shown = grid(columns, points) if points else "no operating points yet (de3 calibrate)"
    stale = [STALE.format(model=model)] if any(row[3] is None for row in points) else []
    voice.result(found, grid(["", model], facts), "", shown, *stale)
