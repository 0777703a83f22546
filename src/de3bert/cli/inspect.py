"""`de3 inspect`: what a model folder is."""

from __future__ import annotations

from de3bert.cli.options import Json, Model, Quiet
from de3bert.cli.output import Voice, grid

EXAMPLE = "Example: de3 inspect runs/demo/model"


def run(model: Model, json: Json = False, quiet: Quiet = False) -> None:
    """Summarise a model: backbone, exits, sizes, operating points."""
    voice = Voice(json, quiet)
    from de3bert.runtime.load import load
    from de3bert.runtime.summary import summarise

    found = summarise(load(model))
    points = [
        [name, point["policy"], point["target"], seen["score"], seen["layers_mean"],
         seen["layer_speedup"], seen["rows"]]
        for name, point in found["points"].items()
        for seen in [point["measured"]]
    ]  # fmt: skip
    facts = [[key, str(value)] for key, value in found.items() if key != "points"]
    columns = ["point", "policy", "target", "score", "mean layers", "layer speed-up", "rows"]
    shown = grid(columns, points) if points else "no operating points yet (de3 calibrate)"
    voice.result(found, grid(["", model], facts), "", shown)
