"""JSON that anybody may have written, and what can be wrong with it."""

from __future__ import annotations

import json
from typing import Any

from de3bert.errors import De3Error

__all__ = ["checked_object", "parsed"]

DEEPEST = 100  # lists and objects within each other


def parsed(text: str, where: str) -> Any:
    """A JSON document, or a De3Error; one that is nested very deeply is none for us."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise De3Error(f"{where}: not valid JSON ({_reason(error)}).") from error
    if text.count("[") + text.count("{") > DEEPEST and _deeper(document, DEEPEST):
        raise De3Error(f"{where}: not accepted as JSON: nested deeper than {DEEPEST}.")
    return document


def checked_object(document: Any, where: str) -> dict[str, Any]:
    """A row as an object with a value for each column."""
    if not isinstance(document, dict):
        raise De3Error(
            f"{where}: expected a JSON object such as "
            f'{{"text": "...", "label": "..."}}, got a {type(document).__name__}.'
        )
    return document


def _reason(error: Exception) -> str:
    return "nested too deeply" if isinstance(error, RecursionError) else str(error)


def _deeper(document: Any, depth: int) -> bool:
    """Level by level, so that no depth is too deep to be looked at."""
    level = [document]
    for _ in range(depth + 1):
        level = [inner for item in level for inner in _inside(item)]
        if not level:
            return False
    return True


def _inside(item: Any) -> list[Any]:
    if isinstance(item, dict):
        return list(item.values())
    return item if isinstance(item, list) else []
