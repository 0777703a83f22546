"""`de3 export --one-file` as it is typed."""

from __future__ import annotations

import pytest
from tests.export.bundles import pointed_model, trained_bundle

__all__ = ["pointed_model", "trained_bundle"]


def test_a_file_with_its_tokenizer(de3, trained_bundle, tmp_path):
    out = tmp_path / "web" / "model.onnx"
    said = de3("export", trained_bundle, "--one-file", out, "--point", "sure", "--json", "--quiet")
    assert said.code == 0, said.err
    assert said.json["file"] == str(out)
    assert said.json["default_point"] == "sure"
    assert said.json["points"]["sure"]["lambda"] == 0
    assert said.json["alike"]["other_layers"] == 0
    assert sorted(path.name for path in out.parent.iterdir()) == ["model.onnx", "tokenizer.json"]


def test_people_see_the_points_and_what_was_left_out(de3, trained_bundle, tmp_path):
    said = de3("export", trained_bundle, "--one-file", tmp_path / "model.onnx", "--no-defaults")
    assert said.code == 0, said.err
    assert "patience(edr)" in said.out
    for word in ("fast", "sure", "threshold", "max_layers", "fp32"):
        assert word in said.out
    assert 'the point "agreed" is not in the file' in said.err


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ((), "Give --out FOLDER"),
        (("--out", "b", "--one-file", "m.onnx"), "Give --out FOLDER"),
        (("--out", "b", "--record"), "--record goes with --one-file"),
        (("--out", "b", "--no-defaults"), "--no-defaults goes with --one-file"),
        (("--out", "b", "--policy", "entropy < 0.2"), "--policy goes with --one-file"),
        (("--one-file", "m.onnx", "--int8"), "is a bundle already"),
        (("--one-file", "m.onnx", "--point", "fats"), 'Did you mean "fast"'),
        (("--one-file", "m.onnx", "--policy", "entropy < nan"), "must be a finite number"),
        (("--one-file", "m.onnx", "--policy", "bandit"), "cannot be written into one file"),
        (("--one-file", "."), "folder"),
    ],
)
def test_what_is_refused(de3, trained_bundle, tmp_path, monkeypatch, asked, words):
    monkeypatch.chdir(tmp_path)
    said = de3("export", trained_bundle, *asked)
    assert said.code in (1, 2)
    assert words in said.err
    assert "Traceback" not in said.err
    assert list(tmp_path.iterdir()) == []


def test_a_tagger_is_refused(de3, tokee_model, tmp_path):
    from de3bert.export.bundle import export_model

    export_model(tokee_model, tmp_path / "bundle")
    said = de3("export", tmp_path / "bundle", "--one-file", tmp_path / "model.onnx")
    assert said.code == 2
    assert "the words of a sentence leave together" in said.err
    assert not (tmp_path / "model.onnx").exists()
