"""The command reference: every verb with its arguments and options, from the parser itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

import typer.main

__all__ = ["page"]

LABORATORY = "Comes with `de3lab`, the [laboratory](../../lab/README.md)."


def page() -> str:
    """The page in Markdown."""
    from de3bert.cli.main import app

    program = typer.main.get_command(app)
    parts = [
        "# Commands",
        "Made from the program's own `--help`. Results go to standard output, notes and progress "
        "to standard error; `--json` prints one JSON document. Exit codes: 0 done, 1 could not be "
        "done, 2 the request was wrong, 130 interrupted.",
        "```text\nde3 [--version] [--limit NAME=VALUE] VERB ...\n```",
    ]
    for name, command in sorted(program.commands.items()):
        parts += verb(f"de3 {name}", command, "##")
    return "\n\n".join(parts) + "\n"


def verb(name: str, command: Any, level: str) -> Iterator[str]:
    """The section of a verb, and those of the verbs within it."""
    yield f"{level} {name}"
    yield _prose(command.help or "")
    inner = getattr(command, "commands", None)
    if inner:
        yield LABORATORY
        for each, part in sorted(inner.items()):
            yield from verb(f"{name} {each}", part, level + "#")
        return
    if _module(command).startswith("de3lab"):
        yield LABORATORY
    arguments = [each for each in command.params if each.param_type_name == "argument"]
    options = [each for each in command.params if each.param_type_name == "option"]
    yield "```text\n" + " ".join([name, *map(_placeholder, arguments), "[OPTIONS]"]) + "\n```"
    if rows := [_row(each, each.name.upper()) for each in arguments]:
        yield "\n".join(["| argument | |", "|---|---|", *rows])
    if rows := [_row(each, ", ".join(each.opts)) for each in options if each.name != "help"]:
        yield "\n".join(["| option | |", "|---|---|", *rows])
    if command.epilog:
        label, _, line = command.epilog.partition(": ")
        yield f"{label}:"
        yield f"```text\n{line}\n```"


def _placeholder(argument: Any) -> str:
    name = argument.name.upper()
    return name if argument.required else f"[{name}]"


def _module(command: Any) -> str:
    return str(getattr(command.callback, "__module__", ""))


def _row(parameter: Any, names: str) -> str:
    said = _prose(getattr(parameter, "help", None) or "")
    notes = []
    if parameter.required and parameter.param_type_name == "option":
        notes.append("required")
    if choices := _choices(parameter):
        notes.append(" or ".join(f"`{each}`" for each in choices))
    default = parameter.default
    if default not in (None, False, True, "", (), []) and not callable(default):
        notes.append(f"default `{default}`")
    more = f" ({', '.join(notes)})" if notes else ""
    return f"| `{names}` | {said}{more} |".replace("\n", " ")


def _choices(parameter: Any) -> tuple[Any, ...]:
    """What a closed option may be: the values of its `Literal`."""
    annotation = getattr(getattr(parameter, "type_descriptor", None), "annotation", None)
    return get_args(annotation) if get_origin(annotation) is Literal else ()


def _prose(text: str) -> str:
    """Help text as Markdown: no markup of the terminal, nothing that Markdown would read."""
    text = re.sub(r"[ \t]*\n[ \t]*", "\n", text.strip())
    return text.replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")
