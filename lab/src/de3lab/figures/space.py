"""Rows and prototypes in two dimensions, a panel per layer and model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from de3bert.figures.style import COLOURS, figure

__all__ = ["draw_space"]

MARKERS = "o^sDvPX<>ph"
FRONT = 5  # where the stars are
LETTERS_PER_INCH, MARK = 13, 5  # of the legend; a mark takes as much room as so many letters


def draw_space(path: str | Path, numbers: Mapping[str, Any]) -> None:
    """Writes the figure; `numbers` as the analysis `space` gives them."""
    layers = numbers["layers"]
    labels = list(dict.fromkeys(panel["label"] for panel in numbers["panels"]))
    names, classes = numbers["label_names"], numbers["classes"]
    wide = 4.6 if len(labels) > 1 else 3.3
    entries = [*names, "prototype"]
    columns = max(1, int(wide * LETTERS_PER_INCH / (max(map(len, entries)) + MARK)))
    tall = 0.7 + 2.3 * len(layers) + 0.2 * -(-len(entries) // columns)
    with figure(path, wide, tall, columns=len(labels), rows=len(layers), share=False) as drawn:
        axes = [drawn] if len(numbers["panels"]) == 1 else list(drawn.flat)
        for panel in numbers["panels"]:
            at = layers.index(panel["layer"]) * len(labels) + labels.index(panel["label"])
            _draw_panel(axes[at], panel, classes, names)
        for axis, label in zip(axes, labels, strict=False):
            axis.set_title(f"{label}\n{axis.get_title()}", fontsize=10)
        for number, layer in enumerate(layers):
            axes[number * len(labels)].set_ylabel(f"layer {layer}")
        for axis in axes[-len(labels) :]:
            axis.set_xlabel(f"t-SNE, no unit (n = {numbers['rows']})")
        _draw_legend(axes, columns)


def _draw_legend(axes: Sequence[Any], columns: int) -> None:
    """Classes, as in any panel, and the star where there is one."""
    handles, names = axes[0].get_legend_handles_labels()
    if any(line.get_zorder() == FRONT for each in axes for line in each.lines):
        handles += axes[0].plot([], [], "*", color="white", mec="black", mew=1, ms=6)
        names = [*names, "prototype"]
    axes[0].figure.legend(
        handles, names, loc="outside lower center", ncols=columns, columnspacing=1,
        handletextpad=0.2, markerscale=2,
    )  # fmt: skip


def _draw_panel(
    axes: Any, panel: Mapping[str, Any], classes: Sequence[int], names: Sequence[str]
) -> None:
    """Rows by class, in turn by colour and by marker; prototypes as stars on top of all."""
    for number, name in enumerate(names):
        own = [at for at, k in zip(panel["points"], classes, strict=True) if k == number]
        look = {"color": COLOURS[number % len(COLOURS)], "linestyle": ""}
        axes.plot(
            [at[0] for at in own], [at[1] for at in own], marker=MARKERS[number % len(MARKERS)],
            ms=3.5, alpha=0.55, mew=0, label=name, **look,
        )  # fmt: skip
        if (star := panel["prototypes"].get(str(number))) is not None:
            axes.plot(*star, marker="*", ms=17, mec="black", mew=1.2, zorder=FRONT, **look)
    axes.set_title(f"silhouette {panel['silhouette']:.2f}", fontsize=10)
    axes.set_xticks([])
    axes.set_yticks([])
    axes.grid(visible=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(True)
