"""The report: from nothing, from toy results, from broken files; self-contained and complete."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from lab.tests.documents import made as made_up

from de3lab.analysis.speed import PAPER
from de3lab.documents import AnalysisResult
from de3lab.paper.items import FINDINGS, ITEMS
from de3lab.paper.items.speed import speed_tables
from de3lab.paper.method_tables import method_tables
from de3lab.paper.report import build_report, write_report
from de3lab.paper.stored import Stored


class Reader(HTMLParser):
    """Collects what a page refers to, and whether its tags are closed."""

    VOID = ("meta", "img", "br", "link", "input", "hr")

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.images: list[dict[str, str | None]] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if "id" in given:
            self.ids.append(given["id"])
        if tag == "a":
            self.links.append(given["href"])
        if tag == "img":
            self.images.append(given)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def report(made, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("report")
    write_report(build_report(made / "results"), out, "de3 paper all")
    return out


@pytest.fixture(scope="module")
def empty(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("empty")
    write_report(build_report(out / "nothing"), out, "de3 paper all")
    return out


def text_of(folder: Path, name: str) -> str:
    return (folder / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("which", ["report", "empty"])
def test_the_page_stands_alone(which, request):
    text = text_of(request.getfixturevalue(which), "index.html")
    page = Reader(text)
    assert all(link.startswith("#") and link[1:] in page.ids for link in page.links)
    assert len(page.ids) == len({*page.ids})
    assert all(image["src"].startswith("data:image/") and image["alt"] for image in page.images)
    assert "<script" not in text
    assert "{{" not in text
    assert "default-src 'none'" in text
    outside = re.sub(r'src="data:[^"]*"', "", text)
    assert not re.search(r"https?://", outside)


@pytest.mark.parametrize("which", ["report", "empty"])
def test_every_item_and_finding_is_there(which, request):
    folder = request.getfixturevalue(which)
    page, twin = text_of(folder, "index.html"), text_of(folder, "README.md")
    for item in ITEMS.values():
        assert f'<section id="{item.name}"' in page
        assert f"## {item.reference}: {item.title}" in twin
        assert f'<a id="{item.name}"></a>' in twin
        if item.training is not None:
            assert item.command in page
            assert item.command in twin
    findings = json.loads(text_of(folder, "findings.json"))
    assert [each["name"] for each in findings] == [finding.name for _, finding in FINDINGS]


def test_without_results_everything_is_unmeasured(empty):
    findings = json.loads(text_of(empty, "findings.json"))
    assert {each["holds"] for each in findings} == {"not measured"}
    page = Reader(text_of(empty, "index.html"))
    assert page.images == []
    # The published numbers are there all the same.
    for number in ("83.2 (2.04x)", "0.569", "786.4K", "67k"):
        assert number in text_of(empty, "index.html")
        assert number in text_of(empty, "README.md")


def test_toy_results_are_judged_and_shown(report, made):
    findings = {each["name"]: each for each in json.loads(text_of(report, "findings.json"))}
    assert findings["entropy"]["holds"] == "too few runs"
    assert findings["entropy"]["numbers"]["n"] == 1
    assert findings["exits"]["holds"] in ("by construction", "no")
    assert findings["networks"]["holds"] == "not measured"
    images = Reader(text_of(report, "index.html")).images
    drawn = {"indicator", "exit-layers", "alpha", "shift", "space"}
    stored = len([*(made / "results" / "paper").glob("*/*/result.json")])
    assert stored == len(drawn)
    assert len(images) == stored + 1  # and the curves of the main table
    twin = text_of(report, "README.md")
    pictures = re.findall(r"!\[[^\]]+\]\((figures/[^)]+)\)", twin)
    assert len(pictures) == len(images)
    assert all((report / path).exists() for path in pictures)


def test_settings_are_stated(report):
    page = text_of(report, "index.html")
    assert "160 training rows, 120 rows of dev, seed 1" in page
    assert "BERT-base, development set of QNLI" in page
    assert "measured on SST-2; not yet on QNLI" in page
    assert "How the models were trained" in page
    head = text_of(report, "README.md").split("## Findings")[0]
    assert "| paper_methods, paper_components, paper_alpha |" not in head
    assert re.search(r"\| paper_methods[^|]* \| [^|]+ \| SST-2 \| mean \| 1 \| 0.003 \|", head)
    assert "3 of 3 trainings finished" not in page  # `full` was needed by none of the items


def test_the_same_results_give_the_same_files(made, report, tmp_path):
    write_report(build_report(made / "results"), tmp_path, "de3 paper all")
    for path in report.rglob("*"):
        if path.is_file():
            assert (tmp_path / path.relative_to(report)).read_bytes() == path.read_bytes(), path


def test_figures_of_an_earlier_report_go(made, tmp_path):
    (tmp_path / "figures").mkdir()
    (tmp_path / "figures" / "old-sst2.svg").write_text("old", encoding="utf-8")
    (tmp_path / "figures" / "mine.txt").write_text("kept", encoding="utf-8")
    write_report(build_report(made / "results"), tmp_path, "de3 paper all")
    assert not (tmp_path / "figures" / "old-sst2.svg").exists()
    assert (tmp_path / "figures" / "mine.txt").exists()


def spoil(path: Path, how: str) -> None:
    document = json.loads(path.read_text(encoding="utf-8"))
    if how == "half":
        path.write_text("{", encoding="utf-8")
    elif how == "newer":
        path.write_text(json.dumps({**document, "version": 99}), encoding="utf-8")
    elif how == "other":
        path.write_text(json.dumps({**document, "format": "something"}), encoding="utf-8")
    elif how == "wrong":
        path.write_text(json.dumps({**document, "analysis": "lambda"}), encoding="utf-8")
    else:
        path.write_text(json.dumps({**document, "numbers": {}}), encoding="utf-8")


@pytest.mark.parametrize("how", ["half", "newer", "other", "wrong", "lacking"])
def test_a_broken_result_is_named_and_left_out(made_copy, how):
    spoil(made_copy / "results" / "paper" / "indicator" / "sst2" / "result.json", how)
    report = build_report(made_copy / "results")
    assert len(report.problems) == 1
    assert "indicator/sst2" in report.problems[0]
    assert report.verdicts["entropy"].holds == "not measured"
    assert report.verdicts["exits"].holds != "not measured"


@pytest.mark.parametrize("how", ["half", "newer", "other"])
def test_a_broken_study_is_named_and_left_out(made_copy, how, tmp_path):
    spoil(made_copy / "results" / "paper_methods" / "study.json", how)
    report = build_report(made_copy / "results")
    assert len(report.problems) == 1
    assert "paper_methods/study.json" in report.problems[0]
    assert report.verdicts["rules"].holds == "not measured"
    write_report(report, tmp_path / "report", "de3 paper all")
    assert "paper_methods/study.json" in text_of(tmp_path / "report", "index.html")


def test_any_text_may_be_in_the_results(made_copy, tmp_path):
    path = made_copy / "results" / "paper" / "indicator" / "sst2" / "result.json"
    document = json.loads(path.read_text(encoding="utf-8"))
    nasty = "<script>alert(1)</script> | {{title}} `x`"
    path.write_text(json.dumps({**document, "machine": nasty}), encoding="utf-8")
    write_report(build_report(made_copy / "results"), tmp_path, "de3 paper all")
    page = text_of(tmp_path, "index.html")
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)" in page


def study_document(**scores: dict[str, float]) -> dict:
    """A `study.json` with scores of SST-2 at 2x: method -> mean."""
    found = {
        name: made_up.score({"42": seen["mean"]}, sd=seen.get("sd"), n=3)
        for name, seen in scores.items()
    }
    rows = {"train": 10, "test-dev": 20}
    full = {"mean": 0.912, "sd": None, "n": 1, "layer_speedup": 1.0}
    return made_up.study_result(
        backbone="$DE3_BACKBONE_DIR/gte-small",
        tasks=[made_up.task("sst2", seeds=[42], rows=rows)],
        methods=[made_up.method(name) for name in (*scores, "full")],
        scores={"2": {"sst2": found}, "3": {"sst2": {}}},
        points={"sst2": {"full": full}},
        exits={"sst2": {"full": {"12": 0.9}}},
        curves={"sst2": {}},
    ).to_json()


def test_tables_of_studies_have_ours_beside_the_published_numbers(tmp_path):
    place = tmp_path / "paper_methods" / "study.json"
    place.parent.mkdir()
    document = study_document(de3={"mean": 0.9034, "sd": 0.0041}, mine={"mean": 0.5})
    place.write_text(json.dumps(document), encoding="utf-8")
    two, three = method_tables(ITEMS["methods"], Stored(tmp_path))
    assert two.columns[:3] == ("method", "SST-2 ours", "SST-2 paper")  # what is measured first
    rows = {row[0]: row for row in two.rows}
    assert rows["de3 (paper: DE3-BERT)"][1:3] == ("90.3 ± 0.4", "92.5 (2.02x)")
    full = rows["gte-small, all layers (paper: BERT-base)"]  # called what it is
    assert full[1:3] == ("91.2 [n = 1] (1.00x)", "93.5 (1.00x)")
    assert "gte-small, 6 layers (paper: BERT-6L)" in rows
    assert rows["pabee (paper: PABEE)"][1:3] == (None, "89.3 (1.95x)")
    assert rows["mine"][1:3] == ("50.0", None)  # a method that the paper does not have
    assert rows["de3 (paper: DE3-BERT)"][-1] == "82.6"
    heads = [head for head in two.columns if head.endswith(" ours")]
    assert heads == ["SST-2 ours"]  # no average as long as tasks are missing
    assert "AVG paper" in two.columns
    missing = "MNLI, MRPC F1, MRPC accuracy, QNLI, QQP F1, QQP accuracy, RTE"
    assert two.note.endswith(f"Not measured here: {missing}.")
    assert {len(row) for row in two.rows} == {len(two.columns)}
    assert "mine" not in {row[0] for row in three.rows}
    assert "gte-small, 4 layers (paper: BERT-4L)" in {row[0] for row in three.rows}


def test_a_column_has_one_metric_and_complete_ones_come_first(tmp_path):
    """QQP by F1 beside the paper's F1: the mean of both metrics stands nowhere."""
    place = tmp_path / "paper_methods" / "study.json"
    place.parent.mkdir()
    document = study_document(de3={"mean": 0.9}, gpfee={"mean": 0.8})
    both = {"f1": 0.733, "accuracy": 0.782}
    rows = {"train": 10, "test-dev": 20}
    document["tasks"].insert(0, made_up.task("qqp", ("f1", "accuracy"), rows=rows))
    full = {"mean": 0.7575, "sd": None, "n": 1, "layer_speedup": 1.0, "each": both}
    document["points"]["qqp"] = {"full": full}
    document["exits"]["qqp"] = {"full": {"12": 0.9}}
    document["curves"]["qqp"] = {}
    place.write_text(json.dumps(document), encoding="utf-8")
    two, _ = method_tables(ITEMS["methods"], Stored(tmp_path))
    assert two.columns[:7] == (
        "method", "SST-2 ours", "SST-2 paper", "QQP F1 ours", "QQP F1 paper", "QQP accuracy ours",
        "QQP accuracy paper",
    )  # fmt: skip
    row = next(row for row in two.rows if "all layers" in row[0])
    assert row[3:7] == ("73.3 (1.00x)", "71.2 (1.00x)", "78.2 (1.00x)", None)
    assert not any("75.8" in str(cell) for row in two.rows for cell in row)


