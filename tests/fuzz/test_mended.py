"""What the targets beside this file found, and must not come back."""

from __future__ import annotations

import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from tests.fuzz.graphs import GraphChange, changed_graph
from tests.fuzz.mutate import Stand, place_stand
from tests.fuzz.test_bundles import signed
from tests.fuzz.test_found import bundle_case, change, model_case
from tests.fuzz.test_training import stopped_copy
from tests.fuzz.training import stopped_before_training
from tests.fuzz.verbs import TEXT, model_call


@pytest.mark.parametrize("name", ["config.json", "manifest.json", "profile.json", "tokenizer.json"])
def test_a_pipe_in_place_of_a_file_keeps_nobody_waiting(arena, name):
    case, bundle = bundle_case(arena)
    place_stand(bundle / name, Stand("pipe"), case.folder, case.folder)
    for verb in ("inspect", "calibrate by time"):
        arguments, _ = model_call(case, verb, bundle)
        case.verb(*arguments)


def test_a_context_of_another_shape(arena):
    case, bundle = bundle_case(arena)
    context = json.loads((bundle / "manifest.json").read_text())["context"]
    wrong = {name: [*axes, "tokens"] for name, axes in context.items()}
    change(bundle / "manifest.json", context=wrong)
    case.verb("predict", bundle, "--policy", "entropy < 0.3", stdin=TEXT)


@pytest.mark.parametrize("text", ["1e999", "NaN", "-Infinity"])
def test_a_number_that_is_none_in_a_config(arena, text):
    case, bundle = bundle_case(arena)
    path = bundle / "config.json"
    path.write_text(path.read_text().replace("{", f'{{"more": {text},', 1))
    signed(bundle)
    before = path.read_bytes()
    arguments, _ = model_call(case, "calibrate by trace", bundle)
    if case.verb(*arguments).kind != "success":
        assert path.read_bytes() == before


@pytest.mark.parametrize("name", ["chunk_size_feed_forward", "num_attention_heads", "hidden_act"])
def test_a_backbone_that_cannot_compute(arena, name):
    case, model = model_case(arena)
    config = json.loads((model / "config.json").read_text())["backbone_config"]
    change(model / "config.json", backbone_config={**config, name: None})
    for verb in ("predict", "evaluate", "adapt"):
        arguments, stdin = model_call(case, verb, model)
        assert case.verb(*arguments, stdin=stdin).kind == "De3Error"
    assert case.verb("export", model, "--out", "out").kind == "De3Error"


def test_weights_that_are_no_numbers(arena):
    case, model = model_case(arena)
    path = model / "model.safetensors"
    tensors = load_file(path)
    broken = {name: np.full_like(values, np.nan) if values.dtype.kind == "f" else values
              for name, values in tensors.items()}  # fmt: skip
    save_file(broken, path, metadata={"format": "pt"})
    for verb in ("predict", "evaluate", "adapt", "calibrate"):
        arguments, stdin = model_call(case, verb, model)
        assert case.verb(*arguments, stdin=stdin).kind == "De3Error"


@pytest.mark.parametrize("names", [None, "", [], ["input_ids"], 3, ["x"]])
def test_a_tokenizer_that_gives_something_else(arena, names):
    case, model = model_case(arena)
    change(model / "tokenizer_config.json", model_input_names=names)
    case.verb("predict", model, stdin=TEXT)


@pytest.mark.parametrize("key", ["exit_accuracy", "backbone"])
def test_a_record_of_a_training_that_makes_no_sense(arena, key):
    case, model = model_case(arena)
    change(model / "training.json", **{key: [1]})
    arguments, _ = model_call(case, "calibrate by trace", model)
    case.verb(*arguments)


@pytest.mark.parametrize("name", ["config.json", "profile.json", "tokenizer.json"])
def test_no_link_leads_out_of_a_bundle(arena, name):
    case, bundle = bundle_case(arena)
    place_stand(bundle / name, Stand("link out"), arena.canaries[1], case.folder)
    for verb in ("inspect", "predict", "calibrate by time"):
        arguments, stdin = model_call(case, verb, bundle)
        case.verb(*arguments, stdin=stdin)


