"""Sentences to calibrate on, and numbers in place of tags."""

from __future__ import annotations

import json
import shutil

import pytest
from tests.tagged import toy_sentences, write_jsonl

USAGE = 2


@pytest.fixture
def model(sentee_model, tmp_path):
    return shutil.copytree(sentee_model, tmp_path / "model")


def names_of(model) -> list[str]:
    names = json.loads((model / "config.json").read_text())["id2label"]
    return [names[key] for key in sorted(names, key=int)]


def test_few_sentences_and_absent_tags_are_refused_unless_forced(de3, model, tmp_path):
    data = write_jsonl(tmp_path / "few.jsonl", toy_sentences(5, 2))
    asked = ("calibrate", model, "--data", data, "--target", "layers=1.2", "--name", "p", "--json")
    said = de3(*asked)
    assert said.code == USAGE
    assert "5 sentences are too few" in " ".join(said.err.split())
    forced = de3(*asked, "--force")
    assert forced.code == 0, forced.err
    assert any("too few" in text for text in forced.json["measured"]["warnings"])


def test_numbers_of_tags_are_refused_and_can_be_named(de3, model, word_data, tmp_path):
    names = names_of(model)
    own = names[1:] + names[:1]  # numbered otherwise than the model does
    data = tmp_path / "numbered.jsonl"
    rows = [json.loads(line) for line in word_data.test.read_text().splitlines()]
    column = "tags" if "tags" in rows[0] else "labels"
    for row in rows:
        row[column] = [own.index(tag) for tag in row[column]]
    data.write_text("\n".join(map(json.dumps, rows)))
    said = de3("evaluate", model, "--data", data)
    assert said.code == USAGE
    assert "The rows have the numbers" in said.err
    right = de3("evaluate", model, "--data", word_data.test, "--json").json["score"]
    named = de3("evaluate", model, "--data", data, "--label-names", ",".join(own), "--json")
    assert named.json["score"] == right
