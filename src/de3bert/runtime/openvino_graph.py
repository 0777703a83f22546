"""The back end `openvino`: the graphs of a bundle compiled by OpenVINO, for any rows and tokens.

Its threads sleep between calls, and every load may ask for another number of them. It reads all
operators of our graphs, the fused attention from version 2026.3 on. Those of int8 bundles too, but
it computes their products in floats: the answers are the same, the time is not that of int8.
"""

from __future__ import annotations

import functools
from collections import deque
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import openvino
from numpy.typing import NDArray

from de3bert.errors import De3Error
from de3bert.printable import printable
from de3bert.runtime.bundle_backend import BundleBackend, read_bundle
from de3bert.runtime.loaded import Opening
from de3bert.runtime.threads import cores

__all__ = ["OpenVinoGraph", "open_openvino"]

LOWEST = (2026, 3)  # the first that reads com.microsoft.MultiHeadAttention


class OpenVinoGraph:
    """A compiled graph. A request serves one call at a time, so every call takes one of its own."""

    def __init__(self, path: Path, threads: int) -> None:
        core = _core()
        settings = {
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": threads,
            # Some processors would silently run bf16, and thresholds would see other numbers.
            "INFERENCE_PRECISION_HINT": "f32",
            # Every process would pin its threads to the same cores, whatever else runs there.
            "ENABLE_CPU_PINNING": False,
        }
        try:
            model = core.read_model(str(path))
            self.compiled = core.compile_model(model, "CPU", settings)
        except Exception as error:  # OpenVINO's errors are bare RuntimeErrors
            raise De3Error(
                f"The graph {path} could not be loaded by OpenVINO: {_reason(error)}. If it is "
                "valid, ONNX Runtime can read it: use the back end onnx."
            ) from error
        self.inputs = [_name(given) for given in self.compiled.inputs]
        self.outputs = [_name(given) for given in self.compiled.outputs]
        self.widths = {_name(given): _width(given) for given in self.compiled.outputs}
        self._rows = _table_rows(model)
        self._idle: deque[Any] = deque()  # requests that nobody uses just now

    def run(self, feeds: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        for name, rows in self._rows.items():
            if (largest := int(feeds[name].max())) >= rows:
                raise ValueError(f"{name} has the id {largest}, its table {rows} rows")
        try:
            request = self._idle.pop()
        except IndexError:
            request = self.compiled.create_infer_request()
        try:
            given = {name: feeds[name] for name in self.inputs}
            found = request.infer(given, share_inputs=True)
        except Exception as error:
            raise RuntimeError(_reason(error)) from error
        self._idle.append(request)  # not one that failed
        return list(found.to_tuple())


@functools.cache
def _core() -> Any:
    """The one of this process; to make it takes longer than to compile a small graph."""
    found = tuple(int(part) for part in metadata.version("openvino").split(".")[:2])
    if found < LOWEST:
        raise De3Error(
            "The back end openvino needs OpenVINO {}.{} or later, which reads the fused attention "
            "of our graphs; {}.{} is installed. Install it with: pip install --upgrade "
            "'de3bert[openvino]'".format(*LOWEST, *found)
        )
    return openvino.Core()


def _name(port: Any) -> str:
    """The name that the graph gives an input or output; OpenVINO adds those of values before it."""
    own: str = port.node.get_friendly_name().partition("/sink_port_")[0]
    return own if own in port.get_names() else str(port.any_name)


def _width(output: Any) -> int | None:
    shape = output.partial_shape
    return shape[-1].get_length() if len(shape) and shape[-1].is_static else None


def _table_rows(model: Any) -> dict[str, int]:
    """Inputs that rows of a constant table are looked up by, such as token ids -> rows it has.

    OpenVINO takes zeros for a row that is not there, silently; ONNX Runtime refuses.
    """
    found: dict[str, int] = {}
    for node in model.get_ops():
        if node.get_type_name() != "Gather":
            continue
        table, index = (node.input_value(place).get_node() for place in (0, 1))
        while index.get_type_name() == "Convert":
            index = index.input_value(0).get_node()
        if index.get_type_name() == "Parameter" and table.get_type_name() == "Constant":
            name = _name(index.output(0))
            found[name] = min(table.shape[0], found.get(name, table.shape[0]))
    return found


def _reason(error: Exception) -> str:
    """The last line of a report that begins with places in OpenVINO's own source."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return printable(lines[-1].rstrip(".")[:300]) if lines else type(error).__name__


def open_openvino(folder: Path, opening: Opening) -> BundleBackend:
    """A bundle compiled for the CPU; `opening.spin` is nothing to its threads, they sleep."""
    info, manifest = read_bundle(folder)
    threads = opening.threads or cores()
    open_graph = functools.partial(OpenVinoGraph, threads=threads)
    return BundleBackend(folder, info, manifest, open_graph, threads=threads)
