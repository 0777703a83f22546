"""The page: one file that asks nobody for anything, and works in a real browser."""

from __future__ import annotations

import html
import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from markupsafe import escape

from de3lab.documents import StudyResult
from de3lab.study.page import page


def read(document: dict[str, Any]) -> StudyResult:
    return StudyResult.model_validate(document)


def test_it_asks_nobody_for_anything(document):
    text = page(read(document))
    assert not re.search(r'(?:src|href)="(?!data:)', text)
    addresses = {found for found in re.findall(r"https?://[^\s\"'<>)]+", text)}
    assert addresses == {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert "fetch(" not in text
    assert "XMLHttpRequest" not in text
    assert "default-src 'none'" in text


def test_any_text_may_be_in_the_data(document):
    nasty = "</script><script>alert(1)</script><!-- {{script}} & \"'"
    text = page(read({**document, "title": nasty}))
    assert text.count("<script") == 2
    inside = re.search(r'id="data">(.*?)</script>', text, re.S)
    assert json.loads(inside[1])["title"] == nasty
    assert str(escape(nasty)) in text


# ---- in a browser

DRIVE = (Path(__file__).parent / "drive_page.js").read_text(encoding="utf-8")
LISTEN = """<script>
window.failures = []; addEventListener("error", (event) => failures.push(event.message));
</script>"""


def driven(browser: str, folder: Path, text: str, width: int) -> dict[str, Any]:
    """Opens the page in a frame of this width, drives it, gives what `drive_page.js` saw."""
    more = f"<script>{DRIVE}</script></body>"
    text = text.replace("<head>", "<head>" + LISTEN).replace("</body>", more)
    outer = folder / "frame.html"
    frame = (
        f'<iframe style="width: {width}px; height: 900px; border: 0" srcdoc="{html.escape(text)}">'
    )
    outer.write_text(f"<!doctype html><meta charset=utf-8><body>{frame}</iframe>", encoding="utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
               f"--user-data-dir={folder / 'profile'}", "--window-size=1200,1000",
               "--virtual-time-budget=4000", outer.as_uri()]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    found = re.search(r'<pre id="seen">(.*?)</pre>', result.stdout, re.S)
    assert found, result.stderr[-2000:]
    return json.loads(html.unescape(found[1]))


@pytest.fixture(scope="module")
def seen(browser, document, tmp_path_factory) -> dict[str, Any]:
    return driven(browser, tmp_path_factory.mktemp("browser"), page(read(document)), 1000)


def test_it_runs_without_errors(seen, document):
    assert seen["errors"] == []
    assert seen["title"] == document["title"]
    assert seen["speeds"] == ["1.25", "1.5", "2", "3"]


def test_the_table_shows_who_reaches_the_speed_and_sorts(seen, document):
    reached = {m for task in ("plain", "both") for m in document["scores"]["2"][task]}
    assert {*seen["rows"]} == reached - {"oracle"}
    average = document["averages"]["2"]["methods"]
    assert seen["best"] == sorted(seen["best"], key=lambda m: -average.get(m, -1))
    assert seen["sorted"] == "descending"
    assert seen["worst"] == sorted(seen["worst"], key=lambda m: average.get(m, 2))
    assert seen["best"] != seen["rows"] or seen["worst"] != seen["rows"]
    assert "pabee" not in seen["fast"]  # two of four layers at the least
    assert seen["heading"] == "Scores at a layer speed-up of 3x"


def test_charts_have_a_line_or_mark_for_everybody(seen, document):
    assert seen["curves"] == len(document["curves"]["plain"]) + len(document["points"]["plain"])
    assert seen["mean"] == seen["curves"]
    assert [*seen["legend"]] == [each["name"] for each in document["methods"]]
    assert seen["axis"] == ["accuracy (percent)"]
    assert seen["bands"] == 1  # of the chosen method; all of them would hide one another
    assert "Optimizer steps" in seen["sides"]
    assert "Layer speed-up wanted and achieved, plain" in seen["sides"]
    assert seen["pareto"] > len(document["methods"])
    assert seen["exits"] > len(document["methods"])


def test_values_can_be_read_by_pointer_and_keys(seen, document):
    assert seen["tip"].startswith("layer speed-up: 3.92\n")
    first = seen["hover"].splitlines()
    assert first[0] == "layer speed-up: 1"
    curve = document["curves"]["both"]["de3"]
    assert f"{100 * curve['score'][0]:.1f}  de3" in first
    assert seen["hidden"]


def test_filters_and_theme(seen):
    assert "Dominated" in seen["note"] or "No method is dominated" in seen["note"]
    assert seen["empty"] == [0, "Nothing to show for this choice."]
    assert seen["one"] == ["de3"]
    assert seen["theme"] in ("dark", "light")
    assert seen["unnamed"] == 0


def test_the_page_is_not_wider_than_a_narrow_screen(browser, document, tmp_path):
    found = driven(browser, tmp_path, page(read(document)), 360)
    assert found["errors"] == []
    assert found["wide"] <= 0


def timing(milliseconds: dict[str, Any]) -> dict[str, Any]:
    """`latency.json` of version 1, which had both kinds of times in one table."""
    return {
        "format": "de3bert-latency", "version": 1, "task": "plain", "seed": 1, "machine": "m",
        "date": "2026-01-01", "milliseconds": milliseconds, "without": {},
    }  # fmt: skip


def test_predicted_times_say_so(browser, document, tmp_path):
    times = {"full": {"own": 9.0}, "de3": {"1.25": 7.0, "1.5": 6.0, "2": 5.0, "3": 4.0}}
    given = read({**document, "latency": timing(times)})
    assert given.latency.measured == {"full": {"own": 9.0}}
    assert given.latency.predicted == {"de3": times["de3"]}
    found = driven(browser, tmp_path, page(given), 1000)
    assert found["errors"] == []
    fast, slow = found["times"]
    assert "de3 (predicted)" in fast
    assert "full (measured)" in slow
    label, note = found["timed"]
    assert label == "milliseconds per text, predicted (of models of one speed: measured)"
    assert "Times of models with exits are predicted from their profiles" in note
    assert "Milliseconds per text" in found["sides"]
    cells = re.findall(
        r"<td[^>]*>([^<]*)</td>", page(given).split("Milliseconds per text</caption>")[1]
    )
    assert cells[:3] == ["its own", "9.00", "-"]
    assert cells[3:6] == ["1.25x", "-", "7.00"]


def test_a_partial_study_has_a_page_as_well(browser, document, tmp_path):
    """One task without any run, nothing complete, no times."""
    partial = {
        **document,
        "complete_tasks": [],
        "averages": {key: {"tasks": [], "methods": {}} for key in document["averages"]},
        "ranks": {key: {"tasks": [], "methods": {}} for key in document["ranks"]},
        "progress": {"done": 8, "of": 12, "missing": ["plain de3 seed 2"]},
        "latency": timing({}),
    }
    found = driven(browser, tmp_path, page(read(partial)), 1000)
    assert found["errors"] == []
