"""`de3 demo`: the main job on packaged real data, offline."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from de3bert.cli.options import Json, Quiet
from de3bert.cli.output import Voice, grid

EXAMPLE = "Example: de3 demo --out runs/demo"
COLUMNS = ["point", "lambda", "threshold", "accuracy", "95 % interval", "mean layers",
           "layer speed-up", "p50 ms", "p95 ms", "latency ratio"]  # fmt: skip


def run(
    out: Annotated[Path, typer.Option(help="Where everything is written.")] = Path("runs/demo"),
    quick: Annotated[
        bool, typer.Option("--quick", help="One-minute smoke version; its scores are meaningless.")
    ] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over.")] = False,
    data_only: Annotated[
        bool,
        typer.Option(
            "--data-only", help="Only write its reviews: train.csv, dev.csv and test.csv in --out."
        ),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Fine-tune a film-review classifier, attach exits, calibrate, evaluate, explain: minutes."""
    voice = Voice(json, quiet)
    if data_only:
        _write_data(voice, out)
        return
    from de3bert.demo.run import Settings, run_demo

    settings = Settings.quick() if quick else Settings.usual()
    result = run_demo(out, settings, fresh=fresh, progress=not quiet, say=voice.note)
    rows = [
        [
            point.point,
            "-" if point.weight is None else f"{point.weight:g}",
            "-" if point.threshold is None else f"{point.threshold:.4f}",
            f"{point.accuracy:.3f}",
            "{:.3f} to {:.3f}".format(*point.interval),
            f"{point.layers_mean:.2f}",
            f"{point.layer_speedup:.2f}",
            f"{point.latency_p50:.1f}",
            f"{point.latency_p95:.1f}",
            f"{point.latency_ratio:.2f}",
        ]
        for point in result.points
    ]
    title = f"Chosen on {result.rows['calibration']} calibration rows, measured on "
    title += f"{result.rows['test']} test rows; latency of the bundle per text at batch 1, "
    title += "tokenising included"
    model, de3 = out / "model", _command()
    voice.result(
        result.to_json(),
        grid(COLUMNS, rows, title=title),
        *(f"\n{each.point}: {each.promise}" for each in result.points if each.promise),
        "",
        *(f"{example}\n" for example in result.examples),
        f"written to {out}: plain/ (the classifier), model/ (the same with exits), bundle/ (runs "
        "without torch), calibration.trace, test.trace, curve.png, exits.png, result.json",
        "\nTry next:",
        f'  echo "a joy from start to finish" | {de3} predict {out / "bundle"} --point 2x',
        f'  {de3} explain {model} "not quite the disaster it could have been" --point 3x',
        f"  {de3} curve {out / 'test.trace'} --family patience --family entropy --plot mine.png",
    )


def _write_data(voice: Voice, out: Path) -> None:
    from de3bert.data.packaged import SPLIT_ROWS, write_reviews

    written = [str(path) for path in write_reviews(out)]
    rows = dict(zip(written, SPLIT_ROWS.values(), strict=True))
    voice.result(
        {"files": rows, "columns": ["text", "label"]},
        *(f"written to {path}: {count} film reviews" for path, count in rows.items()),
        "\nTry next:",
        f"  {_command()} train --data {written[0]} --backbone demo --out {out / 'model'}",
    )


def _command() -> str:
    """How to call this program from here: by name where it is on the path, else by its location."""
    if shutil.which("de3"):
        return "de3"
    beside = Path(sys.executable).with_name("de3")
    if not beside.exists():
        return f"{sys.executable} -m de3bert.cli.main"
    here = Path.cwd()
    return str(beside.relative_to(here) if beside.is_relative_to(here) else beside)
