"""Models and bundles on the hub, with a cache that was filled before; dtypes; what is refused."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from tests.export.bundles import BUNDLE_BACKENDS, pointed_model, trained_bundle
from tests.runtime.hub_cache import keep_in_cache

import de3bert
from de3bert.errors import De3Error, UsageError
from de3bert.runtime.hub import Fetching
from de3bert.runtime.loaded import Opening
from de3bert.runtime.manifest import Manifest

__all__ = ["pointed_model", "trained_bundle"]

TEXTS = ["a great joy", "the film was dull", "good"]
SECRET = "hf_" + "x" * 30


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the hub, and no network."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return tmp_path / "hub"


@pytest.fixture
def renamed(pointed_model: Path, tmp_path: Path) -> Path:
    """The model with other names of its classes, to be told from the first."""
    folder = Path(shutil.copytree(pointed_model, tmp_path / "renamed"))
    config = json.loads((folder / "config.json").read_text())
    config |= {"id2label": {"0": "down", "1": "up"}, "label2id": {"down": 0, "up": 1}}
    (folder / "config.json").write_text(json.dumps(config))
    return folder


def test_a_revision_is_the_one_that_is_loaded(pointed_model, renamed, cache):
    keep_in_cache(cache, "some/model", pointed_model)
    keep_in_cache(cache, "some/model", renamed, "b" * 40, "v2")
    first, second = de3bert.load("some/model"), de3bert.load("some/model", revision="v2")
    assert (first.label_names, second.label_names) == (("neg", "pos"), ("down", "up"))
    assert de3bert.load("some/model", revision="b" * 40).label_names == ("down", "up")
    assert (first.source, first.opening.revision) == ("some/model", "a" * 40)
    with pytest.raises(UsageError, match=r'No model "some/model" \(revision "v3"\)'):
        de3bert.load("some/model", revision="v3")


def test_another_cache(pointed_model, cache, tmp_path):
    keep_in_cache(tmp_path / "mine", "some/model", pointed_model)
    with pytest.raises(UsageError, match='No model "some/model"'):
        de3bert.load("some/model")
    loaded = de3bert.load("some/model", cache_dir=tmp_path / "mine")
    assert loaded.opening.cache_dir == str(tmp_path / "mine")
    again = pickle.loads(pickle.dumps(loaded))
    assert again.predict(TEXTS) == loaded.predict(TEXTS)


@pytest.mark.parametrize("backend", BUNDLE_BACKENDS)
def test_a_bundle_on_the_hub(trained_bundle, cache, backend):
    keep_in_cache(cache, "some/bundle", trained_bundle)
    loaded = de3bert.load("some/bundle", backend=backend)
    here = de3bert.load(trained_bundle, backend=backend)
    assert loaded.predict(TEXTS, "fast") == here.predict(TEXTS, "fast")
    assert loaded.opening.backend == backend
    assert pickle.loads(pickle.dumps(loaded)).predict(TEXTS) == here.predict(TEXTS)


def test_a_bundle_on_the_hub_needs_no_torch(trained_bundle, tmp_path):
    keep_in_cache(tmp_path, "some/bundle", trained_bundle)
    code = (
        "import sys, de3bert\n"
        "print(len(de3bert.load('some/bundle').predict(['good'])))\n"
        "assert 'torch' not in sys.modules and 'transformers' not in sys.modules\n"
    )
    place = {"HF_HUB_CACHE": str(tmp_path), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **place}
    )
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


def test_links_of_a_bundle_lead_to_the_cache_of_its_own_repository_only(trained_bundle, cache):
    snapshot = keep_in_cache(cache, "some/bundle", trained_bundle)
    other = keep_in_cache(cache, "other/bundle", trained_bundle)
    graph = snapshot / "layers-01-01.onnx"
    elsewhere = os.path.realpath(other / graph.name)
    graph.unlink()
    graph.symlink_to(elsewhere)
    with pytest.raises(De3Error, match=r"is not self-contained: layers-01-01.onnx is a link"):
        Manifest.read(snapshot)


def test_a_snapshot_without_its_weights(pointed_model, cache):
    snapshot = keep_in_cache(cache, "some/model", pointed_model)
    (snapshot / "model.safetensors").unlink()
    with pytest.raises(De3Error, match="has a config but no weights"):
        de3bert.load("some/model")


def test_what_is_fetched_and_how_the_hub_is_asked(pointed_model, cache, monkeypatch):
    import huggingface_hub
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import ModelInfo

    asked = []

    def model_info(self, source, **how):
        asked.append((self.token, how["revision"]))
        return ModelInfo(id=source, config={"model_type": "de3bert"})

    def snapshot_download(source, **how):
        asked.append(how)
        return str(keep_in_cache(Path(how["cache_dir"]), source, pointed_model))

    monkeypatch.setattr(HfApi, "model_info", model_info)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot_download)
    mine = str(cache.parent / "mine")
    loaded = de3bert.load("some/model", revision="v1", token=SECRET, cache_dir=mine)
    assert asked[0] == (SECRET, "v1")
    assert {name: asked[1][name] for name in ("revision", "token", "cache_dir")} == {
        "revision": "v1", "token": SECRET, "cache_dir": mine
    }  # fmt: skip
    for seen in (pickle.dumps(loaded), repr(loaded.opening).encode(), repr(vars(loaded)).encode()):
        assert SECRET.encode() not in seen
    assert SECRET not in repr(Fetching(token=SECRET))


def test_a_download_that_fails(cache, monkeypatch):
    import huggingface_hub
    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import ModelInfo

    def full(source, **how):
        raise OSError(28, "No space left on device")

    info = ModelInfo(id="some/model", config={"model_type": "de3bert"})
    monkeypatch.setattr(HfApi, "model_info", lambda self, source, **how: info)
    monkeypatch.setattr(huggingface_hub, "snapshot_download", full)
    with pytest.raises(De3Error, match=r"could not be fetched from the hub.*No space left"):
        de3bert.load("some/model", token=SECRET)


def test_a_folder_has_no_revisions(pointed_model, trained_bundle, tmp_path):
    for folder in (pointed_model, trained_bundle):
        with pytest.raises(UsageError, match=r'has no revisions; got revision="main"'):
            de3bert.load(folder, revision="main")
    loaded = de3bert.load(pointed_model, token=SECRET, cache_dir=tmp_path)  # harmless
    assert loaded.opening == Opening(str(pointed_model), backend="torch")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"revision": 3}, "revision is given by its name"),
        ({"revision": ""}, "a branch, a tag or a commit of a model on the hub; got ''"),
        ({"revision": "../x"}, "got '../x'"),
        ({"revision": "a\x00b"}, "a branch, a tag or a commit"),
        ({"token": 3}, "token is a token of the hub as text.*got an int"),
        ({"token": ""}, "got an empty one"),
        ({"token": [SECRET]}, "got a list"),
        ({"cache_dir": 3}, r"cache_dir is a folder, a str or a Path; got 3 \(an int\)"),
        ({"cache_dir": ""}, "cache_dir is a folder; got ''"),
        ({"cache_dir": __file__}, "which is none"),
        ({"dtype": "float64"}, "float32, bfloat16, float16.*got 'float64'"),
        ({"dtype": "fp16"}, "got 'fp16'"),
        ({"dtype": 16}, r"got 16 \(an int\)"),
        ({"dtype": torch.int8}, r"got torch.int8 \(a dtype\)"),
        ({"dtype": np.float32}, "got <class 'numpy.float32'>"),
    ],
)
def test_what_is_refused(options, said):
    with pytest.raises(UsageError, match=said) as caught:
        de3bert.load("some/model", **options)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16", torch.bfloat16])
def test_a_model_in_another_precision(pointed_model, dtype):
    loaded = de3bert.load(pointed_model, dtype=dtype)
    name = str(dtype).removeprefix("torch.")
    model = loaded.backend.model
    assert {each.dtype for each in model.parameters()} == {getattr(torch, name)}
    assert model.prototypes.vectors.dtype == torch.float32
    trace, usual = (each.trace(TEXTS) for each in (loaded, de3bert.load(pointed_model)))
    assert trace.logits.dtype == trace.distances.dtype == np.float32
    close = 0.0 if name == "float32" else 0.1
    np.testing.assert_allclose(trace.logits, usual.logits, atol=close)
    np.testing.assert_allclose(trace.distances, usual.distances, atol=close)
    assert (name == "float32") == bool((trace.logits == usual.logits).all())
    again = pickle.loads(pickle.dumps(loaded))
    assert again.opening.dtype == name
    assert again.predict(TEXTS) == loaded.predict(TEXTS)


def test_auto_is_what_the_weights_are(pointed_model):
    assert de3bert.load(pointed_model, dtype="auto").opening.dtype is None


@pytest.mark.parametrize("backend", BUNDLE_BACKENDS)
def test_a_bundle_has_its_precision(trained_bundle, backend):
    with pytest.raises(UsageError, match=r"chosen by `de3 export` \(--int8\). Leave dtype out"):
        de3bert.load(trained_bundle, backend=backend, dtype="float16")
