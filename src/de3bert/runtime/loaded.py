"""What a loaded model is, whatever its task: its info, its points, its way back."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from de3bert.errors import De3Error, UsageError
from de3bert.exits import OperatingPoint
from de3bert.plugins import not_imported
from de3bert.printable import cut_list
from de3bert.registry import unknown
from de3bert.runtime.arguments import checked_name
from de3bert.runtime.model_info import ModelInfo
from de3bert.runtime.weights import weights_sha256
from de3bert.tasks import TASKS, Task

__all__ = ["FULL", "Loaded", "Opening", "no_such_point"]

FULL = "full"


@dataclass(frozen=True)
class Opening:
    """How a model was opened, so that it can be opened again, in another process too.

    A token is not among it, so that none is pickled or shown.
    """

    source: str  # the whole path of a folder, or a hub id
    device: str | None = None
    threads: int | None = None
    spin: bool = True
    backend: str | None = None  # by name; None takes what is usual for the folder
    dtype: str | None = None  # by name; None takes that of the stored weights
    revision: str | None = None  # of a hub id: the commit
    cache_dir: str | None = None  # of a hub id: where its files are kept


class Loaded:
    """A model with its tokenizer.

    It can be pickled, copied and sent to other processes: what travels is where it was loaded from
    and how, and the folder is opened again in the other process. What a bandit has learned is
    not sent.
    """

    opening: Opening | None = None  # set by `de3bert.load`

    def __init__(self, backend: Any, source: str) -> None:
        self.backend = backend
        self.source = source
        self.info: ModelInfo = backend.info
        self.label_names = self.info.label_names
        self.task: Task[Any] = TASKS[self.info.task]

    def __reduce__(self) -> tuple[Callable[[Opening], Any], tuple[Opening]]:
        # Here and not above: to load is to make one of these.
        from de3bert.runtime.load import reopen

        if self.opening is None:
            raise De3Error(
                f"This {type(self).__name__} was not loaded from a folder, so there is nothing to "
                "send to another process. Save the model and use de3bert.load."
            )
        return reopen, (self.opening,)

    @property
    def depth(self) -> int:
        return int(self.backend.exit_layers[-1])

    @property
    def has_prototypes(self) -> bool:
        return bool(self.backend.has_prototypes)

    @functools.cached_property
    def weights_sha256(self) -> str | None:
        """Names the weights; None for a model that is not a local folder."""
        return weights_sha256(self.source)

    @functools.cached_property
    def points(self) -> dict[str, OperatingPoint]:
        """The operating points stored in the model, by name."""
        stored = self.info.operating_points
        return {name: self._stored(name, document) for name, document in stored.items()}

    def _stored(self, name: str, document: object) -> OperatingPoint:
        try:
            return OperatingPoint.from_json(document)
        except De3Error as error:
            hint = not_imported(self.info.plugins)
            raise De3Error(
                f'{self.source}, operating point "{name}": {error}{hint and " "}{hint}'
            ) from error

    def point_name(self, point: str | None = None) -> str:
        """The point that is used when `point` is asked for: the model's default for None."""
        asked = checked_name("point", point)
        if asked is not None:
            return asked
        default = self.info.default_point
        if default is None:
            return FULL
        if default != FULL and default not in self.points:
            raise De3Error(
                f'The config of {self.source} names the default point "{default}", which it does '
                f"not have (it has: {cut_list(sorted(self.points)) or 'none'}). Ask for a point by "
                'name ("full" is always available), or calibrate with --default.'
            )
        return default


def no_such_point(source: object, point: str, known: Iterable[str]) -> UsageError:
    """The error for a point that a model does not have."""
    return UsageError(
        unknown("operating point", point, {FULL, *known})
        + f"\nMake one with: de3 calibrate {source} --data FILE --target layers=2.0 --name {point}"
    )
