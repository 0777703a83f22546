"""Which policies calibration considers when nobody names any, and what it refuses at once."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.exits.traces import random_trace

from de3bert.data.read import read_table
from de3bert.errors import UsageError
from de3bert.exits import Trace, calibrate
from de3bert.exits.bandit_rule import BanditRule
from de3bert.exits.calibrate import families_of
from de3bert.methods import METHODS
from de3bert.runtime import calibrate_folder
from de3bert.runtime.calibrate_folder import calibrate_model

TRACE = random_trace(rows=200, exits=6, noise=1.0)
PLAIN = replace(TRACE, distances=None, certainty=None)
ROUTED = replace(TRACE, distances=None)


def folder_of(path: Path, method: str, exit_layers: tuple[int, ...] = TRACE.exit_layers) -> Path:
    """A folder that calibration takes for a model; there are no weights worth the name in it."""
    config = {
        "model_type": "de3bert",
        "method": method,
        "exit_layers": list(exit_layers),
        "id2label": dict(enumerate(TRACE.label_names)),
        "max_length": 16,
        "pooling": "cls",
        "prototypes": "none",
        "backbone_config": {"model_type": "bert", "num_hidden_layers": exit_layers[-1]},
    }
    path.mkdir(exist_ok=True)
    (path / "config.json").write_text(json.dumps(config))
    (path / "model.safetensors").write_bytes(b"none")
    return path


@pytest.fixture
def chosen(tmp_path, monkeypatch):
    """Calibrates from a trace and says which policy was chosen, without storing it."""
    monkeypatch.setattr(calibrate_folder, "store_points", lambda *args, **more: None)

    def choose(method: str, trace: Trace, target: str = "layers=1.5", **more):
        trace.save(tmp_path / "a.trace")
        folder = folder_of(tmp_path / "model", method)
        return calibrate_model(folder, target, "p", trace=tmp_path / "a.trace", **more)

    return choose


@pytest.mark.parametrize("method", sorted(set(METHODS) - {"oracle"}))
def test_a_method_is_calibrated_over_all_its_families(chosen, method):
    declared = METHODS[method].families
    made = chosen(method, TRACE)
    by_hand = calibrate(TRACE, "layers=1.5", name="p", family=declared)
    assert made.policy == by_hand.policy
    assert made.measured["score"] == max(
        calibrate(TRACE, "layers=1.5", name="p", family=text).measured["score"] for text in declared
    )


def test_a_method_with_several_families(chosen):
    assert len(METHODS["pcee"].families) > 1
    counts = {each.count for each in families_of(TRACE, METHODS["pcee"].families, ())}
    assert chosen("pcee", TRACE).policy.rule.count in counts


def test_edr_is_tried_with_every_lambda(chosen):
    weight = dict(chosen("de3", TRACE).policy.signal.params)["lambda"]
    assert weight in calibrate_folder.LAMBDA_GRID
    weight = dict(chosen("de3", TRACE, wide=True).policy.signal.params)["lambda"]
    assert weight in calibrate_folder.WIDE_LAMBDA_GRID
    weight = dict(chosen("de3", TRACE, paper_grid=True).policy.signal.params)["lambda"]
    assert weight in calibrate_folder.PAPER_LAMBDA_GRID


def test_each_request_has_its_grid():
    grid = calibrate_folder._lambdas
    assert grid("de3", wide=False, paper_grid=False) == calibrate_folder.LAMBDA_GRID
    assert 0.0 in grid("de3-fitted", wide=False, paper_grid=False)
    assert 0.0 not in grid("de3-fitted", wide=False, paper_grid=True)
    assert max(grid("de3", wide=True, paper_grid=False)) == 10.0


def test_two_grids_are_one_too_many(chosen):
    with pytest.raises(UsageError, match="give one of them"):
        chosen("de3", TRACE, wide=True, paper_grid=True)


def test_routers_and_bandits(chosen):
    assert str(chosen("berxit", ROUTED).policy.signal) == "certainty"
    assert isinstance(chosen("ceebert", PLAIN).policy.rule, BanditRule)


@pytest.mark.parametrize("method", ["de3", "berxit"])
def test_what_the_trace_cannot_be_read_by_gives_way_to_entropy(chosen, method):
    assert str(chosen(method, PLAIN).policy.signal) == "entropy"


def test_families_that_are_named_count(chosen):
    assert str(chosen("de3", TRACE, family="patience").policy).startswith("patience(")
    made = chosen("de3", TRACE, family=["entropy x 2", "entropy x 3"])
    assert made.policy.rule.count in (2, 3)


@pytest.fixture
def no_pass(monkeypatch):
    """The long pass must not begin."""
    monkeypatch.setattr(calibrate_folder, "load", None)
    monkeypatch.setattr(calibrate_folder.Trace, "load", None)
    return read_table({"text": ["a", "b"], "label": ["class 0", "class 1"]})


@pytest.mark.parametrize("method", ["full", "layers-6"])
@pytest.mark.parametrize("family", [None, "entropy", "layers"])
def test_a_model_without_exits_has_nothing_to_calibrate(tmp_path, no_pass, method, family):
    folder = folder_of(tmp_path / "model", method, (6,))
    with pytest.raises(UsageError, match=f"method {method} has no exits to calibrate"):
        calibrate_model(folder, "layers=2.0", "p", table=no_pass, family=family)


def test_the_oracle_cannot_be_calibrated(tmp_path, no_pass):
    folder = folder_of(tmp_path / "model", "oracle")
    with pytest.raises(UsageError, match=r"`oracle` \(method oracle\) reads the true labels"):
        calibrate_model(folder, "drop=1%", "p", table=no_pass)
    folder = folder_of(tmp_path / "model", "de3")
    with pytest.raises(UsageError, match="reads the true labels"):
        calibrate_model(folder, "drop=1%", "p", table=no_pass, family=["entropy", "oracle"])


@pytest.mark.parametrize(("method", "exits"), [("full", (6,)), ("oracle", (2, 4, 6))])
def test_full_depth_can_always_be_had(tmp_path, monkeypatch, method, exits):
    monkeypatch.setattr(calibrate_folder, "store_points", lambda *args, **more: None)
    trace = replace(PLAIN, exit_layers=tuple(range(1, 7))).only(exits)
    trace.save(tmp_path / "a.trace")
    folder = folder_of(tmp_path / "model", method, exits)
    made = calibrate_model(folder, "full", "p", trace=tmp_path / "a.trace")
    assert (str(made.policy), made.measured["layer_speedup"]) == ("full", 1.0)
    assert made.measured["score"] == pytest.approx(np.mean(trace.correct[:, -1]))
