"""Checkpoints that a disk or a kill has spoilt: an older one is taken, the result is the same."""

from __future__ import annotations

import errno
import logging
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.fixtures_trained import toy_recipe, toy_rows, write_csv
from tests.training.test_fit import furthest

from de3bert.errors import De3Error
from de3bert.training import checkpoints as checkpoints_module
from de3bert.training.callbacks import SaveEvery
from de3bert.training.fit import fit
from de3bert.training.output_folder import last_checkpoint, newest_checkpoint
from de3bert.training.recipe import Recipe, recipe_from
from de3bert.training.seal import SEAL, is_whole, seal

FILES = ("model.safetensors", "optimizer.pt", "rng_state.pth", "scheduler.pt", "trainer_state.json")


@pytest.fixture(scope="module")
def recipe(tiny_backbone, toy_data, tmp_path_factory) -> Recipe:
    made = toy_recipe(tiny_backbone, toy_data, epochs=3)
    rows = tmp_path_factory.mktemp("rows") / "s.csv"
    made["data"]["train"] = str(write_csv(rows, toy_rows(48, 5)))
    return recipe_from(made)


class StoppedError(Exception):
    """As a kill: nothing of the program runs after it."""


@pytest.fixture(scope="module")
def whole(recipe, tmp_path_factory) -> dict[str, torch.Tensor]:
    out = tmp_path_factory.mktemp("whole") / "m"
    fit(recipe, out, progress=False)
    return load_file(out / "model.safetensors")


@pytest.fixture(scope="module")
def left(recipe, tmp_path_factory) -> Path:
    """What a training leaves that ended at step 7 of 9: checkpoints of steps 3 and 6."""
    out = tmp_path_factory.mktemp("left") / "m"
    with pytest.MonkeyPatch.context() as patch:

        def stop(self, args, state, control, **kwargs):
            if state.global_step == 7:
                raise StoppedError

        patch.setattr(SaveEvery, "on_step_end", stop)
        with pytest.raises(StoppedError):
            fit(recipe_from(recipe.model_dump(), ["train.save_steps=1000"]), out, progress=False)
    return out.with_name("m.training")


@pytest.fixture
def out(left, tmp_path, monkeypatch) -> Path:
    shutil.copytree(left, tmp_path / "m.training")
    return tmp_path / "m"


@pytest.fixture
def resumed(monkeypatch) -> list[str | None]:
    """From where trainings went on."""
    found: list[str | None] = []
    usual = checkpoints_module.GuardedTrainer.train

    def watched(self, resume_from_checkpoint=None):
        found.append(resume_from_checkpoint and Path(resume_from_checkpoint).name)
        return usual(self, resume_from_checkpoint)

    monkeypatch.setattr(checkpoints_module.GuardedTrainer, "train", watched)
    return found


def same(recipe: Recipe) -> Recipe:
    return recipe_from(recipe.model_dump(), ["train.save_steps=1000"])


