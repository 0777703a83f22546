"""Loading a classifier from a model folder or a hub id."""

from __future__ import annotations

import json
from pathlib import Path

from de3bert.errors import De3Error, UsageError
from de3bert.runtime.classifier import Classifier

__all__ = ["check_folder", "load"]

MODEL_TYPE = "de3bert"


def load(source: str | Path, *, device: str | None = None) -> Classifier:
    """A classifier ready to predict.

    Args:
        source: a model folder as `de3 train` writes it, or a hub id.
        device: "cpu", "cuda" ...; by default a GPU when there is one.

    Example:
        >>> clf = de3bert.load("runs/demo/model")
        >>> clf.predict(["a joy from start to finish"])
    """
    folder = Path(source)
    if folder.exists():
        check_folder(folder)
    # Here and not above: `import de3bert` and the checks stay free of torch.
    from de3bert.runtime.torch_load import load_torch

    return Classifier(load_torch(str(source), device), str(source))


def check_folder(folder: Path) -> None:
    if not folder.is_dir():
        raise UsageError(f"{folder} is a file; a model is a folder with config.json and weights.")
    path = folder / "config.json"
    if not path.exists():
        inside = ", ".join(sorted(item.name for item in folder.iterdir())[:8]) or "nothing"
        raise UsageError(
            f"{folder} is not a model folder: it has no config.json (found: {inside})."
        )
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise De3Error(f"{path} is damaged: {error}.") from error
    found = config.get("model_type") if isinstance(config, dict) else None
    if found != MODEL_TYPE:
        raise UsageError(
            f'{folder} holds a "{found}" model, which has no exits. '
            f"Put exits on it with: de3 train --backbone {folder} --data FILE --out DIR"
        )
    if not any(folder.glob("*.safetensors")):
        raise De3Error(f"{folder} has a config but no weights (model.safetensors is missing).")
