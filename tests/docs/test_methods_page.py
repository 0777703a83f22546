"""The pages that list parts name all there are."""

from __future__ import annotations

import re
from pathlib import Path

from de3bert.exits.signals.parse import SIGNALS
from de3bert.methods import METHODS

DOCS = Path(__file__).parents[2] / "docs"


def test_every_method_has_its_paragraph() -> None:
    text = (DOCS / "methods.md").read_text(encoding="utf-8")
    missing = [name for name in METHODS if not re.search(rf"\*\*[^*]*\b{name}\b[^*]*\*\*", text)]
    assert not missing


def test_every_signal_is_named() -> None:
    text = (DOCS / "concepts" / "exits-and-policies.md").read_text(encoding="utf-8")
    missing = [name for name in SIGNALS if not re.search(rf"`{name}\b", text)]
    assert not missing