def flip(path: Path) -> None:
    """One bit in the middle."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


@pytest.mark.parametrize("spoil", [flip, cut, Path.unlink])
@pytest.mark.parametrize("name", [*FILES, SEAL])
def test_the_checkpoint_before_is_taken(recipe, whole, out, resumed, caplog, name, spoil):
    spoil(out.with_name("m.training") / "checkpoint-6" / name)
    with caplog.at_level(logging.WARNING):
        fit(same(recipe), out, progress=False)
    assert resumed == ["checkpoint-3"]
    assert "Incomplete in" in caplog.text
    assert "resumes from checkpoint-3" in caplog.text
    assert furthest(load_file(out / "model.safetensors"), whole) < 1e-6


def test_without_a_sound_one_it_begins_anew(recipe, whole, out, resumed, caplog):
    for step in (3, 6):
        flip(out.with_name("m.training") / f"checkpoint-{step}" / "model.safetensors")
    with caplog.at_level(logging.WARNING):
        fit(same(recipe), out, progress=False)
    assert resumed == [None]
    assert "disk error: checkpoint-3, checkpoint-6; the training" in caplog.text
    assert "resumes from the beginning" in caplog.text
    assert furthest(load_file(out / "model.safetensors"), whole) < 1e-6


def made(scratch: Path, step: int, best: int | None) -> Path:
    folder = scratch / f"checkpoint-{step}"
    folder.mkdir(parents=True)
    best_said = "null" if best is None else str(best)
    (folder / "trainer_state.json").write_text(f'{{"best_global_step": {best_said}}}')
    (folder / "model.safetensors").write_bytes(b"weights %d" % step)
    seal(folder)
    return folder


def test_one_whose_best_is_spoilt_is_not_taken(tmp_path):
    """At its end the training would load the best one: it could only end otherwise."""
    best, last = made(tmp_path, 5, 5), made(tmp_path, 10, 5)
    assert last_checkpoint(tmp_path) == last
    flip(best / "model.safetensors")
    assert last_checkpoint(tmp_path) is None
    assert not list(tmp_path.glob("checkpoint-*"))


def test_steps_are_compared_as_numbers_and_other_folders_left_alone(tmp_path):
    made(tmp_path, 9, None)
    last = made(tmp_path, 10, None)
    (tmp_path / "checkpoint-mine").mkdir()
    assert last_checkpoint(tmp_path) == last
    assert newest_checkpoint(tmp_path) == last
    assert (tmp_path / "checkpoint-mine").exists()


@pytest.mark.parametrize("state", ["[]", '{"best_global_step": "5"}', "[" * 5000])
def test_a_sealed_state_that_says_nothing(tmp_path, state):
    folder = made(tmp_path, 5, None)
    (folder / "trainer_state.json").write_text(state)
    seal(folder)
    assert last_checkpoint(tmp_path) in (None, folder)


def test_a_folder_that_was_moved_still_ends_with_its_best(recipe, whole, out, tmp_path, resumed):
    (tmp_path / "far").mkdir()
    out.with_name("m.training").rename(tmp_path / "far" / "m.training")
    fit(same(recipe), tmp_path / "far" / "m", progress=False)
    assert resumed == ["checkpoint-6"]
    assert furthest(load_file(tmp_path / "far" / "m" / "model.safetensors"), whole) < 1e-6


def test_the_old_one_goes_only_when_the_new_one_is_whole(recipe, tmp_path, monkeypatch):
    """At every moment there is one to go on from."""
    usual, seen = checkpoints_module.seal, []

    def watched(folder, *given):
        sound = [path.name for path in folder.parent.glob("checkpoint-*") if is_whole(path)]
        seen.append(sorted(sound))
        usual(folder, *given)

    monkeypatch.setattr(checkpoints_module, "seal", watched)
    fit(recipe_from(recipe.model_dump(), ["train.save_steps=1"]), tmp_path / "m", progress=False)
    assert seen[0] == []
    assert all(seen[1:])


def test_a_disk_that_is_full_at_the_seal(recipe, whole, tmp_path, monkeypatch):
    usual, calls = checkpoints_module.seal, []

    def full(folder, *given):
        calls.append(folder)
        if len(calls) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        usual(folder, *given)

    out = tmp_path / "m"
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints_module, "seal", full)
        with pytest.raises(De3Error, match=r"checkpoint could not be written.*disk is full"):
            fit(recipe, out, progress=False)
    assert is_whole(tmp_path / "m.training" / "checkpoint-3")
    fit(recipe, out, progress=False)
    assert furthest(load_file(out / "model.safetensors"), whole) < 1e-6


@pytest.fixture(scope="module")
def between_phases(recipe, tmp_path_factory) -> tuple[Recipe, Path]:
    """DeeBERT, ended between its phases; and how it ends when nothing happens."""
    changed = recipe_from(recipe.model_dump(), ["method=deebert", "train.epochs=1"])
    folder = tmp_path_factory.mktemp("phases")
    fit(changed, folder / "whole", progress=False)
    with pytest.MonkeyPatch.context() as patch:
        from de3bert.training import schedule

        usual = schedule.Schedule._phase

        def stop(self, phase, place, teacher):
            if phase.name == "exits":
                raise StoppedError
            return usual(self, phase, place, teacher)

        patch.setattr(schedule.Schedule, "_phase", stop)
        with pytest.raises(StoppedError):
            fit(changed, folder / "m", progress=False)
    return changed, folder


@pytest.fixture
def two_phases(between_phases, tmp_path) -> tuple[Recipe, Path, dict[str, torch.Tensor]]:
    changed, folder = between_phases
    shutil.copytree(folder / "m.training", tmp_path / "m.training")
    return changed, tmp_path / "m", load_file(folder / "whole" / "model.safetensors")


@pytest.mark.parametrize("name", ["weights.pt", "phase.json", SEAL])
@pytest.mark.parametrize("spoil", [flip, cut])
def test_a_finished_phase_that_is_spoilt_is_run_again(two_phases, caplog, name, spoil):
    recipe, out, expected = two_phases
    spoil(out.with_name("m.training") / "1-fine-tune" / name)
    with caplog.at_level(logging.WARNING):
        fit(recipe, out, progress=False)
    assert "the phase is run again" in caplog.text
    assert furthest(load_file(out / "model.safetensors"), expected) < 1e-6


def test_a_finished_phase_is_not_run_again(two_phases, caplog):
    recipe, out, expected = two_phases
    fit(recipe, out, progress=False)
    assert "run again" not in caplog.text
    assert furthest(load_file(out / "model.safetensors"), expected) < 1e-6


def test_a_folder_without_a_seal_or_with_another_is_not_whole(tmp_path):
    (tmp_path / "a").write_text("a")
    assert not is_whole(tmp_path)
    seal(tmp_path)
    assert is_whole(tmp_path)
    for content in ("{}", "[1]", '{"a": 1}', '{"a": '):
        (tmp_path / SEAL).write_text(content)
        assert not is_whole(tmp_path)
