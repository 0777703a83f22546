"""Recipes and traces."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.arena import Arena
from tests.fuzz.budget import cases
from tests.fuzz.mutate import as_toml, bites, bitten, edited, edits, place_stand, stands
from tests.fuzz.test_models import reheaded
from tests.fuzz.traces import changed_trace, trace_changes
from tests.fuzz.training import stopped_before_training

HOW = st.sampled_from(["edit", "edit", "edit", "bytes"])
HOW_TRACE = st.sampled_from(["signed", "signed", "signed", "header", "bytes", "stand"])


@cases("recipes")
@given(edits, bites, HOW, st.sampled_from(["train", "search"]))
def test_recipe(arena: Arena, edited_at, bitten_at, how, verb):
    case = arena.case("recipes")
    sound = {**arena.materials.recipe, "search": {"train.learning_rate": [1e-3, 1e-4]}}
    data = as_toml(edited(sound, edited_at)) if how == "edit" else bitten(as_toml(sound), bitten_at)
    recipe = case.write("recipe.toml", data, own=True)
    given_as = ["--recipe", recipe] if verb == "train" else [recipe]
    with stopped_before_training():
        case.verb(verb, *given_as, "--out", case.folder / "out", "--quiet")


TRACE_VERBS = ("curve", "curve by family", "calibrate", "place-exits")


@cases("traces")
@given(
    trace_changes, edits, bites, stands,
    HOW_TRACE,
    st.sampled_from(TRACE_VERBS),
)  # fmt: skip
def test_trace(arena: Arena, changes, edited_at, bitten_at, stand, how, verb):
    case = arena.case("traces")
    path = spoiled_trace(case, changes, edited_at, bitten_at, stand, how)
    case.verb(*trace_call(case, verb, path), "--quiet")


def spoiled_trace(case, changes, edited_at, bitten_at, stand, how: str) -> Path:
    """A trace that somebody has changed, in one of many ways."""
    materials = case.arena.materials
    sound, path = materials.trace, case.folder / "a.trace"
    shutil.copy(sound, path)
    if how == "signed":
        changed_trace(path, changes, edited_at)
    elif how == "header":
        case.write("a.trace", reheaded(sound.read_bytes(), edited_at))
    elif how == "bytes":
        case.write("a.trace", bitten(sound.read_bytes(), bitten_at))
    else:
        place_stand(path, stand, materials.rows, materials.rows)
    return path


def trace_call(case, verb: str, trace: Path) -> list[object]:
    materials = case.arena.materials
    if verb == "curve":
        return ["curve", trace]
    if verb == "curve by family":
        return ["curve", trace, "--family", "entropy x 2", "--family", "patience", "--json"]
    if verb == "calibrate":
        bundle = case.copy(materials.bundle, "bundle")
        return ["calibrate", bundle, "--trace", trace, "--target", "layers=1.5", "--name", "n"]
    return ["place-exits", materials.bundle, "--trace", trace]


@pytest.mark.parametrize("verb", TRACE_VERBS)
def test_what_is_spoiled_was_sound(arena: Arena, verb):
    case = arena.case("traces")
    path = Path(shutil.copy(arena.materials.trace, case.folder / "a.trace"))
    outcome = case.verb(*trace_call(case, verb, path), "--quiet")
    assert outcome.kind == "success", outcome.err


def test_the_recipe_was_sound(arena: Arena):
    case = arena.case("recipes")
    recipe = case.write("recipe.toml", as_toml(arena.materials.recipe))
    with stopped_before_training():
        outcome = case.verb("train", "--recipe", recipe, "--out", case.folder / "out", "--quiet")
    assert "would begin here" in outcome.err
