import numpy as np
import pytest

from de3bert.data.label_names import label_names_of
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


def test_integers_are_no_class_numbers_of_named_classes():
    with pytest.raises(UsageError) as caught:
        LabelSet(("Business", "Sci/Tech", "Sports", "World")).encode([3, 0, 1, 2, 1])
    message = str(caught.value)
    assert "the numbers 0, 1, 2, 3; the model knows Business, Sci/Tech, Sports, World" in message
    assert "--label-names" in message
    learned = LabelSet(("bad", "good"), positions=True)  # rows numbered like this were trained on
    assert learned.encode([1, 0]).tolist() == [1, 0]
    assert LabelSet(("LABEL_0", "LABEL_1")).encode([1, "0"]).tolist() == [1, 0]


@pytest.mark.parametrize("raw", [[0, 1, 2, 3], ["0", "1", "2", "3"], ["World", 1, "2", "Sci/Tech"]])
@pytest.mark.parametrize("kind", [list, lambda names: dict(enumerate(names))])
def test_names_for_numbers(raw, kind):
    own = kind(["World", "Sports", "Business", "Sci/Tech"])
    classes = LabelSet(("Business", "Sci/Tech", "Sports", "World"))
    assert classes.encode(raw, names=own).tolist() == [3, 2, 0, 1]


def test_numbers_of_classes_for_names():
    classes = LabelSet(("0", "1"))
    with pytest.raises(UsageError, match=r"names bad, good; the model knows the numbers 0, 1"):
        classes.encode(["good", "bad"])
    assert classes.encode(["good", "bad", 1], names=["bad", "good"]).tolist() == [1, 0, 1]


def test_names_of_another_task_are_refused_whatever_their_numbers():
    learned = LabelSet(("ham", "spam"), positions=True)
    with pytest.raises(UsageError, match=r'"bad" \(1x\), "good" \(1x\)'):
        learned.encode([0, 1], names=["bad", "good"])


def test_numbers_that_read_two_ways_are_refused():
    stars = LabelSet(("1", "2", "3"), positions=True)
    assert stars.encode([0, 1, 2]).tolist() == [0, 1, 2]
    with pytest.raises(UsageError, match="class names here"):
        stars.encode([1, 2])
    assert stars.encode([1, 2], names={1: "1", 2: "2"}).tolist() == [0, 1]


def test_names_that_do_not_start_at_zero():
    classes = LabelSet.from_values([1, 3, 1], names={3: "three", 1: "one", 2: "two"})
    assert (classes.names, classes.positions) == (("one", "two", "three"), False)
    assert classes.encode([3, 1], names={1: "one", 3: "three"}).tolist() == [2, 0]


def test_another_spelling_is_suggested_and_not_guessed():
    with pytest.raises(UsageError, match=r'"sci tech" \(1x; did you mean "Sci_Tech"\?\)'):
        LabelSet(("World", "Sci_Tech")).encode(["World", "sci tech"])


def test_long_lists_and_labels_are_cut():
    with pytest.raises(UsageError) as caught:
        LabelSet(tuple(f"class {k}" for k in range(500))).encode(["x" * 5000, "y"])
    assert "and 490 more" in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (None, None),
        ("World, Sports,Sci/Tech", ["World", "Sports", "Sci/Tech"]),
        ('"a, b",c', ["a, b", "c"]),
        ("0=World,1=Sports", {0: "World", 1: "Sports"}),
        ("2 = b, -1=a=b", {2: "b", -1: "a=b"}),
    ],
)
def test_the_option_of_names(text, names):
    assert label_names_of(text) == names


@pytest.mark.parametrize("text", ["", "a,,b", "0=a,b", "0=a,0=b", "0=", '"a', "a\nb\0"])
def test_what_the_option_refuses(text):
    with pytest.raises(UsageError, match="--label-names"):
        label_names_of(text)


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
