"""The page of a report: one file with data, style and script inside, and no request to anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from de3lab.templates import as_json, raw_file, render

__all__ = ["page"]


def page(document: Mapping[str, Any]) -> str:
    """The page of `study.json`."""
    return render(
        "study.html",
        title=document["title"],
        style=raw_file("study.css"),
        data=as_json(document),
        script=raw_file("study_charts.js") + raw_file("study.js"),
    )
