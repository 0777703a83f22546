"""The card of a model: foreign names stay names."""

from __future__ import annotations

import json
import re

import pytest

from de3bert.card import card_text, points_table, write_card
from de3bert.data.hub import hub_id
from de3bert.errors import De3Error

EVIL = (
    "a | b", "<script>alert(1)</script>", "[click](http://evil.example)", "![x](http://evil/x.png)",
    "`code`", "two\nlines", "\x1b[2Jcleared", "| --- |\n# Title", "http://evil.example/a",
    "www.evil.example", "</td>", "&lt;", "\u202eturned", "x" * 5000, "*bold*",
)  # fmt: skip


def point(**measured) -> dict:
    seen = {
        "metric": "accuracy", "score": 0.9, "score_interval": [0.8, 0.95], "layers_mean": 2.0,
        "layer_speedup": 2.0, "rows": 100,
    }  # fmt: skip
    return {"policy": "entropy < 0.2", "target": "layers=2.0", "measured": {**seen, **measured}}


def config_of(**changes) -> dict:
    return {
        "id2label": {"0": "neg", "1": "pos"}, "exit_layers": [1, 2], "method": "de3",
        "pooling": "mean", "prototypes": "none", "backbone_config": {"model_type": "bert"},
        **changes,
    }  # fmt: skip


def rendered(text: str) -> str:
    """The document without what stands in code, where nothing is marked up."""
    return re.sub(r"```.*?```|`[^`\n]*`", "", text, flags=re.DOTALL)


@pytest.mark.parametrize("name", EVIL)
def test_names_from_a_config_cannot_mark_up_the_card(tmp_path, name):
    config = config_of(
        id2label={"0": name, "1": "pos"},
        method=name,
        pooling=name,
        backbone_config={"model_type": name},
        operating_points={name: {**point(metric=name, warnings=[name]), "target": name}},
        default_point=name,
    )
    text = card_text(tmp_path, config, title=name)
    sound = card_text(tmp_path, config_of(operating_points={"p": point(warnings=["w"])}), "t")
    assert len(text.splitlines()) == len(sound.splitlines())
    assert "\x1b" not in text
    assert "\u202e" not in text
    shown = rendered(text)
    assert not re.search(r"<[a-z/!]|\]\(|https?://|www\.", shown, flags=re.IGNORECASE)
    rows = [line for line in shown.splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {9}
    assert len(text) < 12_000


def test_plain_names_are_shown_as_they_are(tmp_path):
    text = card_text(tmp_path, config_of(operating_points={"2x": point()}), title="my-model")
    assert "# my-model" in text
    assert 'de3bert.load("my-model")' in text
    assert 'point="2x"' in text
    assert "2 classes (neg, pos)" in text
    assert "| 2x | `entropy < 0.2` | layers=2.0 | 0.900 (accuracy) | 0.800 to 0.950 |" in text


def test_warnings_stand_below_the_points():
    table = points_table({"2x": point(warnings=["2 rows are too few"]), "3x": point()})
    assert table.endswith("\n\n- 2x: 2 rows are too few")


def test_many_classes_are_cut(tmp_path):
    names = {str(number): f"class {number}" for number in range(500)}
    assert "and 490 more" in card_text(tmp_path, config_of(id2label=names))


@pytest.mark.parametrize("text", ["[]", "{", "3", '{"exit_accuracy": 3}'])
def test_a_damaged_record_is_said(tmp_path, text):
    (tmp_path / "config.json").write_text(json.dumps(config_of()))
    (tmp_path / "training.json").write_text(text)
    with pytest.raises(De3Error, match=r"training\.json is damaged|are inconsistent"):
        write_card(tmp_path)


@pytest.mark.parametrize("changes", [{"id2label": 3}, {"exit_layers": []}, {"exit_layers": 3}])
def test_a_damaged_config_is_said(tmp_path, changes):
    with pytest.raises(De3Error, match="are inconsistent"):
        card_text(tmp_path, config_of(**changes))


def read_by_the_hub(text: str):
    """The metadata as `huggingface_hub` reads it, which writes it out again."""
    cards = pytest.importorskip("huggingface_hub").ModelCard
    data = cards(text).data
    again = cards(f"---\n{data.to_yaml()}\n---\n").data
    assert again.to_dict() == data.to_dict()
    return data


def test_the_hub_reads_the_metadata(tmp_path):
    record = {"base_model": "google-bert/bert-base-uncased", "datasets": ["nyu-mll/glue"]}
    (tmp_path / "training.json").write_text(json.dumps(record))
    points = {"2x": point(), "3x": point(score=0.85, layer_speedup=3.0), "old": point()}
    points["old"]["measured"] = {}  # after the prototypes were adapted
    data = read_by_the_hub(card_text(tmp_path, config_of(operating_points=points), "my-model"))
    assert (data.library_name, data.pipeline_tag) == ("de3bert", "text-classification")
    assert data.tags == ["early-exit", "text-classification", "method:de3"]
    assert (data.base_model, data.datasets, data.license) == (
        "google-bert/bert-base-uncased", ["nyu-mll/glue"], None
    )  # fmt: skip
    assert data.model_name == "my-model"
    found = [(each.metric_type, each.metric_value, each.metric_name) for each in data.eval_results]
    assert found == [
        ("accuracy", 0.9, "accuracy at 2x, layer speed-up 2.00"),
        ("accuracy", 0.85, "accuracy at 3x, layer speed-up 3.00"),
    ]
    assert {each.dataset_split for each in data.eval_results} == {"calibration"}


def test_a_bundle_says_where_its_model_came_from(tmp_path):
    manifest = {
        "files": {}, "precision": "fp32", "made": {},
        "source": {"base_model": "owner/name", "datasets": ["not an id"], "model": "/home/me/m"},
    }  # fmt: skip
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    text = card_text(tmp_path, config_of(task="token-classification"), "t")
    data = read_by_the_hub(text)
    assert (data.pipeline_tag, data.base_model) == ("token-classification", "owner/name")
    assert data.datasets is None
    assert data.eval_results is None  # there are no points
    assert "/home/me" not in text


@pytest.mark.parametrize("name", [*EVIL, "a: b", "- x", "---", "'", '"', "{", "%TAG", "no", "1.0"])
def test_foreign_names_cannot_break_the_metadata(tmp_path, name):
    (tmp_path / "training.json").write_text(json.dumps({"base_model": name, "datasets": [name]}))
    config = config_of(method=name, operating_points={name: point(metric=name)})
    data = read_by_the_hub(card_text(tmp_path, config, title=name))
    assert (data.library_name, data.base_model, data.datasets) == ("de3bert", None, None)
    assert len(data.eval_results) == 1


def test_what_is_an_id_of_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs" / "model").mkdir(parents=True)
    assert hub_id("google-bert/bert-base-uncased") == "google-bert/bert-base-uncased"
    for name in ("runs/model", str(tmp_path / "runs"), "bert", "a/b/c", "train.csv"):
        assert hub_id(name) is None
