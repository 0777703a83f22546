"""A bundle in a new process: how long until the first answer, and how much memory it takes."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from de3bert.errors import De3Error

__all__ = ["Fresh", "first_prediction"]

# Memory is what the system says of the process: in kilobytes, at the end and at its peak.
PROGRAM = """
import json, sys, time
start = time.perf_counter()
import de3bert
classifier = de3bert.load(sys.argv[1])
text = "it reads a text of some words and says what it is"
classifier.predict([(text, text) if classifier.info.text_pairs else text])
seconds = time.perf_counter() - start
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
resident, peak = (int(status[name].split()[0]) * 1024 for name in ("VmRSS", "VmHWM"))
print(json.dumps([seconds, resident, peak, "torch" in sys.modules]))
"""


@dataclass(frozen=True)
class Fresh:
    """One start.

    Attributes:
        process: seconds of the whole process, the interpreter's own start included.
        seconds: of importing, loading and the first prediction alone.
        resident: bytes in memory after the prediction; `peak`, the most there were.
        torch: whether torch was imported, which a bundle has no need of.
    """

    process: float
    seconds: float
    resident: int
    peak: int
    torch: bool


def first_prediction(bundle: Path, runs: int = 3) -> Fresh:
    """The quickest of some starts: the others waited for the disk or for other programs."""
    return min((_start(bundle) for _ in range(runs)), key=lambda each: each.process)


def _start(bundle: Path) -> Fresh:
    command = [sys.executable, "-c", PROGRAM, str(bundle)]
    start = time.perf_counter()
    ran = subprocess.run(command, capture_output=True, text=True)
    seconds = time.perf_counter() - start
    if ran.returncode:
        raise De3Error(f"{bundle} did not predict in a new process: {ran.stderr.strip()[-300:]}")
    return Fresh(seconds, *json.loads(ran.stdout))
