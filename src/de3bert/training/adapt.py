"""Prototypes moved to data from another domain, without labels: the paper on shifted data."""

from __future__ import annotations

import shutil
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from de3bert.card import write_card
from de3bert.data.sampling import draw_rows
from de3bert.data.table import Table
from de3bert.errors import De3Error, UsageError
from de3bert.exits import OperatingPoint
from de3bert.exits.signals import cosine_distance
from de3bert.files import replace_folder, write_json
from de3bert.model import EarlyExitModel
from de3bert.model.loading import read_model
from de3bert.model.outputs import EarlyExitOutput
from de3bert.model.prototypes import PrototypeBank
from de3bert.model.tokens import TextEncoder, load_tokenizer
from de3bert.printable import cut_list
from de3bert.training.adaptable import check_adaptation
from de3bert.training.clusters import Clusters, Distance, clustered
from de3bert.training.inference import over_rows
from de3bert.training.rows import Rows

__all__ = ["Adapted", "Moved", "adapt_model"]

RECORD = "adaptation.json"
# What stays true: exits answer as before, only their distances change. A drawn curve and a profile
# of the old weights do not stay.
KEPT = ("recipe.toml", "training.json")


@dataclass(frozen=True)
class Moved:
    """What became of the prototype of one class at one exit.

    Attributes:
        rows: those in its cluster at the end; with 0 the prototype is the old one.
        distance: cosine distance between the old and the new prototype.
    """

    layer: int
    label: str
    rows: int
    distance: float


@dataclass(frozen=True)
class Adapted:
    """What an adaptation gave.

    Attributes:
        folder: the new model folder.
        rows: how many were read; no label of theirs was.
        truncated: how many of them were cut to the model's length.
        moved: every prototype, exit by exit.
        iterations: layer -> iterations of K-means there.
        unsettled: layers where the last iteration allowed still moved rows between clusters.
        unmeasured: operating points that read distances: their policies are kept, what they were
            measured to give is not.
    """

    folder: Path
    rows: int
    truncated: int
    distance: Distance
    seed: int
    moved: list[Moved]
    iterations: dict[int, int]
    unsettled: list[int]
    unmeasured: list[str]

    @property
    def notes(self) -> list[str]:
        """What the user should know."""
        empty = [f"{each.label} (layer {each.layer})" for each in self.moved if not each.rows]
        found = []
        if self.truncated:
            found.append(
                f"{self.truncated} of {self.rows} texts were truncated to the model's length"
            )
        if empty:
            named = cut_list(empty)
            found.append(f"no row is nearest to these prototypes, which stay unchanged: {named}")
        if self.unsettled:
            layers = ", ".join(map(str, self.unsettled))
            found.append(f"K-means did not converge at layers {layers}")
        return found

    def to_json(self) -> dict[str, Any]:
        document = asdict(self) | {"folder": str(self.folder), "notes": self.notes}
        return document | {"iterations": {str(k): v for k, v in self.iterations.items()}}


def adapt_model(
    model: str | Path,
    table: Table,
    out: str | Path,
    *,
    rows: int | None = None,
    distance: Distance = "cosine",
    seed: int = 42,
    batch_size: int = 32,
    overwrite: bool = False,
    progress: str | None = None,
) -> Adapted:
    """Writes a copy of a model whose prototypes fit unlabelled rows of other data.

    At every exit K-means runs over the projected vectors of the rows, from the old prototypes;
    its centres are the new ones. Nothing else of the model changes, and no label is read.

    Args:
        model: a model folder with prototypes; it is not changed.
        table: the rows.
        rows: at most so many, drawn at random; None takes all.
        distance: of K-means: `cosine`, as exits measure it, or `euclidean`. The paper does not
            say which it used.
        progress: the label of a progress bar.
    """
    import sklearn  # noqa: F401  # that it is missing is said before the long pass

    source, out = Path(model), Path(out)
    check_adaptation(source, out, overwrite)
    loaded = read_model(str(source)).eval()
    bank = _prototypes(loaded, source)
    table = table if rows is None else draw_rows(table, rows, seed)
    _check_rows(table, loaded.config.label_names)
    encoder = TextEncoder(load_tokenizer(str(source)), loaded.config.max_length)
    vectors, cut = _projected(loaded, encoder, table, batch_size, progress)
    if not torch.isfinite(vectors).all():
        raise De3Error(f"{source} is damaged: the vectors that its exits read are not finite.")
    old = bank.vectors.clone()
    found = _move(bank, vectors, distance)
    layers = (loaded.config.exit_layers or [])[:-1]
    result = Adapted(
        folder=out,
        rows=len(table),
        truncated=cut,
        distance=distance,
        seed=seed,
        moved=_ways(old, bank.vectors, found, loaded),
        iterations={m: each.iterations for m, each in zip(layers, found, strict=True)},
        unsettled=[m for m, each in zip(layers, found, strict=True) if not each.settled],
        unmeasured=_note_in_config(loaded, table),
    )
    _save(source, out, loaded, encoder, result)
    return result


