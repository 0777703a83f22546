"""The report as Markdown, with figures as files beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from de3lab.paper.findings import FINDINGS
from de3lab.tabular import Grid

if TYPE_CHECKING:
    from de3lab.paper.report import Report
    from de3lab.paper.section import Section

__all__ = ["FIGURES", "markdown"]

FIGURES = "figures"


def markdown(report: Report, title: str, introduction: Sequence[str], command: str) -> str:
    """The whole report."""
    lines = [f"# {title}", "", f"Made by `{command}` from stored results; nothing is trained.", ""]
    for paragraph in introduction:
        lines += [paragraph, ""]
    lines += ["## Findings", "", *_findings(report), ""]
    if report.problems:
        lines += ["Not used:", "", *(f"- {problem}" for problem in report.problems), ""]
    for section in report.sections:
        lines += [*_section(section), ""]
    return "\n".join(lines)


def _findings(report: Report) -> Iterator[str]:
    yield "| the paper says | in | holds here | what we found | by which test |"
    yield "|---|---|---|---|---|"
    for finding in FINDINGS:
        seen = report.verdicts[finding.name]
        where = _link(finding.items[0], finding.references)
        cells = (finding.claim, where, f"**{seen.holds}**", seen.statement, seen.test)
        yield "| " + " | ".join(_cell(cell) for cell in cells) + " |"


def _section(section: Section) -> Iterator[str]:
    item = section.item
    yield f'<a id="{item.name}"></a>'
    yield ""
    yield f"## {item.reference}: {item.title}"
    yield ""
    yield f"Paper: {item.shows}"
    if item.trained is not None:
        yield ""
        yield f"State: {section.state}. Made by `{item.command}`."
    for finding, seen in section.findings:
        yield ""
        test = f" ({seen.test})" if seen.test else ""
        yield f"- {finding.claim} **{seen.holds}**: {seen.statement}{test}"
    for table in section.tables:
        yield ""
        yield from _table(table)
    for picture in section.pictures:
        yield ""
        yield f"![{picture.title}]({FIGURES}/{picture.name}{picture.kind})"
    if section.setting:
        yield ""
        yield f"Setting of the paper: {item.setting}. Setting here:"
        yield ""
        yield from (f"- {line}" for line in section.setting)
    for details in section.details:
        yield ""
        yield f"<details><summary>{details.title}</summary>"
        for table in details.tables:
            yield ""
            yield from _table(table)
        yield ""
        yield "</details>"


def _table(grid: Grid) -> Iterator[str]:
    yield f"**{grid.title}**"
    yield ""
    yield "| " + " | ".join(_cell(name) for name in grid.columns) + " |"
    yield "|---|" + "---:|" * (len(grid.columns) - 1)
    for row in grid.cells():
        yield "| " + " | ".join(_cell(cell) for cell in row) + " |"
    if grid.note:
        yield ""
        yield grid.note


def _link(anchor: str, text: str) -> str:
    return f"[{text}](#{anchor})"


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("\n", " ")
