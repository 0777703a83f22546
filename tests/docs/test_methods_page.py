"""The page on methods: it names every method, and its worked example works as printed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.fixtures_trained import ToyData, toy_recipe

from de3bert.methods import METHODS

PAGE = Path(__file__).parents[2] / "docs" / "methods.md"
USE = """
import json, sys
import de3bert
from de3bert.data.read import read_table
from de3bert.runtime.calibration import calibrate_model
from de3bert.training.fit import fit
from de3bert.training.recipe import recipe_from

settings, data, out = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
fit(recipe_from({**settings, "method": "joint-margin"}), out, progress=False)
point = calibrate_model(out, "layers=1.3", "fast", table=read_table(data))
print(point.policy, de3bert.load(out).predict(["good film"], "fast")[0].label)
"""


def example() -> str:
    found = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


def test_every_method_has_its_paragraph() -> None:
    text = PAGE.read_text(encoding="utf-8")
    missing = [name for name in METHODS if not re.search(rf"\*\*[^*]*\b{name}\b[^*]*\*\*", text)]
    assert not missing


def test_the_example_is_short() -> None:
    lines = [line for line in example().splitlines() if line.strip()]
    assert len(lines) < 40


def test_the_example_trains_calibrates_and_predicts(
    tiny_backbone: Path, toy_data: ToyData, tmp_path: Path
) -> None:
    import json

    script = tmp_path / "mine.py"
    script.write_text(example() + USE, encoding="utf-8")
    settings = json.dumps(toy_recipe(tiny_backbone, toy_data, epochs=1.0))
    command = [sys.executable, str(script), settings, str(toy_data.calibration)]
    done = subprocess.run(
        [*command, str(tmp_path / "model")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.search(r"margin > 0\.\d+ (pos|neg)", done.stdout)
