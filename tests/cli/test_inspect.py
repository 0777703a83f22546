"""`de3 inspect` shows tables for people and JSON for scripts."""

from __future__ import annotations

from de3bert.cli.inspect import _rows


def test_facts_are_shown_in_words(de3, model_copy, toy_data):
    said = de3("inspect", model_copy)
    assert said.code == 0, said.err
    for sign in ("{", "}", "[", "]", "None", "True", "False"):
        assert sign not in said.out
    text = " ".join(said.out.split())
    assert "exit parameters classifiers 198, prototypical networks 3,168" in text
    assert "a row is single texts" in text
    assert "numbers as labels not used as classes" in text
    assert "labels neg, pos" in text
    assert "pooling mean: mean of the tokens" in text
    found = de3("inspect", model_copy, "--json").json
    assert (found["numbered_labels"], found["text_pairs"]) == (False, False)
    assert found["exit_parameters"] == {"classifiers": 198, "prototypical networks": 3168}


def test_bundles_and_long_lists():
    facts = {
        "labels": [f"class {number}" for number in range(150)],
        "bytes": 12_345_678,
        "text_pairs": None,
        "made": {
            "date": "2026-01-01",
            "versions": {"torch": "2.9", "numpy": "2.3"},
            "recalibrated": {"rows": 3, "points": {"2x": {"policy": "full"}}},
        },
        "method_options": {},
    }
    shown = dict(_rows(facts))
    assert shown["labels"].endswith("class 9 and 140 more")
    assert shown["size"] == "11.8 MB"
    assert shown["a row is"] == "not known"
    assert shown["made, versions"] == "torch 2.9, numpy 2.3"
    assert shown["made, recalibrated"] == "2 entries (see --json)"
    assert shown["method options"] == "none"
