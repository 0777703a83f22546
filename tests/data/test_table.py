import numpy as np

from de3bert.data.table import Table


def test_take_keeps_every_column_together():
    table = Table(
        texts=["a", "b", "c"],
        pairs=["x", "y", "z"],
        labels=[0, 1, 0],
        columns={"id": [7, 8, 9]},
        source="here",
    )
    taken = table.take(np.array([2, 0]))
    assert taken.inputs() == [("c", "z"), ("a", "x")]
    assert (taken.labels, taken.columns, taken.source) == ([0, 0], {"id": [9, 7]}, "here")
    assert (len(taken), len(table)) == (2, 3)


def test_inputs_of_single_texts():
    table = Table(["a", "b"])
    assert table.inputs() == ["a", "b"]
    assert table.take([1]).labels is None
