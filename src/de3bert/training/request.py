"""What can be wrong with the request for a training, found out before torch is loaded."""

from __future__ import annotations

from pathlib import Path

from de3bert.errors import UsageError
from de3bert.files import check_folder_place
from de3bert.locks import LOCK
from de3bert.methods import METHODS, Method
from de3bert.tasks import TASKS
from de3bert.training.output_folder import check_output, is_finished, scratch_folder, taken
from de3bert.training.recipe import Recipe
from de3bert.training.splits import Splits, read_splits
from de3bert.training.trackers import check_trackers

__all__ = ["check_recipe", "check_request", "read_rows"]


def check_request(
    recipe: Recipe, out: Path, *, overwrite: bool = False, teacher: str | Path | None = None
) -> None:
    """Refuses invalid names, options and folders; nothing is read or written yet."""
    check_recipe(recipe)
    _check_teacher(METHODS[recipe.method], teacher)
    check_output(out, overwrite)
    scratch = scratch_folder(out)
    check_folder_place(scratch)
    if (scratch / LOCK).exists():  # perhaps somebody's at this moment
        with taken(scratch):
            pass


def check_recipe(recipe: Recipe) -> None:
    """Refuses a method, options, a metric or a task that do not exist or do not fit."""
    method = METHODS[recipe.method]
    method.resolve(recipe.method_options)
    method.check_small_backbone(recipe.small_backbone is not None)
    _check_task(recipe, method)
    _check_fitted(recipe, method)
    check_trackers(recipe.train.report_to)
    TASKS[recipe.data.task].metrics[recipe.data.metric]


def read_rows(recipe: Recipe) -> Splits:
    """The rows of the recipe."""
    return read_splits(recipe.data, recipe.train.seed)


def _check_fitted(recipe: Recipe, method: Method) -> None:
    """Refuses settings of prototypes that a fit has no use for."""
    if method.exits == "trained":
        return
    if recipe.prototypes not in (None, "linear"):
        raise UsageError(
            f'The exits of {method.name} are fitted with linear maps; prototypes = "'
            f'{recipe.prototypes}" is for trained ones, such as those of de3.'
        )
    if recipe.train.refresh_prototypes:
        raise UsageError(
            f"The prototypes of {method.name} are means over all rows already; leave "
            "refresh_prototypes out."
        )


def _check_teacher(method: Method, teacher: str | Path | None) -> None:
    if teacher is None:
        return
    if method.teacher is None:
        raise UsageError(f"Method {method.name} has no teacher, but one was given: {teacher}.")
    if not is_finished(Path(teacher)):
        raise UsageError(f"The teacher {teacher} is not a model folder of de3bert.")


def _check_task(recipe: Recipe, method: Method) -> None:
    """Methods for words take words, the others texts; what does not fit is said at once."""
    asked, words = recipe.data.task, TASKS[method.task].joint
    if method.task != asked and not words:
        fitting = ", ".join(name for name in METHODS if METHODS[name].task == asked)
        raise UsageError(
            f"Method {method.name} classifies texts, but the data are words with tags (task = "
            f'"{asked}"). Methods for tagging: {fitting}.'
        )
    if method.task != asked:
        raise UsageError(
            f"Method {method.name} tags words, but the data are texts. Set data.task to "
            f"{method.task} (--task {method.task}) for a file of words and tags, or use a method "
            "for texts such as de3."
        )
    if words and (recipe.data.text_pair or recipe.data.unlabelled):
        raise UsageError("A tagger has neither text pairs nor unlabelled text.")
    if words and recipe.train.refresh_prototypes:
        raise UsageError("refresh_prototypes is for texts; leave it out for a tagger.")
