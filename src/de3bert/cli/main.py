"""The command `de3`: verbs in their own files, errors turned into messages and exit codes."""

from __future__ import annotations

import gc
import os
import sys
from typing import Annotated, Any

import typer

from de3bert import __version__
from de3bert.cli import (
    adapt,
    attach,
    bench,
    calibrate,
    curve,
    demo,
    evaluate,
    explain,
    export,
    inspect,
    methods,
    place_exits,
    predict,
    profile,
    search,
    trace,
    train,
)
from de3bert.cli.output import show_error
from de3bert.cli.verbs import add_installed, add_verb
from de3bert.errors import De3Error, UsageError
from de3bert.files import disk_is_full
from de3bert.limits import LIMITS, set_limit

__all__ = ["app", "main"]

INTERRUPTED = 130
EXTRAS = {
    "matplotlib": "plot",
    "onnx": "export",
    "onnx_ir": "export",
    "onnxscript": "export",
    "openvino": "openvino",
    "optuna": "hpo",
    "sklearn": "adapt",
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
    demo, attach, train, search, trace, curve, calibrate, evaluate, predict, explain, inspect,
    export, profile, place_exits, bench, methods, adapt,
)  # fmt: skip
for verb in VERBS:
    add_verb(app, verb.__name__.rsplit(".", 1)[-1].replace("_", "-"), verb)
add_installed(app)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"de3bert {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
    limits: Annotated[
        list[str] | None,
        typer.Option(
            "--limit",
            help="Raise a limit on what is read, such as unpacked=8GB; limits: "
            f"{', '.join(LIMITS)}.",
        ),
    ] = None,
) -> None:
    """Early-exit text classifiers: train, see the curve, pick a point, predict."""
    for line in limits or ():
        set_limit(line)


def main() -> None:
    """Runs a verb. Exit code 2: a wrong request; 1: it could not be done; 130: interrupted."""
    # Importing torch makes half a million objects that stay. At its usual threshold the collector
    # walks over them again and again, which is a tenth of the time of that import.
    gc.set_threshold(50_000, 20, 20)
    try:
        _run()
    except De3Error as error:
        show_error(error)
        raise SystemExit(error.exit_code) from None
    except (KeyboardInterrupt, SystemExit) as stop:
        # The parser turns Ctrl-C within a verb into an exit with this code.
        if isinstance(stop, SystemExit) and stop.code != INTERRUPTED:
            raise
        print("\nstopped; run the same command again to continue", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None
    except BrokenPipeError:
        # The reader of a pipe went away (`de3 predict ... | head`): not an error of ours.
        _drop_output()
        raise SystemExit(1) from None
    except OSError as error:
        _show_refusal(error)
        raise SystemExit(1) from None
    except ModuleNotFoundError as error:
        if str(error.name).startswith(("de3bert", "de3lab")):
            raise  # a fault of ours, not a missing extra
        extra = EXTRAS.get(str(error.name).partition(".")[0], "train")
        show_error(f"this verb needs {error.name}. Install it with: pip install 'de3bert[{extra}]'")
        raise SystemExit(1) from None


def _show_refusal(error: OSError) -> None:
    """What the operating system did not allow: a full disk, a name that is too long ..."""
    if disk_is_full(error):
        _drop_output()
        show_error(
            "the output could not be written: the disk is full (or a size limit was reached). "
            "What was written before is incomplete; free some space and run again."
        )
        return
    where = f": {error.filename}" if error.filename else ""
    show_error(f"{error.strerror or str(error) or type(error).__name__}{where}")


def _run() -> None:
    """The verb, and what it said brought to its reader while errors still can be told."""
    try:
        code = app(standalone_mode=False)
    except Exception as error:
        if not hasattr(error, "format_message"):
            raise
        raise _refusal(error) from None
    sys.stdout.flush()
    if isinstance(code, int) and code:
        raise SystemExit(code)


def _refusal(error: Any) -> Exception | SystemExit:
    """What the parser did not understand, in the words of this program.

    Its own box would print what was typed as it came, with whatever steers a terminal in it.
    """
    path = getattr(error.ctx, "command_path", "de3") if hasattr(error, "ctx") else "de3"
    if type(error).__name__ == "NoArgsIsHelpError":
        print(error.format_message(), file=sys.stderr)
        return SystemExit(error.exit_code)
    return UsageError(f"{error.format_message()}\nTry: {path} --help")


def _drop_output() -> None:
    """Lets go of what cannot be written, or the interpreter would try once more at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    main()
