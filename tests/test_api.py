"""The names that people reach for, imported when they are asked for."""

from __future__ import annotations

import subprocess
import sys

import pytest

import de3bert

LIGHT = {"Classifier", "Explanation", "OperatingPoint", "Policy", "Prediction", "Recipe", "Trace",
         "attach", "calibrate", "curve", "load", "replay"}  # fmt: skip


@pytest.mark.parametrize("name", de3bert.__all__)
def test_every_name_is_there_and_shown(name):
    assert getattr(de3bert, name) is not None
    assert name in dir(de3bert)


def test_a_name_that_is_not_there():
    with pytest.raises(AttributeError, match="no attribute 'lode'"):
        _ = de3bert.lode


def test_what_needs_no_torch_brings_none():
    code = f"import sys, de3bert; [getattr(de3bert, name) for name in {sorted(LIGHT)!r}]; "
    code += "print('torch' in sys.modules, 'transformers' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_a_star_import_gives_all_of_them():
    found: dict[str, object] = {}
    exec("from de3bert import *", found)
    assert set(de3bert.__all__) <= set(found)
