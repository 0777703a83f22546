"""The page of a report: one file with data, style and script inside, and no request to anywhere."""

from __future__ import annotations

from de3lab.documents import StudyResult
from de3lab.templates import as_json, raw_file, render

__all__ = ["page"]


def page(document: StudyResult) -> str:
    """The page of `study.json`."""
    return render(
        "study.html",
        title=document.title,
        style=raw_file("study.css"),
        data=as_json(document.to_json()),
        script=raw_file("study_charts.js") + raw_file("study.js"),
    )
