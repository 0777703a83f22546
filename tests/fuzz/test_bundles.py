"""Bundles of strangers: manifest, config, tokenizer, graphs, and what may stand in their place."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.arena import Arena, Case
from tests.fuzz.budget import cases
from tests.fuzz.graphs import changed_graph, graph_changes
from tests.fuzz.mutate import bites, edits, place_stand, stands
from tests.fuzz.test_models import call, changed_bytes, changed_document
from tests.fuzz.verbs import ON_BUNDLES, model_call

GRAPHS = ("layers-01-01.onnx", "layers-02-02.onnx", "layers-04-04.onnx", "distances-01.onnx")
VERBS = st.sampled_from(ON_BUNDLES)


def signed(folder: Path) -> None:
    """The manifest of a stranger who can count: sizes and hashes are those of the files."""
    manifest = folder / "manifest.json"
    document = json.loads(manifest.read_text(encoding="utf-8"))
    for path in folder.iterdir():
        if path.is_file() and path.name in document["files"] and path.stat().st_size < 1 << 20:
            data = path.read_bytes()
            document["files"][path.name] = {
                "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()
            }  # fmt: skip
    manifest.write_text(json.dumps(document))


def copied(arena: Arena, target: str) -> tuple[Case, Path]:
    case = arena.case(target)
    return case, case.copy(arena.materials.bundle, "bundle")


@cases("manifests")
@given(edits, VERBS)
def test_manifest(arena: Arena, edited_at, verb):
    case, bundle = copied(arena, "manifests")
    changed_document(bundle / "manifest.json", edited_at, case)
    call(case, verb, bundle)


@cases("bundle config")
@given(edits, st.booleans(), VERBS)
def test_config(arena: Arena, edited_at, unsigned, verb):
    case, bundle = copied(arena, "bundle config")
    changed_document(bundle / "config.json", edited_at, case)
    if not unsigned:
        signed(bundle)
    call(case, verb, bundle)


@cases("bundle tokenizer")
@given(edits, bites, st.booleans(), st.sampled_from(["predict", "explain", "evaluate"]))
def test_tokenizer(arena: Arena, edited_at, bitten_at, spoil, verb):
    case, bundle = copied(arena, "bundle tokenizer")
    changed_document(bundle / "tokenizer.json", edited_at, case)
    if spoil:
        changed_bytes(bundle / "tokenizer.json", bitten_at, case)
    signed(bundle)
    call(case, verb, bundle)


@cases("graphs")
@given(
    st.sampled_from(GRAPHS), graph_changes, bites, st.sampled_from(["graph", "graph", "bytes"]),
    st.booleans(), VERBS,
)  # fmt: skip
def test_graphs(arena: Arena, name, changes, bitten_at, where, unsigned, verb):
    case, bundle = copied(arena, "graphs")
    if where == "bytes":
        changed_bytes(bundle / name, bitten_at, case)
    else:
        data = changed_graph(bundle / name, changes)
        case.write(f"bundle/{name}", data)
    if not unsigned:
        signed(bundle)
    call(case, verb, bundle)


FILES = (*GRAPHS, "config.json", "tokenizer.json", "manifest.json", "profile.json", "README.md",
         "token_layers.npy", "weights.bin")  # fmt: skip


@cases("bundle files")
@given(
    st.sampled_from(FILES), stands, st.booleans(), st.sampled_from(["tokenizer.json", *GRAPHS]),
    VERBS,
)  # fmt: skip
def test_files(arena: Arena, name, stand, listed, another, verb):
    case, bundle = copied(arena, "bundle files")
    other = (bundle / another).read_bytes()
    (bundle / "evil.py").write_bytes(other)
    place_stand(bundle / name, stand, arena.canaries[1], bundle / "evil.py")
    if listed and name != "manifest.json":
        _list(bundle, name)
        signed(bundle)
    call(case, verb, bundle)


def _list(bundle: Path, name: str) -> None:
    manifest = bundle / "manifest.json"
    document: dict[str, Any] = json.loads(manifest.read_text(encoding="utf-8"))
    document["files"].setdefault(name, {"bytes": 0, "sha256": ""})
    manifest.write_text(json.dumps(document))


@cases("profiles")
@given(
    edits, bites, st.sampled_from(["edit", "edit", "bytes"]),
    st.sampled_from(["calibrate by time", "calibrate by trace", "place-exits", "curve"]),
)  # fmt: skip
def test_profile(arena: Arena, edited_at, bitten_at, how, verb):
    case, bundle = copied(arena, "profiles")
    if how == "edit":
        changed_document(bundle / "profile.json", edited_at, case)
    else:
        changed_bytes(bundle / "profile.json", bitten_at, case)
    call(case, verb, bundle)


@pytest.mark.parametrize("verb", sorted(set(ON_BUNDLES)))
def test_what_is_spoiled_was_sound(arena: Arena, verb):
    case, bundle = copied(arena, "bundle files")
    arguments, stdin = model_call(case, verb, bundle)
    outcome = case.verb(*arguments, stdin=stdin)
    assert outcome.kind == "success", outcome.err
