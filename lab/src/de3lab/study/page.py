"""The page of a report: one file with data, style and script inside, and no request to anywhere."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from importlib import resources
from typing import Any

__all__ = ["page"]

SLOT = re.compile(r"\{\{(\w+)\}\}")


def page(document: Mapping[str, Any]) -> str:
    """The page of `study.json`."""
    parts = {
        "title": html.escape(str(document["title"])),
        "style": _file("page.css"),
        # Any text could hold a tag that ends the script; JSON may spell the sign by its number.
        "data": json.dumps(document, ensure_ascii=False, allow_nan=False).replace("<", "\\u003c"),
        "script": _file("page_charts.js") + _file("page.js"),
    }
    # In one pass: what is filled in is not looked at again, whatever it says.
    return SLOT.sub(lambda match: parts[match[1]], _file("page.html"))


def _file(name: str) -> str:
    return (resources.files("de3lab") / "study" / name).read_text(encoding="utf-8")
