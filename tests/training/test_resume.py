"""Stopping a training and going on: nothing is lost, and the result is the same."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.fixtures_trained import toy_recipe
from tests.training.test_fit import furthest
from tests.warm import python

from de3bert.errors import De3Error, UsageError
from de3bert.files import write_text
from de3bert.training import fit as fit_module
from de3bert.training import trainer as trainer_module
from de3bert.training.callbacks import SaveEvery
from de3bert.training.fit import fit, is_finished
from de3bert.training.recipe import Recipe, recipe_from, recipe_text
from de3bert.training.sampling import EpochOrder

EPOCHS, PER_EPOCH = 3, 30


@pytest.fixture(scope="module")
def recipe(tiny_backbone, toy_data) -> Recipe:
    # The backbone's folder is another one on each worker; the fingerprint includes it.
    return recipe_from(toy_recipe(tiny_backbone, toy_data, epochs=EPOCHS, save_steps=7))


@pytest.fixture(scope="module")
def uninterrupted(recipe, tmp_path_factory) -> dict[str, torch.Tensor]:
    out = tmp_path_factory.mktemp("whole") / "m"
    fit(recipe, out, progress=False)
    return load_file(out / "model.safetensors")


def interrupt_at(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C arrives during a step."""
    usual = SaveEvery.on_step_end

    def interrupted(self, args, state, control, **kwargs):
        usual(self, args, state, control, **kwargs)
        if state.global_step == step:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(SaveEvery, "on_step_end", interrupted)


def checkpoints(out: Path) -> list[int]:
    scratch = out.with_name(out.name + ".training")
    return sorted(int(path.name.split("-")[1]) for path in scratch.glob("checkpoint-*"))


@pytest.mark.parametrize("step", [5, PER_EPOCH, PER_EPOCH + 11, 2 * PER_EPOCH + 14])
def test_a_resumed_training_ends_as_if_it_had_not_been_stopped(
    recipe, uninterrupted, tmp_path, monkeypatch, step
):
    out = tmp_path / "m"
    with monkeypatch.context() as patch:
        interrupt_at(step, patch)
        with pytest.raises(KeyboardInterrupt):
            fit(recipe, out, progress=False)
    assert not out.exists()
    assert checkpoints(out)[-1] == step
    trained = fit(recipe, out, progress=False)
    assert trained.steps == EPOCHS * PER_EPOCH
    assert furthest(load_file(out / "model.safetensors"), uninterrupted) < 1e-6
    assert [path.name for path in tmp_path.iterdir()] == ["m"]


def test_a_stop_within_an_epoch_is_not_scored(recipe, tmp_path, monkeypatch):
    """Its score would enter the choice of the best checkpoint, and waiting for it is idle."""
    interrupt_at(PER_EPOCH + 11, monkeypatch)
    scored = []
    usual = trainer_module.exit_metrics
    monkeypatch.setattr(trainer_module, "exit_metrics", lambda *a: scored.append(1) or usual(*a))
    with pytest.raises(KeyboardInterrupt):
        fit(recipe, tmp_path / "m", progress=False)
    assert len(scored) == 1


def test_a_real_signal_to_a_real_process(recipe, uninterrupted, tmp_path):
    out = tmp_path / "m"
    write_text(tmp_path / "r.toml", recipe_text(recipe))
    command = [*python(), "-m", "de3bert.cli.main", "train", "--recipe", "r.toml",
               "--out", "m", "--quiet"]  # fmt: skip
    process = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    deadline = time.monotonic() + 120
    while not checkpoints(out) and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    said, notes = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "")
    assert "run the same command again" in notes
    assert "Traceback" not in notes
    assert not out.exists()
    assert checkpoints(out)
    fit(recipe, out, progress=False)
    assert furthest(load_file(out / "model.safetensors"), uninterrupted) < 1e-6


@pytest.fixture
def stopped(recipe, tmp_path, monkeypatch) -> Path:
    """The place of a training that was stopped at step 16."""
    with monkeypatch.context() as patch:
        interrupt_at(16, patch)
        with pytest.raises(KeyboardInterrupt):
            fit(recipe, tmp_path / "m", progress=False)
    return tmp_path / "m"


@pytest.mark.parametrize("state", [None, '{"global_step": 2'])
def test_a_half_written_checkpoint_is_discarded(recipe, uninterrupted, stopped, state):
    scratch = stopped.with_name("m.training")
    half = Path(shutil.copytree(scratch / "checkpoint-16", scratch / "checkpoint-23"))
    (half / "trainer_state.json").unlink()
    if state is not None:
        (half / "trainer_state.json").write_text(state)
    fit(recipe, stopped, progress=False)
    assert furthest(load_file(stopped / "model.safetensors"), uninterrupted) < 1e-6


def test_another_recipe_does_not_go_on_with_it(recipe, stopped):
    other = recipe_from(recipe.model_dump(), ["train.seed=1", "train.epochs=1"])
    with pytest.raises(UsageError, match=r"another recipe.*\n.*--fresh"):
        fit(other, stopped, progress=False)
    assert checkpoints(stopped)
    trained = fit(other, stopped, fresh=True, progress=False)
    assert trained.steps == PER_EPOCH
    assert is_finished(stopped)


