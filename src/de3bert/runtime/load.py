"""Loading a classifier from a bundle, a model folder or a hub id."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from de3bert.errors import De3Error, UsageError
from de3bert.files import read_json
from de3bert.printable import cut_list, printable
from de3bert.runtime.arguments import checked_device, checked_dtype, checked_source
from de3bert.runtime.backends import checked_backend, chosen_backend, open_backend
from de3bert.runtime.classifier import Classifier
from de3bert.runtime.hub import Fetching, fetched, hub_config, no_exits
from de3bert.runtime.loaded import Opening
from de3bert.runtime.manifest import check_inside, is_bundle
from de3bert.runtime.model_info import ModelInfo
from de3bert.runtime.threads import check_threads
from de3bert.tasks import Task, task_of

__all__ = ["check_folder", "load", "read_config", "read_info", "reopen", "task_of_model"]

MODEL_TYPE = "de3bert"
UNNAMED = {"0": "LABEL_0", "1": "LABEL_1"}  # what transformers does not write down


def load(
    source: str | Path,
    *,
    device: str | None = None,
    threads: int | None = None,
    spin: bool = True,
    backend: str | None = None,
    dtype: object = None,
    revision: str | None = None,
    token: str | bool | None = None,
    cache_dir: str | Path | None = None,
) -> Classifier[Any]:
    """A classifier ready to predict.

    `dtype`, `revision`, `token` and `cache_dir` mean what they mean in `from_pretrained`.

    Args:
        source: a bundle as `de3 export` writes it (runs without torch), a model folder as
            `de3 train` writes it, or the hub id of either.
        device: of a model folder: "cpu", "cuda" ...; by default a GPU when there is one.
        threads: by default one per core. All bundles of a process share one pool of threads.
        spin: of a bundle: whether threads spin while they wait for work (fastest on dedicated
            cores) or sleep (better on cores that are busy with other work). Those of OpenVINO
            always sleep.
        backend: what runs it. A model folder is run by "torch"; a bundle by "onnx" (the default)
            or "openvino", which give the same answers.
        dtype: of a model folder: "float32", "bfloat16", "float16" or such a `torch.dtype`; by
            default that of the stored weights. Prototypes and distances stay float32. The precision
            of a bundle is chosen by `de3 export`.
        revision: of a hub id: a branch, tag or commit. Refused for a folder.
        token: of a hub id: your access token; True takes the one of `hf auth login`. It is kept
            nowhere: a classifier that is pickled travels without it.
        cache_dir: of a hub id: where fetched files are kept.

    Example:
        >>> clf = de3bert.load("runs/demo/model")
        >>> clf.predict(["a joy from start to finish"])

    A tagger takes sentences (lists of words) instead of texts, and answers with their tags.
    """
    named, threads = checked_source(source), check_threads(threads)
    device, precision = checked_device(device), checked_dtype(dtype)
    asked = checked_backend(backend)
    how = Fetching.checked(revision, token, cache_dir)
    here = Path(named).exists()
    folder = _folder(named, how)
    opening = Opening(
        source=str(folder.absolute()) if here else named,
        device=device,
        threads=threads,
        spin=bool(spin),
        backend=chosen_backend(str(folder), asked, named),
        dtype=precision,
        # The commit and not its branch: a copy in another process is the same model.
        revision=None if here else folder.name,
        cache_dir=None if here else how.cache_dir,
    )
    made = Classifier(open_backend(str(folder), opening), named)
    made.opening = opening
    return made


def _folder(named: str, how: Fetching) -> Path:
    """The folder of a model, fetched if it is on the hub, with a config that is sound."""
    folder = Path(named)
    if folder.exists():
        how.check_folder(named)
    else:
        folder = fetched(named, MODEL_TYPE, how)
    check_folder(folder)
    read_info(folder)
    return folder


def reopen(opening: Opening) -> Classifier[Any]:
    """The other end of pickling: opens the folder again that a classifier was loaded from."""
    folder = Path(opening.source)
    if folder.is_absolute() and not folder.exists():
        raise De3Error(
            f"The classifier was loaded from {printable(opening.source)}, and that folder no "
            "longer exists. A pickled classifier does not contain its weights: both processes need "
            "the folder."
        )
    return load(**vars(opening))


def read_info(folder: Path) -> ModelInfo:
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
        raise no_exits(f"{name} holds", found, name)
    if not is_bundle(folder) and not any(folder.glob("*.safetensors")):
        raise De3Error(f"{name} has a config but no weights (model.safetensors is missing).")
