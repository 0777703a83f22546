"""One text, layer by layer: entropy, distance ratio and EDR, with right and wrong predictions."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from de3bert.figures.style import COLOURS, figure
from de3lab.figures.looks import look_of

__all__ = ["draw_sample"]

NAMES = {"entropy": "entropy", "distance_ratio": "distance ratio", "edr": "EDR"}
SIGNALS = tuple(  # key, name, colour, line
    (key, name, look_of(name).plotted()["color"], look_of(name).plotted()["linestyle"])
    for key, name in NAMES.items()
)
RIGHT, WRONG = "o", "X"
TITLE_WIDTH, LONGEST_NAME, SHORT_NAME = 58, 14, 2  # letters
LETTER = 0.085  # inches of an upright one


def draw_sample(path: str | Path, numbers: Mapping[str, Any]) -> None:
    """Writes the figure of one row; `numbers` as the analysis `sample` gives them."""
    layers = numbers["layers"]
    longest = max(len(each["prediction"]) for each in layers)
    room = LETTER * min(longest, LONGEST_NAME) if longest > SHORT_NAME else 0.0
    with figure(path, 4.6, 4.0 + room) as axes:
        for key, name, colour, line in SIGNALS:
            _draw_signal(axes, layers, key, name, colour, line)
        if (split := numbers["split"]) is not None:
            _draw_thresholds(axes, split)
        _draw_marks(axes, layers)
        _write_predictions(axes, layers)
        axes.set_xticks([each["layer"] for each in layers])
        axes.set_xlabel(f"layer (row {numbers['row']} of {numbers['rows']})")
        axes.set_ylabel("value (low: leave)")
        axes.set_ylim(-0.03, 1.03)
        axes.figure.suptitle(_title(numbers), fontsize=10)
        axes.figure.legend(loc="outside lower left", ncols=3, columnspacing=0.9, handlelength=1.8)


def _draw_signal(
    axes: Any, layers: Sequence[Mapping[str, Any]], key: str, name: str, colour: str, line: Any
) -> None:
    """A line, and a mark at each layer that says whether the prediction there is right."""
    seen = [each for each in layers if each[key] is not None]
    x, y = [each["layer"] for each in seen], [each[key] for each in seen]
    axes.plot(x, y, color=colour, linestyle=line, lw=1.6, label=name)
    for marker, right in ((RIGHT, (True, None)), (WRONG, (False,))):
        chosen = [each for each in seen if each["right"] in right]
        places = [each["layer"] for each in chosen], [each[key] for each in chosen]
        axes.plot(*places, marker, color=colour, ms=6.5, mec="white", mew=0.5, zorder=4)


def _draw_thresholds(axes: Any, split: Mapping[str, Any]) -> None:
    """Both thresholds, and the layers at which they let the row go, in the signals' colours."""
    for key, _, colour, _ in (SIGNALS[0], SIGNALS[2]):
        axes.axhline(split[f"{key}_tau"], color=colour, lw=0.9, alpha=0.8, zorder=1)
        axes.axvline(split[f"{key}_layer"], color=colour, lw=5, alpha=0.18, zorder=0)
    speed = f"thresholds at layer\nspeed-up {split['layer_speedup']:.1f}x"
    axes.plot([], [], color="0.4", lw=0.9, label=speed)
    axes.plot([], [], color="0.4", lw=5, alpha=0.3, label="leaves here")


def _draw_marks(axes: Any, layers: Sequence[Mapping[str, Any]]) -> None:
    """The two marks in the legend, where right and wrong are known."""
    if layers[0]["right"] is None:
        return
    for marker, name in ((RIGHT, "right"), (WRONG, "wrong")):
        axes.plot([], [], marker, color="black", ms=6.5, label=name)


def _write_predictions(axes: Any, layers: Sequence[Mapping[str, Any]]) -> None:
    """What each exit predicts, above its layer; upright where the names are long."""
    names = [each["prediction"] for each in layers]
    place: dict[str, Any] = {"textcoords": "offset points", "ha": "center", "va": "bottom"}
    place["rotation"] = 0 if max(map(len, names)) <= SHORT_NAME else 90
    for each, name in zip(layers, names, strict=True):
        cut = name if len(name) <= LONGEST_NAME else name[: LONGEST_NAME - 1] + "…"
        colour = COLOURS[1] if each["right"] is False else "black"
        axes.annotate(cut, (each["layer"], 1.03), (0, 3), color=colour, **place)


def _title(numbers: Mapping[str, Any]) -> str:
    whole = " / ".join(text for text in (numbers["text"], numbers["pair"]) if text)
    lines = textwrap.wrap(whole, TITLE_WIDTH, max_lines=2, placeholder=" ...")
    truth = "" if numbers["truth"] is None else f"class: {numbers['truth']}, "
    return "\n".join([*lines, f"{truth}λ = {numbers['lambda']:g}, predictions above the layers"])
