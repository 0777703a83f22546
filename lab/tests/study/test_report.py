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
from de3lab.cli.compare import _shown
from de3lab.documents import RunRecord, StudyResult
from de3lab.figures.compare import Series, tells_enough
from de3lab.study import revisions
from de3lab.study.collect import collect, keep_record
from de3lab.study.drawings import draw_all, labelled_methods
from de3lab.study.execute import Study
from de3lab.study.report import write_report
from de3lab.study.revisions import Revision
from de3lab.study.side_tables import off_target_lines, side_tables
from de3lab.study.spec import load_study
from de3lab.study.tables import blocks_of, doubts_of, markdown, tex

FILES = {
    "index.html", "ranks.png", "ranks.svg", "runs", "study.json", "table.md", "table.tex",
    *(f"{kind}-{task}.{end}" for kind in ("curves", "exits") for task in ("plain", "both")
      for end in ("png", "svg")),
}  # fmt: skip


def test_what_a_report_consists_of(finished, document):
    assert {path.name for path in (finished / "report").iterdir()} == FILES
    assert (document["format"], document["version"]) == ("de3bert-study", 2)
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


def test_one_or_two_points_are_no_figure(document, tmp_path):
    one = Series([1.0], [0.9])
    assert not tells_enough({})
    assert not tells_enough({"full": one, "layers-6": one})
    assert tells_enough({"full": one, "layers-6": one, "layers-4": one})
    assert tells_enough({"de3": Series([1.0, 2.0, 3.0], [0.9, 0.8, 0.7])})
    few = {
        **document,
        "curves": {"plain": {}, "both": document["curves"]["both"]},
        "points": {"plain": {"full": document["points"]["plain"]["full"]}, "both": {}},
        "exits": {"plain": {"full": {"4": 0.9}}, "both": document["exits"]["both"]},
        "ranks": {"2": {"tasks": ["both"], "methods": {"de3": 1.0, "pabee": 2.0}}},
    }
    (tmp_path / "curves-plain.png").write_text("of an earlier report")
    (tmp_path / "mine.png").write_text("kept")
    written = draw_all(tmp_path, StudyResult.model_validate(few))
    assert {path.name for path in written} == {
        f"{kind}-both.{end}" for kind in ("curves", "exits") for end in ("png", "svg")
    }
    assert {path.name for path in tmp_path.iterdir()} == {*(p.name for p in written), "mine.png"}


def test_at_most_six_are_named(document):
    given = StudyResult.model_validate(document)
    named = labelled_methods(given, "plain")
    assert len(named) == 6
    assert named[:2] == ["de3", "full"]
    areas = {name: seen.mean for name, seen in given.areas["plain"].items() if seen.whole}
    others = [name for name in named[2:] if name in areas]
    assert others == sorted(others, key=lambda name: -areas[name])


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
    assert "AVG is over the tasks that all have finished: plain, and" in text


def test_records_of_other_settings_do_not_count(alone, finished_copy):
    other = alone.spec.model_copy(update={"train": {**alone.spec.train, "epochs": 2}})
    with pytest.raises(De3Error, match="Nothing of this study is finished"):
        write_report(Study(other, alone.runs), finished_copy / "report", exact=False)


def test_an_older_way_of_scoring_is_kept_and_said(alone, finished_copy, document):
    """The traces are gone, so that nothing can be scored again; the scores are still scores."""
    old = made.run_record().scored_as
    for path in (finished_copy / "report" / "runs").glob("*.json"):
        record = RunRecord.read(path)
        then = record.scored_as.model_copy(update={"scoring": old.scoring})
        record.model_copy(update={"scored_as": then}).write(path)
    found = write_report(alone, finished_copy / "report", exact=False)
    assert found.progress.done == 12
    assert found.to_json()["scores"] == document["scores"]
    assert found.older_scoring == ["de3"]  # nobody else chooses among those weights
    text = (finished_copy / "report" / "table.md").read_text(encoding="utf-8")
    assert "de3: scored before lambda 0, which is entropy, was among the weights tried." in text
    asked = alone.spec.model_copy(update={"paper_grid": True})
    found = write_report(Study(asked, alone.runs), finished_copy / "report", exact=False)
    assert found.older_scoring == []
    again = collect(
        Study(alone.spec, finished_copy / "runs"), finished_copy / "report", exact=False
    )
    assert {record.scored_as.scoring for record in again} == {2}


