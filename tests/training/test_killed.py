"""Processes that are killed at the worst moment, and two at once: the next run finds its way."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from tests.fixtures_trained import toy_recipe, toy_rows, write_csv
from tests.training.test_fit import furthest
from tests.warm import python

import de3bert
from de3bert.errors import De3Error
from de3bert.files import write_text
from de3bert.locks import LOCK
from de3bert.training.fit import fit
from de3bert.training.output_folder import is_finished
from de3bert.training.recipe import Recipe, recipe_from, recipe_text

KILLED = -9
# Replaces a function by one that runs it for a while and is then killed in the middle.
DRIVER = textwrap.dedent(
    """
    import importlib, os, signal, sys

    module, name, calls = sys.argv[1], sys.argv[2], int(sys.argv[3])
    owner = importlib.import_module(module)
    *parts, last = name.split(".")
    for part in parts:
        owner = getattr(owner, part)
    usual, seen = getattr(owner, last), []

    def killed(*given, **more):
        seen.append(1)
        if len(seen) >= calls:
            os.kill(os.getpid(), signal.SIGKILL)
        return usual(*given, **more)

    setattr(owner, last, killed)
    sys.argv = ["de3", *sys.argv[4:]]
    from de3bert.cli.main import main

    main()
    """
)


def killed_in(function: str, calls: int, *arguments: str | Path) -> None:
    """Runs a verb in a process of its own that is killed at the given call of a function."""
    module, _, name = function.partition(":")
    ran = subprocess.run(
        [*python(), "-c", DRIVER, module, name, str(calls), *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert ran.returncode == KILLED, ran.stderr


def age(folder: Path) -> None:
    """What was left is old enough not to be somebody's who has just begun."""
    before = time.time() - 60
    for path in folder.rglob("*"):
        if ".partial" in path.name:
            os.utime(path, (before, before), follow_symlinks=False)


def leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if ".partial" in path.name]


@pytest.fixture(scope="module")
def recipe(tiny_backbone, toy_data, tmp_path_factory) -> Recipe:
    made = toy_recipe(tiny_backbone, toy_data, epochs=3)
    rows = tmp_path_factory.mktemp("rows") / "s.csv"
    made["data"]["train"] = str(write_csv(rows, toy_rows(48, 5)))
    return recipe_from(made)


@pytest.fixture(scope="module")
def whole(recipe, tmp_path_factory) -> dict[str, torch.Tensor]:
    out = tmp_path_factory.mktemp("whole") / "m"
    fit(recipe, out, progress=False)
    return load_file(out / "model.safetensors")


@pytest.mark.parametrize(
    ("function", "calls"),
    [
        ("transformers:Trainer._save_optimizer_and_scheduler", 2),  # in the middle of a checkpoint
        ("de3bert.training.checkpoints:seal", 2),  # before its seal
        ("de3bert.training.fit:write_card", 1),  # while the model is saved
    ],
)
def test_a_training_that_is_killed_goes_on(recipe, whole, tmp_path, function, calls):
    write_text(tmp_path / "r.toml", recipe_text(recipe))
    out = tmp_path / "m"
    killed_in(function, calls, "train", "--recipe", tmp_path / "r.toml", "--out", out, "--quiet")
    assert not out.exists()
    assert (tmp_path / "m.training" / LOCK).exists()  # of a process that is no more
    age(tmp_path)
    fit(recipe, out, progress=False)
    assert furthest(load_file(out / "model.safetensors"), whole) < 1e-6
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m", "r.toml"]


def test_calibration_that_is_killed(model_copy, toy_data):
    call = ["calibrate", model_copy, "--data", toy_data.calibration, "--target", "layers=1.2"]
    assert subprocess.run(
        [*python(), "-m", "de3bert.cli.main", *map(str, call), "--name", "before"],
        capture_output=True,
    ).returncode == 0  # fmt: skip
    before = (model_copy / "config.json").read_bytes()
    killed_in("os:fsync", 1, *call, "--name", "late")
    assert (model_copy / "config.json").read_bytes() == before
    age(model_copy)
    from de3bert.data.read import read_table
    from de3bert.runtime.calibrate_folder import calibrate_model

    calibrate_model(model_copy, "layers=1.2", "after", table=read_table(toy_data.calibration))
    assert {"before", "after"} <= set(de3bert.load(model_copy).points)
    assert leftovers(model_copy) == []


