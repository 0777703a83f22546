"""Exit-layer histograms, one panel per operating point."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from de3bert.figures.style import COLOURS, figure

__all__ = ["draw_exits"]

FEW = 8


def draw_exits(
    path: str | Path, histograms: Mapping[str, Mapping[int, int]], *, title: str = ""
) -> None:
    """Writes the share of rows that leave at each layer; `histograms`: point -> layer -> rows."""
    count = len(histograms)
    with figure(path, max(3.2, 1.9 * count), 2.9, columns=count) as drawn:
        panels = [drawn] if count == 1 else list(drawn)
        for axes, (name, histogram) in zip(panels, histograms.items(), strict=True):
            rows = sum(histogram.values())
            layers = list(histogram)
            shares = [100 * histogram[layer] / rows for layer in layers]
            axes.bar(layers, shares, color=COLOURS[0], width=0.8)
            mean = sum(layer * seen for layer, seen in histogram.items()) / rows
            axes.axvline(mean, color=COLOURS[1], linewidth=1.2, linestyle="--")
            axes.set_title(f"{name}\nmean {mean:.2f}", fontsize=9)
            # Of many layers every second is named, the last one always.
            axes.set_xticks(layers if len(layers) <= FEW else layers[::-2][::-1])
            axes.set_xlabel("exit layer")
            axes.grid(visible=False, axis="x")
        panels[0].set_ylabel(f"% of rows (n = {rows})")
        panels[0].figure.suptitle(title)
