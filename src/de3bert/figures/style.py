"""One look for all figures: colours for every vision, legible at column width, no screen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from de3bert.errors import De3Error, UsageError
from de3bert.files import replace_file

__all__ = ["COLOURS", "figure"]

FORMATS = (".png", ".svg", ".pdf")

# Okabe and Ito's palette, told apart with every common colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#999999")

SETTINGS: dict[Any, Any] = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.grid": True,
    "grid.alpha": 0.25,
    "font.size": 10,
    "legend.frameon": False,
    "savefig.dpi": 160,
    "svg.hashsalt": "de3bert",  # the same drawing gives the same file
}


@contextmanager
def figure(
    path: str | Path,
    width: float,
    height: float,
    columns: int = 1,
    rows: int = 1,
    share: bool = True,
) -> Iterator[Any]:
    """Yields the axes (an array of them for several panels) and writes the figure into place.

    Args:
        share: whether panels side by side share their y axis.
    """
    if Path(path).suffix.lower() not in FORMATS:
        raise UsageError(
            f"A figure is written as {', '.join(FORMATS)}, by the end of its name; got {path}."
        )
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise De3Error(
            "Drawing needs matplotlib. Install it with: pip install 'de3bert[plot]'"
        ) from error
    with matplotlib.rc_context(SETTINGS):
        drawing = Figure(figsize=(width, height), layout="constrained")
        yield drawing.subplots(rows, columns, sharey="row" if share and columns > 1 else False)
        with replace_file(path) as temporary:
            drawing.savefig(temporary)
