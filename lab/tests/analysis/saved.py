"""Made-up traces as files, for analyses that read subjects."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

from de3bert.exits import Trace
from de3lab.analysis import Subject

NUMBERS = itertools.count()


def saved(folder: Path, trace: Trace, label: str = "de3", **info: Any) -> Subject:
    """A subject whose trace lies in `folder`; `info` is what the trace says of its making."""
    path = folder / f"{label}-{next(NUMBERS)}.trace"
    replace(trace, info={"method": "de3", **info}).save(path)
    return Subject(label, str(path))
