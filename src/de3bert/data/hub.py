"""Rows from a `datasets` hub id, or from a folder that `datasets` can read."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from de3bert.data.frame import Frame, frame_of
from de3bert.errors import De3Error, UsageError
from de3bert.printable import cut_list

__all__ = ["hub_id", "looks_like_id", "read_hub"]

LONGEST = 400  # characters of the library's own words
FOLDER = "Give the file in it that holds the rows."
HUB = (
    "Check the network, and that the hub is not switched off (HF_HUB_OFFLINE, "
    "HF_DATASETS_OFFLINE); or save the rows as a file and give its path."
)
HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def looks_like_id(source: str) -> bool:
    """Whether `source` has the form owner/name."""
    return HUB_ID.fullmatch(source) is not None


def hub_id(source: str) -> str | None:
    """A name as an id of the hub; None for what is a path here, or has no owner."""
    return source if looks_like_id(source) and not Path(source).exists() else None


def read_hub(source: str, config: str | None, split: str | None) -> Frame:
    """One split of a data set, with the class names it carries."""
    data = _one_split(_load(source, config, split), source)
    parts = [source, config, getattr(data, "split", None) and str(data.split)]
    return frame_of(data, " ".join(part for part in parts if part))


def _load(source: str, config: str | None, split: str | None) -> Any:
    try:
        import datasets
    except ImportError as error:
        raise De3Error(
            f"Reading {source} needs the datasets library, which is not installed: "
            "pip install 'de3bert[train]'"
        ) from error
    try:
        return datasets.load_dataset(source, config, split=split)
    except FileNotFoundError as error:  # DatasetNotFoundError is one of these
        raise UsageError(_not_found(source, error)) from error
    except ValueError as error:  # an unknown config or split; the message lists the known ones
        asked = config or split
        advice = "" if asked or not Path(source).is_dir() else f" {FOLDER}"
        raise UsageError(f"{source}: {_short(error)}{advice}") from error
    except Exception as error:
        # The library raises what its network and file back ends raise: there is no common type.
        raise De3Error(f"Could not load {source}: {_short(error)} {_advice(source)}") from error


def _not_found(source: str, error: Exception) -> str:
    if Path(source).is_dir():
        return f"{source} is a folder without data that can be read: {_short(error)} {FOLDER}"
    return (
        f"{source} is neither a local file nor a dataset that could be found: {_short(error)} {HUB}"
    )


def _advice(source: str) -> str:
    return FOLDER if Path(source).is_dir() else HUB


def _short(error: Exception) -> str:
    """What the library says, as a sentence that does not fill the screen."""
    said = " ".join(str(error).split()) or type(error).__name__
    return said if len(said) <= LONGEST else f"{said[:LONGEST]} ..."


def _one_split(loaded: Any, source: str) -> Any:
    if not isinstance(loaded, dict):
        return loaded
    if len(loaded) == 1:
        return next(iter(loaded.values()))
    raise UsageError(f"{source} has the splits {cut_list(loaded)}: name one of them.")
