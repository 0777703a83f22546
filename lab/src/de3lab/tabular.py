"""Plain tables as Markdown and LaTeX: numbers come formatted, text is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["Grid", "tex_escaped"]

SPECIAL = {
    "_": r"\_", "%": r"\%", "&": r"\&", "#": r"\#", "$": r"\$", "<": "$<$", ">": "$>$",
    "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "\\": r"\textbackslash{}", "±": r"$\pm$",
    "λ": r"$\lambda$", "τ": r"$\tau$", "\N{GREEK SMALL LETTER ALPHA}": r"$\alpha$", "³": "$^3$",
}  # fmt: skip
ABSENT = "-"


@dataclass(frozen=True)
class Grid:
    """A titled table.

    Attributes:
        title: what it shows, in a few words.
        columns: the heads; the first column holds names, the others values.
        rows: one value per column: text as it is, whole numbers, floats (four digits that count),
            None for what there is not.
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

    def markdown(self) -> str:
        """A Markdown table under a heading."""
        lines = [f"## {self.title}", "", _md_row(self.columns)]
        lines.append("|---|" + "---:|" * (len(self.columns) - 1))
        lines += [_md_row(row) for row in self.cells()]
        return "\n".join([*lines, *(["", self.note] if self.note else []), ""])

    def tex(self) -> str:
        r"""A `table` environment to \input; it needs the package booktabs."""
        caption = " ".join(part for part in (self.title + ".", self.note) if part)
        lines = [
            r"% needs \usepackage{booktabs}",
            r"\begin{table}",
            r"\centering\small",
            rf"\caption{{{tex_escaped(caption)}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(self.columns) - 1)}}}",
            r"\toprule",
            _tex_row(self.columns),
            r"\midrule",
            *(_tex_row(row) for row in self.cells()),
        ]
        return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def shown(value: Any) -> str:
    """A value as text."""
    if value is None:
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1e4 else f"{value:,.0f}"
    return str(value)


def tex_escaped(text: str) -> str:
    """Text without anything that LaTeX would read as a command."""
    return "".join(SPECIAL.get(letter, letter) for letter in text)


def _md_row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


def _tex_row(cells: Sequence[str]) -> str:
    return " & ".join(tex_escaped(cell) for cell in cells) + r" \\"
