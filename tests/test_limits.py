"""Stated limits: what is beyond is refused by name; who trusts their data may raise them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from de3bert.errors import UsageError
from de3bert.limits import (
    FREE,
    LIMITS,
    RATIO,
    check_limit,
    check_sizes,
    limit,
    set_limit,
    shown_size,
    unpacked_limit,
)

MIB = 1 << 20


@pytest.fixture(autouse=True)
def own_environment(monkeypatch):
    for name in LIMITS:
        monkeypatch.delenv(f"DE3_MAX_{name.upper()}", raising=False)


@pytest.mark.parametrize("name", LIMITS)
def test_what_is_beyond_a_limit_is_refused_and_the_message_says_how_to_go_on(name, monkeypatch):
    most = limit(name)
    check_limit(name, most, "it")
    with pytest.raises(UsageError) as error:
        check_limit(name, most + 1, "the file x")
    said = str(error.value)
    assert said.startswith("the file x: ")
    assert f"de3 --limit {name}=" in said
    raised = said.partition("--limit ")[2].split()[0]
    monkeypatch.setenv(f"DE3_MAX_{name.upper()}", "1")  # put back after the test
    set_limit(raised)
    check_limit(name, most + 1, "the file x")


def test_sizes_have_units(monkeypatch):
    monkeypatch.setenv("DE3_MAX_DOCUMENT", "3MB")
    assert limit("document") == 3 * MIB
    monkeypatch.setenv("DE3_MAX_DOCUMENT", "2 gb")
    assert limit("document") == 2048 * MIB


NO_LIMITS = ("unpacked", "unpacked=", "unpacked=-1", "unpacked=1XB", "unpacked=inf", "speed=3", "=")


@pytest.mark.parametrize("line", [*NO_LIMITS, "unpacked=" + "9" * 30])
def test_lines_that_set_no_limit(line):
    with pytest.raises(UsageError):
        set_limit(line)


def test_a_limit_in_the_environment_that_is_none(monkeypatch):
    monkeypatch.setenv("DE3_MAX_LAYERS", "many")
    with pytest.raises(UsageError, match="DE3_MAX_LAYERS"):
        limit("layers")


def test_what_a_packed_file_may_become(monkeypatch):
    assert unpacked_limit(1000) == 64 * MIB  # small files may always be some texts
    assert unpacked_limit(MIB) == 250 * MIB
    assert unpacked_limit(100 * MIB) == LIMITS["unpacked"].value
    monkeypatch.setenv("DE3_MAX_UNPACKED", "1GB")
    assert unpacked_limit(1000) == 1024 * MIB


@pytest.mark.parametrize(
    "config",
    [
        {"num_hidden_layers": 10**6},
        {"n_layers": 10.0**9},
        {"backbone_config": {"hidden_size": float("inf")}},
        {"num_labels": 10**400},
        {"id2label": {str(number): "x" for number in range(100_001)}},
    ],
)
def test_configs_that_promise_too_much_at_any_depth(config):
    with pytest.raises(UsageError, match="more than the limit"):
        check_sizes(config, "it")


def test_configs_with_odd_values_are_left_to_whoever_reads_them():
    check_sizes({"num_hidden_layers": "12", "hidden_size": None, "vocab_size": -1, "x": []}, "it")


def test_the_limits_that_are_stated_are_those_in_force():
    text = (Path(__file__).parents[1] / "SECURITY.md").read_text(encoding="utf-8")
    stated = dict(re.findall(r"^\| `(\w+)` \| ([0-9,]+(?: [MG]B)?) \|", text, re.MULTILINE))
    shown = {
        name: shown_size(each.value) if each.is_size else f"{each.value:,}"
        for name, each in LIMITS.items()
    }
    assert stated == shown
    assert f"grow {RATIO} times" in text
    assert f"({shown_size(FREE)} always)" in text
