"""Studies, the records that a report finds, and what analyses read: spoiled in many ways."""

from __future__ import annotations

import json
import shutil
import tomllib
from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.arena import Arena, Case
from tests.fuzz.asked import FITTING, placed, requests
from tests.fuzz.budget import cases
from tests.fuzz.mutate import as_json, as_toml, bites, bitten, edited, edits, place_stand, stands
from tests.fuzz.test_documents import HOW, HOW_TRACE, spoiled_trace
from tests.fuzz.test_models import model_with_spoiled_record
from tests.fuzz.traces import trace_changes
from tests.fuzz.training import _stop, stopped_before_training

VERBS = ("compare", "analyze", "paper")
ANALYSES = ("exit-layers", "strategies", "indicator")
FITTING.update(
    {
        "study": ("@study",),
        "subjects": ("@trace", "@model", "de3=@trace"),
        "name": ("exit-layers", "strategies", "shift", "costs"),
    }
)


@cases("studies")
@given(edits, bites, HOW, st.booleans())
def test_study(arena: Arena, study: Path, edited_at, bitten_at, how, report_only):
    case = arena.case("studies")
    sound = tomllib.loads((study / "study.toml").read_text())
    data = as_toml(edited(sound, edited_at)) if how == "edit" else bitten(as_toml(sound), bitten_at)
    spoiled = case.write("study.toml", data, own=True)
    options = ["--report-only"] if report_only else []
    with stopped_before_training():
        case.verb("compare", spoiled, "--out", "report", "--runs", "runs", "--quiet", *options)


@cases("study records")
@given(edits, bites, stands, st.sampled_from(["edit", "edit", "bytes", "stand"]), st.booleans())
def test_records(arena: Arena, study: Path, edited_at, bitten_at, stand, how, kept):
    """Records that a report finds: those of the runs, or those that lie with the report."""
    case = arena.case("study records")
    place = Path(shutil.copytree(study, case.folder / "study"))
    record = next(place.glob("report/runs/*.json" if kept else "runs/*/run.json"))
    sound = record.read_bytes()
    if not kept:
        shutil.rmtree(place / "report")
    if how == "stand":
        place_stand(record, stand, arena.materials.rows, place / "study.toml")
    else:
        changed = as_json(edited(json.loads(sound), edited_at))
        record.write_bytes(changed if how == "edit" else bitten(sound, bitten_at))
    report(case, place)


def report(case: Case, place: Path):
    return case.verb("compare", place / "study.toml", "--out", place / "report", "--runs",
                     place / "runs", "--report-only", "--quiet")  # fmt: skip


def test_the_study_was_sound(arena: Arena, study: Path):
    case = arena.case("study records")
    outcome = report(case, Path(shutil.copytree(study, case.folder / "study")))
    assert outcome.kind == "success", outcome.err


@pytest.mark.parametrize("key", ["flops", "exit_layers", "task", "key", "scores", "machine"])
def test_a_record_of_a_study_that_makes_no_sense(arena: Arena, study: Path, key):
    case = arena.case("found")
    place = Path(shutil.copytree(study, case.folder / "study"))
    record = next(place.glob("report/runs/*.json"))
    document = json.loads(record.read_text())
    document.pop(key, None)
    record.write_text(json.dumps(document))
    report(case, place)


@cases("analyses")
@given(trace_changes, edits, bites, stands, HOW_TRACE, st.sampled_from(ANALYSES))
def test_analysis_of_a_trace(arena: Arena, changes, edited_at, bitten_at, stand, how, name):
    case = arena.case("analyses")
    path = spoiled_trace(case, changes, edited_at, bitten_at, stand, how)
    case.verb("analyze", name, path, "--out", case.folder / "out", "--quiet")


@pytest.mark.parametrize("name", ANALYSES)
def test_what_is_spoiled_was_sound(arena: Arena, name):
    case = arena.case("analyses")
    path = Path(shutil.copy(arena.materials.trace, case.folder / "a.trace"))
    outcome = case.verb("analyze", name, path, "--out", case.folder / "out", "--quiet")
    assert outcome.kind == "success", outcome.err


@cases("study records")
@given(edits, bites, st.booleans())
def test_costs_of_a_model_with_a_spoiled_record(arena: Arena, edited_at, bitten_at, spoil):
    case = arena.case("study records")
    model = model_with_spoiled_record(case, edited_at, bitten_at if spoil else None)
    case.verb("analyze", "costs", model, "--out", "out", "--quiet")


@cases("laboratory options")
@given(requests(VERBS))
def test_options(arena: Arena, study: Path, words):
    case = arena.case("laboratory options")
    made = case.copy(study, "study") / "study.toml"
    arguments = [placed(case, word.replace("@study", str(made))) for word in words]
    with ExitStack() as stack:
        stack.enter_context(stopped_before_training())
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setattr("de3lab.analysis.speed.time_policies", _stop)
        case.verb(*arguments)
