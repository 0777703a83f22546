"""`AutoConfig` and the other auto classes know our model folders once de3bert is imported.

Transformers may be imported before de3bert, after it, or never. So a stand-in is registered for our
config: at once where transformers is there, else right after its table of configs was made. Only
when a folder of ours is opened does the stand-in import the real classes, which register themselves
and with them the model. `import transformers` is not slower for it and cannot fail by it.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from de3bert.errors import De3Error

__all__ = ["announce"]

TABLE = "transformers.models.auto.configuration_auto"  # where transformers keeps its configs
MODEL_TYPE = "de3bert"


def announce() -> None:
    """Makes our model type known to transformers, now or when it comes; again does no harm."""
    if not any(isinstance(finder, AfterImport) for finder in sys.meta_path):
        sys.meta_path.insert(0, AfterImport())
    table = sys.modules.get(TABLE)
    if table is not None and hasattr(table, "CONFIG_MAPPING"):
        _register(table)


class Deferred(type):
    """The class of a class that is only imported when somebody asks for something of it."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):  # asked of every class by Python itself
            raise AttributeError(name)
        return getattr(_real(), name)

    def __call__(cls, *arguments: Any, **keywords: Any) -> Any:
        return _real()(*arguments, **keywords)


class EarlyExitConfig(metaclass=Deferred):
    """Stands for `de3bert.model.EarlyExitConfig`. Transformers compares configs by their names."""

    model_type = MODEL_TYPE


class AfterImport:
    """Finds nothing itself: sees the table of configs come in, and registers the stand-in."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != TABLE:
            return None
        for finder in sys.meta_path:
            if isinstance(finder, AfterImport):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None and spec.loader is not None:
                spec.loader = Registering(spec.loader)
                return spec
        return None


class Registering(Loader):
    """A loader that registers the stand-in when the module has run; otherwise the loader it has."""

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self.loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        # From here on nobody shall see that the module was looked at while it came in.
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        _register(module)


def _register(table: ModuleType) -> None:
    """Never an error: a transformers that keeps its configs otherwise must still be importable."""
    known = getattr(table, "CONFIG_MAPPING", {})
    if MODEL_TYPE not in known and hasattr(known, "register"):
        known.register(MODEL_TYPE, EarlyExitConfig)


def _real() -> Any:
    try:
        from de3bert.model import EarlyExitConfig as Real
    except Exception as error:  # whatever a broken torch or transformers raises
        raise De3Error(
            f"This is a de3bert model, but its classes cannot be imported: {error}. Install what "
            'they need with: pip install "de3bert[train]"'
        ) from error
    return Real
