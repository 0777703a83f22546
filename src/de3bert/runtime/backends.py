"""Back ends by name: what runs a model, what it opens, what it needs.

Nothing here imports a library that runs models: a back end's own file is imported when a model is
opened with it. `docs/extend/backend.md` says how to add one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from de3bert.errors import De3Error, UsageError
from de3bert.printable import printable
from de3bert.registry import Registry
from de3bert.runtime.arguments import DTYPES, checked_name
from de3bert.runtime.engine import Backend
from de3bert.runtime.manifest import is_bundle

if TYPE_CHECKING:
    from de3bert.runtime.loaded import Opening

__all__ = [
    "BACKENDS",
    "BackendPart",
    "check_installed",
    "checked_backend",
    "chosen_backend",
    "open_backend",
]

Kind = Literal["bundle", "model folder"]
USUAL: dict[Kind, str] = {"bundle": "onnx", "model folder": "torch"}


@dataclass(frozen=True)
class BackendPart:
    """A way to run models, registered in `BACKENDS` under the name that users give.

    Attributes:
        opens: what it runs: bundles, model folders (a hub id is one) or both.
        open: makes a `Backend` of a folder (of a hub id that in the hub's cache); imports what is
            heavy only now.
        modules: what must be importable for that.
        install: what pip installs to get them.
        devices: the devices it takes; None leaves that to the back end.
        dtypes: the precisions it can be asked for.
    """

    opens: frozenset[Kind]
    open: Callable[[str, Opening], Backend]
    modules: tuple[str, ...] = ()
    install: str = ""
    devices: tuple[str, ...] | None = ("cpu",)
    dtypes: tuple[str, ...] = ()


BACKENDS: Registry[BackendPart] = Registry("back end")


def checked_backend(name: object) -> str | None:
    """The name of a back end that there is; None for what is usual."""
    asked = checked_name("backend", name)
    if asked is not None:
        BACKENDS[asked]
    return asked


def chosen_backend(folder: str, asked: str | None, named: str | None = None) -> str:
    """The back end for a folder: the one asked for, if it opens such a thing.

    Args:
        named: what users call it, where that is a hub id.
    """
    kind, named = _kind(folder), printable(named or folder)
    if asked is None:
        return USUAL[kind]
    if kind not in BACKENDS[asked].opens:
        others = [name for name in BACKENDS if kind in BACKENDS[name].opens]
        way = ""
        if kind == "model folder":
            way = f" Or make a bundle with: de3 export {named} --out DIR"
        raise UsageError(
            f'The back end "{asked}" runs a {_either(BACKENDS[asked].opens)}, and '
            f"{named} is a {kind}. Back ends that run it: {', '.join(others)}.{way}"
        )
    return asked


def open_backend(source: str, opening: Opening) -> Backend:
    """Opens a folder with the back end that `opening` names."""
    assert opening.backend is not None  # see chosen_backend
    part = BACKENDS[opening.backend]
    _check_device(part, opening, _kind(source))
    _check_dtype(part, opening, _kind(source))
    check_installed(opening.backend)
    return part.open(source, opening)


def _kind(source: str) -> Kind:
    return "bundle" if is_bundle(source) else "model folder"


def _either(kinds: frozenset[Kind]) -> str:
    return " or a ".join(sorted(kinds))


def _check_device(part: BackendPart, opening: Opening, kind: Kind) -> None:
    device = opening.device
    if device is None or part.devices is None or device in part.devices:
        return
    taken = " or ".join(name.upper() for name in part.devices)
    way = "Load the model folder." if kind == "bundle" else "Leave it out."
    raise UsageError(
        f'A {kind} runs on the {taken}, got device="{printable(device)}" (back end '
        f"{opening.backend}). {way}"
    )


def _check_dtype(part: BackendPart, opening: Opening, kind: Kind) -> None:
    if opening.dtype is None or opening.dtype in part.dtypes:
        return
    taken = f" It takes: {', '.join(part.dtypes)}." if part.dtypes else ""
    if kind == "bundle":
        taken = " The precision of a bundle was chosen by `de3 export` (--int8)."
    raise UsageError(
        f'The back end "{opening.backend}" runs a {kind} in the precision that it has, got '
        f'dtype="{opening.dtype}".{taken} Leave dtype out.'
    )


def check_installed(name: str) -> None:
    """De3Error when a library is missing that the back end `name` needs."""
    part = BACKENDS[name]
    for module in part.modules:
        try:
            import_module(module)
        except ImportError as error:
            raise De3Error(
                f'The back end "{name}" needs {module}, which is not installed. Install it with: '
                f"pip install '{part.install}'"
            ) from error


def _open_torch(source: str, opening: Opening) -> Backend:
    from de3bert.runtime.torch_load import load_torch

    return load_torch(source, opening.device, opening.threads, opening.dtype)


def _open_onnx(source: str, opening: Opening) -> Backend:
    from de3bert.runtime.onnx_graph import open_onnx

    return open_onnx(Path(source), opening)


def _open_openvino(source: str, opening: Opening) -> Backend:
    from de3bert.runtime.openvino_graph import open_openvino

    return open_openvino(Path(source), opening)


BACKENDS.add(
    "torch",
    BackendPart(
        opens=frozenset({"model folder"}),
        open=_open_torch,
        modules=("torch", "transformers"),
        install="de3bert[train]",
        devices=None,  # torch knows which are there
        dtypes=DTYPES,
    ),
)
BACKENDS.add(
    "onnx",
    BackendPart(
        opens=frozenset({"bundle"}),
        open=_open_onnx,
        modules=("onnxruntime",),
        install="de3bert",
    ),
)
BACKENDS.add(
    "openvino",
    BackendPart(
        opens=frozenset({"bundle"}),
        open=_open_openvino,
        modules=("openvino",),
        install="de3bert[openvino]",
    ),
)
