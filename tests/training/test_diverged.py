"""A training that loses its way stops there, says so, and spoils nothing."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.fixtures_trained import toy_recipe, toy_rows, write_csv

from de3bert.errors import De3Error
from de3bert.training import fit as fit_module
from de3bert.training.checkpoints import GuardedTrainer
from de3bert.training.diverged import unsound
from de3bert.training.fit import fit
from de3bert.training.recipe import Recipe, recipe_from
from de3bert.training.schedule import _plain

PER_EPOCH, LAST = 3, 6


@pytest.fixture
def recipe(tiny_backbone, toy_data, tmp_path) -> Recipe:
    made = toy_recipe(tiny_backbone, toy_data, epochs=2)
    made["data"]["train"] = str(write_csv(tmp_path / "s.csv", toy_rows(48, 5)))
    return recipe_from(made)


def with_train(recipe: Recipe, **changes: float) -> Recipe:
    """Values that a recipe would refuse: what comes of them must not hang on that alone."""
    return recipe.model_copy(update={"train": recipe.train.model_copy(update=changes)})


def weights_break_after(step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The loss of the step is finite; its update is not."""
    usual = GuardedTrainer.training_step

    def broken(self, model, inputs, num_items_in_batch=None):
        loss = usual(self, model, inputs, num_items_in_batch)
        if self.state.global_step + 1 == step:
            for parameter in model.parameters():
                parameter.grad = torch.full_like(parameter, float("nan"))
        return loss

    monkeypatch.setattr(GuardedTrainer, "training_step", broken)


def checkpoints(out: Path) -> list[Path]:
    return sorted(out.with_name(out.name + ".training").glob("checkpoint-*"))


@pytest.mark.parametrize("rate", [float("inf"), 1e36])
def test_it_stops_at_the_first_loss_that_is_no_number(recipe, tmp_path, rate):
    said = []
    for _ in range(2):  # the same command again: the same words, no traceback
        with pytest.raises(De3Error) as error:
            fit(with_train(recipe, learning_rate=rate, max_grad_norm=1e9), tmp_path / "m",
                progress=False)  # fmt: skip
        said.append(str(error.value))
    first = said[0]
    assert first == said[1]
    step = int(re.search(r'in phase "train" at step (\d+) \(epoch', first)[1])
    assert step <= 3
    assert re.search(r"the loss is (nan|inf)|weights are not finite", first)
    assert "train.learning_rate" in first
    assert "--fresh" in first
    assert "--out" in first
    assert not (tmp_path / "m").exists()
    # With sound settings it begins anew, in the same place.
    fit(recipe, tmp_path / "m", fresh=True, progress=False)
    assert unsound_file(tmp_path / "m" / "model.safetensors") == []


def unsound_file(path: Path) -> list[str]:
    return [name for name, values in load_file(path).items() if not values.isfinite().all()]


def test_a_weight_of_the_loss_that_is_no_number(recipe, tmp_path, monkeypatch):
    monkeypatch.setattr("de3bert.methods.method.check_option", lambda *given: None)
    changed = recipe.model_copy(update={"method_options": {"alpha": float("nan")}})
    with pytest.raises(
        De3Error, match=r"at step 1 \(epoch 0\.00\): the loss is nan.*no checkpoint"
    ):
        fit(changed, tmp_path / "m", progress=False)


@pytest.mark.parametrize("step", [PER_EPOCH - 1, PER_EPOCH + 1, LAST])
def test_weights_that_broke_after_a_sound_loss_are_never_written(
    recipe, tmp_path, monkeypatch, step
):
    """In the first epoch, after a good checkpoint, and in the very last step of all."""
    weights_break_after(step, monkeypatch)
    out = tmp_path / "m"
    for _ in range(2):
        with pytest.raises(De3Error, match=r"diverged in phase") as error:
            fit(recipe, out, progress=False)
        kept = checkpoints(out)
        assert [path.name for path in kept] == (["checkpoint-3"] if step > PER_EPOCH else [])
        for path in kept:
            assert unsound_file(path / "model.safetensors") == []
            assert f"The last good checkpoint is kept: {path}." in str(error.value)
    assert not out.exists()
    monkeypatch.undo()
    assert fit(recipe, out, progress=False).steps == LAST


def test_a_phase_that_has_no_checkpoint_is_looked_at_too(recipe, tmp_path, monkeypatch):
    weights_break_after(LAST, monkeypatch)
    monkeypatch.setattr(GuardedTrainer, "_save_checkpoint", lambda *given: None)
    with pytest.raises(De3Error, match=r"at step 6 .*weights are not finite"):
        fit(recipe, tmp_path / "m", progress=False)
    assert not list(tmp_path.rglob("weights.pt"))


def test_a_model_that_is_unsound_at_the_end_is_not_saved(recipe, tmp_path, monkeypatch):
    usual = fit_module.notes_on

    def spoil(model, *given):
        model.prototypes.vectors[0, 0, 0] = float("nan")
        return usual(model, *given)

    monkeypatch.setattr(fit_module, "notes_on", spoil)
    with pytest.raises(De3Error, match=r"not saved.*prototypes\.vectors"):
        fit(recipe, tmp_path / "m", progress=False)
    assert not (tmp_path / "m").exists()


def test_the_phase_is_named(recipe, tmp_path, monkeypatch):
    weights_break_after(2, monkeypatch)
    changed = recipe_from(recipe.model_dump(), ["method=deebert"])
    with pytest.raises(De3Error, match='in phase "fine-tune"'):
        fit(changed, tmp_path / "m", progress=False)


def test_what_is_unsound_is_found_by_name():
    part = torch.nn.Linear(2, 2)
    assert unsound(part) is None
    part.bias.data[1] = float("inf")
    assert unsound(part) == "bias"


def test_a_log_is_json_whatever_is_in_it():
    entry = _plain({"grad_norm": float("inf"), "loss": 0.5, "step": 3})
    assert json.dumps(entry, allow_nan=False)
    assert entry == {"grad_norm": None, "loss": 0.5, "step": 3}
