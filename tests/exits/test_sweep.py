"""The events behind a curve, on a row small enough to follow by hand."""

from __future__ import annotations

import numpy as np

from de3bert.exits.sweep import find_moves, windowed


def test_only_records_are_events():
    # Exit 1 (0.7) is no record after 0.5; the equal 0.5 of exit 2 is none either.
    moves = find_moves(np.asarray([[0.5, 0.7, 0.5, 0.2, 0.3]]))
    assert moves.value.tolist() == [0.2, 0.5]
    assert moves.source.tolist() == [5, 3]  # from the final head to exit 3, from there to exit 0
    assert moves.target.tolist() == [3, 0]


def test_rows_are_kept_apart():
    moves = find_moves(np.asarray([[0.4, 0.1], [0.3, 0.6]]))
    found = zip(moves.value, moves.row, moves.source, moves.target, strict=True)
    assert list(found) == [(0.1, 0, 2, 1), (0.3, 1, 2, 0), (0.4, 0, 1, 0)]


def test_no_internal_exit_no_event():
    assert find_moves(np.empty((3, 0))).value.size == 0


def test_windows():
    matrix = np.asarray([[0.1, 0.4, 0.2, 0.3]])
    assert windowed(matrix, 1).tolist() == matrix.tolist()
    assert windowed(matrix, 2).tolist() == [[np.inf, 0.4, 0.4, 0.3]]
    assert windowed(matrix, 4).tolist() == [[np.inf, np.inf, np.inf, 0.4]]
    assert np.isinf(windowed(matrix, 5)).all()
