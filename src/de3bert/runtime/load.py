"""Loading a classifier from a bundle, a model folder or a hub id."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from de3bert.errors import De3Error, UsageError
from de3bert.files import read_json
from de3bert.runtime.classifier import Classifier
from de3bert.runtime.facts import Facts
from de3bert.runtime.manifest import Manifest, is_bundle

__all__ = ["check_folder", "load", "read_config"]

MODEL_TYPE = "de3bert"


def load(
    source: str | Path,
    *,
    device: str | None = None,
    threads: int | None = None,
    spin: bool = True,
) -> Classifier:
    """A classifier ready to predict.

    Args:
        source: a bundle as `de3 export` writes it (runs without torch), a model folder as
            `de3 train` writes it, or a hub id.
        device: of a model folder: "cpu", "cuda" ...; by default a GPU when there is one.
        threads: by default one per core. All bundles of a process share one pool of threads.
        spin: of a bundle: whether threads wait for work awake (fastest on cores of one's own) or
            asleep (better on cores that other work keeps busy).

    Example:
        >>> clf = de3bert.load("runs/demo/model")
        >>> clf.predict(["a joy from start to finish"])

    A model of words comes as a `WordClassifier`, which takes sentences in place of texts.
    """
    folder = Path(source)
    if folder.exists():
        check_folder(folder)
    if is_bundle(folder):
        return _load_bundle(folder, device, threads, spin)
    # Here and not above: `import de3bert` and the checks stay free of torch.
    from de3bert.runtime.torch_load import load_torch
    from de3bert.runtime.torch_words import TorchWordBackend
    from de3bert.runtime.words import WordClassifier

    backend = load_torch(str(source), device, threads)
    if isinstance(backend, TorchWordBackend):
        # Whoever asks it for what only texts have is told so.
        return cast(Classifier, WordClassifier(backend, str(source)))
    return Classifier(backend, str(source))


def _load_bundle(folder: Path, device: str | None, threads: int | None, spin: bool) -> Classifier:
    if device not in (None, "cpu"):
        raise UsageError(f'A bundle runs on the CPU, got device="{device}". Load the model folder.')
    from de3bert.runtime.onnx_backend import OnnxBackend
    from de3bert.runtime.sessions import check_threads, cores, share_threads

    manifest = Manifest.read(folder)
    facts = Facts.of(read_config(folder))
    check_threads(threads)
    wanted = share_threads(threads) if spin else threads or cores()
    return Classifier(OnnxBackend(folder, facts, manifest, threads=wanted, spin=spin), str(folder))


def read_config(folder: str | Path) -> dict[str, Any]:
    """The config of a model folder or bundle, as JSON has it."""
    return read_json(Path(folder) / "config.json")


def check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise UsageError(f"{folder} is a file; a model is a folder with config.json and weights.")
    if not (folder / "config.json").exists():
        if is_bundle(folder):
            raise De3Error(f"The bundle {folder} is incomplete: config.json is missing.")
        inside = ", ".join(sorted(item.name for item in folder.iterdir())[:8]) or "nothing"
        raise UsageError(
            f"{folder} is not a model folder: it has no config.json (found: {inside})."
        )
    found = read_config(folder).get("model_type")
    if found != MODEL_TYPE:
        raise UsageError(
            f'{folder} holds a "{found}" model, which has no exits. '
            f"Put exits on it with: de3 train --backbone {folder} --data FILE --out DIR"
        )
    if not is_bundle(folder) and not any(folder.glob("*.safetensors")):
        raise De3Error(f"{folder} has a config but no weights (model.safetensors is missing).")
