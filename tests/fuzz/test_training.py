"""Checkpoints of a training that was stopped, after a stranger or a fault has been at them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.arena import Arena, Case
from tests.fuzz.budget import cases
from tests.fuzz.mutate import as_json, as_toml, bites, bitten, edited, edits, place_stand, stands
from tests.fuzz.training import stopped_before_training

FILES = ("trainer_state.json", "optimizer.pt", "scheduler.pt", "rng_state.pth",
         "model.safetensors", "training_args.bin", "config.json")  # fmt: skip
HOW = st.sampled_from(["edit", "edit", "bytes", "bytes", "stand"])
NAMES = st.sampled_from(["checkpoint-4", "checkpoint-x", "checkpoint-", "checkpoint-99999999999999",
                         "checkpoint--1", "checkpoint-4-4", "checkpoint-٣"])  # fmt: skip


def spoil(case: Case, checkpoint: Path, name: str, how: str, edited_at, bitten_at, stand) -> None:
    path = checkpoint / name
    sound = path.read_bytes() if path.is_file() else b"{}"
    if how == "stand":
        place_stand(path, stand, case.arena.materials.rows, case.folder / "recipe.toml")
    elif how == "edit" and name.endswith(".json"):
        path.write_bytes(as_json(edited(json.loads(sound), edited_at)))
    else:
        path.write_bytes(bitten(sound, bitten_at))


def stopped_copy(case: Case) -> Path:
    """The newest checkpoint of a training into `out` that can be gone on with."""
    source = case.arena.materials.stopped
    scratch = Path(shutil.copytree(source, case.folder / "out.training"))
    case.write("recipe.toml", as_toml(case.arena.materials.recipe))
    return max(scratch.glob("checkpoint-*"), key=lambda path: int(path.name.split("-")[1]))


@cases("checkpoints")
@given(st.sampled_from([*FILES[:1], *FILES]), NAMES, edits, bites, stands, HOW, st.booleans())
def test_checkpoints(arena: Arena, name, called, edited_at, bitten_at, stand, how, marker):
    """What lies there is looked through; no step is made."""
    from de3bert.training.output_folder import last_checkpoint

    case = arena.case("checkpoints")
    checkpoint = stopped_copy(case)
    spoil(case, checkpoint, name, how, edited_at, bitten_at, stand)
    scratch = checkpoint.parent
    checkpoint.rename(scratch / called)
    if marker:
        spoil(case, scratch, "fingerprint", "stand" if how == "stand" else "bytes", edited_at,
              bitten_at, stand)  # fmt: skip
        with stopped_before_training():
            case.verb("train", "--recipe", "recipe.toml", "--out", "out", "--quiet")
    else:
        case.call(lambda: last_checkpoint(scratch))


@cases("resumed trainings")
@given(st.sampled_from(FILES), edits, bites, stands, HOW)
def test_resumed(arena: Arena, name, edited_at, bitten_at, stand, how):
    case = arena.case("resumed trainings")
    spoil(case, stopped_copy(case), name, how, edited_at, bitten_at, stand)
    case.verb("train", "--recipe", "recipe.toml", "--out", "out", "--quiet")


def test_what_is_spoiled_was_sound(arena: Arena):
    case = arena.case("resumed trainings")
    stopped_copy(case)
    outcome = case.verb("train", "--recipe", "recipe.toml", "--out", "out", "--quiet")
    assert outcome.kind == "success", outcome.err
