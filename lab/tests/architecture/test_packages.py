"""The shape of the laboratory: it imports the product, downwards only, and files stay small."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.architecture.test_packages import DRAWERS, LONGEST_FILE, imported, packages_imported

import de3bert
import de3lab

ROOT = Path(de3lab.__file__).parent
LEAVES = ("documents", "statistics", "tabular", "templates")
MAY_IMPORT: dict[str, set[str]] = {
    **{leaf: set() for leaf in LEAVES},
    "cli": {"study", "analysis", "paper"},
    "paper": {"study", "analysis", "figures", "made", *LEAVES},
    "analysis": {"study", "figures", *LEAVES},
    "study": {"figures", "made", *LEAVES},
    "figures": set(),
    "bench": {"made"},
    "made": set(),
}


def modules() -> list[Path]:
    return sorted(ROOT.rglob("*.py"))


def package_of(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").parts[0]


@pytest.mark.parametrize("package", sorted(MAY_IMPORT))
def test_imports_go_downwards_only(package):
    files = [path for path in modules() if package_of(path) == package]
    assert files
    for path in files:
        assert packages_imported(path, ROOT) <= MAY_IMPORT[package] | {package}, path


def test_every_package_has_its_rule():
    assert {package_of(path) for path in modules()} - {"__init__"} == set(MAY_IMPORT)


def test_only_verbs_use_the_products_verbs():
    for path in (path for path in modules() if package_of(path) != "cli"):
        assert not [name for name in imported(path) if name.startswith("de3bert.cli")], path


def test_verbs_import_the_heavy_packages_only_when_they_run():
    for path in (path for path in modules() if package_of(path) == "cli"):
        top = {".".join(name.split(".")[:2]) for name in imported(path, top_only=True)}
        assert top <= {"de3bert.cli", "de3bert.errors", "de3bert.files"} | {
            name for name in top if not name.startswith(("de3bert", "de3lab"))
        }, path


def test_no_drawers_for_everything():
    names = {part for path in modules() for part in path.relative_to(ROOT).with_suffix("").parts}
    assert not names & DRAWERS


def test_files_stay_small():
    long = [path for path in modules() if len(path.read_text().splitlines()) > LONGEST_FILE]
    assert not long


def test_one_version():
    assert de3lab.__version__ == de3bert.__version__
