"""Traces on disk: one safetensors file with a description and a checksum in its header."""

from __future__ import annotations

import hashlib
import json
import reprlib
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from de3bert.errors import De3Error
from de3bert.exits.line import shown
from de3bert.exits.trace import Trace
from de3bert.files import replace_file
from de3bert.printable import printable

__all__ = ["FORMAT", "VERSION", "read_trace", "write_trace"]

FORMAT = "de3bert-trace"
VERSION = 3  # the newest that can be read; 2 has the certainty of a router, 3 has sentences
VERSIONS = tuple(str(number) for number in range(VERSION + 1))
AGAIN = "Copy it again, or make it again with `de3 trace`."
NEEDED = ("logits", "tokens")
KINDS = {
    "logits": "f",
    "distances": "f",
    "certainty": "f",
    "labels": "iu",
    "tokens": "iu",
    "sentence": "iu",
}

Tensors: TypeAlias = dict[str, NDArray[Any]]


def write_trace(trace: Trace, path: Path) -> None:
    tensors: Tensors = {
        name: np.ascontiguousarray(getattr(trace, name))
        for name in KINDS
        if getattr(trace, name) is not None
    }
    about = _describe(trace)
    header = {
        "format": FORMAT,
        # Readers of version 1 can still read a trace without anything new in it.
        "version": "3" if "sentence" in tensors else "2" if "certainty" in tensors else "1",
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
    if version not in VERSIONS:
        raise De3Error(
            f"{path} has trace format {shown(version) or 'unknown'}; this version of de3bert reads "
            f"up to {VERSION}. Update de3bert, or make the trace again."
        )
    if header.get("sha256") != _digest(tensors, header.get("about", "")):
        raise De3Error(f"{path} is damaged: its content does not match its checksum. {AGAIN}")
    # The checksum may be right even so: the writer may have meant something else by a trace.
    _check_tensors(tensors, path)
    return _assemble(tensors, _read_about(header.get("about", ""), path))


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


def _check_tensors(tensors: Tensors, path: Path) -> None:
    """De3Error for a tensor that is missing or holds numbers of another kind."""
    for name, kinds in KINDS.items():
        if name not in tensors and name in NEEDED:
            raise _strange(path, f'it has no "{name}"')
        if name in tensors and tensors[name].dtype.kind not in kinds:
            raise _strange(path, f'"{name}" are {tensors[name].dtype}')


def _read_about(text: str, path: Path) -> dict[str, Any]:
    """The description, with each part of the kind it must have."""
    try:
        about = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _strange(path, f"its description is not JSON: {error}") from error
    if not isinstance(about, dict):
        raise _strange(path, "its description is not a JSON object")
    for key, kind in (("exit_layers", int), ("label_names", str)):
        values = about.get(key)
        if not isinstance(values, list) or not all(type(value) is kind for value in values):
            raise _strange(path, f'"{key}" is {reprlib.repr(values)}')
    if not isinstance(about.get("info"), dict):
        raise _strange(path, f'"info" is {reprlib.repr(about.get("info"))}')
    if type(about.get("base_depth")) not in (int, type(None)):
        raise _strange(path, f'"base_depth" is {reprlib.repr(about["base_depth"])}')
    return about


def _strange(path: Path, reason: str) -> De3Error:
    return De3Error(f"{path} does not have the contents of a trace: {printable(reason)}. {AGAIN}")


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
        info=about["info"],
        certainty=tensors.get("certainty"),
        base_depth=about.get("base_depth"),
        sentence=tensors.get("sentence"),
    )
