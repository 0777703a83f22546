"""`de3 methods`: what can be trained and compared."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated, Any

import typer

from de3bert.cli.options import Json, Quiet
from de3bert.cli.output import Voice, grid

EXAMPLE = "Example: de3 methods de3"
GROUPS = ("ours", "baseline", "early exit", "reference", "distillation", "tokens")
SIZE = "12 layers, 768 wide, 2 classes"  # de3bert.model.standard_size.STANDARD
JUDGES = {
    "mean": "mean accuracy of the exits",
    "last": "accuracy of the last exit",
    "loss": "loss on calibration rows",
}
COLUMNS = ["method", "heads", "prototypes", "router", "phases", "leaves by", "extra parameters"]


def run(
    name: Annotated[str | None, typer.Argument(help="One method, in detail.")] = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """List the methods by group, or one with its parts, losses and options."""
    voice = Voice(json, quiet)
    from de3bert.methods import METHODS

    if name is not None:
        found = _described(name)
        voice.result(found, *_details(found))
        return
    every = [_described(each) for each in METHODS]
    shown: list[Any] = []
    for group in sorted({each["group"] for each in every}, key=_place):
        rows = [_row(each) for each in every if each["group"] == group]
        shown += [grid(COLUMNS, rows, title=group), ""]
    shown.append(f"extra parameters: what exits add to {SIZE}; `de3 methods NAME` shows more")
    voice.result(every, *shown)


def _described(name: str) -> dict[str, Any]:
    """What a method declares, and its extra parameters where torch is installed."""
    from de3bert.methods.describe import describe

    counted = None
    if find_spec("torch") and find_spec("transformers"):
        from de3bert.model.standard_size import exit_parameters

        counted = exit_parameters(name)
    return {**describe(name), "exit_parameters": counted}


def _place(group: str) -> int:
    return GROUPS.index(group) if group in GROUPS else len(GROUPS)


def _row(found: dict[str, Any]) -> list[Any]:
    phases = f"as {found['training']}" if found["training"] else _phases(found)
    return [found["name"], found["heads"], _or_dash(found["prototypes"]),
            _or_dash(found["router"]), phases, ", ".join(found["families"]),
            _total(found["exit_parameters"])]  # fmt: skip


def _phases(found: dict[str, Any]) -> str:
    names = ", ".join(phase["name"] for phase in found["phases"])
    names += ", fit of the exits" if found["exits"] != "trained" else ""
    return f"{names} (teacher: {found['teacher']})" if found["teacher"] else names


def _or_dash(word: str) -> str:
    return "-" if word == "none" else word


def _total(parts: dict[str, int] | None) -> str:
    return "-" if parts is None else f"{sum(parts.values()):,}"


def _details(found: dict[str, Any]) -> list[Any]:
    lines = [
        f"{found['name']}: {found['summary']}",
        f"{found['citation']}; group: {found['group']}",
    ]
    for part in ("pooling", "heads", "prototypes", "router", "depth", "cascade", "token_exits"):
        lines.append(f"  {part.replace('_', ' ')}: {found[part]}")
    if reads := found["reads"]:
        by_mean = f"{reads['mean']} (sentence embedders)"
        lines.append(f"  exits read: {reads['shared_pooler']} (BERT); {by_mean}")
    lines.append(f"  leaves by: {', '.join(found['families'])}")
    if found["lambdas"]:
        lines.append(f"  lambda: calibration chooses among {found['lambdas']}")
    if found["exits"] != "trained":
        targets = "labels" if found["exits"] == "fitted" else "the final exit's answers"
        lines.append(f"  exits: fitted after the training, to {targets}")
    for part in ("training", "teacher", "finish"):
        if found[part]:
            lines.append(f"  {part}: {found[part]}")
    for phase in found["phases"]:
        losses = " + ".join(f"{each['weight']} {each['loss']}" for each in phase["losses"])
        trains = phase["trains"]
        learns = trains if isinstance(trains, str) else ", ".join(trains)
        kept = JUDGES[phase["judge"]] if phase["judge"] else "nothing, the last one is kept"
        lines.append(f"  phase {phase['name']}: {losses}; learns: {learns}; best epoch by: {kept}")
    for part, count in (found["exit_parameters"] or {}).items():
        lines.append(f"  extra parameters, {part}: {count:,}")
    if not found["options"]:
        return [*lines, "  no options"]
    options = [[key, value] for key, value in found["options"].items()]
    return [*lines, "", grid(["option", "default"], options)]
