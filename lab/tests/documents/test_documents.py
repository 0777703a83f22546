"""Stored documents: all of this repository are read, and the published schemas are theirs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from lab.tests.documents.made import analysis_result, run_record, study_result

from de3bert.errors import De3Error
from de3lab.documents import DOCUMENTS, AnalysisResult, Latency, RunRecord, StudyResult
from de3lab.documents.schema import SCHEMAS, schema_of, write_schemas

ROOT = Path(__file__).parents[3]
BY_FORMAT = {kind.FORMAT: kind for kind in DOCUMENTS}


def stored() -> list[tuple[Path, dict]]:
    found = []
    for path in sorted((ROOT / "lab" / "results").rglob("*.json")):
        document = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(document, dict) and document.get("format") in BY_FORMAT:
            found.append((path, document))
    return found


def test_every_stored_document_is_read_and_written_unchanged():
    documents = stored()
    for path, document in documents:
        kind = BY_FORMAT[document["format"]]
        found = kind.read(path).to_json()
        if kind is Latency and document["version"] == 1:  # told apart when it is read
            times = {**found.pop("measured"), **found.pop("predicted")}
            found |= {"version": 1, "milliseconds": times}
        assert found == document, path
    kinds = {document["format"] for _, document in documents}
    assert kinds == {*BY_FORMAT}
    assert len(documents) > 130


@pytest.mark.parametrize("kind", DOCUMENTS, ids=lambda kind: kind.__name__)
def test_the_published_schema_is_current(kind):
    path = ROOT / "docs" / "schema" / SCHEMAS[kind]
    assert json.loads(path.read_text(encoding="utf-8")) == schema_of(kind), (
        "run `python -m de3lab.documents.schema docs/schema`"
    )


def test_schemas_are_written_by_one_call(tmp_path):
    written = write_schemas(tmp_path)
    assert sorted(path.name for path in written) == sorted(SCHEMAS.values())
    record = json.loads((tmp_path / SCHEMAS[RunRecord]).read_text(encoding="utf-8"))
    assert record["properties"]["format"]["const"] == "de3bert-run"
    assert record["properties"]["version"]["maximum"] == RunRecord.VERSION
    assert "seed" in record["required"]


@pytest.mark.parametrize(
    "document", [run_record(), study_result(), analysis_result({})], ids=lambda d: d.FORMAT
)
def test_a_document_comes_back(document, tmp_path):
    path = tmp_path / "document.json"
    document.write(path)
    assert type(document).read(path) == document


def test_what_later_versions_add_is_kept(tmp_path):
    path = tmp_path / "run.json"
    path.write_text(json.dumps({**run_record().to_json(), "later": 1}), encoding="utf-8")
    assert RunRecord.read(path).to_json()["later"] == 1


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        (RunRecord, {"seed": "one"}, r"is damaged: seed: "),
        (RunRecord, {"methods": {"de3": {}}}, r"is damaged: methods\.de3\."),
        (RunRecord, {"version": 99}, "has version 99"),
        (StudyResult, {"format": "de3bert-run"}, "is not the result of a study"),
        (AnalysisResult, {"numbers": []}, r"is damaged: numbers: "),
    ],
)
def test_damage_is_named(kind, change, said, tmp_path):
    made = {RunRecord: run_record, StudyResult: study_result}.get(kind)
    document = made() if made else analysis_result({})
    path = tmp_path / "spoiled.json"
    path.write_text(json.dumps({**document.to_json(), **change}), encoding="utf-8")
    with pytest.raises(De3Error, match=rf"spoiled\.json .*{said}|spoiled\.json {said}"):
        kind.read(path)


def test_no_document_is_forgotten():
    assert {*SCHEMAS} == {*DOCUMENTS}
    assert Latency in DOCUMENTS
