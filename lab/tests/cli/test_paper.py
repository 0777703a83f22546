"""`de3 paper`: what it prints, and how it ends."""

from __future__ import annotations

import pytest


def test_a_report_of_nothing(de3, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "results").mkdir()
    said = de3("paper", "all")
    assert said.code == 0
    assert "not measured" in said.out
    assert "report/index.html" in said.out
    assert (tmp_path / "report" / "README.md").exists()


def test_findings_as_json(de3, tmp_path):
    said = de3("paper", "all", "--results", tmp_path, "--out", tmp_path / "r", "--json")
    assert said.code == 0
    assert {each["holds"] for each in said.json} == {"not measured"}
    assert {*said.json[0]} == {"name", "claim", "paper", "holds", "statement", "test", "numbers"}


def test_the_list(de3, tmp_path):
    said = de3("paper", "list", "--results", tmp_path)
    assert said.code == 0
    for words in ("indicator", "Fig. 4", "Table XIII", "not measured yet", "de3 paper run NAME"):
        assert words in said.out
    assert [each["name"] for each in de3("paper", "list", "--json").json][:2] == [
        "sample",
        "strategies",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["all", "--results", "nowhere"], "There is no folder nowhere"),
        (["run", "indicater"], 'Did you mean "indicator"'),
        (["run", "data"], "needs no run"),
        (["run", "indicator"], "come with the repository"),
        (["run", "all"], "come with the repository"),
        (["draw"], "No such command"),
    ],
)
def test_wrong_requests(de3, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    found = de3("paper", *arguments)
    assert found.code == 2
    assert said in found.err
