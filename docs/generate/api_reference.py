"""The API reference: what `de3bert` and its subpackages export, from their docstrings."""

from __future__ import annotations

import importlib

__all__ = ["page"]

# Subpackages with public names, and what they are for.
PACKAGES = {
    "de3bert.exits": "Signals, policies, traces, replay, curves and calibration; needs no torch.",
}
# Names of single modules, for those who train from Python.
TRAINING = {
    "de3bert.training.recipe": ("Recipe", "DataRecipe", "TrainRecipe", "recipe_from", "resolve"),
    "de3bert.training.fit": ("fit", "Trained"),
}


def page() -> str:
    """The page in Markdown; mkdocstrings fills in what the `:::` lines name."""
    parts = [
        "# Python API",
        "`import de3bert` loads neither torch nor transformers; names are imported when they are "
        "first used.",
        "## de3bert",
        *_entries("de3bert", _exported("de3bert")),
    ]
    for package, summary in PACKAGES.items():
        parts += [f"## {package}", summary, *_entries(package, _exported(package))]
    parts += ["## Recipes and training", "Needs the extra `train`."]
    for module, names in TRAINING.items():
        parts += _entries(module, names)
    return "\n\n".join(parts) + "\n"


def _exported(package: str) -> list[str]:
    names = importlib.import_module(package).__all__
    return [name for name in names if not name.startswith("__")]


def _entries(module: str, names: list[str] | tuple[str, ...]) -> list[str]:
    return [f"::: {module}.{name}" for name in names]
