import numpy as np
import pytest

from de3bert.data.labels import LabelSet
from de3bert.errors import UsageError


@pytest.mark.parametrize(
    ("raw", "names"),
    [
        (["b", "a", "b"], ("a", "b")),
        ([10, 2, -1], ("-1", "2", "10")),
        (["10", "2"], ("2", "10")),
        ([1, "1", "0"], ("0", "1")),
        (["007", "7"], ("007", "7")),
        (np.array([3, 1, 3]), ("1", "3")),
        ([True, False], ("0", "1")),
        ([1.0, 2.0], ("1", "2")),
    ],
)
def test_classes_are_sorted(raw, names):
    classes = LabelSet.from_values(raw)
    assert classes.names == names
    codes = classes.encode(raw)
    assert codes.dtype == np.int64
    assert [names[code] for code in codes] == [
        str(int(v)) if not isinstance(v, str) else v for v in raw
    ]


def test_integers_and_their_spelling_are_the_same_label():
    assert LabelSet(("1", "2")).encode(["1", 2, 1.0]).tolist() == [0, 1, 0]


def test_names_of_positions():
    classes = LabelSet.from_values([1, 0, 1], names=["negative", "positive", "neutral"])
    assert classes.names == ("negative", "positive", "neutral")
    assert classes.encode([2, "positive", "0"]).tolist() == [2, 1, 0]
    stars = LabelSet.from_values([0, 1], names=["1", "2"])
    assert stars.encode([0, 1]).tolist() == [0, 1]
    assert stars.encode(["1", "2"]).tolist() == [0, 1]


def test_integers_are_class_numbers_of_named_classes():
    assert LabelSet(("bad", "good")).encode([1, 0]).tolist() == [1, 0]


def test_another_numbering_of_the_same_names():
    classes = LabelSet(("bad", "good"))
    assert classes.encode([0, 1], names=["good", "bad"]).tolist() == [1, 0]


def test_unseen_labels_are_counted():
    with pytest.raises(UsageError) as caught:
        LabelSet(("bad", "good")).encode(["good", "odd", "odd", 5])
    message = str(caught.value)
    assert '"odd" (2x), "5" (1x)' in message
    assert "Known classes: bad, good." in message


@pytest.mark.parametrize(
    ("raw", "names", "words"),
    [
        (["a", "a"], None, 'only the class "a"'),
        ([], None, "no labels"),
        ([0, 0], ["x", "y"], "at least two classes"),
        ([0, 2], ["x", "y"], '"2"'),
        ([0, 1], ["x", "x"], "must differ"),
        ([["a", "b"]], None, "multi-label"),
        ([0.5, 1], None, "regression"),
        ([None, 1], None, "NoneType"),
    ],
)
def test_what_is_refused(raw, names, words):
    with pytest.raises(UsageError, match=words):
        LabelSet.from_values(raw, names)
