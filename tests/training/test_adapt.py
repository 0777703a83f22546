"""Prototypes moved to unlabelled rows: K-means from the old ones, and nothing else changes."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from sklearn.cluster import KMeans
from tests.fixtures_trained import toy_rows, write_csv

import de3bert
from de3bert.data.read import read_table
from de3bert.data.table import Table
from de3bert.errors import De3Error, UsageError
from de3bert.export.recalibrate import calibration_rows
from de3bert.model import EarlyExitForSequenceClassification
from de3bert.model.tokens import TextEncoder, load_tokenizer
from de3bert.runtime.calibrate_folder import calibrate_model
from de3bert.training import adapt, clusters
from de3bert.training.adapt import adapt_model
from de3bert.training.clusters import clustered

TOY = np.array([[0, 1], [0, 2], [1, 2], [5, 5], [6, 5]], dtype=float)


def slow_clusters(vectors, start):
    """Spherical K-means one row, one cluster and one number at a time."""

    def unit(vector):
        length = math.sqrt(sum(value * value for value in vector))
        return [value / length for value in vector]

    points, centres = [unit(v) for v in vectors], [unit(c) for c in start]
    before = None
    while True:
        nearest = []
        for point in points:
            cosines = [sum(a * b for a, b in zip(point, c, strict=True)) for c in centres]
            nearest.append(max(range(len(centres)), key=lambda k, seen=cosines: seen[k]))
        if nearest == before:
            break
        before = nearest
        for cluster in range(len(centres)):
            own = [point for point, k in zip(points, nearest, strict=True) if k == cluster]
            if own:
                centres[cluster] = unit([sum(column) for column in zip(*own, strict=True)])
    rows = [nearest.count(cluster) for cluster in range(len(centres))]
    kept = [c if rows[k] else list(start[k]) for k, c in enumerate(centres)]
    return kept, rows


@settings(max_examples=60, deadline=None)
@given(
    rows=st.integers(1, 40), classes=st.integers(2, 5), hidden=st.integers(2, 6),
    seed=st.integers(0, 10_000),
)  # fmt: skip
def test_clusters_are_those_of_the_slow_version(rows, classes, hidden, seed):
    rng = np.random.default_rng(seed)
    vectors, start = rng.normal(size=(rows, hidden)), rng.normal(size=(classes, hidden))
    centres, counts = slow_clusters(vectors.tolist(), start.tolist())
    found = clustered(vectors, start)
    assert found.rows.tolist() == counts
    assert found.settled
    np.testing.assert_allclose(found.centres, centres, atol=1e-9)


def test_the_plain_distance_gives_the_known_centres():
    found = clustered(TOY, np.array([[0, 0], [4, 4]]), "euclidean")
    np.testing.assert_allclose(found.centres, [[1 / 3, 5 / 3], [5.5, 5]])
    assert found.rows.tolist() == [3, 2]


def test_the_order_of_the_start_is_the_order_of_the_centres():
    rng = np.random.default_rng(3)
    vectors, start = rng.normal(size=(50, 4)), rng.normal(size=(3, 4))
    order = [2, 0, 1]
    found, turned = clustered(vectors, start), clustered(vectors, start[order])
    np.testing.assert_allclose(turned.centres, found.centres[order])
    assert turned.rows.tolist() == found.rows[order].tolist()


def test_only_directions_count():
    rng = np.random.default_rng(4)
    vectors, start = rng.normal(size=(60, 5)), rng.normal(size=(3, 5))
    found = clustered(vectors, start)
    other = clustered(vectors * rng.uniform(0.1, 9, (60, 1)), start * np.array([[3], [0.2], [7]]))
    np.testing.assert_allclose(other.centres, found.centres)
    np.testing.assert_allclose(np.linalg.norm(found.centres, axis=1), 1)


def blobs(angles, spread, count=40):
    """Directions in the plane around the angles given, in degrees."""
    rng = np.random.default_rng(5)
    turned = np.radians(np.repeat(angles, count) + rng.normal(0, spread, count * len(angles)))
    return np.stack([np.cos(turned), np.sin(turned)], axis=1)


def at(*angles):
    return np.stack([np.cos(np.radians(angles)), np.sin(np.radians(angles))], axis=1)


def test_clear_clusters_are_those_of_scikit_learn():
    vectors, start = blobs([0, 90, 200], 5), at(20, 70, 180)
    theirs = KMeans(3, init=start, n_init=1).fit(vectors).cluster_centers_
    theirs /= np.linalg.norm(theirs, axis=1, keepdims=True)
    np.testing.assert_allclose(clustered(vectors, start).centres, theirs, atol=1e-6)


def test_an_empty_cluster_keeps_its_prototype_where_scikit_learn_moves_it():
    vectors, start = blobs([0, 90], 5), 3 * at(10, 80, 250)
    found = clustered(vectors, start)
    assert found.rows.tolist() == [40, 40, 0]
    assert (found.centres[2] == start[2]).all()
    theirs = KMeans(3, init=start / 3, n_init=1).fit(vectors)
    assert np.bincount(theirs.labels_).min() > 0


def test_rows_go_to_the_smallest_angle_however_wide_a_cluster_is():
    # The plain mean of two bundles above and below the plane is half as long as those of one
    # bundle, so the row at 22 degrees is "nearer" to the one at 50, in scikit-learn's KMeans.
    wide = np.array([[0.5, 0, math.sqrt(0.75)], [0.5, 0, -math.sqrt(0.75)]] * 10)
    flat = np.concatenate([at(22), at(*[50] * 20)])
    vectors = np.concatenate([wide, np.pad(flat, ((0, 0), (0, 1)))])
    start = np.pad(at(0, 50), ((0, 0), (0, 1)))
    assert clustered(vectors, start).rows.tolist() == [21, 20]
    theirs = KMeans(2, init=start, n_init=1).fit(vectors).labels_
    assert np.bincount(theirs).tolist() == [20, 21]


def test_rows_that_cancel_out_leave_the_centre_where_it_is():
    found = clustered(at(0, 180), at(90, 270)[:1])
    np.testing.assert_allclose(found.centres, at(90), atol=1e-12)


def test_it_says_when_it_did_not_come_to_rest(monkeypatch):
    monkeypatch.setattr(clusters, "MOST", 1)
    rng = np.random.default_rng(0)
    found = clustered(rng.normal(size=(200, 3)), rng.normal(size=(4, 3)))
    assert (found.iterations, found.settled) == (1, False)


def test_classes_that_have_turned_are_found_again():
    truth = np.repeat([0, 1], 40)
    vectors, old = blobs([27, 87], 8), at(0, 60)  # all has turned by 27 degrees

    def right(prototypes):
        return float(((vectors @ prototypes.T).argmax(1) == truth).mean())

    assert right(old) <= 0.9
    assert right(clustered(vectors, old).centres) > 0.98


@pytest.fixture
def rows(tmp_path):
    return read_table(write_csv(tmp_path / "new.csv", toy_rows(90, 11)))


def hashes(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in files
    }


def tensors(folder: Path) -> dict[str, torch.Tensor]:
    return load_file(folder / "model.safetensors")


def projected(folder: Path, table: Table) -> np.ndarray:
    """h' of every row, one at a time: (rows, exits - 1, hidden)."""
    model = EarlyExitForSequenceClassification.from_pretrained(folder).eval()
    encoder = TextEncoder(load_tokenizer(str(folder)), model.config.max_length)
    with torch.no_grad():
        seen = [model(**encoder.pad([row])).projected for row in encoder(table.inputs()).rows]
    return torch.cat(seen).numpy()


