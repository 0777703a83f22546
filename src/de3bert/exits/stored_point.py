"""An operating point as it is stored in `config.json`: a typed document with a version.

Its JSON schema is `docs/schema/point.json`.
"""

from __future__ import annotations

import math
import reprlib
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictInt,
    StrictStr,
    ValidationError,
    WrapValidator,
)
from typing_extensions import TypedDict

from de3bert.errors import De3Error
from de3bert.exits.line import shown
from de3bert.exits.points import VERSION

__all__ = ["MeasuredScores", "StoredPoint"]

LARGEST = 10**15  # of anything that was measured
AGAIN = "Calibrate again to write a new one."


def _number(value: object) -> object:
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) <= LARGEST:
        return value
    if isinstance(value, float) and math.isfinite(value):
        return value
    raise ValueError("a finite number")


def _listed(value: object) -> object:
    if not isinstance(value, list):
        raise ValueError("a list")
    return value


Number = Annotated[float, WrapValidator(lambda value, _: _number(value))]  # 1 does not become 1.0
Object = dict[str, Any]


class MeasuredScores(TypedDict, total=False):
    """What a point was measured to give on calibration data. What others add is kept.

    Any of these may be missing; one that is there is what its type says.
    """

    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]

    rows: StrictInt
    metric: StrictStr
    score: Number
    score_interval: Annotated[
        list[Number], Field(min_length=2, max_length=2), BeforeValidator(_listed)
    ]
    full_score: Number
    layers_mean: Number
    layer_speedup: Number
    layer_speedup_interval: (
        Annotated[list[Number], Field(min_length=2, max_length=2), BeforeValidator(_listed)] | None
    )
    predicted_ms: Number
    predicted_time_speedup: Number
    agreement: Number
    guarantee: Object
    traffic: Object
    data: Object | StrictStr | None
    warnings: Annotated[list[StrictStr], BeforeValidator(_listed)]


class StoredPoint(BaseModel):
    """A policy under a name, what was asked for and what was measured.

    Attributes:
        version: of this document; files from before there were versions have none.
        policy: one line, as `Policy.parse` reads it.
        target: what was asked for, as text.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    version: Annotated[StrictInt, Field(ge=1)] = 1
    name: StrictStr
    policy: StrictStr
    target: StrictStr
    measured: MeasuredScores

    @classmethod
    def read(cls, document: object) -> StoredPoint:
        """A stored point; De3Error names the part that is missing or wrong."""
        if not isinstance(document, Mapping):
            raise De3Error(f"An operating point is a JSON object, got {reprlib.repr(document)}.")
        try:
            stored = cls.model_validate(dict(document))
        except ValidationError as error:
            raise _unsound(document, error.errors()[0]["loc"]) from error
        if stored.version > VERSION:
            raise De3Error(
                f"The operating point {shown(stored.name)!r} is of version {stored.version}, and "
                f"this de3bert reads up to version {VERSION}. Update de3bert, or calibrate again."
            )
        return stored


def _unsound(document: Mapping[str, Any], where: tuple[int | str, ...]) -> De3Error:
    """The error about the first part that is not what its type says."""
    key = str(where[0])
    if key == "measured" and len(where) > 1:
        name, inner = shown(str(document.get("name"))), str(where[1])
        return De3Error(
            f'The operating point "{name}" has no sound "{inner}" among what was measured: got '
            f"{reprlib.repr(document['measured'].get(inner))}. {AGAIN}"
        )
    return De3Error(
        f'The operating point has no sound "{key}": got {reprlib.repr(document.get(key))}. {AGAIN}'
    )
