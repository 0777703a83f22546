"""What others wrote is read, never run; and what it promises is checked before it is made."""

from __future__ import annotations

import io
import json
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures_trained import model_copy, toy_data, trained_model
from transformers import AutoModel, AutoTokenizer

import de3bert
from de3bert.cli.main import main
from de3bert.errors import De3Error, UsageError
from de3bert.model.backbone import load_backbone
from de3bert.model.pretrained import from_pretrained
from de3bert.model.tokens import load_tokenizer

__all__ = ["model_copy", "toy_data", "trained_model"]

SOURCE = Path(de3bert.__file__).parent
EVIL = """
from pathlib import Path
Path({marker!r}).write_text("ran")
from transformers import BertConfig, BertModel, BertTokenizerFast
class EvilConfig(BertConfig):
    model_type = "evil"
class EvilModel(BertModel):
    config_class = EvilConfig
class EvilTokenizer(BertTokenizerFast):
    pass
"""


def edit(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


@pytest.fixture
def evil_backbone(tiny_backbone: Path, tmp_path: Path) -> Path:
    """An encoder that brings code along, which leaves a mark when it is run."""
    folder = Path(shutil.copytree(tiny_backbone, tmp_path / "evil"))
    (folder / "evil.py").write_text(EVIL.format(marker=str(tmp_path / "marker")))
    edit(
        folder / "config.json",
        model_type="evil",
        auto_map={"AutoConfig": "evil.EvilConfig", "AutoModel": "evil.EvilModel"},
    )
    return folder


def say_yes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("y\n" * 1000))
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("somebody asked on stdin"))


def test_code_of_a_backbone_is_not_run_even_when_stdin_says_yes(
    evil_backbone, toy_data, tmp_path, monkeypatch, capsys
):
    say_yes(monkeypatch)
    given = ["--data", toy_data.train, "--backbone", evil_backbone, "--out", tmp_path / "m"]
    monkeypatch.setattr(sys, "argv", ["de3", "train", *map(str, given)])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    assert "comes with its own Python code" in capsys.readouterr().err
    assert not (tmp_path / "marker").exists()


def test_code_of_a_models_tokenizer_is_not_run(model_copy, toy_data, tmp_path, monkeypatch, capsys):
    (model_copy / "evil.py").write_text(EVIL.format(marker=str(tmp_path / "marker")))
    edit(
        model_copy / "tokenizer_config.json",
        tokenizer_class="EvilTokenizer",
        auto_map={"AutoTokenizer": [None, "evil.EvilTokenizer"]},
    )
    say_yes(monkeypatch)
    monkeypatch.setattr(
        sys, "argv", ["de3", "evaluate", str(model_copy), "--data", str(toy_data.test)]
    )
    try:
        main()
    except SystemExit as left:
        assert left.code == 2  # noqa: PT017
        assert "comes with its own Python code" in capsys.readouterr().err
    assert not (tmp_path / "marker").exists()


def test_code_is_run_where_the_user_asked_for_it_by_name(evil_backbone, tmp_path):
    found = load_backbone(str(evil_backbone), trust_remote_code=True)
    assert (tmp_path / "marker").exists()
    assert type(found.module).__name__ == "EvilModel"


def test_a_model_of_ours_is_never_trusted():
    """Whatever a model folder says, loading it has no way to run code."""
    for name in ("runtime/load.py", "runtime/torch_load.py", "model/loading.py"):
        assert "trust_remote_code=True" not in (SOURCE / name).read_text(encoding="utf-8")


def test_attention_code_from_the_hub_is_foreign_code(tiny_backbone, tmp_path):
    folder = Path(shutil.copytree(tiny_backbone, tmp_path / "kernel"))
    edit(folder / "config.json", attn_implementation="somebody/flash")
    with pytest.raises(UsageError, match=r"attention code \"somebody/flash\" from the hub"):
        load_backbone(str(folder))


