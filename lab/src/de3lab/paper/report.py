"""The report: all tables and figures of the paper from stored results, as page and Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from de3bert.files import write_json, write_text
from de3lab.paper.items import FINDINGS, ITEMS
from de3lab.paper.judging import RULES, Verdict
from de3lab.paper.section import Section, build_section
from de3lab.paper.settings import trainings_table
from de3lab.paper.stored import Stored
from de3lab.tabular import Grid
from de3lab.templates import raw_file, render

__all__ = ["Report", "build_report", "findings_document", "markdown", "page", "write_report"]

FIGURES = "figures"

TITLE = "The DE3-BERT paper on real data"
INTRODUCTION = (
    "Every table and figure of the paper, made with this package and shown beside the published "
    "numbers. The models here are small ones on a slice of the training data, scored on rows that "
    "are open to everybody instead of GLUE's test server, so that scores are lower than published "
    "and only differences between methods compare. Each section states its setting.",
    "A layer speed-up is a ratio of layers: those of the full model to the mean executed. A run is "
    "a pair of task and seed; layers, speeds and thresholds of one model are no independent "
    "samples, and nothing is tested over them. A p-value is how often chance alone would give as "
    "much; it is not how likely a claim is.",
)


@dataclass(frozen=True)
class Report:
    """All there is to say.

    Attributes:
        trainings: how the models of every study were trained.
        verdicts: finding -> verdict.
        sections: the items in the order of the paper.
        problems: stored files that could not be used.
    """

    trainings: Grid
    verdicts: Mapping[str, Verdict]
    sections: Sequence[Section]
    problems: Sequence[str]

    @property
    def counts(self) -> dict[str, int]:
        """How many findings hold, do not, are open or not measured."""
        return dict(Counter(verdict.holds for verdict in self.verdicts.values()))


def build_report(results: Path) -> Report:
    """Reads a results folder and judges all findings; nothing is trained."""
    stored = Stored(results)
    verdicts = {finding.name: finding.judge(stored) for _, finding in FINDINGS}
    sections = [build_section(item, stored, verdicts) for item in ITEMS.values()]
    names = dict.fromkeys(item.training.study for item in ITEMS.values() if item.training)
    studies = {name: study for name in names if (study := stored.study(name)) is not None}
    problems = list(dict.fromkeys(stored.problems))
    return Report(trainings_table(studies), verdicts, sections, problems)


def write_report(report: Report, out: Path, command: str) -> list[Path]:
    """Writes the page, the same as Markdown with figures beside it, and the findings as JSON."""
    written = [out / "index.html", out / "README.md", out / "findings.json"]
    write_text(written[0], page(report, command))
    _write_figures(report, out / FIGURES)
    write_text(written[1], markdown(report, command))
    write_json(written[2], findings_document(report))
    return written


def page(report: Report, command: str) -> str:
    """The report as one page: style and figures inside, no request to anywhere."""
    return render("report.html", style=raw_file("report.css"), **_values(report, command))


def markdown(report: Report, command: str) -> str:
    """The report as Markdown, with figures as files beside it."""
    return render("report.md", figures=FIGURES, **_values(report, command))


def _values(report: Report, command: str) -> dict[str, Any]:
    return {
        "title": TITLE,
        "introduction": INTRODUCTION,
        "command": command,
        "rules": RULES,
        "report": report,
        "findings": [(item, each, report.verdicts[each.name]) for item, each in FINDINGS],
    }


def findings_document(report: Report) -> list[dict[str, Any]]:
    """All findings and verdicts as JSON."""
    return [
        {
            "name": finding.name,
            "claim": finding.claim,
            "paper": item.reference,
            "holds": seen.holds,
            "statement": seen.statement,
            "test": seen.test,
            "numbers": dict(seen.numbers),
        }
        for item, finding in FINDINGS
        for seen in [report.verdicts[finding.name]]
    ]


def _write_figures(report: Report, folder: Path) -> None:
    """Writes the figures; those of an earlier report that are no more are removed."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures = [picture for section in report.sections for picture in section.pictures]
    wanted = {picture.file for picture in pictures}
    for path in folder.iterdir():
        if path.suffix in (".svg", ".png") and path.name not in wanted:
            path.unlink()
    for picture in pictures:
        path = folder / picture.file
        if not path.exists() or path.read_bytes() != picture.data:
            path.write_bytes(picture.data)