@pytest.mark.parametrize("existing", [False, True])
def test_an_export_that_is_killed(trained_model, tmp_path, existing):
    from de3bert.export.bundle import export_model

    out = tmp_path / "bundle"
    if existing:
        export_model(trained_model, out)
    before = {path.name: path.read_bytes() for path in out.iterdir()} if existing else {}
    killed_in("de3bert.export.bundle:compare", 1, "export", trained_model, "--out", out, "--quiet")
    assert out.exists() == existing
    if existing:
        assert {path.name: path.read_bytes() for path in out.iterdir()} == before
    assert leftovers(tmp_path)
    age(tmp_path)
    export_model(trained_model, out)
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]
    assert de3bert.load(out).predict(["a great joy"])[0].label == "pos"


HOLD = textwrap.dedent(
    """
    import sys, time
    from de3bert.cli.main import main
    from de3bert.training import fit

    def held(self, *given):
        print("training", flush=True)
        time.sleep(120)

    fit.TrainingRun.run = held
    sys.argv = ["de3", *sys.argv[1:]]
    main()
    """
)


def test_the_second_of_two_trainings_is_refused_at_once(recipe, whole, tmp_path, monkeypatch):
    write_text(tmp_path / "r.toml", recipe_text(recipe))
    out = tmp_path / "m"
    call = ["train", "--recipe", str(tmp_path / "r.toml"), "--out", str(out), "--quiet"]
    first = subprocess.Popen(
        [sys.executable, "-c", HOLD, *call], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        text=True,
    )  # fmt: skip
    try:
        assert first.stdout is not None
        assert first.stdout.readline() == "training\n"
        with monkeypatch.context() as patch:
            patch.setattr(
                "de3bert.training.fit.read_rows", lambda *a: pytest.fail("rows were read")
            )
            for fresh in (False, True):  # not even on request is another's work discarded
                with pytest.raises(De3Error, match=r"Another training is writing into .*m\.train"):
                    fit(recipe, out, fresh=fresh, progress=False)
        second = subprocess.run(
            [*python(), "-m", "de3bert.cli.main", *call], capture_output=True, text=True
        )
        assert (second.returncode, second.stdout) == (1, "")
        assert "Wait for it to finish, or choose another --out" in second.stderr
        assert first.poll() is None
    finally:
        first.kill()
        first.wait()
    # One that was killed blocks nobody.
    fit(recipe, out, progress=False)
    assert furthest(load_file(out / "model.safetensors"), whole) < 1e-6
    assert not (tmp_path / "m.training").exists()


def test_a_search_that_is_killed_or_damaged(recipe, tmp_path):
    from de3bert.training.search import search

    settings = {**recipe.model_dump(), "search": {"train.seed": [1.0, 2.0]}}
    settings["train"] |= {"epochs": 1.0}
    wanted, out = recipe_from(settings), tmp_path / "s"
    write_text(tmp_path / "r.toml", recipe_text(wanted))
    killed_in("de3bert.training.fit:write_card", 2, "search", tmp_path / "r.toml", "--out", out,
              "--quiet")  # fmt: skip
    assert len(json.loads((out / "search.json").read_text())["trials"]) == 1
    age(tmp_path)
    found = search(wanted, out, progress=False)
    assert len(found.trials) == 2
    assert leftovers(tmp_path) == []
    record = Path(found.trials[0].folder) / "training.json"
    for content in ('{"exit_accuracy": ', "[]", "{}", '{"exit_accuracy": {"1": "high"}}'):
        record.write_text(content)
        with pytest.raises(De3Error, match=r"training\.json is damaged.*Remove .* and run"):
            search(wanted, out, progress=False)
    shutil.rmtree(record.parent)
    assert search(wanted, out, progress=False).trials == found.trials


def test_a_teacher_that_is_damaged_is_trained_again(recipe, tmp_path, caplog, monkeypatch):
    from de3bert.training import fit as fit_module

    changed = recipe_from(
        recipe.model_dump(), ["method=pkd", "train.epochs=1", "method_options.layers=2"]
    )
    fit(changed, tmp_path / "whole", progress=False)
    out = tmp_path / "m"
    with monkeypatch.context() as patch:
        usual = fit_module.TrainingRun._trained_teacher

        def stop(self, method):
            usual(self, method)
            raise KeyboardInterrupt

        patch.setattr(fit_module.TrainingRun, "_trained_teacher", stop)
        with pytest.raises(KeyboardInterrupt):
            fit(changed, out, progress=False)
    weights = tmp_path / "m.training" / "teacher" / "model.safetensors"
    content = bytearray(weights.read_bytes())
    content[-5] ^= 64
    weights.write_bytes(content)
    fit(changed, out, progress=False)
    assert "it is trained again" in caplog.text
    assert is_finished(out)
    ours, expected = (load_file(p / "model.safetensors") for p in (out, tmp_path / "whole"))
    assert furthest(ours, expected) < 1e-6
