"""Every option of every verb, with values that fit and values that do not."""

from __future__ import annotations

from contextlib import ExitStack
from functools import cache
from typing import Any

import pytest
import typer.main
from hypothesis import given
from hypothesis import strategies as st

from .arena import Arena, Case
from .budget import cases
from .training import _stop, stopped_before_training
from .values import VALUES, argument

# Work that a right request would begin: minutes of it, so it ends where it would start.
WORK = (
    "de3bert.export.bundle.export_model",
    "de3bert.bench.run.run_bench",
    "de3bert.demo.run.run_demo",
    "de3bert.runtime.profile._timed",
    "de3bert.analysis.speed.time_policies",
)
# What is asked for so many times takes so long: the asker's own wish.
COUNTS = ("--rounds", "--texts", "--trials")
PLACES = ("model", "bundle", "words", "backbone", "rows", "trace", "out", "missing", "folder")
NUMBERS = ("0", "1", "2", "3", "-1", "16", "9999", "10000000000", "1e3", "nan", "0.5", "inf")
WORDS = ("accuracy", "f1", "span_f1", "entropy", "edr", "fast", "full", "text", "label", "de3",
         "train", "cosine", "layers=1.5", "entropy < 0.3", "2,4", "hf,ort", "pos", "grid",
         "exit-layers", "strategies", "*/*/42", "train.epochs=1")  # fmt: skip
values = st.one_of(
    st.sampled_from([f"@{name}" for name in PLACES]),
    st.sampled_from(NUMBERS),
    st.sampled_from(WORDS),
    st.sampled_from([argument(value) for value in VALUES.values()]),
)


@cache
def options() -> dict[str, dict[str, bool]]:
    """Verb -> its options, and whether each takes a value."""
    from de3bert.cli.main import app

    root: Any = typer.main.get_command(app)
    found = {}
    for name, command in root.commands.items():
        for path, each in _leaves(name, command):
            found[path] = {
                opt: not getattr(parameter, "is_flag", False)
                for parameter in each.params
                for opt in parameter.opts
                if opt.startswith("--")
            }
    return found


def _leaves(name: str, command: Any) -> list[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if not inner:
        return [(name, command)]
    return [(f"{name} {key}", each) for key, each in inner.items()]


def place(case: Case, name: str) -> str:
    """The path that a value such as @model stands for."""
    if name in ("model", "bundle", "words"):
        made = case.folder / name
        return str(made if made.exists() else case.copy(getattr(case.arena.materials, name), name))
    known = {"out": case.folder / "out", "missing": case.folder / "no" / "such",
             "folder": case.folder}  # fmt: skip
    return str(known.get(name) or getattr(case.arena.materials, name))


@st.composite
def requests(draw: st.DrawFn) -> list[str]:
    """A verb, what it is about, and some options."""
    verb = draw(st.sampled_from(sorted(options())))
    known = options()[verb]
    words = verb.split()
    words += draw(st.lists(st.one_of(st.sampled_from(["@bundle", "@model", "@trace", "@rows"]),
                                     values), max_size=2))  # fmt: skip
    for option in draw(st.lists(st.sampled_from(sorted(known)), max_size=4)):
        if not known[option]:
            words.append(option)
            continue
        value = draw(st.sampled_from(["0", "1", "3", "x"]) if option in COUNTS else values)
        words += [f"{option}={value}"] if "@" not in value else [option, value]
    for option in ("--out", "--data"):
        if option in known and option not in words and draw(st.booleans()):
            words += [option, "@out" if option == "--out" else "@rows"]
    if draw(st.integers(0, 9)) == 0:
        words += draw(st.lists(values, min_size=1, max_size=2))
    return words


@cases("options")
@given(requests())
def test_options(arena: Arena, words):
    case = arena.case("options")
    arguments = [place(case, word[1:]) if word[1:] in PLACES else word for word in words]
    with ExitStack() as stack:
        stack.enter_context(stopped_before_training())
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name in WORK:
            patch.setattr(name, _stop)
        case.verb(*arguments, stdin=b"a great film\n")
