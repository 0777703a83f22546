"""Recipes, studies with their records, and traces."""

from __future__ import annotations

import json
import shutil
import tomllib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from .arena import Arena
from .budget import cases
from .mutate import as_json, as_toml, bites, bitten, edited, edits, place_stand, stands
from .test_models import reheaded
from .traces import changed_trace, trace_changes
from .training import stopped_before_training

HOW = st.sampled_from(["edit", "edit", "edit", "bytes"])


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


@cases("studies")
@given(edits, bites, HOW, st.booleans())
def test_study(arena: Arena, edited_at, bitten_at, how, report_only):
    case = arena.case("studies")
    sound = tomllib.loads((arena.materials.study / "study.toml").read_text())
    data = as_toml(edited(sound, edited_at)) if how == "edit" else bitten(as_toml(sound), bitten_at)
    study = case.write("study.toml", data, own=True)
    options = ["--report-only"] if report_only else []
    with stopped_before_training():
        case.verb("compare", study, "--out", "report", "--runs", "runs", "--quiet", *options)


@cases("study records")
@given(edits, bites, stands, st.sampled_from(["edit", "edit", "bytes", "stand"]), st.booleans())
def test_records(arena: Arena, edited_at, bitten_at, stand, how, kept):
    """Records that a report finds: those of the runs, or those that lie with the report."""
    case = arena.case("study records")
    place = Path(shutil.copytree(arena.materials.study, case.folder / "study"))
    record = next(place.glob("report/runs/*.json" if kept else "runs/*/run.json"))
    sound = record.read_bytes()
    if not kept:
        shutil.rmtree(place / "report")
    if how == "stand":
        place_stand(record, stand, arena.materials.rows, place / "study.toml")
    else:
        changed = as_json(edited(json.loads(sound), edited_at))
        record.write_bytes(changed if how == "edit" else bitten(sound, bitten_at))
    case.verb(
        "compare", place / "study.toml", "--out", place / "report", "--runs", place / "runs",
        "--report-only", "--quiet",
    )  # fmt: skip


TRACE_VERBS = ("curve", "curve by family", "calibrate", "place-exits", "exit-layers", "strategies",
               "indicator")  # fmt: skip
# A figure takes longer than all else.
OFTEN = (*TRACE_VERBS[:4] * 3, *TRACE_VERBS[4:])


@cases("traces")
@given(
    trace_changes, edits, bites, stands,
    st.sampled_from(["signed", "signed", "signed", "header", "bytes", "stand"]),
    st.sampled_from(OFTEN),
)  # fmt: skip
def test_trace(arena: Arena, changes, edited_at, bitten_at, stand, how, verb):
    case = arena.case("traces")
    sound, path = arena.materials.trace, case.folder / "a.trace"
    shutil.copy(sound, path)
    if how == "signed":
        changed_trace(path, changes, edited_at)
    elif how == "header":
        case.write("a.trace", reheaded(sound.read_bytes(), edited_at))
    elif how == "bytes":
        case.write("a.trace", bitten(sound.read_bytes(), bitten_at))
    else:
        place_stand(path, stand, case.arena.materials.rows, arena.materials.rows)
    case.verb(*trace_call(case, verb, path), "--quiet")


def trace_call(case, verb: str, trace: Path) -> list[object]:
    materials = case.arena.materials
    if verb == "curve":
        return ["curve", trace]
    if verb == "curve by family":
        return ["curve", trace, "--family", "entropy x 2", "--family", "patience", "--json"]
    if verb == "calibrate":
        bundle = case.copy(materials.bundle, "bundle")
        return ["calibrate", bundle, "--trace", trace, "--target", "layers=1.5", "--name", "n"]
    if verb == "place-exits":
        return ["place-exits", materials.bundle, "--trace", trace]
    return ["analyze", verb, trace, "--out", case.folder / "out"]


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


def test_the_study_was_sound(arena: Arena):
    case = arena.case("study records")
    place = Path(shutil.copytree(arena.materials.study, case.folder / "study"))
    outcome = case.verb(
        "compare", place / "study.toml", "--out", place / "report", "--runs", place / "runs",
        "--report-only", "--quiet",
    )  # fmt: skip
    assert outcome.kind == "success", outcome.err
