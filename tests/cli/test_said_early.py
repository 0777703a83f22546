"""What is wrong with a request is said before the libraries that take seconds are loaded."""

from __future__ import annotations

import subprocess
import sys

import pytest

# Runs a verb and ends with the names of the slow libraries that it had to load.
RUN = """
import sys
from de3bert.cli.main import main
try:
    main()
except SystemExit as leaving:
    code = leaving.code
slow = {"torch", "transformers", "pandas", "scipy.stats", "onnxruntime", "datasets"}
print(code, *sorted(slow & set(sys.modules)))
"""
ROWS = "text,label\n" + "good,pos\nbad,neg\n" * 40


@pytest.mark.parametrize(
    ("content", "words", "message"),
    [
        ("", ["evaluate"], "is empty"),
        ("", ["calibrate", "--target", "layers=2", "--name", "a"], "is empty"),
        (ROWS, ["evaluate", "--metric", "best"], "Unknown metric"),
        (ROWS, ["evaluate", "--point", "none"], "Unknown operating point"),
        (ROWS, ["evaluate", "--policy", "entropy < 5"], "lies between 0 and 1"),
        (ROWS, ["calibrate", "--target", "layers=0", "--name", "a"], "at least 1"),
        (ROWS, ["calibrate", "--target", "layers=2", "--name", "full"], "cannot be called that"),
        (ROWS, ["calibrate", "--target", "layers=2", "--name", "a", "--family", "x"], "Unknown"),
        ("text,label\na,0\nb,1\n", ["evaluate"], "The rows have the numbers 0, 1"),
        ("text,label\na,pos\nb,neg\n", ["calibrate", "--target", "layers=2", "--name", "a"],
         "2 rows are too few"),
    ],
)  # fmt: skip
def test_mistakes_cost_no_loading(trained_model, tmp_path, content, words, message):
    (tmp_path / "rows.csv").write_text(content)
    verb, *more = words
    arguments = [verb, str(trained_model), "--data", str(tmp_path / "rows.csv"), *more]
    done = subprocess.run(
        [sys.executable, "-c", RUN, *arguments], capture_output=True, text=True, timeout=60
    )
    assert message in " ".join(done.stderr.split())
    assert done.stdout.split() in (["1"], ["2"])
