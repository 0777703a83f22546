"""A model with all its contenders, made in a folder and found there the next time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

# They register the contenders.
from de3bert.bench import graphs, hf
from de3bert.bench.contender import Static, find
from de3bert.bench.material import BenchMaterial, load_bundle
from de3bert.bench.measure import Note
from de3bert.data.tokens import TokenRow
from de3bert.errors import De3Error
from de3bert.exits import Policy
from de3bert.files import replace_folder
from de3bert.runtime.engine import Backend, run_batch
from de3bert.runtime.load import read_config
from de3lab.bench.made_up import Shape, token_rows, write_random_model
from de3lab.made import bundle_in

__all__ = ["Course", "graphs", "hf", "prepare"]

CLOSE = 1e-3  # how far logits may lie apart: sums in another order, through all layers


@dataclass(frozen=True)
class Course:
    """One model, ready to be timed on token rows.

    Attributes:
        bundle: the fp32 bundle.
        inputs: what the model reads of each token row.
        statics: the contenders without exits, by name.
        ours: the back ends of the bundles, by precision.
    """

    bundle: Path
    inputs: tuple[str, ...]
    statics: dict[str, Static]
    ours: dict[str, Backend]

    def rows(self, lengths: Sequence[int]) -> list[TokenRow]:
        """Rows of random tokens, of exactly these lengths."""
        vocabulary = int(read_config(self.bundle)["backbone_config"]["vocab_size"])
        return token_rows(lengths, vocabulary, self.inputs)


def prepare(
    folder: Path,
    model: Path | Shape,
    statics: Sequence[str],
    *,
    int8: bool = False,
    note: Note = lambda _: None,
) -> Course:
    """Exports what is not in `folder` yet; delete the folder when the exporter has changed.

    Args:
        model: a model folder, or the shape of one with random weights.
        statics: names of contenders.
        int8: an int8 bundle too. Only for models without operating points, which would have to be
            recalibrated.
    """
    source = _random_model(folder / "model", model) if isinstance(model, Shape) else model
    ours = {"fp32": load_bundle(_exported(source, folder / "bundle", False, note))}
    if int8:
        ours["int8"] = load_bundle(_exported(source, folder / "bundle-int8", True, note))
    material = BenchMaterial(ours["fp32"], source, folder / "graphs")
    made = {name: find(name)(material, name)() for name in statics}
    course = Course(
        bundle=folder / "bundle",
        inputs=material.manifest.inputs,
        statics={name: each for name, each in made.items() if isinstance(each, Static)},
        ours={precision: each.backend for precision, each in ours.items()},
    )
    _check_same(course)
    return course


def _check_same(course: Course) -> None:
    """All must compute the same, or their times mean nothing: a padded batch tells."""
    rows = course.rows((3, 9, 17))
    right = run_batch(course.ours["fp32"], rows, Policy.parse("full")).logits
    for name, static in course.statics.items():
        if not static.full_depth or static.precision != "fp32":
            continue
        apart = float(np.abs(static.logits(rows) - right).max())
        if apart > CLOSE:
            raise De3Error(
                f"{name} and the bundle should compute the same, but their logits are {apart:.2g} "
                "apart. Delete the folder if the exporter has changed since it was made."
            )


def _random_model(folder: Path, shape: Shape) -> Path:
    if not folder.exists():
        with replace_folder(folder) as written:
            write_random_model(shape, written)
    return folder


def _exported(model: Path, out: Path, int8: bool, note: Note) -> Path:
    def export(model: Path, out: Path) -> None:
        from de3bert.export.bundle import export_model

        note(f"exporting {out}")
        export_model(model, out, int8=int8)

    return bundle_in(out, model, export)
