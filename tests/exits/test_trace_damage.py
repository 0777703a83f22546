"""Trace files that are well-formed and make no sense: an error of ours that says why."""

from __future__ import annotations

import contextlib
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file
from tests.exits.traces import random_trace

from de3bert.errors import De3Error
from de3bert.exits import Trace
from de3bert.exits.token_layers import FILE, TokenLayers
from de3bert.exits.trace_file import FORMAT, KINDS, _digest

TRACE = random_trace(rows=4)
TENSORS = {name: getattr(TRACE, name) for name in KINDS if getattr(TRACE, name) is not None}
ABOUT = {
    "exit_layers": list(TRACE.exit_layers),
    "label_names": list(TRACE.label_names),
    "info": {},
}


def written(path, tensors=None, about=None, **header):
    """A file whose checksum is right, whatever is in it."""
    tensors = TENSORS if tensors is None else tensors
    text = about if isinstance(about, str) else json.dumps(ABOUT if about is None else about)
    known = {"format": FORMAT, "version": "2", "about": text, "sha256": _digest(tensors, text)}
    save_file({k: np.ascontiguousarray(v) for k, v in tensors.items()}, path, {**known, **header})
    return path


def test_the_sound_one_is_read(tmp_path):
    assert Trace.load(written(tmp_path / "a.trace")).rows == 4


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        ([], "not a JSON object"),
        ({}, '"exit_layers" is None'),
        ({**ABOUT, "exit_layers": "12"}, '"exit_layers" is'),
        ({**ABOUT, "exit_layers": [1.5] * TRACE.exits}, '"exit_layers" is'),
        ({**ABOUT, "exit_layers": [True] * TRACE.exits}, '"exit_layers" is'),
        ({**ABOUT, "exit_layers": list(range(2, TRACE.exits))}, "increasing layers"),
        (
            {**ABOUT, "exit_layers": [*range(1, TRACE.exits), 10**30]},
            "more than the limit of 1,000",
        ),
        ({**ABOUT, "label_names": [1, 2]}, '"label_names" is'),
        ({**ABOUT, "label_names": None}, '"label_names" is'),
        ({**ABOUT, "label_names": ["same"] * TRACE.classes}, "must differ"),
        ({**ABOUT, "label_names": ["x"] * 5000}, "need . label names"),
        ({**ABOUT, "info": []}, '"info" is'),
        ({**ABOUT, "base_depth": "12"}, '"base_depth" is'),
        ({**ABOUT, "base_depth": True}, '"base_depth" is'),
        ({**ABOUT, "base_depth": 0}, "base_depth must"),
        ({**ABOUT, "base_depth": 10**30}, "more than the limit"),
    ],
)
def test_descriptions_that_make_no_sense(tmp_path, about, words):
    with pytest.raises(De3Error, match=words) as caught:
        Trace.load(written(tmp_path / "a.trace", about=about))
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize(
    ("tensors", "words"),
    [
        ({}, 'no "logits"'),
        ({"logits": TENSORS["logits"]}, 'no "tokens"'),
        ({**TENSORS, "logits": TENSORS["logits"].astype(np.int64)}, '"logits" are int64'),
        ({**TENSORS, "labels": TENSORS["labels"].astype(np.float32)}, '"labels" are float32'),
        ({**TENSORS, "tokens": np.ones(4, dtype=np.bool_)}, '"tokens" are bool'),
        ({**TENSORS, "tokens": np.full(4, 2**40)}, "tokens"),
        ({**TENSORS, "logits": np.zeros((0, 3, 2), dtype=np.float32)}, "none of them 0"),
        ({**TENSORS, "logits": np.float32(1)}, r"must be \(rows"),
        ({**TENSORS, "labels": np.full(4, 9)}, "labels must lie in"),
        ({**TENSORS, "logits": np.full_like(TENSORS["logits"], np.nan)}, "not finite"),
    ],
)
def test_tensors_that_make_no_sense(tmp_path, tensors, words):
    with pytest.raises(De3Error, match=words):
        Trace.load(written(tmp_path / "a.trace", tensors))


@pytest.mark.parametrize("version", ["", "4", "²", "-1", "2.0", "9" * 5000, "\x1b[2J"])
def test_versions_that_are_none(tmp_path, version):
    with pytest.raises(De3Error, match="trace format") as caught:
        Trace.load(written(tmp_path / "a.trace", version=version))
    assert "\x1b" not in str(caught.value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([*ABOUT, "base_depth"]), JSON)
def test_any_description_is_read_or_refused(tmp_path_factory, key, value):
    path = tmp_path_factory.getbasetemp() / "any.trace"
    with contextlib.suppress(De3Error):
        Trace.load(written(path, about={**ABOUT, key: value}))


@pytest.mark.parametrize(
    "table",
    [
        np.zeros((2, 2), dtype=np.int64),
        np.zeros(0, dtype=np.int64),
        np.ones(3),
        np.array([1, 13]),
        np.array([-1, 2]),
        np.array(["a", "b"]),
    ],
)
def test_tables_of_tokens_that_make_no_sense(tmp_path, table):
    np.save(tmp_path / FILE, table)
    with pytest.raises(De3Error, match="is damaged"):
        TokenLayers.load(tmp_path, 12, {"hash": "frequency"})


@pytest.mark.parametrize("content", [b"", b"\x93NUMPY", b"PK\x03\x04", b"\x80\x04]."])
def test_tables_of_tokens_that_cannot_be_read(tmp_path, content):
    (tmp_path / FILE).write_bytes(content)
    with pytest.raises(De3Error, match="is damaged"):
        TokenLayers.load(tmp_path, 12, {})


@pytest.mark.parametrize("options", [{}, {"buckets": "six"}, {"buckets": 0}, {"buckets": 1e30}])
def test_buckets_that_make_no_sense(tmp_path, options):
    np.save(tmp_path / FILE, np.zeros(3, dtype=np.int64))
    with pytest.raises(De3Error, match="buckets"):
        TokenLayers.load(tmp_path, 12, {"hash": "occurrence", **options})