def test_prototypes_are_the_centres_and_all_else_is_the_same(trained_model, rows, tmp_path):
    before = hashes(trained_model)
    found = adapt_model(trained_model, rows, tmp_path / "out")
    assert hashes(trained_model) == before
    old, new = tensors(trained_model), tensors(tmp_path / "out")
    assert {name for name in old if not torch.equal(old[name], new[name])} == {"prototypes.vectors"}
    assert set(old) == set(new)
    vectors = projected(trained_model, rows)
    name = "prototypes.vectors"
    for number in range(3):
        centres, counts = slow_clusters(vectors[:, number].tolist(), old[name][number].tolist())
        np.testing.assert_allclose(new[name][number], centres, atol=1e-4)
        seen = [each for each in found.moved if each.layer == number + 1]
        assert [(each.label, each.rows) for each in seen] == [
            ("neg", counts[0]),
            ("pos", counts[1]),
        ]
        for k, each in enumerate(seen):
            a, b = old[name][number, k].double(), torch.tensor(centres[k]).double()
            way = 1 - float(a @ b / (a.norm() * b.norm()))
            assert each.distance == pytest.approx(way, abs=1e-6)
            assert each.distance > 1e-5
    assert (found.rows, found.truncated, found.unmeasured) == (90, 0, [])
    assert list(found.iterations) == [1, 2, 3]


def test_the_new_folder_is_whole_and_says_what_it_is(trained_model, rows, tmp_path):
    found = adapt_model(trained_model, rows, tmp_path / "out", rows=50)
    out = tmp_path / "out"
    assert {path.name for path in out.iterdir()} == {
        "README.md", "adaptation.json", "config.json", "model.safetensors", "recipe.toml",
        "tokenizer.json", "tokenizer_config.json", "training.json",
    }  # fmt: skip
    assert {path.name for path in tmp_path.iterdir()} == {"new.csv", "out"}
    config = json.loads((out / "config.json").read_text())
    assert config["prototype_means"] == "adapted"
    assert config["adapted_to"] == {"rows": 50, "source": "new.csv", "sha256": rows.sha256}
    assert "adapted to 50 unlabelled rows" in (out / "README.md").read_text()
    assert json.loads((out / "adaptation.json").read_text())["moved"] == found.to_json()["moved"]
    old, new = de3bert.load(trained_model), de3bert.load(out)
    texts = rows.texts[:20]
    assert new.info.adapted_to == config["adapted_to"]
    first, second = old.trace(texts), new.trace(texts)
    assert (first.logits == second.logits).all()
    assert not np.allclose(first.distances, second.distances)


