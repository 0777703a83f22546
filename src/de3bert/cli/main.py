"""The command `de3`: verbs in their own files, errors turned into messages and exit codes."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from de3bert import __version__
from de3bert.cli import (
    adapt,
    analyze,
    bench,
    calibrate,
    compare,
    curve,
    demo,
    evaluate,
    explain,
    export,
    inspect,
    methods,
    paper,
    place_exits,
    predict,
    profile,
    search,
    trace,
    train,
)
from de3bert.errors import De3Error

__all__ = ["app", "main"]

INTERRUPTED = 130
EXTRAS = {
    "matplotlib": "plot",
    "onnx": "export",
    "onnx_ir": "export",
    "onnxscript": "export",
    "openvino": "openvino",
    "optuna": "hpo",
    "sklearn": "analyze",
}

app = typer.Typer(
    name="de3",
    help="Early-exit text classifiers: train, see the curve, pick a point, predict.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
VERBS = (
    demo, train, search, trace, curve, calibrate, evaluate, predict, explain, inspect, export,
    profile, place_exits, bench, methods, compare, analyze, adapt,
)  # fmt: skip
for verb in VERBS:
    name = verb.__name__.rsplit(".", 1)[-1]
    app.command(name.replace("_", "-"), epilog=verb.EXAMPLE)(verb.run)
app.add_typer(paper.app, name="paper", help=paper.HELP)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"de3bert {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Early-exit text classifiers: train, see the curve, pick a point, predict."""


def main() -> None:
    """Runs a verb. Exit code 2: a wrong request; 1: it could not be done; 130: interrupted."""
    try:
        app()
    except De3Error as error:
        print(f"error: {error}", file=sys.stderr)
        raise SystemExit(error.exit_code) from None
    except (KeyboardInterrupt, SystemExit) as stop:
        # The parser turns Ctrl-C within a verb into an exit with this code.
        if isinstance(stop, SystemExit) and stop.code != INTERRUPTED:
            raise
        print("\nstopped; run the same command again to go on", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError:
        # The reader of a pipe went away (`de3 predict ... | head`): not an error of ours.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(1) from None
    except ModuleNotFoundError as error:
        if str(error.name).startswith("de3bert"):
            raise  # a fault of this package, not a missing extra
        extra = EXTRAS.get(str(error.name).partition(".")[0], "train")
        print(
            f"error: this verb needs {error.name}. Install it with: pip install 'de3bert[{extra}]'",
            file=sys.stderr,
        )
        raise SystemExit(1) from None


if __name__ == "__main__":
    main()
