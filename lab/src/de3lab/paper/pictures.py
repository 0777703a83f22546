"""Figures of the report, drawn again from stored numbers."""

from __future__ import annotations

import base64
import re
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from de3lab.analysis import ANALYSES
from de3lab.documents import AnalysisResult
from de3lab.figures.compare import draw_trade_offs, looks
from de3lab.paper.item import Item
from de3lab.paper.stored import Stored
from de3lab.paper.tasks import task_name

__all__ = ["Picture", "result_picture", "study_pictures"]

KINDS = {".svg": "image/svg+xml", ".png": "image/png"}
LARGEST = 300_000  # bytes of an SVG; one with more is a cloud of points, smaller as PNG
DATE = re.compile(r"\s*<dc:date>.*?</dc:date>")  # the same numbers give the same file


@dataclass(frozen=True)
class Picture:
    """A drawn figure.

    Attributes:
        name: of its file, without the end.
        kind: `.svg` or `.png`.
        title: what it shows, also for those who cannot see it.
    """

    name: str
    kind: str
    data: bytes
    title: str

    @property
    def file(self) -> str:
        return self.name + self.kind

    @property
    def address(self) -> str:
        """The figure itself, for a page that has it inside."""
        return f"data:{KINDS[self.kind]};base64,{base64.b64encode(self.data).decode()}"


def result_picture(item: Item, task: str, document: AnalysisResult) -> Picture:
    """The figure of an analysis."""
    analysis = ANALYSES[document.analysis]
    title = f"{analysis.title}, {task_name(task)}"
    name = f"{item.name}-{task}"
    return _drawn(name, title, lambda path: analysis.draw(path, document.numbers))


def study_pictures(item: Item, stored: Stored) -> list[Picture]:
    """Score against layer speed-up of all methods, for each task that has any."""
    assert item.training is not None
    document = stored.study(item.training.study)
    if document is None:
        return []
    styles = looks([each.name for each in document.methods], document.chosen)
    found = []
    for task in document.tasks:
        name = task.name
        curves, points = document.curves.get(name, {}), document.points.get(name, {})
        if not curves and not points:
            continue
        lines = {m: (c.layer_speedup, c.score) for m, c in curves.items()}
        dots = {m: (p.layer_speedup, p.mean) for m, p in points.items()}
        rows = (task.rows or {}).get(f"test-{task.test}")
        title = f"{task_name(name)}, {task.test} (n = {rows})"

        def draw(
            path: Path, a: Any = lines, b: Any = dots, c: str = task.metric, d: str = title
        ) -> None:
            draw_trade_offs(path, a, b, styles, metric=c, title=d)

        found.append(_drawn(f"{item.name}-{name}", f"Score against layer speed-up, {title}", draw))
    return found


def _drawn(name: str, title: str, draw: Callable[[Path], None]) -> Picture:
    """Draws as SVG, or as PNG where that would be large."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "figure.svg"
        draw(path)
        data = DATE.sub("", path.read_text(encoding="utf-8")).encode()
        if len(data) <= LARGEST:
            return Picture(name, ".svg", data, title)
        path = Path(folder) / "figure.png"
        draw(path)
        return Picture(name, ".png", path.read_bytes(), title)
