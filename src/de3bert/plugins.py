"""Parts from outside: distributions that bring some, and modules that a user names.

A distribution declares a module under the entry-point group `de3bert.plugins`; importing it
registers its parts. It is imported when a registry is asked for a name that is not built in, or
for all names. `de3 VERB --import MODULE` does the same for a module that is not installed as a
plugin. Nothing is ever imported because a file asks for it.
"""

from __future__ import annotations

import importlib
import os
import sys
import threading
from collections.abc import Iterable

from de3bert.errors import De3Error, UsageError
from de3bert.printable import printable

__all__ = [
    "GROUP",
    "check_imported",
    "failures",
    "import_plugin",
    "load_installed",
    "not_imported",
]

GROUP = "de3bert.plugins"

_lock = threading.RLock()
_failures: dict[str, str] = {}
_looked = False


def failures() -> dict[str, str]:
    """Module -> reason of the installed plugins that could not be imported."""
    return dict(_failures)


def load_installed() -> None:
    """Imports what is installed under `de3bert.plugins`, once in a process.

    One that fails is left out: parts of others must not be lost with it. The error for a name
    that is then unknown mentions it (`failures`).
    """
    global _looked
    if _looked or _importing_ourselves():
        return
    with _lock:
        if _looked:
            return
        _looked = True  # before the imports: they look into registries themselves
        from importlib.metadata import entry_points  # takes longer than the rest of this package

        for point in sorted(entry_points(group=GROUP), key=lambda each: each.value):
            try:
                point.load()
            except Exception as error:  # whatever foreign code may raise
                _failures[point.module] = _reason(error)


def _importing_ourselves() -> bool:
    """Whether a module of this package is half imported: a plugin could not use it yet.

    Whoever looks into a registry next, when it is whole, brings the plugins in.
    """
    ours = [module for name, module in sys.modules.items() if name.split(".")[0] == "de3bert"]
    return any(getattr(module.__spec__, "_initializing", False) for module in ours)


def import_plugin(module: str) -> None:
    """Imports a module that a user names, from the current folder too; UsageError if it fails."""
    if os.getcwd() not in sys.path:
        sys.path.append(os.getcwd())
    try:
        importlib.import_module(module)
    except Exception as error:  # whatever foreign code may raise
        raise UsageError(
            f'The module "{printable(module)}" could not be imported: {_reason(error)}. --import '
            "takes a module that registers parts: installed, or a file of the current folder "
            "(without .py)."
        ) from error


def check_imported(modules: Iterable[str], what: str) -> None:
    """De3Error when parts are missing that a model was made with. It is not for us to import them:
    a model's config must not be able to run code.
    """
    if hint := not_imported(modules):
        raise De3Error(f"{what} cannot be built. {hint}")


def not_imported(modules: Iterable[str]) -> str:
    """What to do about the modules of these that are not there; empty when all are."""
    if modules:
        load_installed()
    missing = [module for module in modules if module not in sys.modules]
    if not missing:
        return ""
    listed, first = printable(", ".join(missing))[:200], printable(missing[0])[:100]
    return (
        f"It was made with parts of the module {listed}, which is not imported. Install the "
        f"distribution that brings it, or name it: --import {first} on the command line, "
        f"`import {first}` in Python, if you trust it."
    )


def _reason(error: Exception) -> str:
    return printable(f"{type(error).__name__}: {error}")[:300]