def test_withdrawn_methods_and_other_steps_are_marked(tmp_path):
    place = tmp_path / "paper_methods" / "study.json"
    place.parent.mkdir()
    document = study_document(
        de3={"mean": 0.9}, leebert={"mean": 0.7}, deebert={"mean": 0.8}, gpfee={"mean": 0.8}
    )
    for each in document["methods"]:
        if each["name"] == "leebert":
            each |= {"ranked": False, "withdrawn": "it slept"}
    steps = {"de3": 500, "gpfee": 500, "deebert": 1000}
    document["steps"] = {"sst2": {m: {"steps": k, "phases": {}} for m, k in steps.items()}}
    place.write_text(json.dumps(document), encoding="utf-8")
    two, _ = method_tables(ITEMS["methods"], Stored(tmp_path))
    rows = {row[0]: row[1] for row in two.rows}
    assert rows["leebert (paper: LeeBERT)"] == "70.0 (withdrawn)"
    assert rows["deebert (paper: DeeBERT)‡"] == "80.0"
    assert "leebert is withdrawn until it is trained again: it slept." in two.note
    assert "deebert (1000 instead of 500 on sst2)" in two.note


def test_a_mean_of_fewer_seeds_says_so(tmp_path):
    place = tmp_path / "paper_methods" / "study.json"
    place.parent.mkdir()
    document = study_document(de3={"mean": 0.9, "sd": 0.01}, gpfee={"mean": 0.8})
    document["scores"]["2"]["sst2"]["gpfee"]["n"] = 1
    place.write_text(json.dumps(document), encoding="utf-8")
    two, _ = method_tables(ITEMS["methods"], Stored(tmp_path))
    rows = {row[0]: row[1] for row in two.rows}
    assert rows["de3 (paper: DE3-BERT)"] == "90.0 ± 1.0"
    assert rows["gpfee (paper: GPFEE)"] == "80.0 [n = 1]"
    assert "3 seeds where no other number n stands" in two.note


