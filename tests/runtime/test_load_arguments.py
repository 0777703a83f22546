"""What `load` is given: refused in our words, and before torch is imported where that can be."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.export.bundles import pointed_model, trained_bundle

import de3bert
from de3bert.errors import UsageError
from de3bert.runtime.threads import check_threads, cores

__all__ = ["pointed_model", "trained_bundle"]

CODE = """
import json, sys
import de3bert
from de3bert.errors import De3Error
said = []
for source, options in json.loads(sys.argv[1]):
    try:
        de3bert.load(source, **options)
        said.append("loaded")
    except De3Error as error:
        said.append(f"{type(error).__name__}: {error}")
heavy = sorted({"torch", "transformers", "onnxruntime"} & sys.modules.keys())
print(json.dumps([said, heavy]))
"""


@pytest.mark.parametrize(
    ("source", "words"),
    [
        (None, "got None (a NoneType)"),
        (123, "got 123 (an int)"),
        (b"runs", "got b'runs' (a bytes)"),
        (["runs"], "(a list)"),
        ("", "empty name"),
        ("  ", "empty name"),
        ("no/such/folder", "There is no folder no/such/folder"),
        ("/no/such/folder", "There is no folder /no/such/folder. The nearest existing folder: /."),
        ("./gone", "There is no folder ./gone"),
        ("~/gone", "There is no folder ~/gone"),
        ("with space", "There is no folder with space"),
        ("a\x1b[31m/b/c", r"There is no folder a\x1b[31m/b/c"),
        ("nul\x00", r"There is no folder nul\x00"),
        ("x" * 300, "cannot be the name of a folder"),
    ],
)
def test_what_is_no_source(source, words):
    with pytest.raises(UsageError) as error:
        de3bert.load(source)
    assert words in str(error.value)


def test_usage_errors_come_before_the_heavy_libraries(trained_model, trained_bundle, tmp_path):
    (tmp_path / "file").write_text("")
    (tmp_path / "empty").mkdir()
    model, bundle = str(trained_model), str(trained_bundle)
    cases = [
        (str(tmp_path / "gone"), {}, "There is no folder"),
        (str(tmp_path / "file"), {}, "is a file"),
        (str(tmp_path / "empty"), {}, "no config.json"),
        (bundle, {"device": "cuda"}, "A bundle runs on the CPU"),
        (bundle, {"device": 3}, "device is given by its name"),
        *[
            (source, {"threads": threads}, words)
            for source in (model, bundle)
            for threads, words in [
                (0, "at least 1, got 0"),
                (-2, "at least 1, got -2"),
                ("4", "whole number from 1 up, got '4' (a str)"),
                (True, "whole number"),
                (2.5, "whole number"),
                ([2], "whole number"),
                (9999, "9,999 is more than the limit of"),
                (10**10, "is more than the limit of"),
            ]
        ],
    ]
    given = json.dumps([case[:2] for case in cases])
    done = subprocess.run([sys.executable, "-c", CODE, given], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said, heavy = json.loads(done.stdout)
    assert heavy == []
    for (source, options, words), line in zip(cases, said, strict=True):
        assert line.startswith("UsageError: "), (source, options, line)
        assert words in line


def test_the_hub_is_asked_once_and_without_torch(tmp_path):
    code = (
        "import sys, de3bert\n"
        "from huggingface_hub import HfApi\n"
        "def asked(self, source, **how): raise ConnectionError(said.append(source))\n"
        "said, HfApi.model_info = [], asked\n"
        "try:\n    de3bert.load('runs/modle')\n"
        "except de3bert.errors.UsageError as error:\n    print(error, said)\n"
        "assert 'torch' not in sys.modules\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "HF_HUB_CACHE": str(tmp_path)},
    )
    assert done.returncode == 0, done.stderr
    assert f'No model "runs/modle": there is no folder of that name in {tmp_path}' in done.stdout
    assert done.stdout.strip().endswith("['runs/modle']")


def test_what_the_hub_says(monkeypatch):
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import ModelInfo

    info = ModelInfo(id="some/encoder", config={"model_type": "bert"})
    monkeypatch.setattr(HfApi, "model_info", lambda self, source, **how: info)
    with pytest.raises(UsageError) as error:
        de3bert.load("some/encoder")
    said = str(error.value)
    assert '"bert" model, which has no exits' in said
    assert said.index("de3 attach some/encoder") < said.index("de3 train --backbone some/encoder")


def test_a_model_that_was_fetched_before_needs_no_network(trained_model, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    kept = tmp_path / "models--some--model"
    (kept / "refs").mkdir(parents=True)
    (kept / "refs" / "main").write_text("a" * 40)
    shutil.copytree(trained_model, kept / "snapshots" / ("a" * 40))
    assert de3bert.load("some/model").predict("good")[0].layers == 4


def test_as_many_threads_as_there_are_cores_are_always_fine(monkeypatch):
    monkeypatch.setenv("DE3_MAX_THREADS", "1")
    assert check_threads(os.cpu_count()) == os.cpu_count() >= cores()
    assert check_threads(None) is None
    with pytest.raises(UsageError, match=r"limit threads="):
        check_threads(os.cpu_count() + 1)
    monkeypatch.setenv("DE3_MAX_THREADS", "500")
    assert check_threads(499) == 499


@pytest.mark.parametrize(
    "device", ["cuda", "cuda:7", "nonsense", "meta", "cpu:x", "", "mps"]
)  # fmt: skip
def test_a_device_that_is_not_here(trained_model: Path, device, monkeypatch):
    import torch

    if device.startswith("cuda") and torch.cuda.is_available():
        pytest.skip("there is a GPU here")
    with pytest.raises(UsageError, match="There is no device"):
        de3bert.load(trained_model, device=device)


def test_a_device_of_torch_itself(trained_model: Path):
    import torch

    assert de3bert.load(trained_model, device=torch.device("cpu")).opening.device == "cpu"
    with pytest.raises(UsageError, match="device is given by its name"):
        de3bert.load(trained_model, device=0)
