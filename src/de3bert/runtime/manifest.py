"""The manifest of a bundle: what is in it, which graph does what, and a hash of every file.

A bundle is a self-contained folder. Its author may be untrusted: nothing outside the folder is read
because the manifest or a graph names it, and nothing inside that the manifest does not know.
"""

from __future__ import annotations

import hashlib
import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    StrictInt,
    StrictStr,
    ValidationError,
)

from de3bert.errors import De3Error, UsageError
from de3bert.exits import token_layers
from de3bert.files import read_json, write_json
from de3bert.limits import check_limit
from de3bert.printable import printable
from de3bert.runtime.external_data import external_files

__all__ = ["MANIFEST", "Graph", "Manifest", "Single", "check_inside", "is_bundle", "sign"]

MANIFEST = "manifest.json"
SCHEMA = "de3bert-bundle/1"
EXPORT_AGAIN = "Export it again with: de3 export MODEL --out {folder}"
ALWAYS = ("config.json", "tokenizer.json")  # what every bundle reads besides its graphs
PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")


def _plain(name: str) -> str:
    if not PLAIN.fullmatch(name):
        raise ValueError(f"{name!r:.80} is not the plain name of a file in the bundle")
    return name


FileName = Annotated[StrictStr, AfterValidator(_plain)]
InputName = Annotated[StrictStr, Field(pattern="^(input_ids|attention_mask|token_type_ids)$")]
Axis = Annotated[StrictStr, Field(pattern="^(rows|tokens)$")]


