"""A method of a plugin joins a study."""

from __future__ import annotations

import json

from lab.tests.study.toys import write_study
from tests.fixtures_trained import toy_data
from tests.plugins.test_example import Shell, installed

__all__ = ["installed", "toy_data"]


def test_it_is_trained_and_compared_beside_the_others(installed, tiny_backbone, toy_data, tmp_path):
    task = {"name": "toy", "train": str(toy_data.train), "test": {"test": str(toy_data.test)},
            "rows": 80, "calibration_rows": 40, "max_length": 16}  # fmt: skip
    study = {"backbone": str(tiny_backbone), "pooling": "mean", "speeds": [1.5],
             "chosen": "joint-margin", "methods": ["joint-margin", "joint-entropy"],
             "train": {"epochs": 1, "batch_size": 16, "learning_rate": 3e-3},
             "task": [task]}  # fmt: skip
    path = write_study(tmp_path / "study.toml", study)
    Shell(installed, tmp_path)("compare", path, "--out", "report", "--quiet")
    document = json.loads((tmp_path / "report" / "study.json").read_text())
    assert {each["name"] for each in document["methods"]} == {"joint-margin", "joint-entropy"}
    assert document["progress"]["done"] == 2
