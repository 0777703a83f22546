"""The laboratory's verbs are those of `de3` once it is installed."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("verb", ["compare", "analyze"])
def test_help_shows_an_example(de3, verb):
    said = de3(verb, "--help")
    assert (said.code, said.err) == (0, "")
    text = " ".join(said.out.replace("│", " ").split())
    assert f"Example: de3 {verb}" in text
    assert "--json" in text
    assert "--import" in text


def test_they_are_listed(de3):
    out = de3("--help").out
    assert all(verb in out for verb in ("compare", "analyze", "paper", "queue"))
    assert "--import" in de3("paper", "run", "--help").out
