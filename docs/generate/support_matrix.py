"""The support matrix: families x tasks x back ends, from the tests that there are.

A cell says yes where a test of that kind is collected for the family. Nothing is typed by hand but
which test stands behind which column.
"""

from __future__ import annotations

import functools
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["BUNDLES", "COLUMNS", "Column", "collected", "columns", "page"]


@dataclass(frozen=True)
class Column:
    """A claim, and the test that runs once per family for it."""

    task: str
    title: str
    test: str  # path::function


TEXT, WORDS = "Text classification", "Token classification"
COLUMNS = (
    Column(
        TEXT,
        "train",
        "tests/model/test_families.py::test_the_loop_gives_the_backbones_own_states_bit_for_bit",
    ),
    Column(
        TEXT,
        "attach",
        "tests/training/test_attach.py"
        "::test_the_final_logits_are_those_of_the_original_to_the_last_bit",
    ),
    Column(
        TEXT,
        "stop early on `torch`",
        "tests/runtime/test_engine_families.py::test_batching_never_changes_an_answer",
    ),
    Column(
        WORDS,
        "stop early on `torch`",
        "tests/runtime/test_tagger_families.py::test_batching_never_changes_a_tag",
    ),
)
# These run on every back end of bundles, in turn.
BUNDLES = {
    TEXT: "tests/export/test_parity.py::test_a_bundle_answers_as_its_model",
    WORDS: "tests/runtime/test_tagger_families.py::test_a_bundle_tags_as_its_model",
}
NODE = re.compile(r"^(?P<test>[^\[]+)\[(?P<family>[^\]]+)\]$")
INTRODUCTION = """# Support matrix

Made when the site is built, from the tests that `make test` collects: *yes* means that a tiny model
of the family goes through the test of that column. What is not listed is checked when exits are put
on a model, by comparing its own states with those of the loop over layers, and when it is exported,
by comparing the bundle with the model.
"""
BEHIND = "The tests behind the columns:"


def page(root: Path) -> str:
    """The page in Markdown."""
    found, parts = collected(root), [INTRODUCTION]
    for task in BUNDLES:
        own = [column for column in columns(root) if column.task == task]
        parts += [f"## {task}", _table(own, found), BEHIND, _tests(own)]
    parts += ["## Refused", _refused()]
    return "\n\n".join(parts) + "\n"


def columns(root: Path) -> list[Column]:
    """All columns: one more for each back end that the tests of bundles run on."""
    if str(root) not in sys.path:
        sys.path.append(str(root))
    from tests.export.bundles import BUNDLE_BACKENDS

    bundles = [
        Column(task, f"bundle on `{name}`", test)
        for task, test in BUNDLES.items()
        for name in BUNDLE_BACKENDS
    ]
    return [*COLUMNS, *bundles]


def _table(columns: list[Column], found: dict[str, set[str]]) -> str:
    titles = [column.title for column in columns]
    lines = [f"| family | {' | '.join(titles)} |", "|---" * (len(titles) + 1) + "|"]
    for family in sorted(set().union(*(found[column.test] for column in columns))):
        cells = ["yes" if family in found[column.test] else "" for column in columns]
        lines.append(f"| {family} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _tests(columns: list[Column]) -> str:
    return "\n".join(f"- {column.title}: `{column.test}`" for column in columns)


@functools.cache
def collected(root: Path) -> dict[str, set[str]]:
    """Test -> the families that it is collected for."""
    found: dict[str, set[str]] = {column.test: set() for column in columns(root)}
    files = sorted({test.partition("::")[0] for test in found})
    command = [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider"]
    listed = subprocess.run([*command, *files], cwd=root, capture_output=True, text=True)
    for line in listed.stdout.splitlines():
        match = NODE.match(line)
        if match is not None and match["test"] in found:
            found[match["test"]].add(match["family"])
    missing = [test for test, families in found.items() if not families]
    if missing:
        raise RuntimeError(f"no test is collected for {missing}:\n{listed.stdout}{listed.stderr}")
    return found


def _refused() -> str:
    from de3bert.model.layout import REFUSED

    lines = ["| family | why |", "|---|---|"]
    lines += [f"| {family} | {reason} |" for family, reason in sorted(REFUSED.items())]
    more = (
        "Encoder-decoders and causal decoders are refused as well, and so is any stack of layers "
        "that fails its check."
    )
    return "\n".join(lines) + f"\n\n{more}"
