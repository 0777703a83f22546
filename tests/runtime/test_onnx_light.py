"""A bundle needs no torch: a process that cannot import the heavy libraries does all the work."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from tests.export.bundles import (
    bundle_copy,
    int8_bundle,
    pointed_model,
    trained_bundle,
)
from tests.runtime.fakes import set_config
from tests.runtime.test_stopping import answers

import de3bert

__all__ = ["bundle_copy", "int8_bundle", "pointed_model", "trained_bundle"]

HEAVY = ("torch", "transformers", "onnx", "onnx_ir", "onnxscript", "datasets", "pandas",
         "accelerate", "sklearn", "matplotlib")  # fmt: skip
WITHOUT = """
import sys

class Refused:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in HEAVY:
            raise ImportError(f"{name} is not here")

sys.meta_path.insert(0, Refused())
for name in HEAVY:
    try:
        __import__(name)
    except ImportError:
        continue
    raise SystemExit(f"{name} was imported all the same")
"""
WORK = """
import json
import de3bert
from de3bert.data.read import read_table
from de3bert.runtime.calibrate_folder import calibrate_model
from de3bert.runtime.evaluate import evaluate, trace_table
from de3bert.runtime.summary import summarise

folder, data = sys.argv[1:]
clf = de3bert.load(folder)
texts = ["a great joy", "the film was dull", "so bad"]
table = read_table(data)
trace = clf.trace(texts)
said = {
    "predict": [[each.label, each.exit_layer] for each in clf.predict(texts)],
    "pairs": [each.label for each in clf.predict([("good", "film"), ("bad", "plot")])],
    "stream": [[each.label, each.exit_layer] for each in clf.predict_iter(iter(texts))],
    "trace": [list(trace.logits.shape), list(trace.distances.shape)],
    "explain": len(str(clf.explain(texts[0])).splitlines()),
    "evaluate": evaluate(clf, table).rows,
    "traced": trace_table(clf, table).rows,
    "summary": summarise(clf)["family"],
    "point": calibrate_model(folder, "layers=1.2", "new", table=table).name,
    "points": sorted(de3bert.load(folder).points),
    "heavy": sorted(set(HEAVY) & {name.partition(".")[0] for name in sys.modules}),
}
print(json.dumps(said))
"""
VERBS = """
sys.argv = ["de3", *sys.argv[1:]]
from de3bert.cli.main import main
try:
    main()
finally:
    found = set(HEAVY) & {name.partition(".")[0] for name in sys.modules}
    assert not found, found
"""


def run(code: str, *arguments: object) -> str:
    program = f"HEAVY = {HEAVY!r}\n{WITHOUT}\n{code}"
    command = [sys.executable, "-c", program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("kind", ["fp32", "int8"])
def test_all_the_work_without_the_heavy_libraries(
    request, kind, trained_bundle, toy_data, tmp_path
):
    import shutil

    source = trained_bundle if kind == "fp32" else request.getfixturevalue("int8_bundle")
    folder = set_config(Path(shutil.copytree(source, tmp_path / "bundle")), text_pairs=None)
    said = json.loads(run(WORK, folder, toy_data.test))
    assert said["heavy"] == []
    here = de3bert.load(folder)
    expected = answers(here.predict(["a great joy", "the film was dull", "so bad"]))
    assert [tuple(each) for each in said["predict"]] == expected
    assert said["stream"] == said["predict"]
    assert said["pairs"] == [
        each.label for each in here.predict([("good", "film"), ("bad", "plot")])
    ]
    assert said["trace"] == [[3, 4, 2], [3, 3, 2]]
    assert said["explain"] == 3 + 4  # the text, its policy, the header, four layers
    assert said["evaluate"] == said["traced"] == 120
    assert said["summary"] == "bert"
    assert said["points"] == sorted(here.points)
    assert "new" in here.points


def test_verbs_on_a_bundle_without_the_heavy_libraries(trained_bundle, toy_data):
    said = run(VERBS, "evaluate", trained_bundle, "--data", toy_data.test, "--json")
    assert json.loads(said)["rows"] == 120
    said = run(VERBS, "predict", trained_bundle, toy_data.test, "--json")
    assert len(json.loads(said)) == 120
