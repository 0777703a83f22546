"""What was found from outside, and must not come back."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from tests.fuzz.arena import Arena, Case
from tests.fuzz.mutate import HUGE
from tests.fuzz.test_bundles import signed
from tests.fuzz.training import stopped_before_training
from tests.fuzz.verbs import TEXT

ENDLESS_YES = b"y\n" * 1000
AUTO_MAP = {"AutoConfig": "evil.Config", "AutoModel": "evil.Model",
            "AutoTokenizer": ["evil.Tokenizer", "evil.Tokenizer"]}  # fmt: skip


def change(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def bundle_case(arena: Arena) -> tuple[Case, Path]:
    case = arena.case("found")
    return case, case.copy(arena.materials.bundle, "bundle")


def model_case(arena: Arena) -> tuple[Case, Path]:
    case = arena.case("found")
    return case, case.copy(arena.materials.model, "model")


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
def test_yes_is_no_permission_for_the_code_of_a_backbone(arena, name):
    case = arena.case("found")
    backbone = case.copy(arena.materials.backbone, "backbone")
    change(backbone / name, auto_map=AUTO_MAP)
    with stopped_before_training():
        case.verb(
            "train", "--backbone", backbone, "--data", arena.materials.rows, "--out", "out",
            stdin=ENDLESS_YES,
        )  # fmt: skip


@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json"])
@pytest.mark.parametrize("verb", ["evaluate", "predict"])
def test_yes_is_no_permission_for_the_code_of_a_model(arena, name, verb):
    case, model = model_case(arena)
    change(model / name, auto_map=AUTO_MAP, tokenizer_class="EvilTokenizer")
    rows = ["--data", arena.materials.rows] if verb == "evaluate" else [arena.materials.rows]
    case.verb(verb, model, *rows, stdin=ENDLESS_YES)


@pytest.mark.parametrize("name", ["../outside.onnx", "{outside}/outside.onnx", "/etc/passwd",
                                  "sub/../../outside.onnx", "linked.onnx"])  # fmt: skip
@pytest.mark.parametrize("key", ["file", "distances"])
def test_a_bundle_is_a_closed_folder(arena, name, key):
    case, bundle = bundle_case(arena)
    (bundle / "linked.onnx").symlink_to(case.folder / "outside.onnx")
    document = json.loads((bundle / "manifest.json").read_text())
    named = name.format(outside=case.folder)
    document["graphs"][0][key] = named
    for files in (document["files"], {**document["files"], named: {"bytes": 6347, "sha256": ""}}):
        change(bundle / "manifest.json", graphs=document["graphs"], files=files)
        outcome = case.verb("predict", bundle, stdin=TEXT)
        assert outcome.kind != "success"
        assert "6347" not in outcome.err or "bytes, " not in outcome.err


@pytest.mark.parametrize("changes", [{"files": {}}, {"graphs": []}, {"files": {"/etc/passwd": {
    "bytes": 1, "sha256": ""}}}])  # fmt: skip
def test_a_manifest_that_leaves_out_what_matters(arena, changes):
    case, bundle = bundle_case(arena)
    change(bundle / "manifest.json", **changes)
    assert case.verb("predict", bundle, stdin=TEXT).kind != "success"


def test_shuffled_graphs(arena):
    case, bundle = bundle_case(arena)
    graphs = json.loads((bundle / "manifest.json").read_text())["graphs"]
    change(bundle / "manifest.json", graphs=[graphs[2], graphs[0], graphs[3], graphs[1]])
    assert case.verb("predict", bundle, stdin=TEXT).kind != "success"


@pytest.mark.parametrize(
    "changes",
    [
        {"id2label": {"0": "a", "1": "b", "2": "c"}, "label2id": {"a": 0, "b": 1, "c": 2}},
        {"max_length": -1},
        {"max_length": 0},
        {"operating_points": {"fast": "entropy < 0.2"}, "default_point": "fast"},
        {"operating_points": "x"},
        {"default_point": ["fast"]},
    ],
)
@pytest.mark.parametrize("kind", ["bundle", "model"])
@pytest.mark.parametrize("verb", ["predict", "inspect"])
def test_a_config_that_does_not_fit(arena, kind, changes, verb):
    case = arena.case("found")
    place = case.copy(getattr(arena.materials, kind), kind)
    change(place / "config.json", **changes)
    if kind == "bundle":
        signed(place)
    case.verb(verb, place, stdin=TEXT)


@pytest.mark.parametrize("text", ["[]", "[" * 100_000, '{"a":' * 100_000, "3", "null", "", "\x00"])
@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "tokenizer.json"])
def test_a_document_that_is_none(arena, name, text):
    case, model = model_case(arena)
    (model / name).write_text(text)
    case.verb("predict", model, stdin=TEXT)


@pytest.mark.parametrize("verb", ["inspect", "predict"])
@pytest.mark.parametrize("kind", ["bundle", "model"])
def test_a_config_of_120_megabytes(arena, kind, verb):
    case = arena.case("found")
    place = case.copy(getattr(arena.materials, kind), kind)
    with (place / "config.json").open("ab") as file:
        file.write(b" " * (120 << 20))
    assert case.verb(verb, place, stdin=TEXT).kind == "UsageError"


def test_a_million_layers(arena):
    case, model = model_case(arena)
    config = json.loads((model / "config.json").read_text())
    config["backbone_config"]["num_hidden_layers"] = 1_000_000
    change(model / "config.json", backbone_config=config["backbone_config"])
    assert case.verb("predict", model, stdin=TEXT).kind == "UsageError"


def test_a_backbone_of_a_million_layers(arena):
    case = arena.case("found")
    backbone = case.copy(arena.materials.backbone, "backbone")
    change(backbone / "config.json", num_hidden_layers=1_000_000)
    outcome = case.verb(
        "train", "--backbone", backbone, "--data", arena.materials.rows, "--out", "o"
    )
    assert outcome.kind == "UsageError"


@pytest.mark.parametrize("name", ["rows.csv.gz", "rows.txt.gz", "rows.jsonl.gz"])
@pytest.mark.parametrize("verb", ["predict", "evaluate"])
def test_a_small_file_that_unpacks_to_600_megabytes(arena, name, verb):
    case = arena.case("found")
    block = gzip.compress(b"a" * (HUGE // 50), mtime=0)
    rows = case.write(name, gzip.compress(b"text,label\n", mtime=0) + block * 100)
    assert rows.stat().st_size < 1 << 20
    given_as = [rows] if verb == "predict" else ["--data", rows]
    assert case.verb(verb, arena.materials.bundle, *given_as).kind != "success"


@pytest.mark.parametrize("threads", ["0", "9999", "10000000000", "-1", "99999999999999999999999"])
@pytest.mark.parametrize("kind", ["bundle", "model"])
def test_more_threads_than_anybody_has(arena, kind, threads):
    case = arena.case("found")
    place = getattr(arena.materials, kind)
    assert case.verb("predict", place, "--threads", threads, stdin=TEXT).kind == "UsageError"


@pytest.mark.parametrize("text", ["\x1b[31mred\x1b[0m", "a\x9b2Jb", "\x07\x08\x7f", "[/x] [red]"])
@pytest.mark.parametrize("verb", ["explain", "predict", "explain --json"])
def test_a_text_that_steers_the_terminal(arena, verb, text):
    case = arena.case("found")
    name, *options = verb.split()
    given_as = [text] if name == "explain" else []
    case.verb(name, arena.materials.bundle, *given_as, *options, stdin=text.encode())


def test_names_that_steer_the_terminal(arena):
    """Class names, point names and columns are texts of strangers too."""
    case, bundle = bundle_case(arena)
    change(bundle / "config.json", id2label={"0": "\x1b[2J", "1": "[/x]"},
           label2id={"\x1b[2J": 0, "[/x]": 1})  # fmt: skip
    signed(bundle)
    for words in (["inspect", bundle], ["explain", bundle, "good"], ["predict", bundle]):
        case.verb(*words, stdin=TEXT)