def test_there_is_one_way_to_read_what_others_wrote():
    """Every other call would be one that forgot to say no."""
    call = re.compile(r"(?<!def )\b(?!super\(\))[\w.]+\.(from_pretrained|from_config)\(")
    for path in SOURCE.rglob("*.py"):
        if path.name == "pretrained.py":
            continue
        code = re.sub(r"`[^`]*`|>>> .*", "", path.read_text(encoding="utf-8"))
        assert not call.search(code), f"{path}: use de3bert.model.pretrained"
        assert "trust_remote_code=True" not in code, path


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("num_hidden_layers", 1_000_000),
        ("num_hidden_layers", 10**400),
        ("hidden_size", 10**9),
        ("intermediate_size", 10**9),
        ("vocab_size", 10**10),
        ("max_position_embeddings", 10**9),
        ("num_labels", 10**9),
    ],
)
def test_a_config_that_promises_too_much(tiny_backbone, tmp_path, key, value, monkeypatch):
    folder = Path(shutil.copytree(tiny_backbone, tmp_path / "large"))
    (folder / "config.json").write_text(
        json.dumps(json.loads((folder / "config.json").read_text()) | {key: 12345}).replace(
            "12345", str(value)
        )
    )
    monkeypatch.setattr(AutoModel, "from_pretrained", lambda *_, **__: pytest.fail("it was made"))
    with pytest.raises(De3Error, match=rf"{key}: [0-9,]+ is more than the limit|digits"):
        load_backbone(str(folder))


def test_a_config_that_promises_more_than_its_weights_hold(tiny_backbone, tmp_path):
    folder = Path(shutil.copytree(tiny_backbone, tmp_path / "large"))
    edit(folder / "config.json", num_hidden_layers=900, hidden_size=8192, intermediate_size=32768)
    with pytest.raises(De3Error, match=r"more than the limit|do not belong together"):
        load_backbone(str(folder))
    edit(folder / "config.json", num_hidden_layers=9)
    with pytest.raises(De3Error, match="do not belong together"):
        load_backbone(str(folder))


def test_limits_are_raised_by_name(tiny_backbone, tmp_path, monkeypatch):
    folder = Path(shutil.copytree(tiny_backbone, tmp_path / "deep"))
    edit(folder / "config.json", num_hidden_layers=1001)
    with pytest.raises(UsageError, match=r"de3 --limit layers=1001"):
        from_pretrained(AutoTokenizer, str(folder))
    monkeypatch.setenv("DE3_MAX_LAYERS", "2000")
    from_pretrained(AutoTokenizer, str(folder))


def test_a_config_of_120_megabytes_is_not_read(tiny_backbone, tmp_path):
    folder = Path(shutil.copytree(tiny_backbone, tmp_path / "fat"))
    with (folder / "config.json").open("r+b") as file:
        file.seek(120 << 20)
        file.write(b"}")
    with pytest.raises(UsageError, match=r"120 MB is more than the limit of 16 MB"):
        load_backbone(str(folder))


def test_a_folder_is_never_blamed_on_the_network(tiny_backbone, tmp_path):
    folder = Path(shutil.copytree(tiny_backbone, tmp_path / "bare"))
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).unlink()
    with pytest.raises(De3Error) as tokenizer:
        load_tokenizer(str(folder))
    (folder / "model.safetensors").unlink()
    with pytest.raises(De3Error) as weights:
        load_backbone(str(folder))
    for error in (tokenizer, weights):
        assert not re.search("network|internet|connection|huggingface.co", str(error.value))
        assert str(folder) in str(error.value)


def test_the_demos_encoder_has_a_name_that_needs_no_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = load_backbone("demo")
    assert (found.module.config.num_hidden_layers, found.default_pooling) == (6, "mean")
    assert load_tokenizer("demo").is_fast
    (tmp_path / "demo").mkdir()  # a folder of that name is what the user means
    with pytest.raises(De3Error, match="demo does not load"):
        load_backbone("demo")
