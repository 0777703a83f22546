"""The quick demo, run once for all tests that look at it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from tests.cli.conftest import de3
from tests.demo.quick import Demo, run
from tests.fixtures_trained import once

__all__ = ["de3", "demo"]


@pytest.fixture(scope="session")
def demo(tmp_path_factory) -> Demo:
    def build(folder: Path) -> None:
        folder.mkdir()
        done = run("de3 demo --quick", folder)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr
        (folder / "said.txt").write_text(done.stdout, encoding="utf-8")

    folder = once(tmp_path_factory, "demo", build)
    out = folder / "runs" / "demo"
    said = (folder / "said.txt").read_text(encoding="utf-8")
    return Demo(folder, out, said, json.loads((out / "result.json").read_text()))
