"""What a results folder holds, and what is said of files that cannot be used."""

from __future__ import annotations

import pytest
from lab.tests.documents.made import study_result

from de3lab.paper.stored import Stored


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is damaged"),
        ('{"format": "de3bert-run"}', "is not the result of a study"),
        ('{"format": "de3bert-study", "version": 99}', "has version 99"),
        ('{"format": "de3bert-study", "version": 1}', "is damaged: title: "),
    ],
)
def test_a_study_that_cannot_be_used_is_named_and_left_out(tmp_path, text, said):
    path = tmp_path / "paper_methods" / "study.json"
    path.parent.mkdir()
    path.write_text(text, encoding="utf-8")
    stored = Stored(tmp_path)
    assert stored.study("paper_methods") is None
    assert len(stored.problems) == 1
    assert said in stored.problems[0]


def test_a_study_that_can_be_used(tmp_path):
    study_result(title="t").write(tmp_path / "paper_methods" / "study.json")
    stored = Stored(tmp_path)
    found = stored.study("paper_methods")
    assert found is not None
    assert (found.title, stored.problems) == ("t", [])
    assert stored.study("paper_methods") is found  # read once