def test_labels_are_not_read(trained_model, rows, tmp_path):
    turned = replace(rows, labels=rows.labels[1:] + rows.labels[:1])
    none = replace(rows, labels=None)
    for name, table in (("a", rows), ("b", turned), ("c", none)):
        adapt_model(trained_model, table, tmp_path / name / "model")
    first, second, third = (hashes(tmp_path / name / "model") for name in "abc")
    assert first == second == third


def test_rows_are_drawn_by_the_seed(trained_model, rows, tmp_path):
    def drawn(name: str, **changes: int) -> list[tuple[int, float]]:
        found = adapt_model(trained_model, rows, tmp_path / name, rows=30, **changes)
        assert sum(each.rows for each in found.moved if each.layer == 1) == 30
        return [(each.rows, each.distance) for each in found.moved]

    assert drawn("a") == drawn("b", seed=42) != drawn("c", seed=43)
    everything = adapt_model(trained_model, rows, tmp_path / "d", rows=1000)
    assert everything.rows == 90


def test_the_beginning_of_a_sorted_file_is_not_taken_for_all(
    trained_model, rows, tmp_path, monkeypatch
):
    """How large the clusters become is another matter: it differs a lot from seed to seed."""
    ordered = rows.take(sorted(range(90), key=lambda row: rows.labels[row]))
    read, projected = [], adapt._projected

    def spy(model, encoder, table, *rest):
        read.extend(table.labels)
        return projected(model, encoder, table, *rest)

    monkeypatch.setattr(adapt, "_projected", spy)
    adapt_model(trained_model, ordered, tmp_path / "out", rows=40)
    assert len(read) == 40
    assert min(read.count(label) for label in set(rows.labels)) >= 10


def test_batches_do_not_matter(trained_model, rows, tmp_path):
    one = adapt_model(trained_model, rows, tmp_path / "a", batch_size=1)
    other = adapt_model(trained_model, rows, tmp_path / "b", batch_size=64)
    assert [each.rows for each in one.moved] == [each.rows for each in other.moved]
    name = "prototypes.vectors"
    torch.testing.assert_close(tensors(tmp_path / "a")[name], tensors(tmp_path / "b")[name])


def test_adapting_again_to_the_same_rows_moves_nothing(trained_model, rows, tmp_path):
    adapt_model(trained_model, rows, tmp_path / "a")
    again = adapt_model(tmp_path / "a", rows, tmp_path / "b")
    assert max(each.distance for each in again.moved) < 1e-9
    assert set(again.iterations.values()) == {1}


def test_points_keep_their_policies_and_lose_what_is_no_longer_true(
    model_copy, toy_data, rows, tmp_path
):
    table = read_table(toy_data.calibration)
    by_distance = calibrate_model(model_copy, "layers=1.5", "fast", table=table, default=True)
    by_entropy = calibrate_model(model_copy, "drop=0.02", "safe", table=table, family="entropy")
    (model_copy / "curve.png").write_bytes(b"a picture of the old curve")
    found = adapt_model(model_copy, rows, tmp_path / "out")
    assert found.unmeasured == ["fast"]
    points = de3bert.load(tmp_path / "out").points
    assert (points["fast"].policy, points["fast"].measured) == (by_distance.policy, {})
    assert points["fast"].target == "layers=1.5"
    assert points["safe"].to_json() == by_entropy.to_json()
    card = (tmp_path / "out" / "README.md").read_text()
    assert "| fast | `edr" in card
    assert "not measured since the prototypes were adapted | - | - | - | - |" in card
    assert f"{by_entropy.measured['score']:.3f} (accuracy)" in card
    assert "curve.png" not in card
    adapted = de3bert.load(tmp_path / "out")
    assert len(adapted.predict(rows.texts[:8])) == 8  # the default point still is one
    calibrate_model(tmp_path / "out", "layers=1.5", "fast", table=table)
    card = (tmp_path / "out" / "README.md").read_text()
    assert "not measured" not in card


def test_without_measured_points_an_export_asks_for_rows(model_copy, toy_data, rows, tmp_path):
    calibrate_model(model_copy, "layers=1.5", "fast", table=read_table(toy_data.calibration))
    assert len(calibration_rows(de3bert.load(model_copy))) == 120
    adapt_model(model_copy, rows, tmp_path / "out")
    with pytest.raises(UsageError, match="--data FILE"):
        calibration_rows(de3bert.load(tmp_path / "out"))


