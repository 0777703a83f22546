"""Figures of the report, drawn again from stored numbers."""

from __future__ import annotations

import base64
import re
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from de3lab.analysis import ANALYSES
from de3lab.documents import AnalysisResult
from de3lab.figures.compare import Series, draw_trade_offs, tells_enough
from de3lab.paper.item import Item
from de3lab.paper.stored import Stored
from de3lab.paper.tasks import class_names, task_name
from de3lab.study.drawings import labelled_methods, trade_offs_of

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


def result_picture(item: Item, task: str, document: AnalysisResult) -> Picture | None:
    """The figure of an analysis; None where there is too little for one."""
    analysis = ANALYSES[document.analysis]
    numbers = class_names(task, document.numbers)
    if not analysis.worth_drawing(numbers):
        return None
    title = f"{analysis.title}, {task_name(task)}"
    name = f"{item.name}-{task}"
    return _drawn(name, title, lambda path: analysis.draw(path, numbers))


def study_pictures(item: Item, stored: Stored) -> list[Picture]:
    """Score against layer speed-up of all methods, for each task that has enough of them."""
    assert item.training is not None
    document = stored.study(item.training.study)
    if document is None:
        return []
    found = []
    for task in document.tasks:
        lines = trade_offs_of(document, task.name)
        if not tells_enough(lines):
            continue
        rows = (task.rows or {}).get(f"test-{task.test}")
        title = f"{task_name(task.name)}, {task.test} (n = {rows})"
        given = {
            "labelled": labelled_methods(document, task.name),
            "metric": task.metric,
            "title": title,
        }

        def draw(path: Path, lines: Mapping[str, Series] = lines, given: Any = given) -> None:
            draw_trade_offs(path, lines, **given)

        name = f"{item.name}-{task.name}"
        found.append(_drawn(name, f"Score against layer speed-up, {title}", draw))
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