def test_what_an_older_revision_gave_is_shown_and_does_not_count(
    alone, finished_copy, document, monkeypatch
):
    reason = "its exits were asleep"
    monkeypatch.setattr(revisions, "REVISIONS", {"joint-entropy": Revision(2, reason)})
    for path in (finished_copy / "report" / "runs").glob("*joint-entropy*"):
        record = RunRecord.read(path)  # with an option that the method has no more
        then = {**record.settings, "options": {"gone": 1.0}}
        record.model_copy(update={"settings": then}).write(path)
    found = write_report(alone, finished_copy / "report", exact=False)
    shared = {"joint-entropy", "joint-entropy-calibrated", "pabee", "pcee", "oracle"}
    assert found.withdrawn == dict.fromkeys(sorted(shared, key=COMPARED.index), reason)
    assert (found.progress.done, found.progress.of) == (9, 12)
    assert (
        found.scores["2"]["plain"]["joint-entropy"].mean
        == (document["scores"]["2"]["plain"]["joint-entropy"]["mean"])
    )
    for numbers in (found.averages["2"].methods, found.ranks["2"].methods, found.tests["2"]):
        assert not shared & {*numbers}
    assert found.complete_tasks == ["plain", "both"]  # nobody waits for it
    text = (finished_copy / "report" / "table.md").read_text(encoding="utf-8")
    assert f"joint-entropy is withdrawn until it is trained again: {reason}." in text
    rows = [line for line in text.splitlines() if line.startswith("| joint-entropy (withdrawn)")]
    assert rows
    assert not any("**" in row or "<u>" in row or r"\*" in row for row in rows)
    assert "joint-entropy" not in labelled_methods(found, "plain")


def test_a_training_of_today_takes_the_place_of_an_older_revision(
    alone, finished_copy, monkeypatch
):
    monkeypatch.setattr(revisions, "REVISIONS", {"de3": Revision(2, "why")})
    place = finished_copy / "report"
    jobs = [job for job in alone.jobs if job.training == "de3"]
    assert [record.revision for record in collect(alone, place, exact=False)].count(1) == 12
    path = next((place / "runs").glob("plain-de3-seed1-*"))
    new = {"revision": 2, "settings": jobs[0].settings(), "key": "plain-de3-seed1-new"}
    keep_record(place, RunRecord.read(path).model_copy(update=new))
    assert not path.exists()
    found = write_report(alone, place, exact=False)
    assert found.withdrawn == {}
    assert found.scores["2"]["plain"]["de3"].n == 1  # only what was trained again
    assert "de3" not in found.scores["2"]["both"]


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

    def score(mean, sd=None, seeds=("1", "2"), **each):
        seen = made.score(dict.fromkeys(seeds, mean), sd=sd)
        return {**seen, "each": each or {"accuracy": mean}}

    def test(**p):
        return {"n": 2, "difference": 0.1, "p": None, "t": None, "dz": None, **p}

    full = {"mean": 0.91, "sd": 0.002, "n": 2, "layer_speedup": 1.0, "each": {"accuracy": 0.91}}
    two = {**full, "each": {"f1": 0.712, "accuracy": 0.884}}
    return made.study_result(
        title="T & {co}",
        progress={"done": 3, "of": 4, "missing": ["x"]},
        complete_tasks=["one"],
        methods=[
            *(made.method(name) for name in ("full", "a_b", "c", "de3", "late")),
            made.method("lee", ranked=False, withdrawn="it slept"),
        ],
        tasks=[made.task("one", seeds=[1, 2]), made.task("two", ("f1", "accuracy"))],
        exits={"one": {"c": {"1": 0.5}}, "two": {"c": {"1": 0.5}}},
        points={"one": {"full": full}, "two": {"full": two}},
        scores={
            "2": {
                "one": {
                    "a_b": score(0.801, 0.01), "c": score(0.9, 0.02), "de3": score(0.9, 0.0),
                    "late": score(0.99, seeds=("1",)), "lee": score(0.95, 0.01),
                },
                "two": {
                    "c": score(0.7, f1=0.8, accuracy=0.6), "de3": score(0.75, f1=0.9, accuracy=0.6),
                },
            }
        },
        averages={"2": {"tasks": ["one"], "methods": {"a_b": 0.801, "c": 0.9, "de3": 0.9}}},
        tests={
            "2": {
                "a_b": {"tasks": {"one": test(p_holm=0.01)}, "over_tasks": test(p_holm=0.2)},
                "c": {
                    "tasks": {"one": test(p_holm=0.02, difference=-0.1)},
                    "over_tasks": test(p_holm=0.04),
                },
            }
        },
    )  # fmt: skip


