"""The result of an analysis as files: numbers (JSON), tables (Markdown, LaTeX), figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from de3bert.files import write_text
from de3bert.machine import machine, versions
from de3lab.analysis.analysis import ANALYSES, Analysis, check_subjects, resolve
from de3lab.analysis.subject import Subject, data_hash
from de3lab.documents import AnalysisResult

__all__ = ["FIGURES", "analyse", "write_result"]

RESULT = "result.json"
FIGURES = (".png", ".svg")


def analyse(
    name: str, subjects: Sequence[Subject], settings: Mapping[str, Any], command: str
) -> AnalysisResult:
    """Measures, and gives the whole document: what was asked, of what, by whom, and the numbers.

    Args:
        settings: those that differ from the analysis' own.
        command: how it was asked for.
    """
    analysis = ANALYSES[name]
    resolved = resolve(analysis, settings)
    check_subjects(analysis, subjects)
    numbers = analysis.measure(subjects, resolved)
    return AnalysisResult.made(
        analysis=name,
        title=analysis.title,
        paper=analysis.paper,
        command=command,
        seed=resolved.get("seed"),
        machine=machine(),
        versions=versions(),
        date=datetime.now(UTC).isoformat(timespec="seconds"),
        settings=resolved,
        subjects=[_described(subject) for subject in subjects],
        numbers=numbers,
    )


def write_result(place: Path, document: AnalysisResult) -> list[Path]:
    """Writes result.json, table.md, table.tex, figure.png and figure.svg; gives their paths.

    Where there is too little for a figure there is none.
    """
    analysis: Analysis = ANALYSES[document.analysis]
    numbers = document.numbers
    tables = analysis.tables(numbers)
    document.write(place / RESULT)
    write_text(place / "table.md", _heading(document) + "\n".join(t.markdown() for t in tables))
    write_text(place / "table.tex", "\n".join(table.tex() for table in tables))
    written = [place / RESULT, place / "table.md", place / "table.tex"]
    for path in (place / f"figure{kind}" for kind in FIGURES):
        if analysis.worth_drawing(numbers):
            analysis.draw(path, numbers)
            written.append(path)
        else:
            path.unlink(missing_ok=True)
    return written


def _heading(document: AnalysisResult) -> str:
    date = document.date.partition("T")[0]
    return f"# {document.title}\n\n`{document.command}`, {date}, {document.machine}.\n\n"


def _described(subject: Subject) -> dict[str, Any]:
    """What a subject is; of paths only the name, since results travel."""
    seen: dict[str, Any] = {"label": subject.label, "name": Path(subject.path).name}
    table = subject.table
    if subject.is_trace:
        info = subject.trace.info
        seen |= {"method": info.get("method"), "rows": subject.trace.rows}
        seen |= {"model": Path(str(info.get("model", ""))).parent.name or None}
        seen["data"] = {"sha256": data_hash(subject.trace)}
    elif table is not None:
        seen |= {"method": subject.method, "rows": len(table)}
        seen["data"] = {"name": Path(table.source).name, "sha256": table.sha256}
    return seen