def test_leftovers_without_a_checkpoint_stop_nobody(recipe, tmp_path):
    other = recipe_from(recipe.model_dump(), ["train.epochs=1"])
    write_text(tmp_path / "m.training" / "fingerprint", recipe.fingerprint())
    assert fit(other, tmp_path / "m", progress=False).steps == PER_EPOCH


def test_fresh_starts_over(recipe, uninterrupted, stopped, monkeypatch):
    resumed = []
    usual = trainer_module.OrderedTrainer.train

    def watched(self, resume_from_checkpoint=None):
        resumed.append(resume_from_checkpoint)
        return usual(self, resume_from_checkpoint)

    monkeypatch.setattr(trainer_module.OrderedTrainer, "train", watched)
    fit(recipe, stopped, fresh=True, progress=False)
    assert resumed == [None]


def limit_file_size(size: int) -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


@pytest.fixture
def small_disk():
    """Call it to make every file end at so many bytes, as a full disk does."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield limit_file_size
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize("size", [20_000, 300_000])
def test_a_disk_that_fills_up_during_training(recipe, uninterrupted, tmp_path, small_disk, size):
    """At 20 kB the weights of a checkpoint do not fit, at 300 kB the optimiser's state."""
    weights = sum(tensor.nbytes for tensor in uninterrupted.values())
    assert 20_000 < weights < 300_000 < 2 * weights
    small_disk(size)
    with pytest.raises(De3Error, match=r"checkpoint could not be written.*disk is full"):
        fit(recipe, tmp_path / "m", progress=False)
    small_disk(-1)
    assert not (tmp_path / "m").exists()
    fit(recipe, tmp_path / "m", progress=False)
    assert furthest(load_file(tmp_path / "m" / "model.safetensors"), uninterrupted) < 1e-6


@pytest.mark.parametrize("existing", [False, True])
def test_a_disk_that_is_full_when_the_model_is_saved(
    recipe, tmp_path, small_disk, monkeypatch, existing, trained_model
):
    out = tmp_path / "m"
    if existing:
        shutil.copytree(trained_model, out)
    before = {path.name: path.read_bytes() for path in out.iterdir()} if existing else None
    short = recipe_from(recipe.model_dump(), ["train.epochs=1"])
    usual = fit_module.notes_on

    def full_from_here(*args):
        small_disk(20_000)
        return usual(*args)

    with monkeypatch.context() as patch:
        patch.setattr(fit_module, "notes_on", full_from_here)
        with pytest.raises(De3Error, match=r"the disk is full.*Nothing was changed"):
            fit(short, out, overwrite=True, progress=False)
    small_disk(-1)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == ({"m", "m.training"} if existing else {"m.training"})
    if existing:
        assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    # The training is not lost: its checkpoints are there, and only the saving is done again.
    assert fit(short, out, overwrite=True, progress=False).steps == PER_EPOCH


def test_ctrl_c_while_the_model_is_saved(recipe, tmp_path, monkeypatch):
    short = recipe_from(recipe.model_dump(), ["train.epochs=1"])

    def interrupted(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(fit_module, "write_card", interrupted)
        with pytest.raises(KeyboardInterrupt):
            fit(short, tmp_path / "m", progress=False)
    assert [path.name for path in tmp_path.iterdir()] == ["m.training"]
    fit(short, tmp_path / "m", progress=False)
    assert is_finished(tmp_path / "m")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_place_where_nothing_may_be_written(recipe, tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(De3Error, match="no permission"):
        fit(recipe, tmp_path / "m", progress=False)


def test_the_order_of_rows_follows_seed_and_epoch_alone():
    lengths = [3, 9, 4, 8, 5, 7, 6, 2] * 8
    done = 0.0
    order = EpochOrder(lengths, 4, 4, seed=1, epoch=lambda: done)
    first = list(order)
    torch.rand(7)  # what dropout draws in between
    assert list(order) == first
    done = 0.4
    assert list(order) == first
    done = 1.0
    assert list(order) != first
    assert sorted(order) == list(range(64))
    assert list(EpochOrder(lengths, 4, 4, seed=2, epoch=lambda: 0.0)) != first


@pytest.mark.parametrize("group", [None, 4])
def test_rows_are_grouped_by_length_only_on_request(group):
    lengths = list(range(1, 33)) * 8
    order = list(EpochOrder(lengths, 4, group, seed=1, epoch=lambda: 0.0))
    batches = [[lengths[row] for row in order[i : i + 4]] for i in range(0, len(order), 4)]
    spread = sum(max(batch) - min(batch) for batch in batches) / len(batches)
    # Four lengths drawn from 1..32 lie about 19 apart; neighbours of a sorted list hardly at all.
    assert spread > 15 if group is None else spread < 3
    assert sorted(order) == list(range(len(lengths)))


@pytest.mark.parametrize(("rows", "kept"), [(10, 8), (8, 8), (3, 3)])
@pytest.mark.parametrize("group", [None, 4])
def test_a_rest_of_a_batch_is_left_out_and_is_another_in_each_epoch(rows, kept, group):
    epochs = [
        list(EpochOrder([5] * rows, 4, group, seed=1, epoch=lambda done=done: done))
        for done in (0.0, 1.0, 2.0, 3.0)
    ]
    assert all(len(order) == len(set(order)) == kept for order in epochs)
    if rows > kept:
        assert set().union(*epochs) == set(range(rows))
