"""How much is taken from outside: stated limits, checked before work begins.

A config that promises a million layers or a small archive that unpacks to gigabytes is refused
when it is read, not after it has exhausted the memory. Each limit can be raised by those who
trust the source: `de3 --limit unpacked=8GB VERB ...`, or DE3_MAX_UNPACKED=8GB in the environment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from de3bert.errors import UsageError
from de3bert.registry import unknown

__all__ = [
    "LIMITS",
    "Limit",
    "check_limit",
    "check_sizes",
    "limit",
    "set_limit",
    "shown_size",
    "unpacked_limit",
]

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
UNITS = {"": 1, "B": 1, "KB": KIB, "MB": MIB, "GB": GIB, "K": KIB, "M": MIB, "G": GIB}
NUMBER = re.compile(r"(?P<number>\d{1,15})\s*(?P<unit>[A-Z]{0,2})", re.IGNORECASE | re.ASCII)


@dataclass(frozen=True)
class Limit:
    """One limit: its value unless raised, and what it is on."""

    value: int
    what: str
    is_size: bool = False


LIMITS = {
    "layers": Limit(1000, "layers of an encoder"),
    "width": Limit(65_536, "numbers in a hidden state"),
    "vocabulary": Limit(10_000_000, "entries of a vocabulary"),
    "positions": Limit(10_000_000, "positions of an encoder"),
    "labels": Limit(100_000, "classes"),
    "parameters": Limit(20_000_000_000, "parameters of an encoder"),
    "document": Limit(16 * MIB, "size of a config, manifest or other JSON or TOML file", True),
    "tokenizer": Limit(256 * MIB, "size of a tokenizer file", True),
    "unpacked": Limit(2 * GIB, "size of a data file, unpacked", True),
    "text": Limit(64 * MIB, "size of one text", True),
    "threads": Limit(16, "threads, where there are not more cores"),
}
# What configs call these, over all families.
SIZES = {
    "layers": ("num_hidden_layers", "n_layers", "num_layers", "n_layer", "encoder_layers",
               "num_hidden_groups", "inner_group_num", "cascade", "base_depth"),
    "width": ("hidden_size", "dim", "d_model", "n_embd", "embedding_size", "intermediate_size",
              "hidden_dim", "ffn_dim", "num_attention_heads", "n_heads"),
    "vocabulary": ("vocab_size", "type_vocab_size"),
    "positions": ("max_position_embeddings", "max_relative_positions", "position_buckets",
                  "max_length"),
    "labels": ("num_labels",),
}  # fmt: skip
# A packed file may always unpack to FREE; beyond that to RATIO times its own size. Texts pack three
# to ten times, files of many equal lines some hundred; what is beyond is made to fill a memory.
FREE, RATIO = 64 * MIB, 250


def limit(name: str) -> int:
    """The limit in force: the environment's, else the one stated."""
    variable = _variable(name)
    given = os.environ.get(variable)
    return LIMITS[name].value if not given else _amount(given, variable)


def set_limit(text: str) -> None:
    """Raises a limit for this process and those it starts, by a line such as `unpacked=8GB`."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals:
        raise UsageError(f'--limit takes name=value, such as unpacked=8GB; got "{text}".')
    if name not in LIMITS:
        raise UsageError(unknown("limit", name, LIMITS))
    _amount(value, name)
    os.environ[_variable(name)] = value


def check_limit(name: str, value: int, what: str) -> None:
    """UsageError when `value` is beyond the limit.

    Args:
        what: what has it, as the start of the sentence.
    """
    most = limit(name)
    if value <= most:
        return
    shown = shown_size if LIMITS[name].is_size else "{:,}".format
    raise UsageError(
        f"{what}: {shown(value)} is more than the limit of {shown(most)} on the "
        f"{LIMITS[name].what}. If you trust its source, raise the limit: de3 --limit "
        f"{name}={_raised(name, value)} ... (or {_variable(name)} in the environment)."
    )


def check_sizes(config: Mapping[str, Any], what: str) -> None:
    """UsageError when a config promises a model beyond the limits, itself or in a part of it."""
    for name, keys in SIZES.items():
        for key in keys:
            value = config.get(key)
            if isinstance(value, int | float) and value > limit(name):
                check_limit(name, _bounded(value), f"{what}, {key}")
    for key in ("id2label", "label2id"):
        if isinstance(config.get(key), Mapping | list):
            check_limit("labels", len(config[key]), f"{what}, {key}")
    for part in config.values():
        if isinstance(part, Mapping):
            check_sizes(part, what)


def _bounded(value: float) -> int:
    """A number that can be shown: configs hold infinities and numbers of many thousand digits."""
    return int(min(value, 10**15))


def unpacked_limit(packed: int) -> int:
    """How many bytes a packed file of this size may become."""
    stated = limit("unpacked")
    if os.environ.get(_variable("unpacked")):  # raised by hand: then the ratio does not matter
        return stated
    return min(stated, max(FREE, RATIO * packed))


def shown_size(size: int) -> str:
    """A number of bytes for people: 600 MB."""
    for unit, divisor in (("GB", GIB), ("MB", MIB), ("KB", KIB)):
        if size >= divisor:
            return f"{size / divisor:,.1f}".removesuffix(".0") + f" {unit}"
    return f"{size} bytes"


def _variable(name: str) -> str:
    return f"DE3_MAX_{name.upper()}"


def _raised(name: str, value: int) -> str:
    return f"{-(-value // GIB)}GB" if LIMITS[name].is_size else str(value)


def _amount(text: str, where: str) -> int:
    match = NUMBER.fullmatch(text.strip())
    if match is None or match["unit"].upper() not in UNITS:
        raise UsageError(
            f'{where} takes a whole number, with KB, MB or GB for sizes; got "{text}".'
        )
    return int(match["number"]) * UNITS[match["unit"].upper()]
