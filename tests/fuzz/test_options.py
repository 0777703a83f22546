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
from .mutate import as_toml
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
PLACES = ("model", "bundle", "words", "backbone", "rows", "trace", "out", "missing", "folder",
          "study", "recipe")  # fmt: skip
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


# Parameter -> values that fit it, so that a request gets beyond its first mistake.
FITTING: dict[str, tuple[str, ...]] = {
    "model": ("@bundle", "@bundle", "@model", "@words"),
    "bundle": ("@bundle",),
    "source": ("@rows", "-"),
    "traces": ("@trace",),
    "trace": ("@trace",),
    "subjects": ("@trace", "@model", "de3=@trace"),
    "study": ("@study",),
    "recipe": ("@recipe", "sst2"),
    "text": ("a great film",),
    "name": ("new", "exit-layers", "strategies", "de3", "shift", "costs"),
    "data": ("@rows",),
    "out": ("@out",),
    "target": ("layers=1.5", "drop=5%", "full", "speedup=1.1", "agree=0.7", "layers=1.2 keep"),
    "checkpoint": ("@model", "@model", "@backbone"),
    "backbone": ("@backbone",),
    "point": ("fast", "full"),
    "policy": ("entropy < 0.3", "layer(2)"),
    "metric": ("accuracy", "f1"),
    "family": ("edr", "entropy", "patience"),
    "batch_size": ("3",),
    "threads": ("1",),
    "exits": ("2,4",),
    "keep": ("2",),
    "tau": ("0.3",),
    "layer": ("2",),
    "speed": ("1.5",),
    "set_": ("train.epochs=1",),
    "profile": ("@bundle",),
    "plot": ("curve.svg",),
}


@cache
def verbs() -> dict[str, list[Any]]:
    """Verb -> its parameters, as the parser has them."""
    from de3bert.cli.main import app

    root: Any = typer.main.get_command(app)
    return {
        path: each.params
        for name, command in root.commands.items()
        for path, each in _leaves(name, command)
    }


def _leaves(name: str, command: Any) -> list[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if not inner:
        return [(name, command)]
    return [(f"{name} {key}", each) for key, each in inner.items()]


def _placed(case: Case, word: str) -> str:
    before, mark, name = word.rpartition("@")
    return before + place(case, name) if mark and name in PLACES else word


def place(case: Case, name: str) -> str:
    """The path that a value such as @model stands for: a copy, since some options write there."""
    known = {"out": case.folder / "out", "missing": case.folder / "no" / "such",
             "folder": case.folder / "tmp"}  # fmt: skip
    if name in known:
        return str(known[name])
    if name == "recipe":
        return str(case.write("recipe.toml", as_toml(case.arena.materials.recipe)))
    source = getattr(case.arena.materials, name)
    if source.is_file():
        return str(case.write(source.name, source.read_bytes()))
    made = case.folder / name
    folder = made if made.exists() else case.copy(source, name)
    return str(folder / "study.toml" if name == "study" else folder)


@st.composite
def requests(draw: st.DrawFn) -> list[str]:
    """A verb with what it needs, most of it right, and with some options that it may have."""
    verb = draw(st.sampled_from(sorted(verbs())))
    given_some, words = verbs()[verb], verb.split()
    wanted = draw(st.lists(st.sampled_from(given_some), max_size=3, unique_by=id))
    for parameter in given_some:
        forgotten = draw(st.integers(0, 19)) == 0
        if parameter in wanted or (parameter.required and not forgotten):
            words += draw(_said(parameter))
    if draw(st.integers(0, 9)) == 0:
        words += draw(st.lists(values, min_size=1, max_size=2))
    return words


def _said(parameter: Any) -> st.SearchStrategy[list[str]]:
    """A parameter as it is typed."""
    option = parameter.opts[0]
    if getattr(parameter, "is_flag", False):
        return st.just([option])
    fitting = FITTING.get(parameter.name, ("1", "x"))
    wild = st.sampled_from(["0", "1", "3", "x"]) if option in COUNTS else values
    value = st.integers(0, 3).flatmap(lambda n: wild if n == 0 else st.sampled_from(fitting))
    return value.map(lambda text: [option, text] if option.startswith("--") else [text])


@cases("options")
@given(requests())
def test_options(arena: Arena, words):
    case = arena.case("options")
    arguments = [_placed(case, word) for word in words]
    with ExitStack() as stack:
        stack.enter_context(stopped_before_training())
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        for name in WORK:
            patch.setattr(name, _stop)
        case.verb(*arguments, stdin=b"a great film\n")