def test_the_markdown_table():
    lines = markdown(small()).splitlines()
    assert "# T & {co}" in lines
    assert "| full | 91.0 ± 0.2 (1.00x) | 71.2/88.4 ± 0.2 (1.00x) |" in lines
    assert "## Layer speed-up 2x" in lines
    assert "| method | one | two (f1/accuracy) | AVG |" in lines
    assert r"| a_b | <u>80.1</u> ± 1.0\* | - | <u>80.1</u> |" in lines
    assert r"| c | **90.0** ± 2.0† | <u>80.0/60.0</u> | **90.0**\* |" in lines
    assert "| de3 | **90.0** ± 0.0 | **90.0/60.0** | **90.0** |" in lines
    # The highest means do not count: one is over a single seed, one is withdrawn.
    assert "| late | 99.0 [n = 1] | - | - |" in lines
    assert "| lee (withdrawn) | 95.0 ± 1.0 | - | - |" in lines
    assert "lee is withdrawn until it is trained again: it slept." in lines
    assert not any("oracle" in line for line in lines)


def test_the_oracle_is_said_to_bound_scores_alone():
    found = small().to_json()
    found["points"]["one"]["oracle"] = found["points"]["one"]["full"]
    text = markdown(StudyResult.model_validate(found))
    assert "is an upper bound on the score, not on speed" in text


def test_what_exits_read_is_said_where_methods_differ():
    def said(*methods):
        exits = {"one": {each["name"]: {"1": 0.5} for each in methods}}
        tasks = [made.task("one")]
        return "\n".join(doubts_of(made.study_result(methods=methods, exits=exits, tasks=tasks)))

    def method(name, declared, *built):
        return made.method(
            name, pooling="mean", declared_pooling=declared, built_poolings=list(built)
        )

    plain = [method(name, None, "mean") for name in ("de3", "pcee")]
    assert "read" not in said(*plain)
    assert said(*plain, method("gpfee", "own_pooler", "mean_own_pooler")) == (
        "Exits read: mean of the tokens; mean of the tokens + own dense per exit in gpfee."
    )
    without = "Built without what they are declared with: gpfee (first token + own dense per exit)."
    assert said(*plain, method("gpfee", "own_pooler", "mean")) == without
    assert said(*plain, method("gpfee", "own_pooler")) == without  # of a result from before
    both = said(*plain, method("gpfee", "own_pooler", "mean", "mean_own_pooler"))
    assert "mean of the tokens or mean of the tokens + own dense per exit in gpfee." in both
    assert without in both


