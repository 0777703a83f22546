"""What this machine is, for results that carry a time."""

from __future__ import annotations

import os
import platform
from importlib import metadata
from pathlib import Path

__all__ = ["machine", "versions"]

REPORTED = ("de3bert", "torch", "transformers", "numpy", "onnxruntime")


def machine() -> str:
    """One line: processor, cores, system, Python."""
    return (
        f"{_processor()}, {os.cpu_count()} cores, {platform.system()}, "
        f"Python {platform.python_version()}"
    )


def versions() -> dict[str, str]:
    """The versions of the libraries that do the arithmetic, as far as they are installed."""
    found = {}
    for name in REPORTED:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
