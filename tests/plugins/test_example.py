"""The plugin of `examples/plugin`, installed: it trains, travels, calibrates and exports."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.fixtures_trained import once, toy_data, trained_model
from tests.warm import python

__all__ = ["toy_data", "trained_model"]

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"
QUICK = ("--set", "train.epochs=3", "--set", "train.learning_rate=3e-3",
         "--set", "train.batch_size=16", "--set", "pooling=mean")  # fmt: skip


@dataclass(frozen=True)
class Shell:
    """Runs `de3` in processes of their own, with what is installed in `site`."""

    site: Path | None
    folder: Path

    def __call__(self, *arguments: object, code: int = 0) -> str:
        done = self.run(*arguments, code=code)
        return done.stdout + done.stderr

    def run(self, *arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        command = [*python(), "-m", "de3bert.cli.main", *map(str, arguments)]
        environment = os.environ | ({"PYTHONPATH": str(self.site)} if self.site else {})
        done = subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True
        )
        assert done.returncode == code, done.stderr
        assert "Traceback" not in done.stderr
        return done


@pytest.fixture(scope="session")
def installed(tmp_path_factory) -> Path:
    """A folder with the plugin in it, as pip installs it."""

    def install(folder: Path) -> None:
        source = shutil.copytree(EXAMPLE, folder.with_name("plugin-source"), dirs_exist_ok=True)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index"]
        command += ["--no-build-isolation", "--disable-pip-version-check", "--target", str(folder)]
        subprocess.run([*command, str(source)], check=True, capture_output=True)

    return once(tmp_path_factory, "plugin-site", install)


@pytest.fixture(scope="session")
def model(tmp_path_factory, installed, tiny_backbone, toy_data) -> Path:
    def train(folder: Path) -> None:
        Shell(installed, folder.parent)(
            "train", "--method", "joint-margin", "--data", toy_data.train, "--backbone",
            tiny_backbone, "--out", folder, *QUICK, "--quiet",
        )  # fmt: skip

    return once(tmp_path_factory, "plugin-model", train)


@pytest.fixture
def own(model, tmp_path) -> Path:
    return Path(shutil.copytree(model, tmp_path / "model"))


def test_it_is_listed(installed, tmp_path):
    said = Shell(installed, tmp_path)("methods", "joint-margin")
    assert "leaves by: margin" in said
    assert "heads: bottleneck" in said
    assert "joint-margin" not in Shell(None, tmp_path)("methods")


def test_the_config_names_what_the_model_was_made_with(model):
    config = json.loads((model / "config.json").read_text())
    assert config["plugins"] == ["de3_margin", "de3_margin.parts"]


def test_calibrated_exported_and_used_in_new_processes(installed, own, toy_data, tmp_path):
    de3 = Shell(installed, tmp_path)
    de3("calibrate", own, "--data", toy_data.calibration, "--target", "layers=1.3", "--name", "f")
    said = de3.run("evaluate", own, "--data", toy_data.test, "--point", "f", "--json", "--quiet")
    found = json.loads(said.stdout)
    assert found["policy"].startswith("margin > ")
    assert found["score"] > 0.7
    de3("export", own, "--out", "bundle", "--quiet")
    again = json.loads(
        de3.run(
            "evaluate", "bundle", "--data", toy_data.test, "--point", "f", "--json", "--quiet"
        ).stdout
    )
    assert again["score"] == pytest.approx(found["score"], abs=0.02)


def test_without_it_one_is_told_what_is_missing(installed, own, toy_data, tmp_path):
    Shell(installed, tmp_path)(
        "calibrate", own, "--data", toy_data.calibration, "--target", "layers=1.3", "--name", "f"
    )
    de3 = Shell(None, tmp_path)
    said = de3("evaluate", own, "--data", toy_data.test, code=1)
    assert "parts of the module de3_margin, de3_margin.parts, which is not imported" in said
    assert "--import de3_margin" in said


def test_modules_may_be_named_instead_of_installed(own, toy_data):
    de3 = Shell(None, EXAMPLE / "src")
    said = de3(
        "evaluate", own, "--data", toy_data.test, "--policy", "margin > 0.5", "--import",
        "de3_margin", "--import", "de3_margin.parts", "--quiet",
    )  # fmt: skip
    assert "margin > 0.5" in said


def test_a_config_alone_imports_nothing(own, tmp_path):
    """What a stranger's model asks for is not run, wherever it lies."""
    config = json.loads((own / "config.json").read_text())
    (own / "config.json").write_text(json.dumps({**config, "plugins": ["evil"]}))
    (tmp_path / "evil.py").write_text("open('executed', 'w').close()")
    Shell(None, tmp_path)("predict", own, "--policy", "full", code=1)
    assert not (tmp_path / "executed").exists()
