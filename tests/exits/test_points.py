"""Targets and operating points: reading, printing, storing."""

from __future__ import annotations

import json

import pytest

from de3bert.errors import De3Error, UsageError
from de3bert.exits import OperatingPoint, Policy, Target


@pytest.mark.parametrize(
    ("text", "kind", "value", "printed"),
    [
        ("layers=2.0", "layers", 2.0, "layers=2.0"),
        (" layers = 1 ", "layers", 1.0, "layers=1.0"),
        ("drop=0.01", "drop", 0.01, "drop=0.01"),
        ("drop=1%", "drop", 0.01, "drop=0.01"),
        ("drop=0", "drop", 0.0, "drop=0.0"),
        ("accuracy=0.9", "accuracy", 0.9, "accuracy=0.9"),
        ("latency=8ms", "latency", 8.0, "latency=8.0ms"),
        ("latency = 7.5 ms", "latency", 7.5, "latency=7.5ms"),
        ("latency=8", "latency", 8.0, "latency=8.0ms"),
        ("speedup=2.5", "speedup", 2.5, "speedup=2.5"),
        ("full", "full", 0.0, "full"),
    ],
)
def test_targets(text, kind, value, printed):
    target = Target.parse(text)
    assert (target.kind, target.value, str(target)) == (kind, value, printed)
    assert Target.parse(printed) == target


@pytest.mark.parametrize(
    "text",
    [
        "layers=0.5",
        "layers=50%",
        "layers=inf",
        "drop=-0.1",
        "drop=2",
        "drop=nan",
        "accuracy=0",
        "accuracy=90",
        "accuracy=high",
        "speed=2",
        "speedup=0.9",
        "speedup=250%",
        "speedup=2ms",
        "latency=0",
        "latency=-1ms",
        "latency=5%",
        "latency=8s",
        "latency=ms",
        "latency=inf",
        "layers",
        "",
        "full=1",
    ],
)
def test_bad_targets_show_the_accepted_forms(text):
    with pytest.raises(UsageError, match=r"Accepted: `layers=2\.0`.*`drop=1%`.*`full`"):
        Target.parse(text)


def test_which_targets_are_about_time():
    lines = ["layers=2", "drop=1%", "accuracy=0.9", "full", "latency=8ms", "speedup=2"]
    assert [Target.parse(line).is_time for line in lines] == [False] * 4 + [True] * 2


def point():
    measured = {"rows": 10, "score": 0.9, "exit_histogram": {"1": 4, "2": 6}}
    return OperatingPoint("fast", Policy.parse("edr < 0.4"), "layers=2.0", measured)


def test_round_trip_through_json():
    assert OperatingPoint.from_json(json.loads(json.dumps(point().to_json()))) == point()


def test_what_is_stored_has_a_version_and_older_files_have_none():
    stored = point().to_json()
    assert stored.pop("version") == 1
    assert OperatingPoint.from_json(stored) == point()


def test_what_others_add_is_kept_and_numbers_stay_what_they_are():
    more = {"rows": 3, "score": 1, "score_interval": [0, 0.5], "data": None, "colour": ["red"]}
    stored = {**point().to_json(), "measured": more, "colour": "red"}
    found = OperatingPoint.from_json(stored).measured
    assert json.dumps(dict(found), sort_keys=True) == json.dumps(more, sort_keys=True)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("rows", 3.0),
        ("rows", True),
        ("metric", None),
        ("score", None),
        ("score", "0.9"),
        ("score", True),
        ("score", float("nan")),
        ("score", float("inf")),
        ("full_score", 10**16),
        ("layers_mean", 10**400),
        ("score_interval", [0.1]),
        ("score_interval", [0.1, None]),
        ("score_interval", {"0": 1, "1": 2}),
        ("predicted_ms", []),
        ("guarantee", "yes"),
        ("traffic", [1]),
        ("data", 3),
        ("warnings", "one"),
        ("warnings", [1]),
    ],
)
def test_what_was_measured_is_of_its_type(key, value):
    with pytest.raises(
        De3Error, match=f'point "fast" has no sound "{key}" among .* got '
    ) as caught:
        OperatingPoint.from_json({**point().to_json(), "measured": {key: value}})
    assert "Calibrate again" in str(caught.value)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (None, "JSON object"),
        ({**point().to_json(), "version": 2}, "'fast' is of version 2.*Update de3bert"),
        ({**point().to_json(), "version": "1"}, '"version"'),
        ({**point().to_json(), "version": 0}, '"version"'),
        ({**point().to_json(), "name": 3}, '"name": got 3'),
        ([], "JSON object"),
        ({}, '"name"'),
        ({**point().to_json(), "policy": None}, '"policy"'),
        ({**point().to_json(), "measured": 3}, '"measured"'),
        ({**point().to_json(), "policy": "entropi < 1"}, "'fast'.*Did you mean"),
    ],
)
def test_unsound_json(document, message):
    with pytest.raises(De3Error, match=message) as caught:
        OperatingPoint.from_json(document)
    assert not isinstance(caught.value, UsageError)  # the file is at fault, not the request