def speeds_document(matched: bool, taus: list[float]) -> AnalysisResult:
    thresholds = [
        {"tau": tau, "layers": 24.0 - number, "seconds": 0.1, "flops": 4e9}
        for number, tau in enumerate(taus)
    ]
    return made_up.analysis_result({"matched": matched, "rows": 2, "thresholds": thresholds})


def test_speeds_are_matched_by_saved_layers_or_by_threshold(monkeypatch):
    stored = Stored(Path("nowhere"))
    taus = [row[0] for row in PAPER]
    others = [tau / 2 + 0.001 for tau in taus]
    documents = {"sst2": speeds_document(True, others)}
    monkeypatch.setattr(Stored, "results", lambda self, item: documents)
    (table,) = speed_tables(stored)
    assert table.columns[:3] == ("saved layers", "threshold ours", "threshold paper")
    assert [row[3] for row in table.rows[:2]] == ["12.00", "11.50"]
    assert all(None not in row for row in table.rows)
    assert table.rows[0][5] == "50.00"  # ms of one text
    documents["sst2"] = speeds_document(False, [0.5, taus[3]])
    (table,) = speed_tables(stored)
    assert [row[3] for row in table.rows].index("11.50") == 3
    assert [row[3] for row in table.rows].count(None) == len(taus) - 1


