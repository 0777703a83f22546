"""Writing operating points into a model folder: the config, and the card that shows them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

from de3bert.card import write_card
from de3bert.errors import UsageError
from de3bert.exits import OperatingPoint
from de3bert.files import write_json, write_text
from de3bert.runtime.load import check_folder
from de3bert.runtime.manifest import is_bundle, sign

__all__ = ["store_points"]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def store_points(
    folder: str | Path,
    points: Sequence[OperatingPoint],
    *,
    default: str | None = None,
    replace: bool = False,
) -> None:
    """Adds points to a model folder or bundle, replacing those of the same name; atomic.

    With `replace` the points given are all there are afterwards.
    """
    folder = Path(folder)
    if not folder.exists():
        raise UsageError(f"{folder} is not a folder here; points are stored in a model folder.")
    check_folder(folder)
    for point in points:
        check_point_name(point.name)
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    stored = {} if replace else config.get("operating_points") or {}
    config["operating_points"] = stored | {point.name: point.to_json() for point in points}
    if replace:
        config["default_point"] = default if default in config["operating_points"] else None
    elif default is not None:
        config["default_point"] = default
    before = path.read_text(encoding="utf-8")
    write_json(path, config)
    if is_bundle(folder):
        try:
            sign(folder, path.name)
        except BaseException:  # a config that the manifest does not know would spoil the bundle
            write_text(path, before)
            raise
    write_card(folder)


def check_point_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise UsageError(
            f'A point\'s name is made of letters, digits, ".", "_" and "-", got "{name}".'
        )
