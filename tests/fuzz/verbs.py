"""Which verbs read a model, a bundle or rows, and with what else they are called."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.arena import Case

__all__ = ["ON_BUNDLES", "ON_MODELS", "ON_ROWS", "model_call", "row_call"]

ON_MODELS = ("inspect", "predict", "predict", "evaluate", "explain", "trace", "calibrate",
             "calibrate by trace", "adapt", "attach")  # fmt: skip
ON_BUNDLES = ("inspect", "predict", "predict", "evaluate", "explain", "trace", "calibrate",
              "calibrate by trace", "calibrate by time", "place-exits", "curve")  # fmt: skip
ON_ROWS = ("evaluate", "predict", "trace", "calibrate")
TEXT = b"a great film\nthe worst story it was\n"


def model_call(case: Case, verb: str, model: Path) -> tuple[list[object], bytes]:
    """The arguments of a verb on this model and sound rows, and its standard input."""
    materials = case.arena.materials
    rows = materials.rows
    trace = materials.trace if (model / "manifest.json").exists() else materials.model_trace
    out = case.folder / "out"
    target = ["--target", "layers=1.5", "--name", "new"]
    calls: dict[str, list[object]] = {
        "inspect": ["inspect", model],
        "predict": ["predict", model],
        "evaluate": ["evaluate", model, "--data", rows],
        "explain": ["explain", model, "a great film"],
        "trace": ["trace", model, "--data", rows, "--out", out],
        "calibrate": ["calibrate", model, "--data", rows, *target],
        "calibrate by trace": ["calibrate", model, "--trace", trace, *target],
        "calibrate by time": ["calibrate", model, "--trace", trace, "--target", "latency=9000ms",
                              "--name", "new"],
        "adapt": ["adapt", model, "--data", rows, "--out", out],
        "attach": ["attach", model, "--data", rows, "--out", out],
        "place-exits": ["place-exits", model, "--trace", trace],
        "curve": ["curve", trace, "--profile", model],
    }  # fmt: skip
    return [*calls[verb], "--quiet"], TEXT if verb == "predict" else b""


def row_call(case: Case, verb: str, model: Path, rows: Path) -> list[object]:
    """The arguments of a verb on these rows; `model` is not changed by it."""
    if verb == "calibrate":
        model = case.copy(model, "model")
        return [verb, model, "--data", rows, "--target", "layers=1.2", "--name", "new", "--force"]
    if verb == "predict":
        return [verb, model, rows]
    out = ["--out", case.folder / "out"] if verb == "trace" else []
    return [verb, model, "--data", rows, *out]
