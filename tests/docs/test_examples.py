"""The examples run as their first lines say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.fixtures_trained import toy_rows, trained_model
from tests.training.classifiers import saved, tiny_classifier
from tests.warm import python

from de3bert.export.bundle import export_model

__all__ = ["trained_model"]

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(
    name: str, *arguments: object, given: str = "", by: tuple[str, ...] | None = None
) -> subprocess.CompletedProcess[str]:
    call = [*(by or python()), str(EXAMPLES / name), *map(str, arguments)]
    done = subprocess.run(call, input=given, capture_output=True, text=True, timeout=250)
    assert done.returncode == 0, done.stderr
    return done


def test_attach_your_model(tmp_path, tiny_tokenizer):
    source = saved(tiny_classifier("distilbert"), tiny_tokenizer, tmp_path / "source")
    lines = tmp_path / "texts.txt"
    lines.write_text("".join(f"{text}\n" for text, _ in toy_rows(900, 3)), encoding="utf-8")
    said = run("attach_your_model.py", source, lines, tmp_path / "out").stdout
    assert "times fewer layers" in said
    assert "with probability 0.9" in said


def test_train_and_calibrate(tmp_path, tiny_backbone, toy_data):
    quick = ("train.epochs=2", "train.learning_rate=3e-3", "train.batch_size=16")
    script, out = "train_and_calibrate.py", tmp_path / "model"
    said = run(script, tiny_backbone, toy_data.train, toy_data.calibration, out, *quick).stdout
    assert "exit after layer  4: " in said
    assert "at 1.5x" in said
    assert "1.5x: " in said
    assert "careful: " in said


def test_predict_from_a_bundle(tmp_path, trained_model):
    export_model(trained_model, tmp_path / "bundle")
    texts = [text for text, _ in toy_rows(20, 4)]
    done = run(
        "predict_from_a_bundle.py", tmp_path / "bundle", "full", given="\n".join(texts),
        by=(sys.executable,),
    )  # fmt: skip
    answers = [line.split("\t") for line in done.stdout.splitlines()]
    assert len(answers) == len(texts)
    assert {(label, layer) for label, _, layer in answers} == {("neg", "4"), ("pos", "4")}
    assert "20 texts, 4.00 of 4 layers each" in done.stderr


@pytest.mark.parametrize("script", sorted(path.name for path in EXAMPLES.glob("*.py")))
def test_without_arguments_it_says_how_to_use_it(script):
    call = [*python(), str(EXAMPLES / script)]
    done = subprocess.run(call, capture_output=True, text=True)
    assert done.returncode == 1
    assert f"python examples/{script}" in done.stderr
