"""`de3 queue`: trainings of several studies in order, none of them twice."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from de3lab.study.queue import load_queue

STUDIES = Path(__file__).parents[2] / "studies"
QUEUE = """
[[run]]
study = "study.toml"
only = ["both/de3"]

[[run]]
study = "study.toml"
"""


@pytest.fixture
def queued(finished_copy, monkeypatch):
    """A queue over the finished toy study: its records are kept, its models and traces are gone."""
    monkeypatch.chdir(finished_copy)
    monkeypatch.setattr(os, "nice", lambda step: step)  # this process has more to do
    (finished_copy / "results").mkdir()
    shutil.move(finished_copy / "report", finished_copy / "results" / "study")
    shutil.rmtree(finished_copy / "runs")
    (finished_copy / "queue.toml").write_text(QUEUE, encoding="utf-8")
    return finished_copy


def test_records_count_although_the_models_are_gone(de3, queued):
    said = de3("queue", "queue.toml", "--status", "--json")
    assert said.code == 0
    assert [(each["done"], each["of"]) for each in said.json] == [(1, 1), (12, 12)]
    assert de3("queue", "queue.toml", "--quiet").code == 0
    assert not (queued / "runs").exists()  # nothing was trained


def test_only_what_is_missing_is_trained_and_reported(de3, queued):
    (lost,) = (queued / "results" / "study" / "runs").glob("both-de3-*.json")
    before = json.loads(lost.read_text(encoding="utf-8"))
    lost.unlink()
    page = queued / "results" / "study" / "index.html"
    page.unlink()
    status = de3("queue", "queue.toml", "--status", "--json").json
    assert [(each["done"], each["of"]) for each in status] == [(0, 1), (11, 12)]
    said = de3("queue", "queue.toml")
    assert said.code == 0, said.err
    assert "study: both/de3: 1 of 1 left" in said.err
    assert len(list((queued / "runs" / "queue").glob("*/run.json"))) == 1
    after = json.loads(lost.read_text(encoding="utf-8"))
    assert after["settings"] == before["settings"]
    assert page.exists()


def test_a_training_that_fails_does_not_stop_the_queue(de3, queued, monkeypatch):
    from de3lab.study.execute import Study

    for lost in (queued / "results" / "study" / "runs").glob("both-*.json"):
        lost.unlink()
    run = Study.run

    def sometimes(self, job, **options):
        if job.training == "de3":
            raise RuntimeError("no such luck")
        return run(self, job, **options)

    monkeypatch.setattr(Study, "run", sometimes)
    said = de3("queue", "queue.toml", "--quiet")
    assert said.code == 1
    assert "both de3 seed 1: RuntimeError: no such luck" in said.err
    status = de3("queue", "queue.toml", "--status", "--json").json
    assert [(each["done"], each["of"]) for each in status] == [(0, 1), (11, 12)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "run: Field required"),
        ("run = []", "run: Tuple should have at least 1 item"),
        ('[[run]]\nstudy = "study.toml"\nfilter = ["x"]', "filter: Extra inputs"),
        ('[[run]]\nonly = ["x"]', "study: Field required"),
        ('[[run]]\nstudy = "none.toml"', "none.toml cannot be read"),
        ('[[run]]\nstudy = "study.toml"\nonly = ["nobody"]', "names no training"),
        ("[[run", "is not valid TOML"),
    ],
)
def test_wrong_queues(de3, queued, text, said):
    (queued / "queue.toml").write_text(text, encoding="utf-8")
    found = de3("queue", "queue.toml")
    assert found.code == 2
    assert said in found.err


def test_the_laboratorys_own_queue_names_trainings_that_exist():
    from de3lab.study.plan import plan, selected
    from de3lab.study.spec import load_study

    for entry in load_queue(STUDIES / "queue.toml"):
        assert selected(plan(load_study(STUDIES / entry.study)), entry.only)
