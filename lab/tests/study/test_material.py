"""Rows: the same for every method, never shared between training and calibration."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from lab.tests.study.toys import changed_task, checked, settings, spec_of

from de3bert.errors import De3Error, UsageError
from de3bert.methods import METHODS
from de3lab.study.execute import Study
from de3lab.study.material import backbone_sha256, read_material


@pytest.fixture
def task(toy_data):
    return spec_of("bb", toy_data).task[0]


def test_rows_of_a_seed(task):
    material = read_material(task)
    for seed in (1, 2):
        parts = material.cut(seed)
        assert [len(parts[name]) for name in ("train", "calibration")] == [240, 100]
        assert not {*parts["train"]} & {*parts["calibration"]}
        np.testing.assert_array_equal(parts["train"], material.cut(seed)["train"])
    assert {*material.cut(1)["train"]} != {*material.cut(2)["train"]}
    splits = material.splits(1)
    assert splits.train.texts == [material.source.texts[i] for i in material.cut(1)["train"]]
    assert splits.labels.names == ("neg", "pos")


def test_without_a_number_all_rows_are_used(toy_data, task):
    material = read_material(task.model_copy(update={"rows": None}))
    assert material.train_rows == 480 - 100


def test_test_files_are_cut_to_the_same_rows_for_everybody(task):
    whole = read_material(task)
    name = task.main_test
    assert len(whole.tests[name]) == 120
    cut = read_material(task.model_copy(update={"test_rows": 50})).tests[name]
    again = read_material(task.model_copy(update={"test_rows": 50})).tests[name]
    assert cut.texts == again.texts
    assert len(cut) == 50
    shares = [np.mean([label == "pos" for label in t.labels]) for t in (cut, whole.tests[name])]
    assert abs(shares[0] - shares[1]) < 0.02
    assert len(read_material(task.model_copy(update={"test_rows": 500})).tests[name]) == 120


def write_rows(path: Path, rows) -> str:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rows": 400}, "400 training and 100 calibration rows are asked for"),
        ({"rows": None, "calibration_rows": 479}, "1 training and 479 calibration rows"),
        ({"text": "words"}, 'has no column "words"'),
        ({"label": "klass"}, 'has no column "klass"'),
        ({"train": "nowhere.csv"}, "There is no file"),
    ],
)
def test_refusals_name_the_task(toy_data, task, changes, said):
    with pytest.raises(De3Error, match="Task plain: ") as caught:
        read_material(task.model_copy(update=changes))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("label", "said"),
    [
        (lambda i: ["a", "b"], "multi-label"),
        (lambda i: "same", "only the class"),
        (lambda i: i / 7, "regression is not supported"),
        (lambda i: "rare" if i == 0 else "usual", "Too few rows"),
    ],
)
def test_labels_that_no_classifier_learns(tmp_path, task, label, said):
    path = write_rows(
        tmp_path / "t.jsonl", [{"text": "a b", "label": label(i)} for i in range(480)]
    )
    with pytest.raises(De3Error, match="Task plain") as caught:
        read_material(task.model_copy(update={"train": path, "test": {"test": path}}))
    assert said in str(caught.value)


def test_test_rows_with_other_labels_or_another_shape(tmp_path, task):
    strange = write_rows(tmp_path / "s.jsonl", [{"text": "a", "label": "maybe"}] * 4)
    with pytest.raises(UsageError, match="not among the classes"):
        read_material(task.model_copy(update={"test": {"test": strange}}))
    pairs = write_rows(tmp_path / "p.jsonl", [{"text_a": "a", "text_b": "b", "label": "pos"}] * 4)
    with pytest.raises(UsageError, match="mixed"):
        read_material(task.model_copy(update={"test": {"test": pairs}}))


def test_f1_is_for_two_classes(tmp_path, toy_data):
    rows = [{"text": "a b", "label": "abc"[i % 3]} for i in range(60)]
    path = write_rows(tmp_path / "t.jsonl", rows)
    given = changed_task(
        settings("bb", toy_data), 1, train=path, test={"t": path}, rows=30, calibration_rows=9
    )
    with pytest.raises(UsageError, match=r"Task both is scored by f1, which is for 2 classes"):
        Study(checked(given), tmp_path).check()


def test_methods_that_tag_words_are_not_for_texts(tmp_path, toy_data, monkeypatch):
    tagger = replace(METHODS["de3"], name="tagger", task="token-classification")
    monkeypatch.setattr(METHODS, "_parts", {**METHODS._parts, "tagger": tagger})
    with pytest.raises(UsageError, match="Method tagger tags words"):
        Study(spec_of("bb", toy_data, methods=["de3", "tagger"]), tmp_path).check()


def test_a_backbone_is_known_by_its_content(tiny_backbone, tmp_path):
    import shutil

    usual = backbone_sha256(str(tiny_backbone))
    copied = Path(shutil.copytree(tiny_backbone, tmp_path / "copy"))
    assert backbone_sha256(str(copied)) == usual
    (copied / "README.md").write_text("nothing that counts")
    assert backbone_sha256(str(copied)) == usual
    with (copied / "model.safetensors").open("ab") as file:
        file.write(b"x")
    assert backbone_sha256(str(copied)) != usual
    assert backbone_sha256("owner/name") != backbone_sha256("owner/other")


def test_a_backbone_that_is_not_there(tmp_path, toy_data):
    with pytest.raises(UsageError, match="There is no backbone at"):
        Study(spec_of(tmp_path / "none", toy_data), tmp_path).check()
