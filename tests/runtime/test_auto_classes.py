"""Transformers' own doors to our folders, in whatever order the two packages are imported."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.export.bundles import pointed_model
from tests.warm import python

import de3bert

__all__ = ["pointed_model"]

TEXTS = ["a great joy", "the film was dull"]
OPEN = """
import sys
from transformers import AutoConfig, AutoModelForSequenceClassification, AutoTokenizer, pipeline
folder = sys.argv[1]
model = AutoModelForSequenceClassification.from_pretrained(folder)
assert type(model).__name__ == "EarlyExitForSequenceClassification", type(model)
assert AutoConfig.from_pretrained(folder).exit_layers == [1, 2, 3, 4]
assert AutoTokenizer.from_pretrained(folder)("a joy")["input_ids"]
classify = pipeline("text-classification", folder)
print(*[each["label"] for each in classify(["a great joy", "the film was dull"])])
print(*[each["label"] for each in classify(["a great joy", "the film was dull"])])
"""
ORDERS = {
    "de3bert first": "import de3bert, transformers",
    "transformers first": "import transformers, de3bert",
    "names first": "from transformers import AutoModelForSequenceClassification, pipeline\n"
    "import de3bert",
    "the model alone": "import de3bert.model",
    "the model last": "import de3bert\nfrom transformers import AutoConfig\nimport de3bert.model",
    "twice": "import importlib, de3bert, transformers.models.auto as auto\n"
    "importlib.reload(de3bert)\nimportlib.reload(auto.configuration_auto)",
}


def run(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [*python("torch"), "-c", code, *map(str, arguments)]
    # The verbs quieten transformers, and tests run them in this process.
    own = {key: value for key, value in os.environ.items() if key != "TRANSFORMERS_VERBOSITY"}
    return subprocess.run(command, capture_output=True, text=True, timeout=300, env=own)


@pytest.mark.parametrize("order", ORDERS)
def test_every_door_opens_in_every_order(order, pointed_model):
    done = run(ORDERS[order] + OPEN, pointed_model)
    assert done.returncode == 0, done.stderr
    full = " ".join(each.label for each in de3bert.load(pointed_model).predict(TEXTS, "full"))
    assert done.stdout.split("\n")[:2] == [full, full]
    assert done.stderr.count("runs all its 4 layers") == 1  # said once per model, with the way out
    assert "de3bert.load" in done.stderr


LIGHT = """
import sys
class Broken:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("de3bert.model"):
            raise ImportError("torch is of the wrong kind")
sys.meta_path.insert(0, Broken())
import de3bert
import transformers.models.auto.configuration_auto as table
import inspect
assert "de3bert.model" not in sys.modules
assert inspect.getsource(table) and type(table.__spec__.loader).__name__ == "SourceFileLoader"
from transformers import AutoConfig
AutoConfig.for_model("bert")
try:
    AutoConfig.from_pretrained(sys.argv[1])
except de3bert.errors.De3Error as error:
    print(error)
"""


def test_transformers_is_not_touched_until_a_folder_of_ours_is_opened(trained_model: Path):
    done = run(LIGHT, trained_model)
    assert done.returncode == 0, done.stderr
    assert "This is a de3bert model" in done.stdout
    assert "torch is of the wrong kind" in done.stdout
    assert "de3bert[train]" in done.stdout


THREADS = """
import threading, sys
import de3bert
import transformers  # by itself it cannot be imported by two threads at once
def door(number):
    if number % 2:
        de3bert.load(sys.argv[1])
    from transformers import AutoConfig
    said.append(AutoConfig.from_pretrained(sys.argv[1]).model_type)
said = []
threads = [threading.Thread(target=door, args=(number,)) for number in range(8)]
[each.start() for each in threads]
[each.join() for each in threads]
print(*said)
"""


def test_threads_that_import_at_the_same_time(trained_model: Path):
    done = run(THREADS, trained_model)
    assert done.stdout.split() == ["de3bert"] * 8, done.stderr


def test_announcing_again_changes_nothing():
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    from de3bert import auto_classes
    from de3bert.model import EarlyExitConfig

    finders = len(sys.meta_path)
    auto_classes.announce()
    assert len(sys.meta_path) == finders
    assert CONFIG_MAPPING["de3bert"] is EarlyExitConfig
    assert importlib.util.find_spec("transformers.models.auto.configuration_auto") is not None
