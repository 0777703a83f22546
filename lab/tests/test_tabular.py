"""Tables as Markdown and LaTeX."""

from __future__ import annotations

import re

import pytest

from de3lab.tabular import Grid, shown, tex_escaped

GRID = Grid(
    "Scores & more",
    ("rule", "2x", "clear"),
    (("EDR (λ = 1)", 0.853, True), ("a_b | 50 %", None, False)),
    "n = 7 rows, 0.8 ± 0.1.",
)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (True, "yes"),
        (False, "no"),
        (0.853, "0.853"),
        (0.123456, "0.1235"),
        (1234.5678, "1235"),
        (12345.678, "12,346"),
        (-20000.0, "-20,000"),
        (7, "7"),
        ("as it is", "as it is"),
        (0.0, "0"),
    ],
)
def test_values(value, text):
    assert shown(value) == text


def test_markdown():
    assert GRID.markdown() == (
        "## Scores & more\n"
        "\n"
        "| rule | 2x | clear |\n"
        "|---|---:|---:|\n"
        "| EDR (λ = 1) | 0.853 | yes |\n"
        "| a_b \\| 50 % | - | no |\n"
        "\n"
        "n = 7 rows, 0.8 ± 0.1.\n"
    )
    assert Grid("t", ("a",), ()).markdown() == "## t\n\n| a |\n|---|\n"


def test_latex():
    tex = GRID.tex()
    assert r"\caption{Scores \& more. n = 7 rows, 0.8 $\pm$ 0.1.}" in tex
    assert r"\begin{tabular}{lrr}" in tex
    assert r"EDR ($\lambda$ = 1) & 0.853 & yes \\" in tex
    assert r"a\_b | 50 \% & - & no \\" in tex
    for name in ("table", "tabular"):
        assert tex.count(rf"\begin{{{name}}}") == tex.count(rf"\end{{{name}}}") == 1


def test_nothing_that_latex_reads_as_a_command_is_left():
    text = "\\a_b%c&d#e$f{g}h~i^j<k>l±mλnτ"
    assert tex_escaped(text) == (
        r"\textbackslash{}a\_b\%c\&d\#e\$f\{g\}h\textasciitilde{}i\textasciicircum{}j$<$k$>$l$\pm$m"
        r"$\lambda$n$\tau$"
    )
    greek = tex_escaped("λ τ \N{GREEK SMALL LETTER ALPHA} DE³")
    assert re.fullmatch(r"[\x00-\x7f]+", greek)


def test_a_row_of_the_wrong_length():
    with pytest.raises(ValueError, match="a row has 1 of 2 values"):
        Grid("t", ("a", "b"), (("x", 1), ("y",)))
