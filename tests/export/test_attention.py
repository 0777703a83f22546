"""Fused attention where it proves right, else the plain one, else a message with the family."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.fixtures_trained import toy_rows
from transformers import BertModel

from de3bert.errors import De3Error
from de3bert.export import bundle as exporting
from de3bert.export.attention import FUSED, PLAIN, attention_as
from de3bert.export.bundle import export_model
from de3bert.export.check import Agreement
from de3bert.runtime.manifest import Manifest

TEXTS = [text for text, _ in toy_rows(30, seed=51)]


@pytest.fixture
def attempts(pointed_model, trained_bundle, monkeypatch) -> list[str]:
    """Records which attention is tried; each attempt gives the graphs of the trained bundle."""
    tried: list[str] = []

    def written(attention: str, model: Any, folder: Path, *_: Any) -> tuple[Manifest, int]:
        tried.append(attention)
        shutil.copytree(trained_bundle, folder, dirs_exist_ok=True)
        manifest = Manifest.read(trained_bundle)
        manifest.made["attention"] = attention
        manifest.write(folder)
        return manifest, 0

    monkeypatch.setattr(exporting, "_write_with", written)
    return tried


FAR = Agreement(8, 0.5, 0.0, 0.5, 0, True, True)


def test_fused_attention_is_enough_when_it_is_right(pointed_model, attempts, tmp_path):
    export_model(pointed_model, tmp_path / "bundle")
    assert attempts == [FUSED]


def test_a_backbone_that_computes_attention_itself_is_exported_as_it_is(
    pointed_model, attempts, tmp_path, monkeypatch
):
    monkeypatch.setattr(BertModel, "_supports_attention_backend", False)
    export_model(pointed_model, tmp_path / "bundle")
    assert attempts == [PLAIN]


@pytest.mark.parametrize(
    "wrong",
    [
        RuntimeError("no such operator\nmore"),
        FAR,
        Agreement(8, 0.0, 0.5, 0.0, 0, True, True),
        Agreement(8, 0.0, 0.0, 0.0, 0, False, True),
        Agreement(8, 0.0, 0.0, 0.0, 0, True, False),
    ],
    ids=["failed", "entropies", "distances", "labels", "exits"],
)
def test_where_fused_attention_is_wrong_the_plain_one_is_taken(
    pointed_model, attempts, tmp_path, monkeypatch, wrong
):
    right = exporting.compare

    def judged(*pair: Any) -> Agreement:
        if len(attempts) > 1:
            return right(*pair)
        if isinstance(wrong, Exception):
            raise wrong
        return wrong

    monkeypatch.setattr(exporting, "compare", judged)
    export_model(pointed_model, tmp_path / "bundle")
    assert attempts == [FUSED, PLAIN]
    assert Manifest.read(tmp_path / "bundle").made["attention"] == PLAIN


@pytest.mark.parametrize(
    ("wrong", "words"),
    [(FAR, "its signals differ by 0.5"), (ValueError("odd\nmore"), "ValueError: odd.")],
)
def test_an_encoder_that_cannot_be_exported_is_named(
    pointed_model, attempts, tmp_path, monkeypatch, wrong, words
):
    def judged(*pair: Any) -> Agreement:
        if isinstance(wrong, Exception):
            raise wrong
        return wrong

    monkeypatch.setattr(exporting, "compare", judged)
    with pytest.raises(De3Error, match=r'family "bert" cannot be exported') as error:
        export_model(pointed_model, tmp_path / "bundle")
    assert words in str(error.value)
    assert "still runs with torch" in str(error.value)
    assert attempts == [FUSED, PLAIN]
    assert list(tmp_path.iterdir()) == []


def test_a_loaded_model_keeps_its_own_attention(classifier):
    backbone = classifier.backend.model.encoder.backbone
    before = classifier.trace(TEXTS[:3]).logits
    own = backbone.config._attn_implementation
    with attention_as(backbone, PLAIN):
        assert backbone.config._attn_implementation == PLAIN
    with pytest.raises(KeyError), attention_as(backbone, FUSED):
        {}["no such thing"]
    assert backbone.config._attn_implementation == own
    assert own not in (PLAIN, FUSED)
    np.testing.assert_array_equal(classifier.trace(TEXTS[:3]).logits, before)
