"""Reports: built from what is finished, without data or backbone, and honest about the rest."""

from __future__ import annotations

import re
import struct
from pathlib import Path

import pytest
from lab.tests.documents import made
from lab.tests.study.toys import METHODS as COMPARED

from de3bert.errors import De3Error
from de3bert.methods import METHODS
from de3lab.documents import RunRecord, StudyResult
from de3lab.figures.compare import looks
from de3lab.study.collect import collect, keep_record
from de3lab.study.execute import Study
from de3lab.study.report import write_report
from de3lab.study.spec import load_study
from de3lab.study.tables import blocks_of, markdown, tex

FILES = {
    "index.html", "ranks.png", "ranks.svg", "runs", "study.json", "table.md", "table.tex",
    *(f"{kind}-{task}.{end}" for kind in ("curves", "exits") for task in ("plain", "both")
      for end in ("png", "svg")),
}  # fmt: skip


def test_what_a_report_consists_of(finished, document):
    assert {path.name for path in (finished / "report").iterdir()} == FILES
    assert (document["format"], document["version"]) == ("de3bert-study", 1)
    assert document["progress"] == {"done": 12, "of": 12, "missing": []}
    assert document["complete_tasks"] == ["plain", "both"]
    assert [each["name"] for each in document["methods"]] == COMPARED
    assert [each["name"] for each in document["methods"] if not each["ranked"]] == ["oracle"]
    plain = document["scores"]["2"]["plain"]["de3"]
    assert (plain["n"], plain["sd"] is not None) == (2, True)
    assert document["scores"]["2"]["both"]["de3"]["sd"] is None
    assert {*document["scores"]["2"]["both"]["de3"]["each"]} == {"f1", "accuracy"}
    assert "oracle" not in document["tests"]["2"]
    assert "oracle" not in document["ranks"]["2"]["methods"]
    assert document["flops"]["plain"]["full"]["own"] > document["flops"]["plain"]["de3"]["2"]


def test_averages_can_be_added_up_by_hand(document):
    for speed, found in document["averages"].items():
        for method, mean in found["methods"].items():
            scores = [document["scores"][speed][task][method]["mean"] for task in ("plain", "both")]
            assert mean == pytest.approx(sum(scores) / 2)


def test_figures_are_images(finished):
    for path in (finished / "report").glob("*.png"):
        head = path.read_bytes()[:24]
        assert head[:8] == b"\x89PNG\r\n\x1a\n"
        assert min(struct.unpack(">II", head[16:24])) > 300
    assert "<svg" in (finished / "report" / "curves-plain.svg").read_text(encoding="utf-8")


def test_no_two_methods_look_alike():
    names = [f"method {i}" for i in range(20)]
    styles = looks(names, "method 3")
    assert len({(s["color"], str(s["linestyle"])) for s in styles.values()}) == 20
    assert styles["method 3"]["linewidth"] > styles["method 4"]["linewidth"]


@pytest.fixture
def alone(finished_copy) -> Study:
    """The report's records, without runs, data and backbone."""
    text = (finished_copy / "study.toml").read_text(encoding="utf-8")
    moved = re.sub(r'"/[^"]*/([^/"]+)"', r'"$NOWHERE/\1"', text)
    assert "$NOWHERE/train.csv" in moved
    (finished_copy / "study.toml").write_text(moved, encoding="utf-8")
    return Study(load_study(finished_copy / "study.toml"), finished_copy / "gone")


def test_a_report_needs_only_the_records(alone, finished_copy, document):
    again = write_report(alone, finished_copy / "report", exact=False)
    for part in ("scores", "averages", "ranks", "tests", "curves", "flops", "progress"):
        assert again.to_json()[part] == document[part]


def test_what_is_missing_is_said(alone, finished_copy):
    for path in (finished_copy / "report" / "runs").glob("both-de3-*"):
        path.unlink()
    found = write_report(alone, finished_copy / "report", exact=False)
    assert (found.progress.done, found.progress.missing) == (11, ["both de3 seed 1"])
    assert found.complete_tasks == ["plain"]
    text = (finished_copy / "report" / "table.md").read_text(encoding="utf-8")
    assert "11 of 12 trainings are finished." in text
    assert "AVG is over the tasks that all have finished: plain." in text


def test_records_of_other_settings_do_not_count(alone, finished_copy):
    other = alone.spec.model_copy(update={"train": {**alone.spec.train, "epochs": 2}})
    with pytest.raises(De3Error, match="Nothing of this study is finished"):
        write_report(Study(other, alone.runs), finished_copy / "report", exact=False)


def test_scores_at_other_speeds_need_the_traces(alone, finished_copy):
    other = alone.spec.model_copy(update={"speeds": [1.3]})
    heard: list[str] = []
    place = finished_copy / "report"
    assert collect(Study(other, alone.runs), place, exact=False, note=heard.append) == []
    assert len(heard) == 12
    assert "was scored with other settings, and its traces are missing" in heard[0]
    found = collect(Study(other, finished_copy / "runs"), place, exact=False)
    assert len(found) == 12


