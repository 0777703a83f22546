"""K-means from given centres, on the sphere or in the plain space."""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Clusters", "Distance", "clustered"]

Distance = Literal["cosine", "euclidean"]
Floats = NDArray[np.float64]
MOST = 100  # iterations


class Clusters(NamedTuple):
    """Where the centres came to rest."""

    centres: Floats  # (clusters, hidden); an empty cluster has the centre it started from
    rows: NDArray[np.int64]  # (clusters,)
    iterations: int
    settled: bool  # whether the last iteration moved no row to another cluster


def clustered(
    vectors: NDArray[Any], start: NDArray[Any], distance: Distance = "cosine"
) -> Clusters:
    """K-means whose cluster k begins, and so remains, as class k.

        z_n = argmin_k dist(h_n, c_k),    c_k = mean of h_n over z_n = k

    For `cosine` vectors and centres have length 1, after every step too (spherical K-means), since
    exits measure cosine distance.

    scikit-learn's own KMeans is not taken, because it does two other things. Its centres are plain
    means, shorter the wider a cluster is, so that a row does not go to the centre at the smallest
    angle. And it moves an empty cluster to the farthest row, where a class that does not occur in
    the rows has to keep its prototype.

    Args:
        vectors: (rows, hidden).
        start: (clusters, hidden), none of them 0.
    """
    from sklearn.metrics import pairwise_distances_argmin
    from sklearn.preprocessing import normalize

    points, centres = vectors.astype(np.float64), start.astype(np.float64)
    if distance == "cosine":
        # Of vectors of length 1 the nearest is the one at the smallest angle.
        points, centres = normalize(points), normalize(centres)
    nearest = pairwise_distances_argmin(points, centres)
    iterations, settled = 0, False
    while not settled and iterations < MOST:
        for cluster in np.unique(nearest):
            mean = points[nearest == cluster].mean(0)
            if distance == "euclidean":
                centres[cluster] = mean
            elif (length := float(np.linalg.norm(mean))) > 0:  # opposite rows have no direction
                centres[cluster] = mean / length
        before, nearest = nearest, pairwise_distances_argmin(points, centres)
        iterations, settled = iterations + 1, bool((before == nearest).all())
    rows = np.bincount(nearest, minlength=len(centres))
    return Clusters(np.where(rows[:, None] > 0, centres, start), rows, iterations, settled)
