"""Traces: what is checked, and what happens to damaged files."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from tests.exits.traces import make_trace, random_trace

from de3bert.errors import De3Error, UsageError
from de3bert.exits import Trace
from de3bert.exits.trace_file import FORMAT


def same(first: Trace, second: Trace) -> bool:
    arrays = ("logits", "distances", "certainty", "labels", "tokens")
    return all(
        np.array_equal(getattr(first, name), getattr(second, name))
        and getattr(first, name).dtype == getattr(second, name).dtype
        for name in arrays
        if getattr(first, name) is not None or getattr(second, name) is not None
    ) and all(
        getattr(first, name) == getattr(second, name)
        for name in ("exit_layers", "label_names", "info", "base_depth")
    )


def test_properties():
    trace = random_trace(rows=9, exits=4, classes=3)
    assert (trace.rows, trace.exits, trace.classes, trace.depth) == (9, 4, 3, 4)
    assert trace.predictions.shape == (9, 4)
    assert trace.correct[2, 1] == (trace.logits[2, 1].argmax() == trace.labels[2])


def test_ties_predict_the_lower_class():
    assert make_trace(np.zeros((1, 2, 3))).predictions.tolist() == [[0, 0]]


def test_no_labels_means_no_scores():
    with pytest.raises(UsageError, match="no labels"):
        make_trace(np.zeros((1, 2, 2))).correct  # noqa: B018


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"logits": np.zeros((3, 2))}, "rows, exits, classes"),
        ({"logits": np.zeros((0, 2, 2))}, "none of them 0"),
        ({"logits": np.zeros((3, 2, 1))}, "at least 2 classes"),
        ({"distances": np.zeros((3, 2, 2))}, r"distances must be \(3, 1, 2\)"),
        ({"labels": np.zeros(4, dtype=int)}, r"labels must be \(3,\)"),
        ({"labels": np.asarray([0, 2, 1])}, "labels must lie in 0 to 1, got 0 to 2"),
        ({"labels": np.asarray([0, -1, 1])}, "labels must lie"),
        ({"labels": np.asarray([0.0, 1.0, 1.0])}, "whole numbers"),
        ({"tokens": np.zeros(2, dtype=int)}, r"tokens must be \(3,\)"),
        ({"tokens": np.asarray([3, -1, 2])}, "not be negative"),
        ({"exit_layers": (2, 1)}, "increasing"),
        ({"exit_layers": (0, 1)}, "from 1"),
        ({"exit_layers": (1, 2, 3)}, "2 increasing layers"),
        ({"label_names": ("a",)}, "2 label names"),
        ({"logits": np.full((3, 2, 2), np.nan)}, "logits of row 0 are not finite"),
        ({"distances": np.full((3, 1, 2), np.inf)}, "distances of row 0 are not finite"),
        ({"certainty": np.zeros((3, 2))}, r"certainty must be \(3, 1\)"),
        ({"certainty": np.full((3, 1), 1.01)}, "certainty must lie in 0 to 1"),
        ({"certainty": np.full((3, 1), -0.01)}, "certainty must lie in 0 to 1"),
        ({"certainty": np.full((3, 1), np.nan)}, "certainty must lie in 0 to 1"),
        ({"base_depth": 0}, "base_depth must be a whole number from 1 up, got 0"),
        ({"base_depth": 6.5}, "base_depth must be a whole number"),
    ],
)
def test_unsound_traces_are_refused(changes, message):
    sound = make_trace(np.zeros((3, 2, 2)), [0, 1, 1], np.zeros((3, 1, 2)))
    with pytest.raises(De3Error, match=message):
        replace(sound, **changes)


def test_save_and_load(tmp_path):
    trace = random_trace(rows=20)
    trace.save(tmp_path / "new folder" / "a.trace")
    assert same(Trace.load(tmp_path / "new folder" / "a.trace"), trace)
    assert [path.name for path in (tmp_path / "new folder").iterdir()] == ["a.trace"]


def test_save_and_load_without_labels_and_distances(tmp_path):
    trace = make_trace(
        np.ones((2, 1, 2)), label_names=("naïve", "日本"), exit_layers=(12,), info={"x": [1, None]}
    )
    trace.save(tmp_path / "a.trace")
    assert same(Trace.load(tmp_path / "a.trace"), trace)


def version_of(path) -> str:
    with safe_open(path, framework="numpy") as file:
        return file.metadata()["version"]


def test_only_a_trace_with_certainty_needs_the_new_format(tmp_path):
    path, trace = tmp_path / "a.trace", random_trace(rows=4)
    trace.save(path)
    assert (version_of(path), same(Trace.load(path), trace)) == ("2", True)
    old = replace(trace, certainty=None)
    old.save(path)
    assert (version_of(path), same(Trace.load(path), old)) == ("1", True)


def test_a_file_of_the_first_format_is_read(tmp_path):
    """Written as the first version wrote it, with nothing that came later."""
    path, trace = tmp_path / "a.trace", replace(random_trace(rows=4), certainty=None)
    tensors = {name: getattr(trace, name) for name in ("distances", "labels", "logits", "tokens")}
    about = json.dumps(
        {"exit_layers": trace.exit_layers, "label_names": trace.label_names, "info": trace.info},
        sort_keys=True,
    )
    digest = hashlib.sha256(about.encode())
    for name, values in tensors.items():
        digest.update(f"{name} {values.dtype.str} {values.shape}".encode() + values.tobytes())
    header = {"format": FORMAT, "version": "1", "about": about, "sha256": digest.hexdigest()}
    save_file(tensors, path, metadata=header)
    assert same(Trace.load(path), trace)
    assert Trace.load(path).base == trace.depth


@pytest.mark.parametrize("base", [None, 12])
def test_the_base_depth_is_stored(tmp_path, base):
    trace = replace(random_trace(rows=4), base_depth=base)
    assert trace.base == (base or 6)
    trace.save(tmp_path / "a.trace")
    assert same(Trace.load(tmp_path / "a.trace"), trace)


def test_any_changed_byte_is_noticed(tmp_path):
    path = tmp_path / "a.trace"
    random_trace(rows=3, exits=2).save(path)
    sound = path.read_bytes()
    for place in range(len(sound)):
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 0x20]) + sound[place + 1 :])
        with pytest.raises(De3Error):
            Trace.load(path)


def test_a_flipped_bit_in_the_numbers_is_called_damage(tmp_path):
    path = tmp_path / "a.trace"
    random_trace(rows=3).save(path)
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)
    with pytest.raises(De3Error, match=r"damaged.*checksum"):
        Trace.load(path)


@pytest.mark.parametrize("length", [0, 5, 100, -1])
def test_a_file_cut_short(tmp_path, length):
    path = tmp_path / "a.trace"
    random_trace(rows=3).save(path)
    path.write_bytes(path.read_bytes()[:length])
    with pytest.raises(De3Error, match="cut short"):
        Trace.load(path)


def test_files_that_are_no_traces(tmp_path):
    with pytest.raises(De3Error, match="no trace at"):
        Trace.load(tmp_path / "missing")
    with pytest.raises(De3Error, match="no trace at"):
        Trace.load(tmp_path)
    (tmp_path / "text").write_text("label,text\n1,hello\n" * 20)
    with pytest.raises(De3Error, match="not a trace"):
        Trace.load(tmp_path / "text")
    save_file({"weight": np.zeros(3)}, tmp_path / "model")
    with pytest.raises(De3Error, match="safetensors file but not a trace"):
        Trace.load(tmp_path / "model")


def test_a_newer_format(tmp_path):
    path = tmp_path / "a.trace"
    random_trace(rows=3).save(path)
    with safe_open(path, framework="numpy") as file:
        header = {**file.metadata(), "version": "4"}
    assert header["format"] == FORMAT
    save_file(load_file(path), path, metadata=header)
    with pytest.raises(De3Error, match=r"format 4.*Update de3bert"):
        Trace.load(path)


def test_a_changed_description_is_noticed(tmp_path):
    path = tmp_path / "a.trace"
    random_trace(rows=3, exits=3).save(path)
    with safe_open(path, framework="numpy") as file:
        header = dict(file.metadata())
    header["about"] = json.dumps({**json.loads(header["about"]), "exit_layers": [1, 2, 12]})
    save_file(load_file(path), path, metadata=header)
    with pytest.raises(De3Error, match="checksum"):
        Trace.load(path)


def test_info_must_fit_in_json(tmp_path):
    trace = make_trace(np.zeros((1, 2, 2)), info={"model": object()})
    with pytest.raises(De3Error, match="JSON"):
        trace.save(tmp_path / "a.trace")
    assert list(tmp_path.iterdir()) == []


def test_take_keeps_rows_together():
    trace = random_trace(rows=10)
    part = trace.take(np.asarray([7, 2]))
    assert part.rows == 2
    assert np.array_equal(part.logits[0], trace.logits[7])
    assert np.array_equal(part.distances[1], trace.distances[2])
    assert np.array_equal(part.certainty, trace.certainty[[7, 2]])
    assert replace(trace, base_depth=24).take(slice(3)).base == 24
    assert part.labels.tolist() == [trace.labels[7], trace.labels[2]]
    assert trace.take(trace.labels == 0).labels.tolist() == [0] * int((trace.labels == 0).sum())


def test_view_of_some_rows():
    trace = random_trace(rows=5)
    view = trace.view(1, np.asarray([4, 0]))
    assert view.layer == 2
    assert np.array_equal(view.logits, trace.logits[[4, 0], 1])
    assert np.array_equal(view.distances, trace.distances[[4, 0], 1])
    assert np.array_equal(view.certainty, trace.certainty[[4, 0], 1])
    assert replace(trace, certainty=None).view(1).certainty is None


def test_only_leaves_exits_out():
    trace = replace(random_trace(rows=7, exits=4), exit_layers=(2, 3, 6, 12))
    part = trace.only([6, 2])
    assert part.exit_layers == (2, 6, 12)
    assert np.array_equal(part.logits, trace.logits[:, [0, 2, 3]])
    assert np.array_equal(part.distances, trace.distances[:, [0, 2]])
    assert np.array_equal(part.certainty, trace.certainty[:, [0, 2]])
    assert replace(trace, base_depth=24).only([2]).base == 24
    assert np.array_equal(part.labels, trace.labels)
    assert part.info == trace.info
    assert part.depth == trace.depth
    assert same(trace.only(trace.exit_layers), trace)


def test_only_the_final_exit():
    trace = random_trace(rows=7, exits=4)
    part = trace.only([])
    assert part.exit_layers == (4,)
    assert part.distances.shape == (7, 0, 3)
    assert replace(trace, distances=None).only([2]).distances is None


def test_only_knows_its_exits():
    trace = replace(random_trace(rows=7, exits=3), exit_layers=(2, 3, 6))
    with pytest.raises(UsageError, match=r"no exit at layer 4\. Exits are at: 2, 3, 6"):
        trace.only([3, 4])
