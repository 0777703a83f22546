"""Stopping a distillation and going on: the same teacher's words, hidden words and draws."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.fixtures_trained import toy_recipe
from tests.training.test_fit import furthest
from tests.training.test_resume import interrupt_at

from de3bert.training.fit import fit
from de3bert.training.recipe import Recipe, recipe_from
from de3bert.training.schedule import Schedule

METHODS = ("pkd", "theseus", "pd")
# A teacher is given, so the first phase is the student's own: 30 steps in an epoch.
STEPS = {"pkd": 11, "theseus": 11, "pd": 41}


def recipe_of(method: str, backbone: Path, data) -> Recipe:
    settings = toy_recipe(backbone, data, epochs=2, save_steps=7)
    return recipe_from(settings, [f"method={method}"])


@pytest.mark.parametrize("method", METHODS)
def test_a_resumed_distillation_ends_as_if_it_had_not_been_stopped(
    method, tiny_backbone, toy_data, teacher, tmp_path, monkeypatch
) -> None:
    recipe = recipe_of(method, tiny_backbone, toy_data)
    fit(recipe, tmp_path / "whole", progress=False, teacher=teacher)
    with monkeypatch.context() as patch:
        interrupt_at(STEPS[method], patch)
        with pytest.raises(KeyboardInterrupt):
            fit(recipe, tmp_path / "m", progress=False, teacher=teacher)
    stopped = tmp_path / "m.training"
    assert list(stopped.rglob(f"checkpoint-{STEPS[method]}"))
    torch.rand(17)  # a new process has drawn other numbers
    fit(recipe, tmp_path / "m", progress=False, teacher=teacher)
    weights = [load_file(tmp_path / name / "model.safetensors") for name in ("m", "whole")]
    assert furthest(*weights) < 1e-6


def test_the_head_of_a_stopped_phase_goes_on_learning(
    masked_backbone, toy_data, tmp_path, monkeypatch
) -> None:
    """DistilBERT is stopped among its hidden words; the head is in the checkpoint."""
    recipe = recipe_of("distilbert", masked_backbone, toy_data)
    fit(recipe, tmp_path / "whole", progress=False)
    with monkeypatch.context() as patch:
        interrupt_at(11, patch)
        with pytest.raises(KeyboardInterrupt):
            fit(recipe, tmp_path / "m", progress=False)
    (stored,) = (tmp_path / "m.training" / "1-words").glob("checkpoint-11/model.safetensors")
    assert sum("masked_words.head" in name for name in load_file(stored)) == 5
    fit(recipe, tmp_path / "m", progress=False)
    weights = [load_file(tmp_path / name / "model.safetensors") for name in ("m", "whole")]
    assert furthest(*weights) < 1e-6


def test_a_phase_that_is_done_is_not_repeated(
    tiny_backbone, toy_data, teacher, tmp_path, monkeypatch
) -> None:
    """PD is stopped in its second phase; the words are not learnt again."""
    recipe = recipe_of("pd", tiny_backbone, toy_data)
    fit(recipe, tmp_path / "whole", progress=False, teacher=teacher)
    usual = Schedule._phase
    begun: list[str] = []

    def watched(self, phase, *rest):
        begun.append(phase.name)
        if phase.name != "distil" or len(begun) > 2:
            return usual(self, phase, *rest)
        with monkeypatch.context() as patch:
            interrupt_at(41, patch)
            return usual(self, phase, *rest)

    monkeypatch.setattr(Schedule, "_phase", watched)
    with pytest.raises(KeyboardInterrupt):
        fit(recipe, tmp_path / "m", progress=False, teacher=teacher)
    fit(recipe, tmp_path / "m", progress=False, teacher=teacher)
    assert begun == ["words", "distil", "distil"]
    weights = [load_file(tmp_path / name / "model.safetensors") for name in ("m", "whole")]
    assert furthest(*weights) < 1e-6
