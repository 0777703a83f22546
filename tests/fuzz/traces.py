"""Traces with a right checksum over wrong content: whoever writes the one can write the other."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from tests.fuzz.mutate import Edit, as_json, edited

__all__ = ["TraceChange", "changed_trace", "trace_changes"]


@dataclass(frozen=True)
class TraceChange:
    """One change of a tensor."""

    name: str
    how: str


HOW = ("drop", "nan", "infinity", "negative", "huge", "integers", "doubles", "bytes", "flat",
       "empty", "fewer rows", "fewer exits", "fewer classes", "one more axis")  # fmt: skip
trace_changes = st.lists(
    st.builds(
        TraceChange,
        st.sampled_from(["logits", "distances", "labels", "tokens", "certainty", "more"]),
        st.sampled_from(HOW),
    ),
    max_size=2,
)


def changed_trace(path: Path, changes: list[TraceChange], edited_at: list[Edit]) -> None:
    """Writes the trace at `path` anew, with changed tensors and an edited description."""
    from safetensors import safe_open
    from safetensors.numpy import save_file

    from de3bert.exits.trace_file import _digest

    with safe_open(path, framework="numpy") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        header = dict(file.metadata())
    for change in changes:
        _apply(tensors, change)
    about = as_json(edited(json.loads(header["about"]), edited_at)).decode("utf-8", "replace")
    header |= {"about": about, "sha256": _digest(tensors, about)}
    save_file(tensors, path, metadata=header)


def _apply(tensors: dict[str, Any], change: TraceChange) -> None:
    if change.how == "drop":
        tensors.pop(change.name, None)
        return
    old = tensors.get(change.name, np.zeros((24, 3), dtype=np.float32))
    tensors[change.name] = np.ascontiguousarray(_changed(old, change.how))


def _changed(old: Any, how: str) -> Any:
    fills = {"nan": np.nan, "infinity": np.inf, "negative": -1, "huge": 1e30}
    if how in fills:
        kind = old.dtype if how == "negative" else np.float32
        return np.full(old.shape, fills[how], dtype=kind)
    kinds = {"integers": np.int64, "doubles": np.float64, "bytes": np.uint8}
    if how in kinds:
        return old.astype(kinds[how])
    cut = {"fewer rows": 0, "fewer exits": 1, "fewer classes": 2}
    if how in cut and old.ndim > cut[how]:
        return np.delete(old, -1, axis=cut[how])
    shapes = {"flat": old.reshape(-1), "empty": old[:0], "one more axis": old[None]}
    return shapes.get(how, old)
