"""The report as one page: style and figures inside, no request to anywhere."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Sequence
from html import escape
from importlib import resources
from typing import TYPE_CHECKING

from de3lab.paper.findings import FINDINGS
from de3lab.tabular import Grid

if TYPE_CHECKING:
    from de3lab.paper.pictures import Picture
    from de3lab.paper.report import Report
    from de3lab.paper.section import Details, Section
    from de3lab.paper.verdict import Verdict

__all__ = ["page"]

SLOT = re.compile(r"\{\{(\w+)\}\}")
CODE = re.compile(r"`([^`]+)`")
KINDS = {".svg": "image/svg+xml", ".png": "image/png"}
MARKS = {"yes": "✓", "no": "✗", "not significant": "≈", "not measured": "-"}
NUMBER = re.compile(r"[-+]?\d|-$|below \d")  # columns of other things stand to the left
MANY = 9  # columns of a table that is set small
ORDER = ("yes", "no", "not significant", "not measured")


def page(report: Report, title: str, introduction: Sequence[str], command: str) -> str:
    """The whole page."""
    parts = {
        "title": escape(title),
        "style": _file("page.css"),
        "introduction": "".join(f"<p>{_text(each)}</p>" for each in introduction),
        "command": escape(command),
        "counts": _counts(report),
        "findings": "".join(_finding_rows(report)),
        "problems": _problems(report),
        "contents": "".join(_contents(report)),
        "sections": "".join(_section(section) for section in report.sections),
    }
    # In one pass: what is filled in is not looked at again, whatever it says.
    return SLOT.sub(lambda match: parts[match[1]], _file("page.html"))


def _file(name: str) -> str:
    return (resources.files("de3lab") / "paper" / name).read_text(encoding="utf-8")


def _text(text: str) -> str:
    """Escaped, with code between backticks marked as such."""
    return CODE.sub(r"<code>\1</code>", escape(text))


def _counts(report: Report) -> str:
    counts = report.counts
    items = (f"<li>{_badge(holds)} {counts[holds]}</li>" for holds in ORDER if counts.get(holds, 0))
    return "".join(items)


def _badge(holds: str) -> str:
    kind = holds.replace(" ", "-")
    return (
        f'<span class="badge {kind}"><span aria-hidden="true">{MARKS[holds]}</span> {holds}</span>'
    )


def _finding_rows(report: Report) -> Iterator[str]:
    for finding in FINDINGS:
        seen = report.verdicts[finding.name]
        where = f'<a href="#{finding.items[0]}">{escape(finding.references)}</a>'
        yield (
            f'<tr><th scope="row">{_text(finding.claim)}</th>'
            f'<td data-label="in the paper">{where}</td>'
            f'<td data-label="holds here">{_badge(seen.holds)}</td>'
            f'<td data-label="found here">{_text(seen.statement)}</td>'
            f'<td data-label="test">{_text(seen.test) or "-"}</td></tr>'
        )


def _problems(report: Report) -> str:
    if not report.problems:
        return ""
    listed = "".join(f"<li>{_text(each)}</li>" for each in report.problems)
    return (
        f'<div class="problems"><p>Stored files that could not be used:</p><ul>{listed}</ul></div>'
    )


def _contents(report: Report) -> Iterator[str]:
    for section in report.sections:
        item = section.item
        kind = "" if section.measured else ' class="absent"'
        link = f'<a href="#{item.name}">{escape(item.reference)}</a>'
        yield f"<li{kind}>{link} {escape(item.title)}</li>"


def _section(section: Section) -> str:
    item = section.item
    heading = f"<span>{escape(item.reference)}</span> {escape(item.title)}"
    parts = [
        f'<section id="{item.name}" aria-labelledby="{item.name}-title">',
        f'<h2 id="{item.name}-title">{heading}</h2>',
        f'<p class="shows"><b>Paper:</b> {_text(item.shows)}</p>',
        *(_verdict(finding.claim, seen) for finding, seen in section.findings),
    ]
    if not section.measured and not section.findings:
        parts.append(f'<p class="absent">Not measured yet. <code>{escape(item.command)}</code></p>')
    parts += [_table(table) for table in section.tables]
    if section.pictures:
        parts.append('<div class="pictures">')
        parts += [_picture(picture) for picture in section.pictures]
        parts.append("</div>")
    parts.append(_setting(section))
    parts += [_folded(details) for details in section.details]
    return "\n".join([*parts, "</section>"])


def _verdict(claim: str, seen: Verdict) -> str:
    test = f'<br><span class="test">{_text(seen.test)}</span>' if seen.test else ""
    return (
        f'<p class="verdict">{_badge(seen.holds)} <b>{_text(claim)}</b> '
        f"{_text(seen.statement)}{test}</p>"
    )


def _setting(section: Section) -> str:
    item = section.item
    if item.trained is None:
        return ""
    ours = "".join(f"<li>{_text(line)}</li>" for line in section.setting) or "<li>nothing yet</li>"
    return (
        '<dl class="setting">'
        f"<dt>Setting of the paper</dt><dd>{_text(item.setting)}</dd>"
        f"<dt>Setting here</dt><dd><ul>{ours}</ul></dd>"
        f"<dt>Stored</dt><dd>{_text(section.state)}</dd>"
        f"<dt>Command</dt><dd><code>{escape(item.command)}</code></dd></dl>"
    )


def _folded(details: Details) -> str:
    inside = "".join(_table(table) for table in details.tables)
    return f"<details><summary>{_text(details.title)}</summary>{inside}</details>"


def _picture(picture: Picture) -> str:
    data = base64.b64encode(picture.data).decode()
    source = f"data:{KINDS[picture.kind]};base64,{data}"
    title = escape(picture.title, quote=True)
    return f'<figure><img src="{source}" alt="{title}"><figcaption>{title}</figcaption></figure>'


def _table(grid: Grid) -> str:
    """A table in a frame of its own, which scrolls where the screen is narrow."""
    cells = grid.cells()
    kinds = ["" if all(NUMBER.match(row[k]) for row in cells) else ' class="text"'
             for k in range(len(grid.columns))]  # fmt: skip
    named = zip(grid.columns, kinds, strict=True)
    heads = "".join(f'<th scope="col"{kind}>{_text(name)}</th>' for name, kind in named)
    rows = "".join(_row(row, kinds) for row in cells)
    wide = " wide" if len(grid.columns) > MANY else ""
    note = f'<p class="note">{_text(grid.note)}</p>' if grid.note else ""
    label = escape(grid.title, quote=True)
    return (
        f'<div class="table{wide}" role="region" aria-label="{label}" tabindex="0"><table>'
        f"<caption>{_text(grid.title)}</caption><thead><tr>{heads}</tr></thead>"
        f"<tbody>{rows}</tbody></table></div>{note}"
    )


def _row(cells: Sequence[str], kinds: Sequence[str]) -> str:
    pairs = list(zip(cells, kinds, strict=True))
    values = "".join(f"<td{kind}>{_text(cell)}</td>" for cell, kind in pairs[1:])
    return f'<tr><th scope="row">{_text(cells[0])}</th>{values}</tr>'