def test_a_prototype_without_rows_is_kept_bit_for_bit(model_copy, rows, tmp_path):
    path = model_copy / "model.safetensors"
    stored = tensors(model_copy)
    stored["prototypes.vectors"][1, 0] = -stored["prototypes.vectors"][1].sum(0)  # far from all
    save_file(stored, path, metadata={"format": "pt"})
    found = adapt_model(model_copy, rows, tmp_path / "out")
    empty = next(each for each in found.moved if (each.layer, each.label) == (2, "neg"))
    assert (empty.rows, empty.distance) == (0, pytest.approx(0, abs=1e-12))
    new = tensors(tmp_path / "out")["prototypes.vectors"]
    assert torch.equal(new[1, 0], stored["prototypes.vectors"][1, 0])
    assert found.notes == [
        "no row is nearest to these prototypes, which stay unchanged: neg (layer 2)"
    ]


def refused(kind: type[De3Error], words: str, *given, **options) -> None:
    with pytest.raises(De3Error, match=words) as caught:
        adapt_model(*given, **options)
    assert type(caught.value) is kind


def test_places_that_are_refused(trained_model, model_copy, rows, tmp_path):
    before = hashes(model_copy)
    for place in (model_copy, model_copy / "adapted", tmp_path / "x" / ".." / "model"):
        refused(UsageError, "the model folder itself or inside it", model_copy, rows, place)
    (tmp_path / "link").symlink_to(model_copy)
    refused(UsageError, "the model folder itself", tmp_path / "link", rows, model_copy)
    adapt_model(trained_model, rows, tmp_path / "out")
    made = hashes(tmp_path / "out")
    refused(UsageError, "holds a model already", trained_model, rows, tmp_path / "out")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes").write_text("mine")
    refused(UsageError, "is not a model folder", trained_model, rows, tmp_path / "full")
    assert hashes(tmp_path / "out") == made
    again = adapt_model(trained_model, rows.take(range(40)), tmp_path / "out", overwrite=True)
    assert (again.rows, hashes(tmp_path / "out") == made) == (40, False)
    assert hashes(model_copy) == before


def changed(folder: Path, **values) -> Path:
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **values}))
    return folder


def test_models_that_cannot_be_adapted(model_copy, tiny_backbone, rows, tmp_path):
    out = tmp_path / "out"
    refused(UsageError, "not a model folder of de3bert", tiny_backbone, rows, out)
    refused(UsageError, "not a model folder of de3bert", tmp_path / "nothing", rows, out)
    (model_copy / "manifest.json").write_text("{}")
    refused(UsageError, "is a bundle.*then export", model_copy, rows, out)
    (model_copy / "manifest.json").unlink()
    changed(model_copy, token_exits="words")
    refused(UsageError, "is a tagger", model_copy, rows, out)
    changed(model_copy, token_exits="none", prototypes="none", method="joint-entropy")
    refused(UsageError, r"\(method joint-entropy\) has no prototypes", model_copy, rows, out)
    changed(model_copy, prototypes="linear", exit_layers=[4])
    refused(UsageError, "has no prototypes", model_copy, rows, out)
    assert not out.exists()


def test_too_few_rows_and_unset_prototypes(model_copy, rows, tmp_path):
    out = tmp_path / "out"
    refused(UsageError, "gives 1 rows for 2 classes", model_copy, rows.take([0]), out)
    refused(UsageError, "gives 1 rows for 2 classes", model_copy, rows, out, rows=1)
    stored = tensors(model_copy)
    stored["prototypes.initialised"][1] = False
    save_file(stored, model_copy / "model.safetensors", metadata={"format": "pt"})
    refused(De3Error, "never set.*pos", model_copy, rows, out)
    save_file({"x": torch.ones(1)}, model_copy / "model.safetensors", metadata={"format": "pt"})
    refused(De3Error, "incomplete", model_copy, rows, out)
    assert not out.exists()


def test_nothing_is_left_of_a_write_that_failed(trained_model, rows, tmp_path, monkeypatch):
    monkeypatch.setattr(adapt, "write_card", lambda *given: (_ for _ in ()).throw(OSError("no")))
    with pytest.raises(OSError, match="no"):
        adapt_model(trained_model, rows, tmp_path / "out")
    assert {path.name for path in tmp_path.iterdir()} == {"new.csv"}


def test_a_missing_library_is_noticed_before_the_long_pass(
    trained_model, rows, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.setattr(adapt, "read_model", lambda source: pytest.fail("too late"))
    with pytest.raises(ModuleNotFoundError, match="sklearn"):
        adapt_model(trained_model, rows, tmp_path / "out")
