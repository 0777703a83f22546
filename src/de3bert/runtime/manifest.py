"""The manifest of a bundle: what is in it, which graph does what, and a hash of every file."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from de3bert.errors import De3Error, UsageError
from de3bert.files import write_json

__all__ = ["MANIFEST", "Graph", "Manifest", "is_bundle", "sign"]

MANIFEST = "manifest.json"
SCHEMA = "de3bert-bundle/1"
EXPORT_AGAIN = "Export it again with: de3 export MODEL --out {folder}"


@dataclass(frozen=True)
class Graph:
    """One stretch of layers with the exit behind it.

    Attributes:
        first, last: its layers; `last` is the layer of the exit.
        file: the graph of the stretch.
        distances: the graph from its pooled vector to prototype distances, if it has prototypes.
    """

    first: int
    last: int
    file: str
    distances: str | None = None


@dataclass(frozen=True)
class Manifest:
    """What a bundle is.

    Attributes:
        precision: fp32 or int8.
        graphs: in the order of the layers.
        inputs: what the first graph reads of each token row.
        context: name -> axes ("rows", "tokens" or a fixed size) of what later graphs read.
        padding: the filler of each input.
        prototypes_unset: classes whose prototypes were never set in training.
        source: the model it was made of, and the hash of its weights.
        made: versions, date and the exporter's checks.
        files: name -> bytes and sha256 of every other file.
    """

    precision: str
    graphs: tuple[Graph, ...]
    inputs: tuple[str, ...]
    context: dict[str, list[str | int]]
    padding: dict[str, int]
    prototypes_unset: tuple[str, ...]
    source: dict[str, Any]
    made: dict[str, Any]
    files: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Reads a manifest and checks every file it names against its size and hash."""
        path = folder / MANIFEST
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
            schema = document.pop("schema")
        except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
            raise De3Error(f"{path} is damaged: {error}. {_again(folder)}") from error
        if schema != SCHEMA:
            raise UsageError(
                f'{folder} is a bundle of the kind "{schema}"; this version of de3bert reads '
                f'"{SCHEMA}". {_again(folder)}'
            )
        try:
            graphs = tuple(Graph(**graph) for graph in document.pop("graphs"))
            inputs, unset = (tuple(document.pop(key)) for key in ("inputs", "prototypes_unset"))
            manifest = cls(graphs=graphs, inputs=inputs, prototypes_unset=unset, **document)
            manifest.check(folder)
        except (TypeError, KeyError, AttributeError) as error:
            raise De3Error(f"{path} is damaged: {error}. {_again(folder)}") from error
        return manifest

    def check(self, folder: Path) -> None:
        """De3Error for a file that is missing, cut short or altered."""
        for name, known in self.files.items():
            path = folder / name
            if not path.is_file():
                raise De3Error(f"The bundle {folder} is incomplete: {name} is missing. "
                               f"{_again(folder)}")  # fmt: skip
            size = path.stat().st_size
            if size != known["bytes"]:
                raise De3Error(
                    f"The bundle {folder} is damaged: {name} has {size} bytes, it was written with "
                    f"{known['bytes']}. {_again(folder)}"
                )
            if sha256(path) != known["sha256"]:
                raise De3Error(
                    f"The bundle {folder} was altered: {name} is not the file it was exported "
                    f"with. {_again(folder)}"
                )

    def write(self, folder: Path) -> None:
        """Writes the manifest with the hashes of all files that are in the folder now."""
        files = {
            path.name: {"bytes": path.stat().st_size, "sha256": sha256(path)}
            for path in sorted(folder.iterdir())
            if path.is_file() and path.name not in (MANIFEST, *UNSIGNED)
        }
        document = {"schema": SCHEMA, **asdict(replace(self, files=files))}
        write_json(folder / MANIFEST, document)

    @property
    def weights_sha256(self) -> str:
        """One name for all graphs together: two bundles with it give the same answers."""
        graphs = [name for name in self.files if name.endswith(".onnx")]
        digest = hashlib.sha256()
        for name in sorted(graphs):
            digest.update(self.files[name]["sha256"].encode())
        return digest.hexdigest()


# Written later and by others: what this machine was measured to need, and the card.
UNSIGNED = ("profile.json", "README.md")


def is_bundle(folder: str | Path) -> bool:
    return (Path(folder) / MANIFEST).exists()


def sign(folder: Path, name: str) -> None:
    """Takes the present content of one file into the manifest, after it was rightly changed."""
    document = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    path = folder / name
    document["files"][name] = {"bytes": path.stat().st_size, "sha256": sha256(path)}
    write_json(folder / MANIFEST, document)


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _again(folder: Path) -> str:
    return EXPORT_AGAIN.format(folder=folder)
