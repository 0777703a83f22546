"""What is built for release: run by `make dist-check`, which builds it first."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from tests.fixtures_trained import toy_data, toy_rows, trained_model

import de3bert

__all__ = ["toy_data", "trained_model"]

ROOT = Path(__file__).parents[2]
BUILT = Path(os.environ.get("DE3_DIST", "dist"))
VERSION = de3bert.__version__
pytestmark = pytest.mark.skipif("DE3_DIST" not in os.environ, reason="make dist-check builds them")


def wheel(name: str) -> Path:
    (found,) = BUILT.glob(f"{name}-{VERSION}-*.whl")
    return found


def in_wheel(name: str) -> set[str]:
    return set(zipfile.ZipFile(wheel(name)).namelist())


def in_sdist(name: str) -> set[str]:
    with tarfile.open(BUILT / f"{name}-{VERSION}.tar.gz") as archive:
        return {member.partition("/")[2] for member in archive.getnames()}


def test_the_products_wheel_is_whole():
    names = in_wheel("de3bert")
    recipes = {"mnli", "mrpc", "qnli", "qqp", "rte", "sst2"}
    assert {f"de3bert/recipes/{name}.toml" for name in recipes} <= names
    assert "de3bert/py.typed" in names
    assert not [name for name in names if name.startswith(("de3lab", "tests", "lab"))]


def test_the_laboratorys_wheel_is_whole():
    names = in_wheel("de3lab")
    source = ROOT / "lab" / "src"
    files = [path for path in (source / "de3lab").rglob("*") if path.is_file()]
    kept = {str(path.relative_to(source)) for path in files if path.suffix != ".pyc"}
    assert {"de3lab/py.typed", "de3lab/templates/study.html"} <= kept
    assert kept <= names
    assert not [name for name in names if name.startswith(("de3bert", "tests", "results"))]


def test_sdists_have_what_they_are_built_from():
    always = {"pyproject.toml", "README.md", "LICENSE"}
    assert always | {"src/de3bert/__init__.py"} <= in_sdist("de3bert")
    assert always | {"src/de3lab/__init__.py"} <= in_sdist("de3lab")


@pytest.fixture(scope="module")
def light(tmp_path_factory) -> Path:
    """The command `de3` of an empty environment with the wheel in it, and no extra."""
    folder = tmp_path_factory.mktemp("light")
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet"]
    subprocess.run([*pip, "--disable-pip-version-check", wheel("de3bert")], check=True)
    return folder / "bin"


def run(command: Path, *arguments: object, given: str = "") -> subprocess.CompletedProcess[str]:
    clean = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    call = [str(command), *map(str, arguments)]
    return subprocess.run(
        call, input=given, env=clean, cwd=command.parent, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def bundle(tmp_path_factory, trained_model) -> Path:
    from de3bert.export.bundle import export_model

    folder = tmp_path_factory.mktemp("made") / "bundle"
    export_model(trained_model, folder)
    return folder


def test_a_light_install_has_no_torch_and_predicts_from_a_bundle(light, bundle):
    absent = "from importlib.util import find_spec; print(find_spec('torch'))"
    assert run(light / "python", "-c", absent).stdout == "None\n"
    texts = [text for text, _ in toy_rows(20, 5)]
    lines = "\n".join(texts)
    done = run(light / "de3", "predict", bundle, "--policy", "entropy < 0.5", given=lines)
    assert done.returncode == 0, done.stderr
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    expected = de3bert.load(bundle).predict(texts, policy="entropy < 0.5")
    assert [answer["label"] for answer in answers] == [each.label for each in expected]
    assert [answer["exit_layer"] for answer in answers] == [each.exit_layer for each in expected]


def test_a_light_install_calibrates_a_bundle(light, bundle, toy_data):
    arguments = ("--data", toy_data.calibration, "--target", "layers=1.3", "--name", "quick")
    done = run(light / "de3", "calibrate", bundle, *arguments)
    assert done.returncode == 0, done.stderr


def test_what_is_not_installed_says_how_to_get_it(light, bundle, tmp_path):
    said = run(light / "de3", "compare", "study.toml")
    assert said.returncode == 2
    assert "pip install de3lab" in said.stderr
    said = run(light / "de3", "export", bundle, "--out", tmp_path / "out")
    assert said.returncode in (1, 2)
    assert "Traceback" not in said.stderr
    assert run(light / "de3", "--version").stdout == f"de3bert {VERSION}\n"
