"""Loading a classifier from a bundle, a model folder or a hub id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from de3bert.errors import De3Error, UsageError
from de3bert.files import read_json
from de3bert.printable import cut_list, printable
from de3bert.runtime.arguments import checked_device, checked_source
from de3bert.runtime.backends import checked_backend, chosen_backend, open_backend
from de3bert.runtime.classifier import Classifier
from de3bert.runtime.hub import check_hub, hub_config
from de3bert.runtime.loaded import Opening
from de3bert.runtime.manifest import check_inside, is_bundle
from de3bert.runtime.model_info import ModelInfo
from de3bert.runtime.threads import check_threads
from de3bert.tasks import Task, task_of

__all__ = ["check_folder", "load", "read_config", "read_facts", "reopen", "task_of_model"]

MODEL_TYPE = "de3bert"
UNNAMED = {"0": "LABEL_0", "1": "LABEL_1"}  # what transformers does not write down


def load(
    source: str | Path,
    *,
    device: str | None = None,
    threads: int | None = None,
    spin: bool = True,
    backend: str | None = None,
) -> Classifier[Any]:
    """A classifier ready to predict.

    Args:
        source: a bundle as `de3 export` writes it (runs without torch), a model folder as
            `de3 train` writes it, or a hub id.
        device: of a model folder: "cpu", "cuda" ...; by default a GPU when there is one.
        threads: by default one per core. All bundles of a process share one pool of threads.
        spin: of a bundle: whether threads spin while they wait for work (fastest on dedicated
            cores) or sleep (better on cores that are busy with other work). Those of OpenVINO
            always sleep.
        backend: what runs it. A model folder is run by "torch"; a bundle by "onnx" (the default)
            or "openvino", which give the same answers.

    Example:
        >>> clf = de3bert.load("runs/demo/model")
        >>> clf.predict(["a joy from start to finish"])

    A tagger takes sentences (lists of words) instead of texts, and answers with their tags.
    """
    named, threads = checked_source(source), check_threads(threads)
    place, asked = checked_device(device), checked_backend(backend)
    folder = Path(named)
    if folder.exists():
        check_folder(folder)
        read_facts(folder)
    else:
        check_hub(named, MODEL_TYPE)
    opening = Opening.of(named, place, threads, bool(spin), chosen_backend(named, asked))
    made = Classifier(open_backend(named, opening), named)
    made.opening = opening
    return made


def reopen(opening: Opening) -> Classifier[Any]:
    """The other end of pickling: opens the folder again that a classifier was loaded from."""
    folder = Path(opening.source)
    if folder.is_absolute() and not folder.exists():
        raise De3Error(
            f"The classifier was loaded from {printable(opening.source)}, and that folder no "
            "longer exists. A pickled classifier does not contain its weights: both processes need "
            "the folder."
        )
    return load(
        opening.source,
        device=opening.device,
        threads=opening.threads,
        spin=opening.spin,
        backend=opening.backend,
    )


def read_facts(folder: Path) -> ModelInfo:
    """What the config says, before anything heavy is imported or read."""
    try:
        return ModelInfo.of({"id2label": UNNAMED, **read_config(folder)})
    except De3Error as error:
        raise type(error)(f"{printable(str(folder))}: {error}") from error


def read_config(folder: str | Path) -> dict[str, Any]:
    """The config of a model folder or bundle, as JSON has it."""
    if is_bundle(folder):
        check_inside(Path(folder), "config.json")
    return read_json(Path(folder) / "config.json")


def task_of_model(source: str | Path) -> Task[Any]:
    """The task of a model that is not loaded yet; De3Error for an unknown one.

    A model whose config cannot be read counts as the default task: `load` reports what is wrong.
    """
    folder, config = Path(checked_source(source)), None
    if (folder / "config.json").is_file():
        config = read_config(folder)
    elif not folder.exists():
        config = hub_config(str(source))
    try:
        return task_of(config or {})
    except UsageError as error:
        raise De3Error(f"The config of {source} is damaged or incomplete: {error}") from error


def check_folder(folder: Path) -> None:
    """UsageError or De3Error unless the folder holds a model of ours; reads no weights."""
    name = printable(str(folder))
    if not folder.is_dir():
        if not folder.exists():
            raise UsageError(f"There is no folder {name}.")
        raise UsageError(f"{name} is a file; a model is a folder with config.json and weights.")
    if not (folder / "config.json").is_file():
        if is_bundle(folder):
            raise De3Error(f"The bundle {name} is incomplete: config.json is missing.")
        inside = printable(cut_list(sorted(item.name for item in folder.iterdir()), 8)) or "nothing"
        raise UsageError(f"{name} is not a model folder: it has no config.json (found: {inside}).")
    found = read_config(folder).get("model_type")
    if found != MODEL_TYPE:
        raise UsageError(
            f'{name} holds a "{printable(str(found))[:60]}" model, which has no exits. '
            f"Put exits on it with: de3 train --backbone {name} --data FILE --out DIR"
        )
    if not is_bundle(folder) and not any(folder.glob("*.safetensors")):
        raise De3Error(f"{name} has a config but no weights (model.safetensors is missing).")
