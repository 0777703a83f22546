"""The sound things that cases spoil: built once per test run, small enough to be read at once."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures_trained import once, toy_rows, write_csv
from tests.fuzz.arena import Materials
from tests.tagged import toy_sentences, word_recipe, write_jsonl

__all__ = ["build_materials"]

FEW = 40  # as few as a calibration takes, and some


def build_materials(
    factory: pytest.TempPathFactory, backbone: Path, pointed: Path, bundle: Path
) -> Materials:
    """
    Args:
        backbone: of this worker; the one that is kept is shared, since fingerprints name it.
        pointed: a trained classifier with operating points.
    """
    # Each by itself: what cannot be built is not kept half.
    kept = once(factory, "fuzz-backbone", lambda folder: shutil.copytree(backbone, folder))
    rows = once(factory, "fuzz-rows", _write_rows) / "rows.csv"
    recipe = _recipe(kept, rows)
    return Materials(
        model=pointed,
        bundle=once(factory, "fuzz-bundle", lambda folder: _profiled(bundle, folder)),
        words=once(factory, "fuzz-words", lambda folder: _train_words(folder, kept)),
        backbone=kept,
        rows=rows,
        trace=once(factory, "fuzz-trace", lambda folder: _trace(bundle, rows, folder)) / "a.trace",
        model_trace=once(factory, "fuzz-model-trace", lambda folder: _trace(pointed, rows, folder))
        / "a.trace",
        recipe=recipe,
        stopped=once(factory, "fuzz-stopped", lambda folder: _stop(recipe, folder)),
    )


def _write_rows(folder: Path) -> None:
    folder.mkdir()
    write_csv(folder / "rows.csv", toy_rows(FEW, 5))


def _recipe(backbone: Path, rows: Path) -> dict[str, Any]:
    return {
        "backbone": str(backbone),
        "method": "de3",
        "pooling": "mean",
        "data": {"train": str(rows), "calibration": str(rows), "max_length": 16},
        "train": {"epochs": 2, "batch_size": 8, "learning_rate": 1e-3, "save_steps": 2},
    }


def _profiled(bundle: Path, folder: Path) -> None:
    import de3bert
    from de3bert.runtime.profile import profile, write_profile

    shutil.copytree(bundle, folder)
    cost = profile(de3bert.load(folder), batches=[1], lengths=[8, 16], rounds=3)
    write_profile(folder, cost)


def _train_words(folder: Path, backbone: Path) -> None:
    from de3bert.training.fit import fit
    from de3bert.training.recipe import recipe_from

    rows = write_jsonl(folder.with_name("sentences.jsonl"), toy_sentences(FEW, 1))
    recipe = recipe_from(word_recipe(backbone, rows, rows, "tokee", epochs=1))
    fit(recipe, folder, progress=False)


def _trace(model: Path, rows: Path, folder: Path) -> None:
    import de3bert
    from de3bert.data.read import read_table
    from de3bert.runtime.evaluate import trace_table

    folder.mkdir()
    trace_table(de3bert.load(model), read_table(rows)).save(folder / "a.trace")


def _stop(recipe: dict[str, Any], folder: Path) -> None:
    """The checkpoints of a training that was stopped at its fourth step."""
    import signal

    from de3bert.training.callbacks import SaveEvery
    from de3bert.training.fit import fit
    from de3bert.training.recipe import recipe_from

    usual = SaveEvery.on_step_end

    def stopped(self: Any, args: Any, state: Any, control: Any, **rest: Any) -> None:
        usual(self, args, state, control, **rest)
        if state.global_step == 4:
            signal.raise_signal(signal.SIGINT)

    place = folder.with_name("stopped")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SaveEvery, "on_step_end", stopped)
        with pytest.raises(KeyboardInterrupt):
            fit(recipe_from(recipe), place, progress=False)
    place.with_name("stopped.training").rename(folder)
