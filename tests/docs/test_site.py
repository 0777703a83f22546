"""The site: its navigation, its links, and the pages that are made from the code."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
from tests.docs.pages import DOCS, ROOT
from tests.export.bundles import pointed_model, trained_bundle
from tests.fixtures_trained import trained_model

import de3bert

__all__ = ["pointed_model", "trained_bundle", "trained_model"]

LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
OUTSIDE = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "lab/README.md")
MADE = ("reference/api.md", "reference/cli.md", "reference/support.md")


def generator(name: str) -> ModuleType:
    """A module of docs/generate, which is no package."""
    spec = importlib.util.spec_from_file_location(name, DOCS / "generate" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def sources() -> list[Path]:
    return [*sorted(DOCS.rglob("*.md")), *(ROOT / name for name in OUTSIDE)]


def anchors(path: Path) -> set[str]:
    """The names that headings of a page can be linked by."""
    text = FENCE.sub("", path.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", each.lower()).strip().replace(" ", "-") for each in headings}


def links(path: Path) -> Iterator[tuple[Path, str]]:
    """The files, and the anchors in them, that a page links to."""
    for link in LINK.findall(FENCE.sub("", path.read_text(encoding="utf-8"))):
        if "://" not in link:
            file, _, anchor = link.partition("#")
            yield ((path.parent / file).resolve() if file else path), anchor


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    for target, anchor in links(path):
        if target.is_relative_to(DOCS) and str(target.relative_to(DOCS)) in MADE:
            continue
        assert target.exists(), target
        assert not anchor or anchor in anchors(target), f"{target}#{anchor}"


def test_every_page_is_in_the_navigation():
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for path in sorted(DOCS.rglob("*.md")):
        assert str(path.relative_to(DOCS)) in nav, path
    for page in MADE:
        assert page in nav


def test_the_command_reference_has_every_verb_and_option():
    text = generator("cli_reference").page()
    for verb in ("attach", "train", "calibrate", "predict", "export", "bench", "place-exits"):
        assert f"## de3 {verb}\n" in text
    assert "| `--target` |" in text
    assert "required" in text
    assert "`mean` or `cls`" in text
    assert "Example:\n\n```text\nde3 calibrate runs/mine" in text


def test_the_api_reference_has_every_public_name():
    text = generator("api_reference").page()
    for name in de3bert.__all__:
        assert name.startswith("__") or f"::: de3bert.{name}\n" in text
    assert "::: de3bert.exits.Policy\n" in text


@pytest.mark.slow
def test_the_support_matrix_says_what_is_collected():
    from tests.model.families import FAMILIES

    matrix = generator("support_matrix")
    found = matrix.collected(ROOT)
    assert found[matrix.COLUMNS[0].test] == set(FAMILIES)
    assert found[matrix.BUNDLES[matrix.TEXT]] == set(FAMILIES)
    assert "bert" in found[matrix.BUNDLES[matrix.WORDS]]
    assert found[matrix.COLUMNS[-1].test] == set(FAMILIES)
    text = matrix.page(ROOT)
    assert text.count("| bundle on `onnx` |") == 2
    for family in FAMILIES:
        assert f"| {family} |" in text
    assert "| longformer | it shortens" in text


def test_links_out_of_docs_are_led_to_their_copies():
    outside = generator("outside")
    assert "lab/results/demo/result.json" in outside.linked_files(ROOT)
    text = "[a](../../lab/README.md#ask-why) [b](train.md) [c](../../lab/results/stacking) `d`"
    moved = outside.relinked(ROOT, "guides/attach.md", text)
    assert moved == "[a](../repository/lab/README.md#ask-why) [b](train.md) c `d`"


def test_one_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {de3bert.__version__}\n" in citation
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## {de3bert.__version__} - " in changelog
    for folder in ("", "lab/"):
        project = tomllib.loads((ROOT / f"{folder}pyproject.toml").read_text(encoding="utf-8"))
        assert project["project"]["dynamic"] == ["version"]
        assert "version" not in project["project"]


def test_the_architecture_page_names_files_that_there_are():
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:\w+/)+\w+\.(?:py|toml))`", text))
    assert len(named) > 40
    homes = (ROOT, ROOT / "src" / "de3bert", ROOT / "lab" / "src", ROOT / "lab" / "src" / "de3lab")
    missing = [name for name in named if not any((home / name).exists() for home in homes)]
    assert not missing


def test_the_published_schemas_of_the_product_are_current():
    made = generator("schemas").schemas()
    assert {*made} == {"point.json", "bundle.json"}
    for name, schema in made.items():
        stored = json.loads((DOCS / "schema" / name).read_text(encoding="utf-8"))
        assert stored == schema, "run `python docs/generate/schemas.py docs/schema`"


def test_a_calibrated_bundle_has_what_its_schemas_name(trained_bundle):
    made = generator("schemas").schemas()
    points = json.loads((trained_bundle / "config.json").read_text())["operating_points"]
    stored = {
        "point.json": [*points.values()],
        "bundle.json": [json.loads((trained_bundle / "manifest.json").read_text())],
    }
    for name, documents in stored.items():
        known, needed = made[name]["properties"], made[name]["required"]
        for document in documents:
            assert {*needed} <= {*document} <= {*known}
            assert document.get("version", 1) == 1
