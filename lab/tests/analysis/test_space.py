"""t-SNE and the numbers beside it."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch

from de3bert.data.read import read_table
from de3bert.errors import UsageError
from de3bert.model.tokens import load_tokenizer
from de3lab.analysis import ANALYSES, Subject, analyse
from de3lab.analysis.representations import representations
from de3lab.analysis.space import embed, nearest_accuracy, neighbours_accuracy, silhouette


def cosine(first, second) -> float:
    return 1 - float(first @ second / (np.linalg.norm(first) * np.linalg.norm(second)))


@pytest.fixture
def cloud():
    """Rows of three classes that overlap, of which one is rare."""
    rng = np.random.default_rng(3)
    labels = np.array([0] * 14 + [1] * 12 + [2] * 4)
    centres = rng.normal(size=(3, 6))
    return (centres[labels] + 0.8 * rng.normal(size=(30, 6))).astype(np.float32), labels


@pytest.mark.parametrize("neighbours", [1, 4, 10])
def test_nearest_neighbours(cloud, neighbours):
    vectors, labels = cloud
    right = 0
    for row in range(len(labels)):
        others = [other for other in range(len(labels)) if other != row]
        others.sort(key=lambda other: cosine(vectors[row], vectors[other]))
        votes = np.bincount(labels[others[:neighbours]], minlength=3)
        right += int(votes.argmax() == labels[row])
    found = neighbours_accuracy(vectors, labels, neighbours)
    assert found == pytest.approx(right / len(labels))
    assert 0 < found < 1


def test_nearest_prototypes(cloud):
    vectors, labels = cloud
    prototypes = np.stack([vectors[labels == k].mean(0) for k in (0, 2)])
    right = 0
    for row, label in zip(vectors, labels, strict=True):
        nearest = min((0, 1), key=lambda k: cosine(row, prototypes[k]))
        right += int((0, 2)[nearest] == label)
    found = nearest_accuracy(vectors, prototypes, [0, 2], labels)
    assert found == pytest.approx(right / len(labels))
    assert 0 < found < 1
    assert nearest_accuracy(vectors, prototypes[:0], [], labels) is None


def test_silhouette_by_its_definition(cloud):
    vectors, labels = cloud
    scores = []
    for row, label in enumerate(labels):
        far = {
            k: np.mean(
                [cosine(vectors[row], vectors[o]) for o in np.flatnonzero(labels == k) if o != row]
            )
            for k in range(3)
        }
        own = far.pop(int(label))
        nearest = min(far.values())
        scores.append((nearest - own) / max(own, nearest))
    assert silhouette(vectors, labels) == pytest.approx(np.mean(scores), abs=1e-5)


def test_the_picture_is_that_of_the_seed():
    rng = np.random.default_rng(0)
    apart = np.repeat([[5.0, 0, 0], [0, 5.0, 0]], 15, axis=0) + rng.normal(size=(30, 3))
    first, again = embed(apart, 5.0, 1), embed(apart, 5.0, 1)
    np.testing.assert_array_equal(first, again)
    assert first.shape == (30, 2)
    # Two clouds stay two clouds.
    own = np.linalg.norm(first[:15] - first[:15].mean(0), axis=1).mean()
    assert np.linalg.norm(first[:15].mean(0) - first[15:].mean(0)) > 2 * own


@pytest.mark.parametrize("place", ["trained_model", "untrained"])
def test_vectors_are_those_of_the_model_s_own_pass(request, toy_data, place):
    made = request.getfixturevalue(place)
    path = made if place == "trained_model" else made("de3-no-pn-no-dar", pooling="mean")
    table = read_table(toy_data.test, limit=7)
    subject = Subject("x", str(path), table, batch_size=3)
    rows = subject.classifier.encode(table.inputs()).rows
    found = representations(subject, rows, [3, 1])
    model = subject.classifier.backend.model
    batch = load_tokenizer(str(path))(table.texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        projected = model(**batch).projected.numpy()
    assert [each.layer for each in found] == [3, 1]
    for each in found:
        np.testing.assert_allclose(each.vectors, projected[:, each.layer - 1], atol=1e-5)
        assert each.projected == (place == "trained_model")
        if place == "trained_model":
            bank = model.prototypes.vectors[each.layer - 1].numpy()
            np.testing.assert_array_equal(each.prototypes, bank)
        else:
            assert np.isnan(each.prototypes).all()  # never set


def test_models_without_prototypes_give_what_their_exits_read(untrained, toy_data):
    table = read_table(toy_data.test, limit=4)
    subject = Subject("x", str(untrained("gpfee")), table)
    (found,) = representations(subject, subject.classifier.encode(table.inputs()).rows, [2])
    assert (found.projected, found.prototypes) == (False, None)
    assert np.isfinite(found.vectors).all()
    assert found.vectors.std() > 0


def numbers_of(*subjects, **settings):
    settings = {"perplexity": 5.0, **settings}
    return analyse("space", list(subjects), settings, "de3 analyze space ...").numbers


def test_two_models_side_by_side(trained_model, untrained, toy_data, tmp_path):
    table = read_table(toy_data.test)
    other = untrained("joint-entropy", pooling="mean")
    found = numbers_of(
        Subject("without", str(other), table), Subject("de3", str(trained_model), table),
        rows=40, layers=[3, 1],
    )  # fmt: skip
    assert (found["rows"], found["layers"], found["neighbours"]) == (40, [3, 1], 10)
    keys = [(panel["label"], panel["layer"]) for panel in found["panels"]]
    assert keys == [("without", 3), ("without", 1), ("de3", 3), ("de3", 1)]
    assert [panel["vectors"] for panel in found["panels"]] == ["pooled"] * 2 + ["projected"] * 2
    assert all(len(panel["points"]) == 40 == len(found["classes"]) for panel in found["panels"])
    assert [list(panel["prototypes"]) for panel in found["panels"]] == [[], [], ["0", "1"],
                                                                        ["0", "1"]]  # fmt: skip
    trained, plain = found["panels"][2], found["panels"][0]
    assert plain["prototype_accuracy"] is None
    assert trained["prototype_accuracy"] > 0.6  # it learnt, and one row in twelve is mislabelled
    assert trained["silhouette"] > plain["silhouette"]
    again = json.loads(json.dumps(found))
    assert again == found
    (table,) = ANALYSES["space"].tables(again)
    assert table.rows[0][:3] == ("without", "3", "pooled")
    assert table.rows[0][-1] is None
    for kind in ("png", "svg"):
        ANALYSES["space"].draw(tmp_path / f"figure.{kind}", again)
        assert (tmp_path / f"figure.{kind}").stat().st_size > 1000


def test_by_default_the_paper_s_layers_that_exist(trained_model, toy_data, tmp_path):
    subject = Subject("de3", str(trained_model), read_table(toy_data.test))
    found = numbers_of(subject, rows=25)
    assert found["layers"] == [2]  # a model of four layers has no exit at 5
    assert found == numbers_of(subject, rows=25)
    assert found != numbers_of(subject, rows=25, seed=7)
    ANALYSES["space"].draw(tmp_path / "one.png", found)


def test_what_is_refused(trained_model, trained_bundle, untrained, toy_data, tmp_path):
    table = read_table(toy_data.test)
    model = Subject("de3", str(trained_model), table)
    third = Subject("b", str(untrained("full")), table)
    names = Subject("b", str(untrained("de3", labels=["neg", "pos", "so-so"])), table)
    for subjects, settings, words in (
        ([model], {"perplexity": 40.0}, "120 rows with perplexity 40 .* more than 120 rows"),
        ([model], {"rows": 15}, "15 rows with perplexity 5 .* more than 15 rows"),
        ([model], {"perplexity": 1.0}, "must be above 1, got 1"),
        ([model], {"layers": [9]}, "no exit before the last at layer 9. There are: 1, 2, 3"),
        ([model], {"layers": [4]}, "no exit before the last at layer 4"),
        ([model, third], {}, "no exit before the last at layer 2 or 5.* there are: none"),
        ([model, names], {}, "have different classes"),
        ([Subject("x", str(trained_bundle), table)], {}, "is a bundle, .* Give the model folder"),
        ([Subject("x", str(trained_model))], {}, "--data FILE"),
        ([model, Subject("de3", str(trained_bundle), table)], {}, "looks at one run of de3"),
    ):
        with pytest.raises(UsageError, match=words):
            numbers_of(*subjects, **settings)
    one = Subject("de3", str(trained_model), table.take(
        [row for row, label in enumerate(table.labels) if label == "pos"]))  # fmt: skip
    with pytest.raises(UsageError, match=r"rows are of one class \(pos\)"):
        numbers_of(one)
    (tmp_path / "bare.csv").write_text("text\n" + "a good film\n" * 30)
    with pytest.raises(UsageError, match="has no label column"):
        numbers_of(Subject("de3", str(trained_model), read_table(tmp_path / "bare.csv",
                                                                 need_labels=False)))  # fmt: skip
