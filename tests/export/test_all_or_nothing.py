"""An export replaces a bundle as a whole or not at all, and takes nobody else's place."""

from __future__ import annotations

import pytest
from tests.export.bundles import files_of
from tests.fixtures_trained import toy_rows
from tests.runtime.test_stopping import answers

import de3bert
from de3bert.errors import De3Error, UsageError
from de3bert.export import bundle as exporting
from de3bert.export.bundle import export_model

TEXTS = [text for text, _ in toy_rows(30, seed=51)]


def test_a_bundle_is_no_source(trained_bundle, tmp_path):
    with pytest.raises(UsageError, match="is a bundle already"):
        export_model(trained_bundle, tmp_path / "bundle")
    assert list(tmp_path.iterdir()) == []


def test_a_model_is_not_written_over(pointed_model, model_copy):
    before = files_of(model_copy)
    for source in (pointed_model, model_copy):
        with pytest.raises(UsageError, match="its own folder"):
            export_model(source, model_copy)
    assert files_of(model_copy) == before


def test_a_folder_with_other_files_is_left_alone(pointed_model, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    with pytest.raises(UsageError, match="other files in it"):
        export_model(pointed_model, tmp_path / "out")
    (tmp_path / "file").write_text("mine")
    with pytest.raises(De3Error, match="file"):
        export_model(pointed_model, tmp_path / "file")
    assert files_of(tmp_path / "out") == {"notes.txt": b"mine"}
    assert (tmp_path / "file").read_text() == "mine"


def test_a_source_that_is_no_model(tmp_path, tiny_backbone, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="has no exits"):
        export_model(tiny_backbone, "bundle")
    with pytest.raises(UsageError, match='No model "no-such-model"'):
        export_model("no-such-model", "bundle")
    assert list(tmp_path.iterdir()) == []


def test_an_empty_folder_and_an_old_bundle_are_written_anew(
    pointed_model, ready_graphs, tmp_path, trained_bundle
):
    out = tmp_path / "bundle"
    out.mkdir()
    export_model(pointed_model, out)
    (out / "layers-09-12.onnx").write_text("left over")
    (out / "profile.json").write_text("{}")
    export_model(pointed_model, out)
    assert set(files_of(out)) == set(files_of(trained_bundle))
    assert answers(de3bert.load(out).predict(TEXTS)) == answers(
        de3bert.load(trained_bundle).predict(TEXTS)
    )
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]


STEPS = ("quantise_graph", "recalibrate", "write_card")


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("failure", [RuntimeError("in the middle"), KeyboardInterrupt()])
@pytest.mark.parametrize("old", [True, False])
def test_an_export_that_fails_changes_nothing(
    pointed_model, ready_graphs, bundle_copy, tmp_path, monkeypatch, step, failure, old
):
    out = bundle_copy if old else tmp_path / "new"
    before, around = files_of(bundle_copy), sorted(tmp_path.iterdir())

    def interrupted(*args: object, **named: object) -> None:
        raise failure

    monkeypatch.setattr(exporting, step, interrupted)
    with pytest.raises(type(failure)):
        export_model(pointed_model, out, int8=True)
    assert files_of(bundle_copy) == before
    assert sorted(tmp_path.iterdir()) == around  # no temporary folder is left
    assert de3bert.load(bundle_copy).predict(TEXTS)


def test_a_full_disk_is_called_so(pointed_model, bundle_copy, tmp_path, monkeypatch):
    before = files_of(bundle_copy)

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(exporting, "_write_with", full)
    with pytest.raises(De3Error, match=r"the disk is full.*Nothing was changed"):
        export_model(pointed_model, bundle_copy)
    assert files_of(bundle_copy) == before
    assert [path.name for path in tmp_path.iterdir()] == ["bundle"]