class ManifestPart(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Graph(ManifestPart):
    """One stretch of layers with the exit behind it.

    Attributes:
        first, last: its layers; `last` is the layer of the exit.
        file: the graph of the stretch.
        distances: the graph from its pooled vector to prototype distances, if it has prototypes.
    """

    first: StrictInt = Field(ge=1)
    last: StrictInt = Field(ge=1)
    file: FileName
    distances: FileName | None = None


class Single(ManifestPart):
    """The whole model in one graph, for single rows.

    Attributes:
        rule: the form of the rule in it (`de3bert.exits.rule_form`).
    """

    file: FileName
    rule: StrictStr


class Known(ManifestPart):
    """What a file was when the bundle was written.

    Attributes:
        next: what it may be as well, while it is being changed: a process that is killed between
            the file and the manifest leaves a bundle that is still valid.
    """

    bytes: StrictInt = Field(ge=0)
    sha256: StrictStr = Field(pattern="^[0-9a-f]{64}$")
    next: Known | None = None

    @classmethod
    def of(cls, data: Path | str) -> Known:
        """Of a file, or of the text that it will hold."""
        if isinstance(data, Path):
            return cls(bytes=data.stat().st_size, sha256=sha256(data))
        content = data.encode("utf-8")
        return cls(bytes=len(content), sha256=hashlib.sha256(content).hexdigest())


class Manifest(ManifestPart):
    """What a bundle is.

    Attributes:
        precision: fp32 or int8.
        graphs: in the order of the layers.
        single: the same layers in one graph, if they can be.
        inputs: what the first graph reads of each token row.
        context: name -> axes ("rows", "tokens" or a fixed size) of what later graphs read.
        padding: the filler of each input.
        prototypes_unset: classes whose prototypes were never set in training.
        task: what the model is asked; the graphs of a tagger answer for every token.
        unknown: of a tagger, what stands for a word that gives no token.
        source: the model it was made of, and the hash of its weights.
        made: versions, date and the exporter's checks.
        files: name -> bytes and sha256 of every other file.
    """

    precision: Literal["fp32", "int8"]
    graphs: tuple[Graph, ...] = Field(min_length=1)
    inputs: tuple[InputName, ...] = Field(min_length=1)
    context: dict[StrictStr, list[Axis | StrictInt]]
    padding: dict[StrictStr, StrictInt]
    prototypes_unset: tuple[StrictStr, ...]
    source: dict[str, Any]
    made: dict[str, Any]
    task: StrictStr = "text-classification"
    unknown: StrictStr | None = None
    single: Single | None = None
    files: dict[FileName, Known] = Field(default_factory=dict)

    @classmethod
    def read(cls, folder: Path) -> Manifest:
        """Reads a manifest and checks every file it names against its size and hash.

        What does not fit because somebody is changing the bundle just now is looked at again.
        """
        manifest = cls._parsed(folder)
        while True:
            try:
                manifest.check(folder)
            except De3Error:
                before, manifest = manifest, cls._parsed(folder)
                if manifest == before:
                    raise
            else:
                return manifest

    @classmethod
    def _parsed(cls, folder: Path) -> Manifest:
        path = folder / MANIFEST
        check_inside(folder, MANIFEST)
        document = read_json(path, _again(folder))
        if "schema" not in document:
            raise De3Error(f"{path} is damaged: it has no schema. {_again(folder)}")
        schema = document.pop("schema")
        if schema != SCHEMA:
            shown = printable(str(schema))[:80]
            raise UsageError(
                f'{folder} is a bundle of the kind "{shown}"; this version of de3bert reads '
                f'"{SCHEMA}". {_again(folder)}'
            )
        try:
            return cls.model_validate(document)
        except (ValidationError, RecursionError) as error:
            raise De3Error(f"{path} is damaged: {_first(error)}. {_again(folder)}") from error

    def check(self, folder: Path) -> None:
        """De3Error for a file that is missing, cut short, altered, elsewhere or not known."""
        self._check_graphs(folder)
        for name, known in self.files.items():
            path = folder / name
            if not path.is_file():
                raise De3Error(f"The bundle {folder} is incomplete: {name} is missing. "
                               f"{_again(folder)}")  # fmt: skip
            check_inside(folder, name)
            found = Known.of(path)
            if known.next is not None and found == known.next:
                continue
            if found.bytes != known.bytes:
                raise De3Error(
                    f"The bundle {folder} is damaged: {name} has {found.bytes} bytes, it was "
                    f"written with {known.bytes}. {_again(folder)}"
                )
            if found.sha256 != known.sha256:
                raise De3Error(
                    f"The bundle {folder} was altered: {name} is not the file it was exported "
                    f"with. {_again(folder)}"
                )
        for name in sorted(self.graph_files):
            self._check_known(folder, external_files(folder / name), f"the graph {name}")
        check_limit("tokenizer", self.files["tokenizer.json"].bytes, str(folder / "tokenizer.json"))

    def _check_graphs(self, folder: Path) -> None:
        """Consecutive graphs, from the first layer on, each of a known file."""
        check_limit("layers", self.graphs[-1].last, str(folder / MANIFEST))
        before = 0
        for graph in self.graphs:
            if graph.first != before + 1 or graph.last < graph.first:
                raise De3Error(
                    f"{folder / MANIFEST} is damaged: its graphs are not consecutive (layers "
                    f"{graph.first} to {graph.last} after layer {before}). {_again(folder)}"
                )
            before = graph.last
        used = self.graph_files
        if (folder / token_layers.FILE).exists():
            used.add(token_layers.FILE)
        self._check_known(folder, {*ALWAYS, *used}, "the bundle")

    def _check_known(self, folder: Path, names: set[str], user: str) -> None:
        unknown = sorted(name for name in names if name not in self.files)
        if unknown:
            raise De3Error(
                f"The bundle {folder} is not self-contained: {user} uses "
                f"{printable(unknown[0])!r:.80}, which its manifest does not list. {_again(folder)}"
            )

    def write(self, folder: Path) -> None:
        """Writes the manifest with the hashes of all files that are in the folder now."""
        files = {
            path.name: Known.of(path)
            for path in sorted(folder.iterdir())
            if path.is_file() and PLAIN.fullmatch(path.name) and path.name not in UNSIGNED
        }
        document = self.model_copy(update={"files": files}).model_dump(mode="json")
        write_json(folder / MANIFEST, {"schema": SCHEMA, **document})

    @property
    def graph_files(self) -> set[str]:
        """The names of all graphs."""
        named = [name for each in self.graphs for name in (each.file, each.distances)]
        return {name for name in (*named, self.single and self.single.file) if name}

    @property
    def weights_sha256(self) -> str:
        """One name for the weights: two bundles with it give the same answers.

        The single graph has those of the others, and in its metadata the points of its day.
        """
        beside = self.single and self.single.file
        graphs = [name for name in self.files if name.endswith(".onnx") and name != beside]
        digest = hashlib.sha256()
        for name in sorted(graphs):
            digest.update(self.files[name].sha256.encode())
        return digest.hexdigest()


# Written later and by others: what this machine was measured to need, and the card.
UNSIGNED = (MANIFEST, "profile.json", "README.md")


def is_bundle(folder: str | Path) -> bool:
    return (Path(folder) / MANIFEST).exists()


def sign(folder: Path, name: str, text: str | None = None) -> None:
    """Takes one file into the manifest, after it was rightly changed.

    Args:
        text: what the file is about to hold; until it is signed again, both are accepted.
    """
    document = read_json(folder / MANIFEST, _again(folder))
    known = Known.of(folder / name)
    if text is not None:
        known = known.model_copy(update={"next": Known.of(text)})
    document["files"][name] = known.model_dump(mode="json", exclude_none=True)
    write_json(folder / MANIFEST, document)


def check_inside(folder: Path, name: str) -> None:
    """De3Error when a file of a bundle is a link that leads out of it."""
    # Not `resolve`, which fails on a link that leads in a circle.
    real = Path(os.path.realpath(folder / name))
    if not any(real.is_relative_to(home) for home in _homes(folder)):
        raise De3Error(
            f"The bundle {folder} is not self-contained: {name} is a link to a path outside of it. "
            f"Copy the bundle with its files. {_again(folder)}"
        )


def _homes(folder: Path) -> list[Path]:
    """Where the files of a bundle may lie.

    In the hub's cache a folder `models--NAME/snapshots/COMMIT` has links to `models--NAME/blobs`.
    """
    real = Path(os.path.realpath(folder))
    repository = real.parent.parent
    if real.parent.name == "snapshots" and repository.name.startswith("models--"):
        return [real, repository / "blobs"]
    return [real]


def sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _first(error: Exception) -> str:
    """The first thing that is wrong with a document, and where it is."""
    if not isinstance(error, ValidationError):
        return "it is nested too deeply"
    found = error.errors()[0]
    return printable(f"{'.'.join(map(str, found['loc']))[:80]}: {found['msg']}")[:200]


def _again(folder: Path) -> str:
    return EXPORT_AGAIN.format(folder=folder)
