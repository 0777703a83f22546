"""The report: all tables and figures of the paper from stored results, as page and Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from de3bert.files import write_json, write_text
from de3lab.paper.findings import FINDINGS, judge_all
from de3lab.paper.items import ITEMS
from de3lab.paper.section import Section, build_section
from de3lab.paper.stored import Stored
from de3lab.paper.verdict import Verdict

__all__ = ["Report", "build_report", "findings_document", "write_report"]

TITLE = "The DE3-BERT paper on real data"
INTRODUCTION = (
    "Every table and figure of the paper, made with this package and shown beside the published "
    "numbers. The models here are small ones on a slice of the training data, scored on rows that "
    "are open to everybody instead of GLUE's test server, so that scores are lower than published "
    "and only differences between methods compare. Each section states its setting.",
    "A finding holds (yes) or does not (no) by the test that is stated with it; where the test "
    "decides neither, it is not significant. Tests over runs count each pair of task and seed "
    "once. With fewer than three of them, intervals over rows decide, which say how other rows "
    "would be scored and nothing about other seeds. A layer speed-up is a ratio of layers: those "
    "of the full model to the mean executed.",
)


@dataclass(frozen=True)
class Report:
    """All there is to say.

    Attributes:
        verdicts: finding -> verdict.
        sections: the items in the order of the paper.
        problems: stored files that could not be used.
    """

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
    verdicts = judge_all(stored)
    sections = [build_section(item, stored, verdicts) for item in ITEMS.values()]
    return Report(verdicts, sections, list(dict.fromkeys(stored.problems)))


def write_report(report: Report, out: Path, command: str) -> list[Path]:
    """Writes the page, its Markdown twin with the figures beside it, and the findings as JSON."""
    from de3lab.paper.page import page
    from de3lab.paper.twin import FIGURES, markdown

    written = [out / "index.html", out / "README.md", out / "findings.json"]
    write_text(written[0], page(report, TITLE, INTRODUCTION, command))
    _write_figures(report, out / FIGURES)
    write_text(written[1], markdown(report, TITLE, INTRODUCTION, command))
    write_json(written[2], findings_document(report))
    return written


def findings_document(report: Report) -> list[dict[str, Any]]:
    """All findings and verdicts as JSON."""
    return [
        {
            "name": finding.name,
            "claim": finding.claim,
            "paper": finding.references,
            "holds": report.verdicts[finding.name].holds,
            "statement": report.verdicts[finding.name].statement,
            "test": report.verdicts[finding.name].test,
            "numbers": dict(report.verdicts[finding.name].numbers),
        }
        for finding in FINDINGS
    ]


def _write_figures(report: Report, folder: Path) -> None:
    """Writes the figures; those of an earlier report that are no more are removed."""
    folder.mkdir(parents=True, exist_ok=True)
    pictures = [picture for section in report.sections for picture in section.pictures]
    wanted = {f"{picture.name}{picture.kind}" for picture in pictures}
    for path in folder.iterdir():
        if path.suffix in (".svg", ".png") and path.name not in wanted:
            path.unlink()
    for picture in pictures:
        path = folder / f"{picture.name}{picture.kind}"
        if not path.exists() or path.read_bytes() != picture.data:
            path.write_bytes(picture.data)
