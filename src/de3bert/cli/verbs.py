"""How verbs come to the command: those of this package, and those that other distributions bring.

A verb is a module with a function `run` and an `EXAMPLE`, or with a typer `app` of verbs of its own
and a `HELP`. Other distributions name theirs under the entry-point group `de3bert.verbs`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Annotated, Any, get_type_hints

import typer

from de3bert.errors import De3Error, UsageError
from de3bert.plugins import import_plugin
from de3bert.printable import printable

__all__ = ["GROUP", "add_installed", "add_verb"]

GROUP = "de3bert.verbs"
# Verbs of the laboratory: who asks for one is told where it comes from.
LABORATORY = {
    "compare": "Compare methods over tasks and seeds (comes with de3lab).",
    "analyze": "Answer one of the paper's questions for a model (comes with de3lab).",
    "paper": "The paper, table by table and figure by figure (comes with de3lab).",
    "queue": "Trainings of several studies, one after the other (comes with de3lab).",
}
KEYWORD = inspect.Parameter.KEYWORD_ONLY
ANYTHING = {"allow_extra_args": True, "ignore_unknown_options": True}

Imports = Annotated[
    list[str] | None,
    typer.Option(
        "--import",
        metavar="MODULE",
        help="Import a module first that registers parts of your own; repeat.",
        show_default=False,
    ),
]


def add_verb(app: typer.Typer, name: str, verb: Any) -> None:
    """Puts a verb, or a group of verbs, under a name."""
    if hasattr(verb, "run"):
        app.command(name, epilog=verb.EXAMPLE)(parsed(verb.run))
        return
    for command in verb.app.registered_commands:
        command.callback = parsed(command.callback)
    app.add_typer(verb.app, name=name, help=verb.HELP)


def parsed(run: Callable[..., None]) -> Callable[..., None]:
    """A verb as the parser takes it.

    It has the option --import, which is done before anything else, and where `run` has a group of
    options (a dataclass, as `Columns`), an option for each of its fields.
    """
    # The parser reads annotations, which are still text here, in the module of the function.
    known = get_type_hints(run, include_extras=True)
    groups = {
        name: kind for name, kind in known.items() if isinstance(kind, type) and is_dataclass(kind)
    }
    parameters = [
        parameter
        for name, own in inspect.signature(run).parameters.items()
        for parameter in _flat(own.replace(annotation=known[name], kind=KEYWORD))
    ]
    parameters.append(inspect.Parameter("imports", KEYWORD, default=None, annotation=Imports))

    @functools.wraps(run)
    def verb(imports: list[str] | None = None, **options: Any) -> None:
        for module in imports or ():
            import_plugin(module)
        for name, group in groups.items():
            options[name] = group(**{each.name: options.pop(each.name) for each in fields(group)})
        run(**options)

    verb.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    verb.__annotations__ = {each.name: each.annotation for each in parameters}
    return verb


def _flat(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    """The parameter itself, or those of the group that it is."""
    if not is_dataclass(parameter.annotation):
        yield parameter
        return
    known = get_type_hints(parameter.annotation, include_extras=True)
    for each in fields(parameter.annotation):
        yield inspect.Parameter(
            each.name, KEYWORD, default=each.default, annotation=known[each.name]
        )


def add_installed(app: typer.Typer) -> None:
    """Adds the verbs of installed distributions, and a word on those that are not installed."""
    taken = {command.name for command in app.registered_commands}
    found = {point.name: point for point in entry_points(group=GROUP) if point.name not in taken}
    for name, point in sorted(found.items()):
        try:
            add_verb(app, name, point.load())
        except Exception as error:  # whatever foreign code may raise; the other verbs still run
            _add_refusal(app, name, "Cannot be loaded.", _unloadable(point, error))
    for name, summary in LABORATORY.items():
        if name not in found:
            _add_refusal(app, name, summary, _absent(name))


def _add_refusal(app: typer.Typer, name: str, summary: str, error: De3Error) -> None:
    """A verb that only says why it is not there, whatever it is called with."""

    def run() -> None:
        raise error

    app.command(name, help=summary, context_settings=ANYTHING, add_help_option=False)(run)


def _absent(name: str) -> De3Error:
    return UsageError(
        f"`de3 {name}` is a verb of the laboratory, a separate distribution. Install it with: pip "
        "install de3lab"
    )


def _unloadable(point: EntryPoint, error: Exception) -> De3Error:
    distribution = point.dist.name if point.dist else "an unknown distribution"
    return De3Error(
        f"`de3 {printable(point.name)}` comes from {printable(distribution)}, and its module "
        f"{printable(point.value)} could not be imported: "
        f"{printable(f'{type(error).__name__}: {error}')[:300]}. Install that distribution again, "
        "or remove it."
    )
