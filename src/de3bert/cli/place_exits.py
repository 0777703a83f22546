"""`de3 place-exits`: which exits pay for themselves on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from de3bert.cli.options import Json, Metric, Model, Quiet, whole_numbers
from de3bert.cli.output import Voice, grid

EXAMPLE = (
    "Example: de3 place-exits runs/demo/bundle --trace runs/demo/calibration.trace --target drop=1%"
)


def run(
    model: Model,
    trace: Annotated[
        Path, typer.Option(help="A labelled trace of calibration rows.", show_default=False)
    ],
    target: Annotated[
        str, typer.Option(help="accuracy=0.9, or drop=1% below the full model.")
    ] = "drop=1%",
    family: Annotated[
        str | None, typer.Option(help="edr, entropy, patience ...; by default those of the trace.")
    ] = None,
    keep: Annotated[str | None, typer.Option(help="Exits that are always kept: 4,8.")] = None,
    metric: Metric = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Propose the exits that give the least expected time at the wanted accuracy."""
    voice = Voice(json, quiet)
    from de3bert.runtime.profile import place_for

    kept = whole_numbers(keep, "--keep") if keep else []
    found = place_for(model, trace, target, family=family, keep=kept, metric=metric)
    seen = found.point.measured
    rows = [
        ["exits", ", ".join(map(str, found.exit_layers))],
        ["policy", str(found.point.policy)],
        [seen["metric"], f"{seen['score']:.4f} (full depth {seen['full_score']:.4f})"],
        ["layer speed-up", f"{seen['layer_speedup']:.2f}"],
        ["predicted ms per text", f"{found.predicted_ms:.3f}"],
        ["with all exits", "-" if found.all_exits_ms is None else f"{found.all_exits_ms:.3f}"],
        ["full depth, no exit tested", f"{found.full_ms:.3f}"],
    ]
    internal = ",".join(map(str, found.exit_layers))
    voice.result(
        found.to_json(),
        grid(["placement", target], rows),
        f"\nmake it with: de3 export MODEL --out BUNDLE --exits {internal} --data FILE",
    )
