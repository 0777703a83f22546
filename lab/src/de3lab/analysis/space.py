"""How classes lie in the space that distances are taken in: t-SNE, and numbers beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from de3bert.data.sampling import draw_rows
from de3bert.data.table import Table
from de3bert.errors import De3Error, UsageError
from de3bert.runtime.evaluate import class_numbers
from de3lab.analysis.analysis import ANALYSES, Analysis
from de3lab.analysis.representations import Representations, representations
from de3lab.analysis.subject import Subject
from de3lab.figures.space import draw_space
from de3lab.tabular import Grid

__all__ = ["measure_space"]

PAPER_LAYERS = (2, 5)
NEIGHBOURS = 10
DECIMALS = 3  # of coordinates in the result

Floats = NDArray[Any]
Integers = NDArray[np.int64]


def measure_space(subjects: Sequence[Subject], settings: Mapping[str, Any]) -> dict[str, Any]:
    """The rows of each model at each layer in two dimensions, with how well classes are apart."""
    _check_same_classes(subjects)
    perplexity, seed = float(settings["perplexity"]), int(settings["seed"])
    table = draw_rows(subjects[0].rows, settings["rows"], seed)
    _check_rows(table, perplexity)
    labels = class_numbers(subjects[0].classifier, table)
    _check_classes(subjects, labels)
    layers = _layers(subjects, settings["layers"])
    panels = []
    for subject in subjects:
        tokens = subject.classifier.encode(table.inputs()).rows
        own = class_numbers(subject.classifier, table)
        for seen in representations(subject, tokens, layers):
            panels.append({"label": subject.label, **_panel(seen, own, perplexity, seed)})
    return {
        "rows": len(table),
        "layers": layers,
        "perplexity": perplexity,
        "neighbours": _neighbours(labels),
        "label_names": list(subjects[0].classifier.label_names),
        "classes": labels.tolist(),
        "panels": panels,
    }


def _check_same_classes(subjects: Sequence[Subject]) -> None:
    names = {subject.classifier.label_names for subject in subjects}
    if len(names) > 1:
        raise UsageError(
            f"The models have different classes, so they are not comparable: {sorted(names)}."
        )


def _check_rows(table: Table, perplexity: float) -> None:
    if not perplexity > 1:
        raise UsageError(f"The perplexity of t-SNE must be above 1, got {perplexity:g}.")
    if len(table) <= 3 * perplexity:
        raise UsageError(
            f"t-SNE of {len(table)} rows with perplexity {perplexity:g} is not to be trusted: it "
            f"needs more than {3 * perplexity:g} rows. Give more rows, or a smaller --perplexity."
        )


def _check_classes(subjects: Sequence[Subject], labels: Integers) -> None:
    if len(set(labels.tolist())) < 2:
        name = subjects[0].classifier.label_names[int(labels[0])]
        raise UsageError(
            f"All {len(labels)} rows are of one class ({name}); `space` shows how classes lie "
            "apart and needs rows of at least two."
        )


def _layers(subjects: Sequence[Subject], asked: Sequence[int] | None) -> list[int]:
    """The layers asked for, or those of the paper that all models have an exit at."""
    if asked:
        return list(dict.fromkeys(asked))
    shared = set.intersection(*(set(s.classifier.backend.exit_layers[:-1]) for s in subjects))
    found = [layer for layer in PAPER_LAYERS if layer in shared]
    if not found:
        at = ", ".join(map(str, sorted(shared))) or "none"
        raise UsageError(
            "The models have no exit before the last at layer 2 or 5, which the paper shows. "
            f"Name layers with --layer; there are: {at}."
        )
    return found


def _panel(seen: Representations, labels: Integers, perplexity: float, seed: int) -> dict[str, Any]:
    if not np.isfinite(seen.vectors).all():
        raise De3Error(f"Vectors at layer {seen.layer} are not finite; check the weights.")
    kept = np.zeros((0, seen.vectors.shape[1]), np.float32)
    known: list[int] = []
    if seen.prototypes is not None:
        known = np.flatnonzero(np.isfinite(seen.prototypes).all(axis=1)).tolist()
        kept = seen.prototypes[known]
    # Prototypes are placed together with the rows: t-SNE has no way to place them afterwards.
    placed = embed(np.concatenate([seen.vectors, kept]), perplexity, seed)
    rows = len(seen.vectors)
    return {
        "layer": seen.layer,
        "vectors": "projected" if seen.projected else "pooled",
        "points": np.round(placed[:rows], DECIMALS).tolist(),
        "prototypes": {
            str(k): np.round(placed[rows + n], DECIMALS).tolist() for n, k in enumerate(known)
        },
        "silhouette": silhouette(seen.vectors, labels),
        "neighbours_accuracy": neighbours_accuracy(seen.vectors, labels, _neighbours(labels)),
        "prototype_accuracy": nearest_accuracy(seen.vectors, kept, known, labels),
    }


def _neighbours(labels: Integers) -> int:
    return min(NEIGHBOURS, len(labels) - 1)


def embed(vectors: Floats, perplexity: float, seed: int) -> Floats:
    """t-SNE by cosine distance, (rows, hidden) -> (rows, 2); the same for the same seed."""
    from sklearn.manifold import TSNE

    placed = TSNE(
        2, metric="cosine", init="pca", perplexity=perplexity, random_state=seed
    ).fit_transform(vectors)
    return np.asarray(placed, dtype=np.float64)


def silhouette(vectors: Floats, labels: Integers) -> float:
    """Mean silhouette by cosine distance, in the whole space: 1 far apart, 0 mixed."""
    from sklearn.metrics import silhouette_score

    return float(silhouette_score(vectors, labels, metric="cosine"))


def neighbours_accuracy(vectors: Floats, labels: Integers, neighbours: int) -> float:
    """Share of rows whose nearest others, by majority, are of their class (cosine)."""
    from sklearn.neighbors import KNeighborsClassifier

    model = KNeighborsClassifier(neighbours, metric="cosine").fit(vectors, labels)
    # Without an argument every row is left out of its own neighbours.
    found = model.kneighbors(return_distance=False)
    votes = np.stack([(labels[found] == k).sum(1) for k in range(int(labels.max()) + 1)], axis=1)
    return float((votes.argmax(1) == labels).mean())


def nearest_accuracy(
    vectors: Floats, prototypes: Floats, known: Sequence[int], labels: Integers
) -> float | None:
    """Share of rows whose nearest prototype is that of their class; None without prototypes."""
    if not known:
        return None
    from sklearn.metrics.pairwise import cosine_distances

    nearest = cosine_distances(vectors, prototypes).argmin(axis=1)
    return float((np.asarray(known)[nearest] == labels).mean())


def _tables(numbers: Mapping[str, Any]) -> list[Grid]:
    columns = ("model", "layer", "vectors", "silhouette", "nearest neighbours", "nearest prototype")
    rows = tuple(
        (
            panel["label"],
            str(panel["layer"]),
            panel["vectors"],
            f"{panel['silhouette']:.3f}",
            f"{panel['neighbours_accuracy']:.3f}",
            None if panel["prototype_accuracy"] is None else f"{panel['prototype_accuracy']:.3f}",
        )
        for panel in numbers["panels"]
    )
    note = (
        f"n = {numbers['rows']}, by cosine distance in the whole space, not in the picture. "
        f"Nearest neighbours: share of rows of the class of most of their {numbers['neighbours']} "
        "nearest others; nearest prototype: share of rows of the class of theirs. "
        f"t-SNE with perplexity {numbers['perplexity']:g}."
    )
    return [Grid("How far classes are apart", columns, rows, note)]


ANALYSES.add(
    "space",
    Analysis(
        name="space",
        title="Sample representations and prototypes (t-SNE)",
        summary="how rows and prototypes lie in the space that distances are taken in",
        paper="Fig. 10",
        measure=measure_space,
        tables=_tables,
        draw=draw_space,
        settings={"layers": None, "rows": 1000, "perplexity": 30.0, "seed": 42},
        labels=(1, 2),
        seeds=False,
        needs_model=True,
    ),
)
