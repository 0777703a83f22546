"""The examples run as their first lines say."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.fixtures_trained import toy_rows
from tests.training.classifiers import saved, tiny_classifier

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_attach_your_model(tmp_path, tiny_tokenizer):
    source = saved(tiny_classifier("distilbert"), tiny_tokenizer, tmp_path / "source")
    lines = tmp_path / "texts.txt"
    lines.write_text("".join(f"{text}\n" for text, _ in toy_rows(900, 3)), encoding="utf-8")
    script = EXAMPLES / "attach_your_model.py"
    call = [sys.executable, str(script), str(source), str(lines), str(tmp_path / "out")]
    done = subprocess.run(call, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "times fewer layers" in done.stdout
    assert "with probability 0.9" in done.stdout
    assert subprocess.run([sys.executable, str(script)], capture_output=True).returncode == 1