def test_a_message_does_not_quote_a_whole_file(arena):
    case, bundle = bundle_case(arena)
    (bundle / "tokenizer.json").write_text(json.dumps("x" * 100_000))
    signed(bundle)
    assert len(case.verb("predict", bundle, stdin=TEXT).err) < 5000
    rows = case.write("rows.jsonl", json.dumps({"text": "a", "label": list(range(9999))}).encode())
    assert len(case.verb("evaluate", arena.materials.bundle, "--data", rows).err) < 5000


def test_a_name_that_is_too_long(arena):
    case = arena.case("found")
    for words in (["curve", "x" * 5000], ["inspect", "x" * 5000], ["predict", "x" * 300, "-"],
                  ["evaluate", arena.materials.bundle, "--data", "x" * 5000 + ".csv"]):  # fmt: skip
        assert case.verb(*words).kind != "success"


def test_a_graph_that_fails_says_so_once_and_without_colours(arena):
    case, bundle = bundle_case(arena)
    data = changed_graph(bundle / "layers-01-01.onnx", [GraphChange("large tile", 2)])
    case.write("bundle/layers-01-01.onnx", data)
    signed(bundle)
    assert case.verb("predict", bundle, stdin=TEXT).kind == "De3Error"


@pytest.mark.parametrize("how", ["pipe", "folder", "endless"])
@pytest.mark.parametrize("name", ["training.json", "model.safetensors"])
def test_what_is_no_file_in_a_model_folder(arena, name, how):
    case, model = model_case(arena)
    place_stand(model / name, Stand(how), case.folder, case.folder)
    for verb in ("adapt", "calibrate by trace"):
        arguments, _ = model_call(case, verb, model)
        case.verb(*arguments)


@pytest.mark.parametrize("name", ["trainer_state.json", "optimizer.pt", "sha256.json"])
def test_a_pipe_in_a_checkpoint(arena, name):
    case = arena.case("found")
    place_stand(stopped_copy(case) / name, Stand("pipe"), case.folder, case.folder)
    case.verb("train", "--recipe", "recipe.toml", "--out", "out", "--quiet")


@pytest.mark.parametrize("verb", ["calibrate by trace", "inspect", "predict"])
def test_half_a_surrogate_in_a_config(arena, verb):
    case, bundle = bundle_case(arena)
    change(bundle / "config.json", more="a\ud800b")
    signed(bundle)
    arguments, stdin = model_call(case, verb, bundle)
    assert case.verb(*arguments, stdin=stdin).kind == "success"
    assert json.loads((bundle / "config.json").read_text())["more"] == "a\ud800b"


@pytest.mark.parametrize("point", [None, "entropy < 0.2", {}, {"policy": 3}])
def test_a_damaged_point_in_a_model_that_is_adapted(arena, point):
    case, model = model_case(arena)
    change(model / "config.json", operating_points={"x": point})
    arguments, _ = model_call(case, "adapt", model)
    assert case.verb(*arguments).kind == "De3Error"


@pytest.mark.parametrize("share", [2, -1, "x", [0.1]])
def test_a_backbone_that_leaves_out_more_than_all(arena, share):
    case = arena.case("found")
    backbone = case.copy(arena.materials.backbone, "backbone")
    change(backbone / "config.json", classifier_dropout=share)
    with stopped_before_training():
        outcome = case.verb("train", "--backbone", backbone, "--data", arena.materials.rows,
                            "--out", "out")  # fmt: skip
    assert outcome.kind != "success"
    assert "would begin" not in outcome.err


def test_a_backbone_that_is_a_file(arena):
    case = arena.case("found")
    outcome = case.verb("train", "--backbone", "/etc/passwd", "--data", arena.materials.rows,
                        "--out", "out")  # fmt: skip
    assert outcome.kind == "UsageError"
