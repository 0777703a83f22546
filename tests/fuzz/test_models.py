"""Model folders of strangers: config, tokenizer, weights, and what else may lie in a folder."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.fuzz.arena import Arena, Case
from tests.fuzz.budget import cases
from tests.fuzz.mutate import as_json, bites, bitten, edited, edits, place_stand, stands
from tests.fuzz.training import stopped_before_training
from tests.fuzz.verbs import ON_MODELS, model_call

FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")
KINDS = st.sampled_from(["model", "model", "model", "words"])


def call(case: Case, verb: str, model: Path) -> None:
    arguments, stdin = model_call(case, verb, model)
    case.verb(*arguments, stdin=stdin)


def changed_document(path: Path, edited_at: Any, case: Case) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    case.write(str(path.relative_to(case.folder)), as_json(edited(document, edited_at)))


def changed_bytes(path: Path, bitten_at: Any, case: Case) -> None:
    case.write(str(path.relative_to(case.folder)), bitten(path.read_bytes(), bitten_at))


@cases("model config")
@given(edits, KINDS, st.sampled_from(ON_MODELS))
def test_config(arena: Arena, edited_at, kind, verb):
    case = arena.case("model config")
    model = case.copy(getattr(arena.materials, kind), "model")
    changed_document(model / "config.json", edited_at, case)
    call(case, verb, model)


@cases("model record")
@given(edits, bites, st.booleans(), st.sampled_from(["calibrate by trace", "adapt"]))
def test_record(arena: Arena, edited_at, bitten_at, spoil, verb):
    """What a training wrote of itself is shown on the card."""
    case = arena.case("model record")
    call(case, verb, model_with_spoiled_record(case, edited_at, bitten_at if spoil else None))


def model_with_spoiled_record(case, edited_at, bitten_at) -> Path:
    model = case.copy(case.arena.materials.model, "model")
    changed_document(model / "training.json", edited_at, case)
    if bitten_at is not None:
        changed_bytes(model / "training.json", bitten_at, case)
    return model


@cases("model tokenizer")
@given(
    edits, st.sampled_from(FILES[2:]), st.booleans(), bites,
    st.sampled_from(["predict", "explain", "evaluate"]),
)  # fmt: skip
def test_tokenizer(arena: Arena, edited_at, name, spoil, bitten_at, verb):
    case = arena.case("model tokenizer")
    model = case.copy(arena.materials.model, "model")
    changed_document(model / name, edited_at, case)
    if spoil:
        changed_bytes(model / name, bitten_at, case)
    call(case, verb, model)


def reheaded(data: bytes, edited_at: Any) -> bytes:
    """A safetensors file whose header was edited: types, shapes and places of tensors."""
    length = struct.unpack("<Q", data[:8])[0]
    header = as_json(edited(json.loads(data[8 : 8 + length]), edited_at))
    return struct.pack("<Q", len(header)) + header + data[8 + length :]


@cases("model weights")
@given(edits, bites, st.sampled_from(["header", "bytes", "both"]), st.sampled_from(ON_MODELS))
def test_weights(arena: Arena, edited_at, bitten_at, where, verb):
    case = arena.case("model weights")
    model = case.copy(arena.materials.model, "model")
    data = (model / "model.safetensors").read_bytes()
    if where != "bytes":
        data = reheaded(data, edited_at)
    if where != "header":
        data = bitten(data, bitten_at)
    case.write("model/model.safetensors", data)
    call(case, verb, model)


EXTRAS = ("pytorch_model.bin", "generation_config.json", "special_tokens_map.json", "vocab.txt",
          "added_tokens.json", "model.safetensors.index.json", "adapter_config.json",
          "chat_template.jinja", "profile.json", "training.json", "recipe.toml",
          "README.md")  # fmt: skip


@cases("model files")
@given(st.sampled_from([*FILES, *EXTRAS]), stands, KINDS, st.sampled_from(ON_MODELS))
def test_files(arena: Arena, name, stand, kind, verb):
    case = arena.case("model files")
    model = case.copy(getattr(arena.materials, kind), "model")
    place_stand(model / name, stand, case.arena.materials.rows, model / "tokenizer.json")
    call(case, verb, model)


@cases("backbones")
@given(
    st.sampled_from(["config.json", "tokenizer_config.json", "tokenizer.json"]), edits, stands,
    st.sampled_from(["edit", "edit", "edit", "stand"]),
)  # fmt: skip
def test_backbones(arena: Arena, name, edited_at, stand, how):
    case = arena.case("backbones")
    backbone = case.copy(arena.materials.backbone, "backbone")
    if how == "edit":
        changed_document(backbone / name, edited_at, case)
    else:
        place_stand(backbone / name, stand, arena.materials.rows, backbone / "tokenizer.json")
    with stopped_before_training():
        case.verb(
            "train", "--backbone", backbone, "--data", arena.materials.rows, "--out",
            case.folder / "out", "--quiet",
        )  # fmt: skip


@pytest.mark.parametrize("verb", sorted(set(ON_MODELS)))
def test_what_is_spoiled_was_sound(arena: Arena, verb):
    case = arena.case("model files")
    arguments, stdin = model_call(case, verb, case.copy(arena.materials.model, "model"))
    outcome = case.verb(*arguments, stdin=stdin)
    assert outcome.kind == "success", outcome.err
