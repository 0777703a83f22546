"""Requests to verbs, most of each right, as somebody might type them."""

from __future__ import annotations

from functools import cache
from typing import Any

import typer.main
from hypothesis import strategies as st
from tests.fuzz.arena import Case
from tests.fuzz.mutate import as_toml
from tests.fuzz.values import VALUES, argument

__all__ = ["FITTING", "placed", "requests"]

# What is asked for so many times takes so long: the asker's own wish.
COUNTS = ("--rounds", "--texts", "--trials")
PLACES = ("model", "bundle", "words", "backbone", "rows", "trace", "out", "missing", "folder",
          "recipe")  # fmt: skip
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
    "recipe": ("@recipe", "sst2"),
    "text": ("a great film",),
    "name": ("new", "de3"),
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
def verbs(names: tuple[str, ...]) -> dict[str, list[Any]]:
    """Verb -> its parameters, as the parser has them; without --import, which runs code."""
    from de3bert.cli.main import app

    root: Any = typer.main.get_command(app)
    return {
        path: [parameter for parameter in each.params if parameter.name != "imports"]
        for name in names
        for path, each in _leaves(name, root.commands[name])
    }


def _leaves(name: str, command: Any) -> list[tuple[str, Any]]:
    inner = getattr(command, "commands", None)
    if not inner:
        return [(name, command)]
    return [(f"{name} {key}", each) for key, each in inner.items()]


def placed(case: Case, word: str) -> str:
    """The word with the path in it that a value such as @model stands for."""
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
    return str(folder)


@st.composite
def requests(draw: st.DrawFn, names: tuple[str, ...]) -> list[str]:
    """A verb with what it needs, most of it right, and with some options that it may have."""
    known = verbs(names)
    verb = draw(st.sampled_from(sorted(known)))
    given_some, words = known[verb], verb.split()
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