def test_what_was_built_is_read_off_the_model(alone, finished_copy):
    place = finished_copy / "report"
    found = write_report(alone, place, exact=False)
    assert {each.name for each in found.methods} == {*COMPARED}
    assert all(each.built_poolings == ("mean",) for each in found.methods)
    for path in (place / "runs").glob("*-de3-*"):
        record = RunRecord.read(path)
        assert record.pooling == "mean"
        record.model_copy(update={"pooling": "mean_own_pooler"}).write(path)
    for path in (place / "runs").glob("*-full-*"):  # from before it was recorded
        RunRecord.read(path).model_copy(update={"pooling": None}).write(path)
    built = {e.name: e.built_poolings for e in write_report(alone, place, exact=False).methods}
    assert (built["de3"], built["full"]) == (("mean_own_pooler",), ("mean",))


def test_a_method_alone_is_not_the_best():
    found = small().to_json()
    found["scores"]["2"]["two"] = {"de3": found["scores"]["2"]["two"]["de3"]}
    lines = markdown(StudyResult.model_validate(found)).splitlines()
    assert "| de3 | **90.0** ± 0.0 | 90.0/60.0 | **90.0** |" in lines


def beside() -> StudyResult:
    """What stands beside the scores: speeds, steps, times."""

    def speed(at, low=None, high=None, **more):
        seen = {"mean": 0.9, "sd": None, "n": 1, "layer_speedup": at, "low": low, "high": high}
        return {**seen, **more}

    return made.study_result(
        chosen="de3",
        methods=[made.method(name) for name in ("full", "deebert", "de3", "pkd")],
        tasks=[made.task("one")],
        calibrated={
            "2": {"one": {"de3": speed(1.82, 1.75, 1.89, over="seeds", off=True),
                          "deebert": speed(1.97, 1.9, 2.04, over="rows")}},
            "3": {"one": {"de3": speed(2.9)}},
        },
        steps={
            "one": {
                "full": {"steps": 500, "phases": {"train": 500}},
                "deebert": {"steps": 1000, "phases": {"fine-tune": 500, "exits": 500}},
                "de3": {"steps": 500, "phases": {"train": 500}},
                "pkd": {"steps": 500, "phases": {"train": 500}, "teacher": 500},
            }
        },
        latency={
            "format": "de3bert-latency", "version": 2, "task": "one", "seed": 42, "machine": "m",
            "date": "2026-01-01T00:00:00", "without": {},
            "measured": {"full": {"own": 11.25}}, "predicted": {"de3": {"2": 6.5}},
        },
    )  # fmt: skip


def test_tables_beside_the_scores():
    speeds, steps, times = side_tables(beside())
    rows = {row[0]: row[1:] for row in speeds.rows}
    assert speeds.columns == ("method", "wanted 2x", "wanted 3x")
    assert rows["de3"] == ("1.82x [1.75, 1.89] !", "2.90x")
    assert rows["deebert"] == ("1.97x [1.90, 2.04] r", None)
    assert {row[0]: row[1] for row in steps.rows} == {
        "full": "500", "deebert": "1000 (fine-tune 500, exits 500)", "de3": "500",
        "pkd": "500, and a teacher of 500",
    }  # fmt: skip
    assert times.columns == ("method", "layer speed-up", "measured ms", "predicted ms")
    assert times.rows == (("full", "its own", "11.25", None), ("de3", "2x", None, "6.50"))
    assert "are predicted from that" in times.note
    text = markdown(beside())
    assert (
        "‡ another number of optimizer steps than most: deebert (1000 instead of 500 on one)."
        in text
    )
    assert tex(beside()).count(r"\begin{table}") == 4


def test_missed_speeds_are_lines():
    line = "one: de3 was asked for 2x and gives 1.82x [1.75, 1.89] on test rows"
    assert off_target_lines(beside()) == [line]
    assert off_target_lines(beside(), "deebert") == []
    assert line in _shown(beside(), Path("report"))  # what `de3 compare` prints


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
    assert r"$\pm$2.0}$^{\dagger}$ &" in text
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
