"""The page of a report: one file with data, style and script inside, and no request to anywhere."""

from __future__ import annotations

from de3lab.documents import StudyResult
from de3lab.figures.looks import looks_of
from de3lab.study.side_tables import off_target_lines, side_tables
from de3lab.study.tables import notes_of, uneven_steps
from de3lab.templates import as_json, raw_file, render

__all__ = ["page"]


def page(document: StudyResult) -> str:
    """The page of `study.json`; methods look there as they do in figures."""
    looks = looks_of(each.name for each in document.methods)
    more = {
        "looks": {name: look._asdict() for name, look in looks.items()},
        "uneven": list(uneven_steps(document)),
    }
    return render(
        "study.html",
        title=document.title,
        style=raw_file("study.css"),
        data=as_json({**document.to_json(), **more}),
        notes=notes_of(document)[1:],
        sides=side_tables(document),
        off_target=off_target_lines(document, document.chosen),
        script=raw_file("study_charts.js") + raw_file("study.js"),
    )
