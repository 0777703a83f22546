"""Writing operating points into a model folder: the config, and the card that shows them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from de3bert.card import card_text
from de3bert.errors import De3Error, UsageError
from de3bert.exits import OperatingPoint, Policy
from de3bert.exits.line import shown
from de3bert.exits.rules import Full
from de3bert.files import check_file_place, json_of, read_json, write_text
from de3bert.locks import edited_alone
from de3bert.runtime.load import check_folder
from de3bert.runtime.manifest import is_bundle, sign

__all__ = ["check_point_name", "check_storable", "store_points"]

POINT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", re.ASCII)
RESERVED = {
    "full": "full depth, which every model has",
    "default": "the point that is used when none is given",
}


def store_points(
    folder: str | Path,
    points: Sequence[OperatingPoint],
    *,
    default: str | None = None,
    replace: bool = False,
) -> None:
    """Adds points to a model folder or bundle, replacing those of the same name; atomic.

    Several processes may store into one folder at once: each waits for its turn, and what the
    others have stored stays. With `replace` the points given are all there are afterwards.
    """
    folder = Path(folder)
    check_storable(folder)
    for point in points:
        check_point_name(point.name, point.policy)
    with edited_alone(folder):
        path = folder / "config.json"
        config = read_json(path)
        _take_in(config, points, default, replace)
        card = card_text(folder, config)  # before anything is written: it may be impossible
        text = json_of(config, path)
        if is_bundle(folder):  # a config that the manifest does not know would spoil the bundle
            sign(folder, path.name, text)
        write_text(path, text)
        if is_bundle(folder):
            sign(folder, path.name)
        write_text(folder / "README.md", card)


def _take_in(
    config: dict[str, Any], points: Sequence[OperatingPoint], default: str | None, replace: bool
) -> None:
    stored = {} if replace else config.get("operating_points") or {}
    if not isinstance(stored, dict):
        raise De3Error(
            "The config is damaged: its operating points are not a JSON object. Copy the model "
            "again."
        )
    config["operating_points"] = stored | {point.name: point.to_json() for point in points}
    if replace:
        config["default_point"] = default if default in config["operating_points"] else None
    elif default is not None:
        config["default_point"] = default


def check_storable(folder: str | Path) -> None:
    """An error where no point can be stored; for before the work, whose end stores it."""
    folder = Path(folder)
    if not folder.exists():
        raise UsageError(f"{folder} is not a local folder; points are stored in a model folder.")
    check_folder(folder)
    check_file_place(folder / "config.json")


def check_point_name(name: str, policy: Policy | None = None) -> None:
    """Refuses a name that cannot be typed, and one that already means something in every model.

    Args:
        policy: of the point; `full` may be stored as what it is.
    """
    if not isinstance(name, str) or not POINT_NAME.fullmatch(name):
        raise UsageError(
            'A point\'s name is made of up to 64 letters, digits, ".", "_" and "-", got '
            f'"{shown(str(name))}".'
        )
    if name == "full" and policy is not None and isinstance(policy.rule, Full):
        return
    if name in RESERVED:
        raise UsageError(
            f'"{name}" is {RESERVED[name]}, so a point cannot be called that. '
            "Choose another name, such as 2x or safe."
        )
