"""The one table of the laboratory: numbers come formatted, text is escaped; Markdown and LaTeX."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Cell", "Grid", "markdown_table", "tex_escaped", "tex_table"]

SPECIAL = {
    "_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#", "$": r"\$", "<": "$<$", ">": "$>$",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}", "±": r"$\pm$",
    "†": r"$^{\dagger}$", "‡": r"$^{\ddagger}$", "λ": r"$\lambda$",
    "τ": r"$\tau$", "\N{GREEK SMALL LETTER ALPHA}": r"$\alpha$", "³": "$^3$",
}  # fmt: skip
ABSENT = "-"
MARKS = {"": ("", ""), "*": (r"\*", r"$^{*}$"), "†": ("†", r"$^{\dagger}$")}  # Markdown, LaTeX
NUMBER = re.compile(r"[-+]?\d|-$|below \d")


@dataclass(frozen=True)
class Cell:
    """A number among others of its column; `place` is 1 for the best and 2 for the second.

    Attributes:
        deviation: of the number, small behind it.
        after: what stands behind both.
        mark: a raised sign at the end, such as `*`; one of `MARKS`.
    """

    text: str
    deviation: str = ""
    after: str = ""
    place: int = 0
    mark: str = ""

    def markdown(self) -> str:
        framed = {1: f"**{self.text}**", 2: f"<u>{self.text}</u>"}.get(self.place, self.text)
        spread = f" ± {self.deviation}" if self.deviation else ""
        return framed + spread + self.after + MARKS[self.mark][0]

    def tex(self) -> str:
        text = tex_escaped(self.text)
        framed = {1: rf"\textbf{{{text}}}", 2: rf"\underline{{{text}}}"}.get(self.place, text)
        spread = rf"\,{{\scriptsize$\pm${self.deviation}}}" if self.deviation else ""
        return framed + spread + tex_escaped(self.after) + MARKS[self.mark][1]


@dataclass(frozen=True)
class Grid:
    """A titled table.

    Attributes:
        title: what it shows, in a few words.
        columns: the heads; the first column holds names, the others values.
        rows: one value per column: text unchanged, whole numbers, floats (four digits that count),
            cells, None for what there is not.
        note: what one must know to read it, below the table.
    """

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Any, ...], ...]
    note: str = ""

    def __post_init__(self) -> None:
        wrong = [row for row in self.rows if len(row) != len(self.columns)]
        if wrong:
            raise ValueError(f"a row has {len(wrong[0])} of {len(self.columns)} values: {wrong[0]}")

    def cells(self) -> list[list[str]]:
        """All rows as text."""
        return [[shown(value) for value in row] for row in self.rows]

    def is_number(self, column: int) -> bool:
        """Whether a column holds numbers alone, which stand to the right."""
        return all(NUMBER.match(row[column]) for row in self.cells())

    def markdown(self, heading: str = "## {}") -> str:
        """A Markdown table under its title."""
        lines = [heading.format(self.title), "", *markdown_table(self.columns, self.rows)]
        return "\n".join([*lines, *(["", self.note] if self.note else []), ""])

    def tex(self) -> str:
        r"""A `table` environment to \input; it needs the package booktabs."""
        caption = " ".join(part for part in (self.title + ".", self.note) if part)
        return tex_table(caption, self.columns, [("", self.rows)])


def markdown_table(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], right: bool = True
) -> list[str]:
    """The lines of a Markdown table; all columns but the first stand to the right, or none."""
    rule = "|---|" + ("---:|" if right else "---|") * (len(columns) - 1)
    return [_md_row(columns), rule, *(_md_row([shown(cell) for cell in row]) for row in rows)]


def tex_table(
    caption: str,
    columns: Sequence[str],
    blocks: Iterable[tuple[str, Iterable[Sequence[Any]]]],
    absent: str = ABSENT,
) -> str:
    r"""One `table` environment of several blocks of rows, each under a title of its own or none."""
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{table}",
        r"\centering\small",
        rf"\caption{{{tex_escaped(caption)}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(columns) - 1)}}}",
        r"\toprule",
        _tex_row(columns),
    ]
    for title, rows in blocks:
        lines.append(r"\midrule")
        if title:
            lines.append(rf"\multicolumn{{{len(columns)}}}{{l}}{{{tex_escaped(title)}}} \\")
        lines += [_tex_row(row, absent) for row in rows]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def shown(value: Any) -> str:
    """A value as text."""
    if value is None:
        return ABSENT
    if isinstance(value, Cell):
        return value.markdown()
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return str(value)


def tex_escaped(text: str) -> str:
    """Text without anything that LaTeX would read as a command."""
    return "".join(SPECIAL.get(letter, letter) for letter in text)


def _md_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|").replace("\n", " ") for cell in cells) + " |"


def _tex_row(values: Sequence[Any], absent: str = ABSENT) -> str:
    return " & ".join(_tex_cell(value, absent) for value in values) + r" \\"


def _tex_cell(value: Any, absent: str) -> str:
    if isinstance(value, Cell):
        return value.tex()
    return absent if value is None else tex_escaped(shown(value))
