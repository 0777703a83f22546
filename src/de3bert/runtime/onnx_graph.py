"""The back end `onnx`: the graphs of a bundle in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from de3bert.runtime.bundle_backend import BundleBackend, read_bundle
from de3bert.runtime.loaded import Opening
from de3bert.runtime.one_file import OneFile
from de3bert.runtime.sessions import check_sleeping, open_session, share_threads
from de3bert.runtime.threads import cores

__all__ = ["OnnxGraph", "open_onnx"]


class OnnxGraph:
    """A graph with its session.

    Args:
        sleeping: so many threads of its own that sleep; None takes the pool that all share.
    """

    def __init__(self, path: Path, sleeping: int | None = None) -> None:
        self.session = open_session(path, sleeping)
        self.inputs = [given.name for given in self.session.get_inputs()]
        self.outputs = [given.name for given in self.session.get_outputs()]
        shapes = {given.name: given.shape for given in self.session.get_outputs()}
        self.widths = {name: _width(shape) for name, shape in shapes.items()}

    def run(self, feeds: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        found: list[NDArray[Any]] = self.session.run(
            self.outputs, {name: feeds[name] for name in self.inputs}
        )
        return found


def _width(shape: list[Any]) -> int | None:
    return shape[-1] if shape and isinstance(shape[-1], int) else None


def open_onnx(folder: Path, opening: Opening) -> BundleBackend:
    """A bundle on the process's shared pool of threads, or on threads of its own that sleep."""
    info, manifest = read_bundle(folder)
    asked, spin = opening.threads, opening.spin
    if not spin:
        check_sleeping()
    threads = share_threads(asked) if spin else asked or cores()
    open_graph = partial(OnnxGraph, sleeping=None if spin else threads)
    open_single = partial(OneFile, sleeping=None if spin else threads)
    return BundleBackend(
        folder, info, manifest, open_graph, threads=threads, open_single=open_single
    )