def test_a_newer_run_takes_the_place_of_the_old_one(tmp_path, finished):
    path = next((finished / "report" / "runs").glob("*.json"))
    record = RunRecord.read(path)
    keep_record(tmp_path, record)
    keep_record(tmp_path, record.model_copy(update={"key": "plain-other"}))
    keep_record(tmp_path, record.model_copy(update={"key": "another seed", "seed": 7}))
    names = sorted(path.name for path in (tmp_path / "runs").iterdir())
    assert names == ["another seed.json", "plain-other.json"]


@pytest.mark.parametrize(
    "content", ["{", '{"format": "something"}', '{"format": "de3bert-run", "version": 9}']
)
def test_damaged_records_are_named(tmp_path, content, alone):
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "x.json").write_text(content)
    with pytest.raises(De3Error, match=r"x\.json"):
        collect(alone, tmp_path, exact=False)


# ---- tables


def small() -> StudyResult:
    """A document with one speed and two tasks, of which the second has two metrics."""

    def score(mean, sd=None, **each):
        return {**made.score({"1": mean, "2": mean}, sd=sd), "each": each or {"accuracy": mean}}

    def test(**p):
        return {"n": 2, "difference": 0.1, "p": None, "t": None, "dz": None, **p}

    full = {"mean": 0.91, "sd": 0.002, "n": 2, "layer_speedup": 1.0}
    return made.study_result(
        title="T & {co}",
        progress={"done": 3, "of": 4, "missing": ["x"]},
        complete_tasks=["one"],
        methods=[made.method(name) for name in ("full", "a_b", "c", "de3")],
        tasks=[made.task("one", seeds=[1, 2]), made.task("two", ("f1", "accuracy"))],
        exits={"one": {"c": {"1": 0.5}}, "two": {"c": {"1": 0.5}}},
        points={"one": {"full": full}, "two": {}},
        scores={
            "2": {
                "one": {"a_b": score(0.801, 0.01), "c": score(0.9, 0.02), "de3": score(0.9, 0.0)},
                "two": {
                    "c": score(0.7, f1=0.8, accuracy=0.6), "de3": score(0.75, f1=0.9, accuracy=0.6),
                },
            }
        },
        averages={"2": {"tasks": ["one"], "methods": {"a_b": 0.801, "c": 0.9, "de3": 0.9}}},
        tests={
            "2": {
                "a_b": {"tasks": {"one": test(p_holm=0.01)}, "over_tasks": test(p=0.2)},
                "c": {"tasks": {"one": test(p_holm=None)}, "over_tasks": test(p=0.04)},
            }
        },
    )  # fmt: skip


def test_the_markdown_table():
    lines = markdown(small()).splitlines()
    assert "# T & {co}" in lines
    assert "| full | 91.0 ± 0.2 (1.00x) | - |" in lines
    assert "## Layer speed-up 2x" in lines
    assert "| method | one | two | AVG |" in lines
    assert r"| a_b | <u>80.1</u> ± 1.0\* | - | <u>80.1</u> |" in lines
    assert r"| c | **90.0** ± 2.0 | <u>80.0/60.0</u> | **90.0**\* |" in lines
    assert "| de3 | **90.0** ± 0.0 | **90.0/60.0** | **90.0** |" in lines


def test_the_latex_table_is_well_formed():
    text = tex(small())
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert {line.count(" & ") for line in rows} == {0, 3}  # block titles span all columns
    assert text.count("{") == text.count("}")
    assert text.count("$") % 2 == 0
    for command in ("toprule", "bottomrule", "begin{table}", "end{table}", "begin{tabular}{lrrr}"):
        assert text.count("\\" + command) == 1
    assert r"T \& \{co\}" in text
    assert r"a\_b & \underline{80.1}\,{\scriptsize$\pm$1.0}$^{*}$ & -- &" in text
    assert r"\multicolumn{4}{l}{Layer speed-up 2x} \\" in text
    assert not re.search(r"(?<!\\)[&%#_](?! )", text.replace("% needs", ""))


def test_tables_of_the_finished_study(finished, document):
    for block in blocks_of(StudyResult.model_validate(document)):
        assert all(len(cells) == len(block.columns) for cells in block.rows)
        if not block.title.startswith("Models"):
            for number in range(1, len(block.columns)):
                places = [row[number].place for row in block.rows if row[number]]
                assert 1 in places
    assert "oracle" in (finished / "report" / "table.md").read_text(encoding="utf-8")
    assert [*METHODS]  # the registry was not changed by any of this


def test_paths_are_not_in_the_report(finished):
    for path in (finished / "report").rglob("*"):
        if path.suffix in (".json", ".md", ".tex", ".html"):
            text = path.read_text(encoding="utf-8").replace(str(backbone_of(finished)), "")
            assert str(finished.parent) not in text, path


def backbone_of(finished: Path) -> str:
    """What the study file itself calls the backbone is the study's own text."""
    return load_study(finished / "study.toml").backbone
