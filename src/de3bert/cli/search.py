"""`de3 search`: the grid of a recipe, the best model kept."""

from __future__ import annotations

from typing import Annotated

import typer

from de3bert.cli.options import Json, Out, Quiet
from de3bert.cli.output import Voice, grid

EXAMPLE = "Example: de3 search sst2 --out runs/sst2-search"


def run(
    recipe: Annotated[
        str, typer.Argument(help="A recipe with a [search] section.", show_default=False)
    ],
    out: Out,
    sampler: Annotated[
        str, typer.Option(help="grid (every combination) or optuna (as many as --trials).")
    ] = "grid",
    trials: Annotated[int | None, typer.Option(min=1, help="At most this many trainings.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="Override a setting of the recipe.")
    ] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Train every combination of a search section; keep the best by calibration score."""
    voice = Voice(json, quiet)
    from de3bert.training.recipe import resolve
    from de3bert.training.search import search

    found = search(
        resolve(recipe, {}, set_ or ()), out, sampler=sampler, trials=trials, progress=not quiet
    )
    names = list(found.trials[0].settings)
    ordered = sorted(found.trials, key=lambda trial: -trial.score)
    rows = [[*(trial.settings[name] for name in names), trial.score] for trial in ordered]
    voice.result(
        found.to_json(), grid([*names, "mean exit accuracy"], rows), f"\nbest model: {found.best}"
    )
