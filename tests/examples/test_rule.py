"""What the page knows of rules is what the registry of signals knows."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest
from tests.examples.reference import BROWSER

from de3bert.exits.rule_form import IN_GRAPHS, NEVER
from de3bert.exits.signals import SIGNALS

DEPTH = 4
SCRIPT = """
const { Rule } = await import(process.argv[1]);
const [told, numbers, signals] = JSON.parse(process.argv[2]);
const rule = new Rule(told);
console.log(JSON.stringify({ ends: [rule.low, rule.high], number: rule.number,
  comparison: rule.comparison, words: rule.told(numbers), heading: rule.heading(numbers),
  passes: signals.map((signal) => rule.passes(signal, numbers)) }));
"""


@pytest.fixture
def shown(node):
    def ask(rule: str, numbers: dict[str, float], signals: list[float]) -> dict[str, Any]:
        told = {"rule": rule, "layers": DEPTH, "exit_layers": [1, 2, 3, 4]}
        command = [node, "--input-type=module", "--eval", SCRIPT, (BROWSER / "rule.js").as_uri(),
                   json.dumps([told, {"max_layers": DEPTH, **numbers}, signals])]  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found

    return ask


@pytest.mark.parametrize("name", IN_GRAPHS)
@pytest.mark.parametrize("rule", ["{}", "patience({})"])
def test_signals_have_the_ends_and_the_side_of_the_registry(shown, name, rule):
    kind = SIGNALS[name]
    seen = shown(rule.format(name), {"threshold": 0.5}, [0.4, 0.5, 0.6])
    assert seen["number"] == "threshold"
    assert seen["comparison"] == (">" if kind.rising else "<")
    assert seen["passes"] == ([False, False, True] if kind.rising else [True, False, False])
    assert seen["ends"] == ([*kind.range] if kind.range else [-20, 20])


def test_patience_counts_exits(shown):
    seen = shown("patience", {"patience": 2}, [1, 2, 3])
    assert (seen["number"], seen["ends"]) == ("patience", [0, 4])
    assert seen["passes"] == [False, True, True]
    assert shown("patience", {"patience": NEVER}, [])["words"] == "runs all layers"


def test_numbers_in_words(shown):
    edr = {"threshold": 0.25, "lambda": 1.5}
    assert shown("edr", edr, [])["words"] == "leaves at EDR < 0.25, λ 1.5"
    assert shown("edr", edr, [])["heading"] == "How unsure it is (EDR)"
    entropy = {"threshold": 0.25, "lambda": 0, "max_layers": 3}
    assert shown("edr", entropy, [])["words"] == "leaves at entropy < 0.25, 3 layers at most"
    assert shown("edr", entropy, [])["heading"] == "How unsure it is (entropy)"
    counted = {"threshold": 0.9, "patience": 2}
    said = "leaves at max probability > 0.9, 2 exits in a row"
    assert shown("patience(max_probability)", counted, [])["words"] == said
    assert shown("entropy", {"threshold": -1}, [])["words"] == "runs all layers"
    assert shown("max_probability", {"threshold": 2}, [])["words"] == "runs all layers"
    assert shown("raw_energy", {"threshold": -3e38}, [])["words"] == "runs all layers"
    layer = {"threshold": -1, "max_layers": 2}
    assert shown("entropy", layer, [])["words"] == "runs 2 layers"