def test_another_name_of_a_method_finds_its_row(tmp_path):
    place = tmp_path / "paper_minilm" / "study.json"
    place.parent.mkdir()
    document = study_document(**{"layers-2": {"mean": 0.8}})
    document["scores"] = {"3": document["scores"]["2"]}
    place.write_text(json.dumps(document), encoding="utf-8")
    (table,) = method_tables(ITEMS["backbone"], Stored(tmp_path))
    rows = {row[0]: row for row in table.rows}
    assert rows["gte-small, 2 layers (paper: RoBERTa-4L)"][1:3] == ("80.0", "90.8")


def test_a_report_loads_no_torch(made, tmp_path):
    code = (
        "import sys; from pathlib import Path; from de3lab.paper.report import *; "
        f"report = build_report(Path({str(made / 'results')!r})); "
        f"write_report(report, Path({str(tmp_path)!r}), ''); "
        "print(*sorted({'torch', 'transformers', 'sklearn'} & sys.modules.keys()))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (result.returncode, result.stdout.strip()) == (0, ""), result.stderr


def driven(browser: str, folder: Path, text: str, script: str) -> str:
    """What a script leaves in `seen` after the page was loaded."""
    text = text.replace("default-src 'none'", "script-src 'unsafe-inline'")
    run = f"<script>addEventListener('load', () => {{ {script} }});</script></body>"
    page = folder / "driven.html"
    page.write_text(text.replace("</body>", f'<pre id="seen"></pre>{run}'), encoding="utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
               f"--user-data-dir={folder / 'profile'}", "--window-size=1600,900",
               "--virtual-time-budget=4000", page.as_uri()]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    found = re.search(r'<pre id="seen">(.*?)</pre>', result.stdout, re.S)
    assert found, result.stderr[-2000:]
    return found[1]


def test_findings_can_be_filtered_and_colours_turned(report, tmp_path, browser):
    """Without any script of the page's own: by its style alone."""
    script = (
        "const rows = [...document.querySelectorAll('#findings tbody tr')];"
        "const shown = () => rows.filter((row) => getComputedStyle(row).display !== 'none')"
        ".map((row) => row.className);"
        "const back = () => getComputedStyle(document.body).backgroundColor;"
        "const seen = {all: shown().length, light: back(), few: {}};"
        "for (const box of document.querySelectorAll('.filter input')) {"
        "  box.checked = true; seen.few[box.id] = [...new Set(shown())]; }"
        "document.getElementById('theme').checked = true; seen.dark = back();"
        "seen.wide = document.body.clientWidth;"
        "document.getElementById('seen').textContent = JSON.stringify(seen);"
    )
    seen = json.loads(driven(browser, tmp_path, text_of(report, "index.html"), script))
    findings = json.loads(text_of(report, "findings.json"))
    assert seen["all"] == len(findings)
    kinds = {each["holds"].replace(" ", "-") for each in findings}
    assert {*seen["few"]} == {"show-all", *(f"show-{kind}" for kind in kinds)}
    for kind in kinds:
        assert seen["few"][f"show-{kind}"] == [kind]
    assert seen["light"] != seen["dark"]
    assert seen["wide"] > 1400  # of 1600: the width of a desktop


def test_every_verdict_has_its_rule_and_its_filter():
    from de3lab.paper.judging import RULES
    from de3lab.templates import raw_file

    style = raw_file("report.css")
    for holds in RULES:
        name = holds.replace(" ", "-")
        assert f"#show-{name}:checked) tbody tr:not(.{name})" in style
        assert f".badge.{name} " in style


@pytest.mark.parametrize("width", [1200, 500])
def test_the_page_is_not_wider_than_the_screen(report, tmp_path, browser, width):
    """Tables scroll within their frames; the page itself does not."""
    text = text_of(report, "index.html").replace("default-src 'none'", "script-src 'unsafe-inline'")
    measure = (
        "<script>addEventListener('load', () => { const pre = document.createElement('pre');"
        "pre.id = 'seen'; pre.textContent = document.documentElement.scrollWidth - innerWidth;"
        "document.body.append(pre); });</script></body>"
    )
    page = tmp_path / "page.html"
    page.write_text(text.replace("</body>", measure), encoding="utf-8")
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom",
               "--hide-scrollbars", f"--user-data-dir={tmp_path / 'profile'}",
               f"--window-size={width},900", "--virtual-time-budget=4000",
               page.as_uri()]  # fmt: skip
    result = subprocess.run(command, capture_output=True, text=True, timeout=120)
    found = re.search(r'<pre id="seen">(-?\d+)</pre>', result.stdout)
    assert found, result.stderr[-2000:]
    assert int(found[1]) <= 0
