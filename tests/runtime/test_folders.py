"""Model folders that are wrong, damaged or incomplete: said clearly, never half loaded."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from safetensors.torch import load_file, save_file

import de3bert
from de3bert.errors import De3Error, UsageError


def refused(folder: Path, kind: type[De3Error], *words: str) -> None:
    with pytest.raises(De3Error) as error:
        de3bert.load(folder)
    assert type(error.value) is kind
    for word in words:
        assert word in str(error.value)
    assert "Traceback" not in str(error.value)


def test_a_file_is_not_a_folder(tmp_path):
    (tmp_path / "model").write_text("")
    refused(tmp_path / "model", UsageError, "is a file", "config.json")


def test_a_folder_without_config_says_what_is_there(tmp_path):
    (tmp_path / "notes.txt").write_text("")
    refused(tmp_path, UsageError, "no config.json", "notes.txt")
    shutil.rmtree(tmp_path)
    tmp_path.mkdir()
    refused(tmp_path, UsageError, "found: nothing")


def test_a_plain_encoder_has_no_exits(tiny_backbone):
    refused(
        tiny_backbone,
        UsageError,
        '"bert" model',
        f"de3 attach {tiny_backbone} --data",
        "de3 train --backbone",
    )


def test_neither_folder_nor_hub_id(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(UsageError, match='No model "no-such-model"'):
        de3bert.load("no-such-model")


@pytest.mark.parametrize("text", ["", "{", '{"model_type": "de3bert",', "\x00\x01"])
def test_a_config_that_is_not_json(model_copy, text):
    (model_copy / "config.json").write_text(text)
    refused(model_copy, De3Error, "config.json is damaged")


def test_a_config_that_is_not_utf8(model_copy):
    (model_copy / "config.json").write_bytes(b'{"model_type": "\xff\xfe"}')
    refused(model_copy, De3Error, "config.json is damaged")


def test_a_config_of_something_else(model_copy):
    (model_copy / "config.json").write_text('{"a": 1}')
    refused(model_copy, UsageError, "has no exits")


@pytest.mark.parametrize("text", ["[]", "3", "[" * 100_000])
def test_a_config_that_is_no_object(model_copy, text):
    (model_copy / "config.json").write_text(text)
    refused(model_copy, De3Error, "config.json is damaged")


@pytest.mark.parametrize(
    "change",
    [
        {"exit_layers": [1, 99]},
        {"method": "dee"},
        {"pooling": "median"},
        {"backbone_config": {"model_type": "bret"}},
        {"backbone_config": 7},
        {"exit_layers": "all"},
        {"layout": {"stack": "nowhere"}},
        {"operating_points": 3},
    ],
)
def test_a_config_with_senseless_values(model_copy, change):
    path = model_copy / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(De3Error):
        de3bert.load(model_copy).predict(["a good film"])


def test_a_config_that_lost_its_settings(model_copy):
    (model_copy / "config.json").write_text('{"model_type": "de3bert"}')
    refused(model_copy, De3Error, str(model_copy))


def test_no_weights(model_copy):
    (model_copy / "model.safetensors").unlink()
    refused(model_copy, De3Error, "no weights")


@pytest.mark.parametrize("share", [0.0, 0.001, 0.5, 0.999])
def test_weights_cut_short(model_copy, share):
    path = model_copy / "model.safetensors"
    data = path.read_bytes()
    path.write_bytes(data[: int(len(data) * share)])
    refused(model_copy, De3Error, "damaged or incomplete")


def test_weights_with_a_broken_header(model_copy):
    path = model_copy / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[20] ^= 0xFF
    path.write_bytes(data)
    refused(model_copy, De3Error, "damaged or incomplete")


@pytest.mark.parametrize("name", ["heads.exits.2.weight", "prototypes.vectors", "encoder.layers"])
def test_weights_that_lack_a_tensor(model_copy, name):
    path = model_copy / "model.safetensors"
    tensors = load_file(path)
    kept = {key: value for key, value in tensors.items() if not key.startswith(name)}
    assert len(kept) < len(tensors)
    save_file(kept, path, metadata={"format": "pt"})
    refused(model_copy, De3Error, "incomplete", name)


def test_weights_of_another_shape(model_copy):
    path = model_copy / "model.safetensors"
    tensors = load_file(path)
    tensors["heads.exits.0.weight"] = tensors["heads.exits.0.weight"][:, :7].contiguous()
    save_file(tensors, path, metadata={"format": "pt"})
    refused(model_copy, De3Error, "damaged or incomplete")


def test_weights_that_are_not_numbers(model_copy):
    path = model_copy / "model.safetensors"
    tensors = load_file(path)
    tensors["heads.exits.0.weight"] *= float("nan")
    save_file(tensors, path, metadata={"format": "pt"})
    with pytest.raises(De3Error, match=re.escape("not a number (NaN)")):
        de3bert.load(model_copy).predict(["a good film"], policy="entropy < 0.2")


@pytest.mark.parametrize("text", [None, "{"])
def test_a_tokenizer_that_is_missing_or_damaged(model_copy, text):
    path = model_copy / "tokenizer.json"
    path.unlink()
    if text is not None:
        path.write_text(text)
    refused(model_copy, De3Error, "tokenizer")
