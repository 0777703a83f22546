"""The page on methods: it names every method, and shows the plugin that tests install and run."""

from __future__ import annotations

import re
from pathlib import Path

from de3bert.methods import METHODS

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "methods.md"
PLUGIN = ROOT / "examples" / "plugin"


def block(kind: str) -> str:
    found = re.search(rf"```{kind}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert found is not None
    return found[1]


def test_every_method_has_its_paragraph() -> None:
    text = PAGE.read_text(encoding="utf-8")
    missing = [name for name in METHODS if not re.search(rf"\*\*[^*]*\b{name}\b[^*]*\*\*", text)]
    assert not missing


def test_the_example_is_short() -> None:
    assert len([line for line in block("python").splitlines() if line.strip()]) < 40


def test_the_example_is_the_plugin() -> None:
    """What it does is tested in tests/plugins."""
    module = PLUGIN / "src" / "de3_margin" / "__init__.py"
    assert block("python") == module.read_text(encoding="utf-8")
    assert block("toml") in (PLUGIN / "pyproject.toml").read_text(encoding="utf-8")
