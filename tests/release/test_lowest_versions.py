"""The lowest versions that are tested are the lowest ones that are allowed."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
LEAST = re.compile(r"(?P<name>[A-Za-z0-9_-]+)(?:\[[^\]]*\])?>=(?P<version>[\d.]+)")
EXTRAS = ("train", "export", "adapt", "plot")  # what `make test-lowest` installs
SAME_EVERYWHERE = "torch"  # the file says why


def numbers(version: str) -> tuple[int, ...]:
    parts = [int(part) for part in version.split(".")]
    return (*parts, 0, 0, 0)[:3]


def allowed() -> dict[str, tuple[int, ...]]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = list(project["dependencies"])
    for extra in EXTRAS:
        lines += project["optional-dependencies"][extra]
    found = [match for line in lines if (match := LEAST.match(line))]
    return {match["name"]: numbers(match["version"]) for match in found}


def pinned(file: str) -> dict[str, str]:
    lines = (ROOT / file).read_text(encoding="utf-8").splitlines()
    pairs = (line.split("==") for line in lines if "==" in line)
    return {name.strip(): version.strip() for name, version in pairs}


def test_every_lower_bound_is_the_one_that_is_tested():
    tested = pinned("constraints-lowest.txt")
    for name, version in allowed().items():
        if name != SAME_EVERYWHERE:
            assert numbers(tested[name]) == version, name


def test_torch_is_that_of_the_other_tests():
    lowest, usual = pinned("constraints-lowest.txt"), pinned("constraints.txt")
    assert lowest[SAME_EVERYWHERE] == usual[SAME_EVERYWHERE]
