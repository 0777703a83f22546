"""The example for Node answers what plain ONNX Runtime in Python answers."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.examples.reference import EXAMPLES, NODE, Reference, assert_same

import de3bert
from de3bert.export.one_file import export_one_file

POINTS = ("fast", "sure", "twice", "second", "full")


def asked(node: str, question: dict[str, Any]) -> Any:
    script = Path(__file__).with_name("answers.mjs")
    command = [node, str(script), str(NODE / "node_modules"), str(EXAMPLES)]
    done = subprocess.run(command, input=json.dumps(question), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def streamed(command: list[str], texts: list[str]) -> list[list[str]]:
    done = subprocess.run(command, input="\n".join(texts), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [line.split("\t") for line in done.stdout.splitlines()]


@pytest.mark.parametrize("point", POINTS)
def test_answers_are_those_of_python(node, one_file, texts, point):
    reference = Reference(one_file)
    numbers = reference.points[point]
    question = {"model": str(one_file), "tokenizer": str(one_file.with_name("tokenizer.json")),
                "texts": texts, "numbers": numbers}  # fmt: skip
    assert_same(asked(node, question), reference.answers(texts, numbers))


@pytest.mark.parametrize("point", [(), ("sure",)])
def test_both_scripts_print_what_de3bert_predicts(node, one_file, trained_bundle, texts, point):
    scripts = ([sys.executable, EXAMPLES / "run_one_file.py"], [node, NODE / "classify.mjs"])
    named = point[0] if point else None
    wanted = de3bert.load(trained_bundle).predict(texts, point=named)
    for script in scripts:
        found = streamed([*map(str, script), str(one_file), *point], texts)
        for (label, score, layer), answer in zip(found, wanted, strict=True):
            assert (label, int(layer)) == (answer.label, answer.exit_layer)
            assert float(score) == pytest.approx(answer.score, abs=2e-4)


def test_both_scripts_take_pairs(node, one_file):
    pair = "a great film\ta dull plot"
    reference = Reference(one_file)
    wanted = reference.answers([pair], reference.points["fast"])[0]
    for script in ([sys.executable, EXAMPLES / "run_one_file.py"], [node, NODE / "classify.mjs"]):
        ((label, score, layer),) = streamed([*map(str, script), str(one_file)], [pair])
        assert (label, int(layer)) == (wanted.label, wanted.layer)
        assert float(score) == pytest.approx(wanted.probability, abs=2e-4)


def said_of(node: str, *arguments: object) -> tuple[int, str]:
    call = [node, str(NODE / "classify.mjs"), *map(str, arguments)]
    done = subprocess.run(call, input="", capture_output=True, text=True)
    assert "\n    at " not in done.stderr
    return done.returncode, done.stderr


def test_what_is_wrong_is_said_in_a_line(node, one_file, trained_bundle, tmp_path):
    assert said_of(node) == (2, "Use: node classify.mjs MODEL.onnx [POINT] < texts.txt\n")
    python = [sys.executable, str(EXAMPLES / "run_one_file.py"), str(one_file), "warp"]
    done = subprocess.run(python, input="", capture_output=True, text=True)
    assert (done.returncode, done.stderr[:25]) == (1, 'There is no point "warp";')
    code, said = said_of(node, one_file, "warp")
    assert (code, said[:25]) == (1, 'There is no point "warp";')
    assert said_of(node, tmp_path / "nothing.onnx")[0] == 1
    shutil.copy(one_file, tmp_path / "model.onnx")
    (tmp_path / "tokenizer.json").write_text("{}", encoding="utf-8")
    assert "another model's" in said_of(node, tmp_path / "model.onnx")[1]
    (tmp_path / "model.onnx").write_bytes(one_file.read_bytes()[:3000])
    assert said_of(node, tmp_path / "model.onnx") == (1, "This ONNX file is cut off.\n")
    (tmp_path / "model.onnx").write_text("a text, not a model", encoding="utf-8")
    assert said_of(node, tmp_path / "model.onnx") == (1, "This is no ONNX file.\n")
    stretch = next(trained_bundle.glob("*.onnx"))
    assert "no model that de3bert wrote as one file" in said_of(node, stretch)[1]


def test_a_file_with_defaults_is_refused(node, trained_bundle, tmp_path):
    """The runtimes of JavaScript would take the defaults, whatever they are given."""
    export_one_file(trained_bundle, tmp_path / "model.onnx")
    code, said = said_of(node, tmp_path / "model.onnx")
    assert code == 1
    assert "--no-defaults" in said
