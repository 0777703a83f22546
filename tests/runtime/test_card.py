"""The card of a model: foreign names stay names."""

from __future__ import annotations

import json
import re

import pytest

from de3bert.card import card_text, points_table, write_card
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
