"""Traces on disk: one safetensors file with a description and a checksum in its header."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from de3bert.errors import De3Error
from de3bert.exits.trace import Trace
from de3bert.files import replace_file

__all__ = ["FORMAT", "VERSION", "read_trace", "write_trace"]

FORMAT = "de3bert-trace"
VERSION = 2  # the newest that can be read; 2 has the certainty of a router, 1 had none
AGAIN = "Copy it again, or make it again with `de3 trace`."
NAMES = ("logits", "distances", "certainty", "labels", "tokens")

Tensors: TypeAlias = dict[str, NDArray[Any]]


def write_trace(trace: Trace, path: Path) -> None:
    tensors: Tensors = {
        name: np.ascontiguousarray(getattr(trace, name))
        for name in NAMES
        if getattr(trace, name) is not None
    }
    about = _describe(trace)
    header = {
        "format": FORMAT,
        # Whoever reads only version 1 can still read a trace without anything new in it.
        "version": "1" if trace.certainty is None else "2",
        "about": about,
        "sha256": _digest(tensors, about),
    }
    with replace_file(path) as temporary:
        save_file(tensors, temporary, metadata=header)


def read_trace(path: Path) -> Trace:
    if not path.is_file():
        raise De3Error(f"There is no trace at {path}. Make one with `de3 trace`.")
    tensors, header = _read(path)
    if header.get("format") != FORMAT:
        raise De3Error(f"{path} is a safetensors file but not a trace. Make one with `de3 trace`.")
    version = header.get("version", "")
    if not version.isdigit() or int(version) > VERSION:
        raise De3Error(
            f"{path} has trace format {version or 'unknown'}; this version of de3bert reads up to "
            f"{VERSION}. Update de3bert, or make the trace again."
        )
    if header.get("sha256") != _digest(tensors, header.get("about", "")):
        raise De3Error(f"{path} is damaged: its content does not match its checksum. {AGAIN}")
    try:
        return _assemble(tensors, json.loads(header["about"]))
    except (LookupError, TypeError, ValueError, OverflowError, RecursionError) as error:
        # The checksum is right all the same: whoever wrote it meant something else by a trace.
        raise De3Error(
            f"{path} does not hold what a trace has ({error!r:.200}). {AGAIN}"
        ) from error


def _read(path: Path) -> tuple[Tensors, dict[str, str]]:
    try:
        with safe_open(path, framework="numpy") as file:
            tensors = {name: file.get_tensor(name) for name in sorted(file.keys())}
            return tensors, file.metadata() or {}
    except (SafetensorError, ValueError, TypeError) as error:
        raise De3Error(
            f"{path} cannot be read: it is cut short, damaged or not a trace ({error}). {AGAIN}"
        ) from error
    except OSError as error:
        raise De3Error(f"{path} cannot be read: {error}.") from error


def _describe(trace: Trace) -> str:
    about: dict[str, Any] = {
        "exit_layers": trace.exit_layers,
        "label_names": trace.label_names,
        "info": dict(trace.info),
    }
    if trace.base_depth is not None:
        about["base_depth"] = trace.base_depth
    try:
        return json.dumps(about, sort_keys=True)
    except (TypeError, ValueError) as error:
        raise De3Error(f"The info of a trace must fit in JSON: {error}.") from error


def _digest(tensors: Tensors, about: str) -> str:
    """SHA-256 of the description and of each tensor's name, type, shape and bytes."""
    digest = hashlib.sha256(about.encode())
    for name in sorted(tensors):
        values = np.ascontiguousarray(tensors[name])
        digest.update(f"{name} {values.dtype.str} {values.shape}".encode())
        digest.update(values.data.cast("B") if values.size else b"")
    return digest.hexdigest()


def _assemble(tensors: Tensors, about: dict[str, Any]) -> Trace:
    return Trace(
        logits=tensors["logits"],
        distances=tensors.get("distances"),
        labels=tensors.get("labels"),
        tokens=tensors["tokens"],
        exit_layers=tuple(about["exit_layers"]),
        label_names=tuple(about["label_names"]),
        info=dict(about["info"]),
        certainty=tensors.get("certainty"),
        base_depth=about.get("base_depth"),
    )
