"""The report in the repository is that of the results beside it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from de3lab.paper.report import Report, build_report, findings_document, markdown

ROOT = Path(__file__).parents[2]
COMMAND = "de3 paper all --results results/ --out report/"


@pytest.fixture(scope="module")
def report() -> Report:
    return build_report(ROOT / "results")


def test_all_stored_results_can_be_used(report):
    assert report.problems == []


def test_the_findings_are_those_of_the_stored_results(report):
    written = json.loads((ROOT / "report" / "findings.json").read_text(encoding="utf-8"))
    made = findings_document(report)
    assert [(each["name"], each["holds"]) for each in written] == [
        (each["name"], each["holds"]) for each in made
    ], f"run `{COMMAND}`"


def test_the_text_is_that_of_the_stored_results(report):
    written = (ROOT / "report" / "README.md").read_text(encoding="utf-8")
    assert written == markdown(report, "de3 paper all"), f"run `{COMMAND}`"


def test_readme_counts_the_findings_as_they_are(report):
    said = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    counts = report.counts
    named = {  # of one, of several
        "yes": ("holds", "hold"),
        "no": ("does not", "do not"),
        "not significant": ("is not significant", "are not significant"),
        "too few runs": ("has too few runs", "have too few runs"),
        "by construction": ("holds by construction", "hold by construction"),
        "not measured": ("is not measured", "are not measured"),
    }
    told = ", ".join(
        f"{count} {named[holds][count > 1]}" for holds in named if (count := counts.get(holds))
    )
    assert f"Of {sum(counts.values())} findings {told}" in said
