"""A recipe in the names of `TrainingArguments`, and where a training reports to."""

from __future__ import annotations

import pytest
from tests.fixtures_trained import toy_recipe, toy_rows, write_csv

from de3bert.errors import UsageError
from de3bert.training import trackers
from de3bert.training.fit import fit
from de3bert.training.recipe import recipe_from

BASE = {"backbone": "any", "data": {"train": "any"}}


def train(settings, *overrides):
    return recipe_from({**BASE, "train": settings}, overrides).train


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ({"num_train_epochs": 2}, {"epochs": 2}),
        ({"per_device_train_batch_size": 7}, {"batch_size": 7}),
        ({"gradient_accumulation_steps": 3}, {"gradient_accumulation": 3}),
        ({"warmup_ratio": 0.1}, {"warmup": 0.1}),
        ({"warmup_steps": 0.1}, {"warmup": 0.1}),
        ({"early_stopping_patience": 2}, {"early_stopping": 2}),
        ({"bf16": True}, {"mixed_precision": "bf16"}),
        ({"fp16": False, "bf16": True}, {"mixed_precision": "bf16"}),
        ({"bf16": False}, {"mixed_precision": "no"}),
        ({"train_sampling_strategy": "group_by_length"}, {"group_by_length": True}),
        ({"train_sampling_strategy": "random"}, {"group_by_length": False}),
    ],
)
def test_their_names_are_ours(theirs, ours):
    assert train(theirs) == train(ours)
    lines = [f"train.{name}={str(value).lower()}" for name, value in theirs.items()]
    assert train({}, *lines[-1:]) == train(ours)


def test_what_is_set_on_the_command_line_wins_by_either_name():
    assert train({"epochs": 5}, "train.num_train_epochs=2").epochs == 2
    assert train({"num_train_epochs": 5}, "train.epochs=2").epochs == 2


def test_one_setting_by_two_names_is_refused():
    with pytest.raises(UsageError, match=r"train.epochs and train.num_train_epochs"):
        train({"epochs": 5, "num_train_epochs": 2})


def test_steps_of_warming_up_are_a_share():
    with pytest.raises(UsageError, match="a fraction of all steps"):
        train({"warmup_steps": 500})


def test_who_listens_changes_no_fingerprint():
    plain = recipe_from({**BASE})
    assert recipe_from({**BASE, "train": {"report_to": "none"}}).fingerprint() == (
        plain.fingerprint()
    )
    assert recipe_from({**BASE, "train": {"report_to": ["wandb"]}}).fingerprint() == (
        plain.fingerprint()
    )


@pytest.mark.parametrize(
    ("asked", "said"),
    [("tensorbord", 'Did you mean "tensorboard"'), ("wandb", "pip install wandb")],
)
def test_trackers_that_are_not_there(asked, said, monkeypatch):
    monkeypatch.setattr(trackers, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=said):
        trackers.check_trackers([asked])


def test_a_training_reports(tiny_backbone, tmp_path, monkeypatch):
    """A tracker of transformers hears of losses and of every exit."""
    from transformers import TrainerCallback
    from transformers.integrations import integration_utils

    heard: list[dict[str, float]] = []

    class Listener(TrainerCallback):
        def on_log(self, args, state, control, logs=None, **kwargs):
            heard.append(dict(logs or {}))

    monkeypatch.setitem(integration_utils.INTEGRATION_TO_CALLBACK, "wandb", Listener)
    monkeypatch.setattr(trackers, "find_spec", lambda name: True)
    rows = write_csv(tmp_path / "rows.csv", toy_rows(64, 3))
    recipe = recipe_from(
        {**toy_recipe(tiny_backbone, _Data(rows)), "method": "joint-entropy"},
        ["train.num_train_epochs=1", 'train.report_to=["wandb"]'],
    )
    fit(recipe, tmp_path / "model", progress=False)
    assert any("loss" in each for each in heard)
    assert any("eval_mean_exit_accuracy" in each for each in heard)


class _Data:
    def __init__(self, rows):
        self.train = self.calibration = rows
