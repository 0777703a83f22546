"""Configs that say what is not so: an error in our words from folder and bundle alike."""

from __future__ import annotations

import math
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.export.bundles import pointed_model, trained_bundle
from tests.runtime.fakes import set_config

import de3bert
from de3bert.errors import De3Error
from de3bert.files import read_json

__all__ = ["pointed_model", "trained_bundle"]

POINT = {"name": "fast", "policy": "entropy < 0.2", "target": "full", "measured": {}}
# Of both: what no reader may believe.
LIES: list[dict[str, Any]] = [
    {"id2label": {"0": "a", "1": "b", "2": "c"}},
    *[{"id2label": names} for names in ({"0": "a"}, {}, {"0": "a", "2": "b"}, {"x": "a", "y": "b"},
                                        {"0": "a", "1": "a"}, ["a", "b"], None, 7)],
    *[{"max_length": length} for length in (-1, 0, 1, 2, 10**9, 10**30, "24", 2.5, None, True,
                                            [3], math.nan)],
    *[{"exit_layers": layers} for layers in ([3, 1, 4], [1, 1, 4], [1, 2, 3, 4, 5], ["1", "4"],
                                             [0, 4], [-1, 4], "all", [], {}, [1.5, 4], [True, 4],
                                             [None], [[1], [4]], [1, 4], 3)],
    *[{name: value} for name in ("method", "pooling", "prototypes") for value in (3, None, [])],
    {"router": "nope"},
    *[{"operating_points": points} for points in (["fast"], "fast", 3, {"fast": "entropy < 0.2"},
                                                  {"fast": None}, {"fast": {"policy": "x"}},
                                                  {"fast": {**POINT, "policy": "layer(99)"}},
                                                  {"fast": {**POINT, "policy": "nope < 1"}})],
    *[{"default_point": name} for name in ("nope", 3, [], {"a": 1})],
    *[{"base_depth": depth} for depth in (-1, "x", 2.5)],
    *[{"method_options": options} for options in ("x", {"lambda": "x"}, {"lambda": math.nan})],
    *[{"text_pairs": pairs} for pairs in ("yes", 3)],
    *[{"backbone_config": inner} for inner in (None, [], "bert", 7)],
]  # fmt: skip
# Of folders alone: a bundle's graphs have these inside, and its config is not asked.
LIES_OF_FOLDERS: list[dict[str, Any]] = [
    *[{name: "nope"} for name in ("method", "pooling", "heads", "prototypes", "token_exits")],
    *[{"temperatures": values} for values in ([1.0], [0, 0, 0, 0], [math.nan] * 4, "hot",
                                              [1, 1, 1, "x"], [-1] * 4, [None] * 4, [1] * 9)],
    *[{"layout": layout} for layout in ({"stack": "nowhere"}, "x", {"nope": 1})],
    *[{"cascade": cascade} for cascade in (2, -1, "x", 10**9)],
]  # fmt: skip
INNER = [
    {"hidden_size": 64}, {"hidden_size": 0}, {"hidden_size": -32}, {"hidden_size": "32"},
    {"num_hidden_layers": 5}, {"num_hidden_layers": 3}, {"num_hidden_layers": 10**6},
    {"num_attention_heads": 5}, {"num_attention_heads": 0}, {"vocab_size": 10},
    {"max_position_embeddings": 8}, {"pad_token_id": 5000}, {"hidden_act": "nope"},
    {"model_type": "t5"}, {"model_type": "nope"},
]  # fmt: skip


def use(folder: Path) -> None:
    """All that a caller may ask of a model."""
    classifier = de3bert.load(folder)
    classifier.predict(["a good film", "bad " * 200])
    classifier.explain("a dull film")
    classifier.trace(["good"])
    assert classifier.points


def refused(folder: Path) -> str:
    with pytest.raises(De3Error) as error:
        use(folder)
    assert len(str(error.value)) < 800
    return str(error.value)


@pytest.mark.parametrize("lie", LIES, ids=str)
def test_a_folder_and_a_bundle_refuse_alike(pointed_model, trained_bundle, tmp_path, lie):
    for number, source in enumerate((pointed_model, trained_bundle)):
        refused(set_config(Path(shutil.copytree(source, tmp_path / str(number))), **lie))


@pytest.mark.parametrize("lie", LIES_OF_FOLDERS, ids=str)
def test_a_folder_refuses(pointed_model, tmp_path, lie):
    refused(set_config(Path(shutil.copytree(pointed_model, tmp_path / "model")), **lie))


@pytest.mark.parametrize("lie", INNER, ids=str)
def test_an_encoder_that_does_not_fit_its_weights(pointed_model, tmp_path, lie):
    folder = Path(shutil.copytree(pointed_model, tmp_path / "model"))
    inner = read_json(folder / "config.json")["backbone_config"]
    assert "ignore_mismatched_sizes" not in refused(
        set_config(folder, backbone_config={**inner, **lie})
    )


def test_exits_left_out_of_the_config_do_not_take_one_anothers_heads(
    tiny_backbone, tiny_tokenizer, tmp_path
):
    from de3bert.model import EarlyExitForSequenceClassification

    model = EarlyExitForSequenceClassification.from_backbone(
        tiny_backbone, labels=["neg", "pos"], max_length=24, method="joint-entropy"
    )
    model.save_pretrained(tmp_path / "model")
    tiny_tokenizer.save_pretrained(tmp_path / "model")
    set_config(tmp_path / "model", exit_layers=[2, 4])
    with pytest.raises(De3Error, match="to another model than its config"):
        de3bert.load(tmp_path / "model")


def test_what_is_true_is_believed(pointed_model, trained_bundle):
    use(pointed_model)
    use(trained_bundle)


def test_a_default_that_is_not_there_does_not_bar_the_other_points(pointed_model, tmp_path):
    folder = Path(shutil.copytree(pointed_model, tmp_path / "model"))
    classifier = de3bert.load(set_config(folder, default_point="nope"))
    with pytest.raises(De3Error, match=r'default point "nope".*agreed, fast'):
        classifier.predict("good")
    assert classifier.predict("good", "full")[0].exit_layer == 4