def _prototypes(model: EarlyExitModel, source: Path) -> PrototypeBank:
    assert model.prototypes is not None  # see check_adaptation
    done = model.prototypes.initialised.tolist()
    names = zip(model.config.label_names, done, strict=True)
    if missing := [name for name, seen in names if not seen]:
        raise De3Error(
            f"The prototypes of these classes of {source} were never set, so there is nothing to "
            f"start from: {cut_list(missing)}. Train the model on rows of all its classes."
        )
    return model.prototypes


def _check_rows(table: Table, names: tuple[str, ...]) -> None:
    if len(table) < len(names):
        raise UsageError(
            f"{table.source} gives {len(table)} rows for {len(names)} classes; at least one row "
            "per class is needed, and hundreds are better."
        )


@torch.no_grad()
def _projected(
    model: EarlyExitModel,
    encoder: TextEncoder,
    table: Table,
    batch_size: int,
    progress: str | None,
) -> tuple[Tensor, int]:
    """h' of every row at every internal exit, (rows, exits, hidden), and how many were cut."""
    encoded = encoder(table.inputs())
    unlabelled = Rows(encoded, np.zeros(len(table), dtype=np.int64))  # the pass leaves labels out

    def read(output: EarlyExitOutput) -> Tensor:
        assert output.projected is not None
        return output.projected

    if torch.cuda.is_available():
        torch.nn.Module.to(model, "cuda")  # the subclass's wrapper hides its signature
    vectors = over_rows(model, unlabelled, encoder, read, batch_size=batch_size, progress=progress)
    torch.nn.Module.to(model, "cpu")
    return vectors, encoded.truncated


def _note_in_config(model: EarlyExitModel, table: Table) -> list[str]:
    """Says in the config what the prototypes are, and drops what was measured with the old ones.

    A policy that reads no distance answers as before, so what it was measured to give stays.
    """
    config, unmeasured = model.config, []
    config.prototype_means = "adapted"
    config.adapted_to = {
        "rows": len(table),
        "source": Path(table.source).name,
        "sha256": table.sha256,
    }
    for name, point in (config.operating_points or {}).items():
        if OperatingPoint.from_json(point).policy.needs_distances:
            point["measured"] = {}
            unmeasured.append(name)
    return unmeasured


def _move(bank: PrototypeBank, vectors: Tensor, distance: Distance) -> list[Clusters]:
    """New prototypes at every exit, from the old ones. `vectors`: (rows, exits, hidden)"""
    found = []
    for index, start in enumerate(bank.vectors):
        found.append(clustered(vectors[:, index].numpy(), start.numpy(), distance))
        bank.vectors[index] = torch.from_numpy(found[-1].centres)
    return found


def _ways(old: Tensor, new: Tensor, found: list[Clusters], model: EarlyExitModel) -> list[Moved]:
    """How far every prototype went; (exits, classes, hidden) each."""
    ways = cosine_distance(old.double().numpy(), new.double().numpy())
    layers, names = model.config.exit_layers or [], model.config.label_names
    return [
        Moved(layer, name, int(found[index].rows[k]), float(ways[index, k]))
        for index, layer in enumerate(layers[:-1])
        for k, name in enumerate(names)
    ]


def _save(
    source: Path,
    out: Path,
    model: EarlyExitModel,
    encoder: TextEncoder,
    result: Adapted,
) -> None:
    """The whole model folder, or nothing."""
    with replace_folder(out) as folder:
        model.save_pretrained(folder)
        encoder.tokenizer.save_pretrained(folder)
        for name in KEPT:
            if (source / name).is_file():
                shutil.copy2(source / name, folder / name)
        record = {k: v for k, v in result.to_json().items() if k != "folder"}
        write_json(folder / RECORD, record)
        write_card(folder, out.absolute().name)
