"""Trying the settings of a recipe's [search] section and keeping the best model."""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from de3bert.errors import De3Error, UsageError
from de3bert.files import check_folder_place, read_json, replace_folder, write_json
from de3bert.locks import taken_alone
from de3bert.training.recipe import Recipe, recipe_from
from de3bert.training.request import check_recipe, read_rows

__all__ = ["Found", "SearchTrial", "search"]

Settings = dict[str, float | str]


@dataclass(frozen=True)
class SearchTrial:
    """One training of a search."""

    settings: Settings
    score: float  # mean accuracy over exits, calibration rows
    folder: str


@dataclass(frozen=True)
class Found:
    """All trials and the folder of the best model."""

    best: str
    trials: tuple[SearchTrial, ...]

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def search(
    recipe: Recipe,
    out: str | Path,
    *,
    sampler: str = "grid",
    trials: int | None = None,
    progress: bool = True,
) -> Found:
    """Trains each combination once; a search that was stopped resumes with those left.

    The winner is copied to `OUT/best`; `OUT/search.json` lists every trial.
    """
    out = Path(out)
    _check(recipe, out, sampler)
    done: list[SearchTrial] = []
    busy = f"Another search is writing into {out}. Wait for it to finish, or choose another --out."
    with taken_alone(out / "trials", busy):
        proposals = _grid(recipe, trials) if sampler == "grid" else _optuna(recipe, trials, done)
        for settings in proposals:
            done.append(_trial(recipe, settings, out / "trials", progress))
            write_json(out / "search.json", {"schema": 1, "trials": [asdict(t) for t in done]})
        best = max(done, key=lambda trial: trial.score)
        with replace_folder(out / "best") as folder:
            shutil.copytree(best.folder, folder, dirs_exist_ok=True)
    return Found(str(out / "best"), tuple(done))


def _check(recipe: Recipe, out: str | Path, sampler: str = "grid") -> None:
    """Refuses a search that could not end: settings, rows and folder; torch is not needed yet."""
    if not recipe.search:
        raise UsageError("The recipe has no [search] section, so there is nothing to try.")
    empty = [name for name, values in recipe.search.items() if not values]
    if empty:
        raise UsageError(f"The [search] section lists no values for {', '.join(empty)}.")
    if sampler not in ("grid", "optuna"):
        raise UsageError(f'Unknown sampler "{sampler}". Available: grid, optuna.')
    check_recipe(recipe)
    for name, values in recipe.search.items():
        for value in values:
            check_recipe(_changed(recipe, {name: value}))
    check_folder_place(Path(out) / "best")
    read_rows(_changed(recipe, {name: values[0] for name, values in recipe.search.items()}))


def _trial(recipe: Recipe, settings: Settings, folder: Path, progress: bool) -> SearchTrial:
    changed = _changed(recipe, settings)
    # By everything that changes the result: another recipe never takes this one's trials over.
    own = folder / changed.fingerprint()
    record = own / "training.json"
    if record.exists():
        return SearchTrial(settings, _score(record), str(own))
    from de3bert.training.fit import fit  # which loads torch: not before the request is sound

    trained = fit(changed, own, progress=progress)
    return SearchTrial(settings, trained.score, str(own))


def _score(record: Path) -> float:
    """The score of a trial that was trained before."""
    advice = f"Remove {record.parent} and run the same command again."
    accuracy = read_json(record, advice).get("exit_accuracy")
    if not isinstance(accuracy, dict) or not accuracy:
        raise De3Error(f"{record} is damaged: it has no accuracy of exits. {advice}")
    values = list(accuracy.values())
    if not all(isinstance(value, float | int) for value in values):
        raise De3Error(f"{record} is damaged: an accuracy is not a number. {advice}")
    return float(sum(values) / len(values))


def _changed(recipe: Recipe, settings: Settings) -> Recipe:
    return recipe_from(recipe.model_dump(exclude={"search"}), _overrides(settings))


def _overrides(settings: Settings) -> list[str]:
    return [f"{key}={json.dumps(value)}" for key, value in settings.items()]


def _grid(recipe: Recipe, trials: int | None) -> Iterator[Settings]:
    names = list(recipe.search)
    combinations = itertools.product(*(recipe.search[name] for name in names))
    for values in itertools.islice(combinations, trials):
        yield dict(zip(names, values, strict=True))


def _optuna(recipe: Recipe, trials: int | None, done: list[SearchTrial]) -> Iterator[Settings]:
    """Proposals of optuna's default sampler; `done` grows while the caller trains."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    sampler = optuna.samplers.TPESampler(seed=recipe.train.seed)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    for _ in range(trials or 20):
        trial = study.ask()
        chosen = {k: trial.suggest_categorical(k, values) for k, values in recipe.search.items()}
        yield chosen  # type: ignore[misc]  # optuna cannot know it gives back what it was given
        study.tell(trial, done[-1].score)
