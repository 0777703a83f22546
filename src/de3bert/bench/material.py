"""What contenders are made of: the bundle, the model behind it, and a folder for their graphs."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from de3bert.errors import UsageError
from de3bert.files import replace_file
from de3bert.runtime.bundle_backend import BundleBackend
from de3bert.runtime.classifier import Classifier
from de3bert.runtime.load import check_folder, load, read_config
from de3bert.runtime.manifest import Manifest, is_bundle
from de3bert.runtime.sessions import share_threads
from de3bert.runtime.weights import weights_sha256

if TYPE_CHECKING:
    from de3bert.bench.plain import PlainClassifier
    from de3bert.runtime.torch_backend import TorchBackend

__all__ = ["BenchMaterial", "load_bundle"]


class BenchMaterial:
    """A bundle and its model. The model is read, and torch imported, when it is first asked for.

    Args:
        bundle: the classifier that is to be compared.
        model: the folder of the model it was made of; None looks where the bundle says it was.
        folder: where graphs are written; one that is there already is used again.
    """

    def __init__(self, bundle: Classifier, model: str | Path | None, folder: Path) -> None:
        backend = bundle.backend
        assert isinstance(backend, BundleBackend)  # see load_bundle
        self.bundle = bundle
        self.manifest = backend.manifest
        self.encoder = backend.encoder
        self.threads = backend.threads
        self.depth = bundle.depth
        self.task = bundle.task
        self.label_names = bundle.label_names
        self.folder = folder
        self.model = _find_model(bundle, self.manifest, model)
        self._threads_before: int | None = None

    @property
    def exit_layers(self) -> tuple[int, ...]:
        """The exits of the model, of which a bundle may have kept only some."""
        return tuple(int(layer) for layer in read_config(self.model)["exit_layers"])

    @functools.cached_property
    def trained(self) -> TorchBackend:
        """The model in torch, on as many threads as the bundle."""
        import torch

        from de3bert.runtime.torch_load import load_torch

        self._threads_before = torch.get_num_threads()
        backend = load_torch(str(self.model), "cpu", self.threads)
        backend.model.float().eval().requires_grad_(False)
        return backend

    @functools.cached_property
    def plain(self) -> PlainClassifier:
        """The model at full depth as if it had no exits."""
        from de3bert.bench.plain import PlainClassifier

        return PlainClassifier(self.trained.model).eval()

    def graph(self, name: str, write: Callable[[Path], object]) -> Path:
        """The graph of that name, written by `write` unless it is there."""
        path = self.folder / f"{name}.onnx"
        if not path.exists():
            with replace_file(path) as temporary:
                write(temporary)
        return path

    def close(self) -> None:
        """Gives torch back the number of threads it had."""
        if self._threads_before is not None:
            import torch

            torch.set_num_threads(self._threads_before)


def _find_model(bundle: Classifier, manifest: Manifest, given: str | Path | None) -> Path:
    """The folder of the model; UsageError when it is not there or is another model."""
    recorded = str(manifest.source.get("model") or "")
    if given is None and not (recorded and Path(recorded).is_dir()):
        raise UsageError(
            f"The contenders are built from the model that {bundle.source} was exported from, and "
            f'it is no longer there ("{recorded}"). Pass its folder with --model FOLDER.'
        )
    folder = Path(recorded if given is None else given)
    if not folder.exists():
        raise UsageError(f"There is no model folder {folder} (--model).")
    check_folder(folder)
    if is_bundle(folder):
        raise UsageError(f"{folder} is a bundle; --model is the model folder it was made from.")
    made_from = manifest.source.get("weights")
    if made_from is not None and made_from != weights_sha256(folder):
        raise UsageError(
            f"{folder} does not have the weights of the model that {bundle.source} was exported "
            "from, so their times and answers are not comparable. Pass that model with --model, or "
            "export this one."
        )
    return folder


def load_bundle(
    folder: str | Path, threads: int | None = None, backend: str | None = None
) -> Classifier:
    """A bundle; anything else is refused, for only bundles are measured."""
    if not is_bundle(folder):
        raise UsageError(
            f"{folder} is not a bundle, and only bundles are timed: they are what a service runs. "
            f"Make one with: de3 export {folder} --out DIR"
        )
    share_threads(threads)  # the baselines need the pool too, whoever runs the bundle
    return load(folder, threads=threads, backend=backend)
