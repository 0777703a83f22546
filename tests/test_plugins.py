"""Installed plugins: imported when a registry is asked for more than it has, never before."""

from __future__ import annotations

import sys
from importlib import metadata
from importlib.metadata import EntryPoint

import pytest

from de3bert import plugins
from de3bert.errors import UsageError
from de3bert.registry import Registry

PART = "from tests.test_plugins import PARTS\nPARTS.add({name!r}, 7)\n"
PARTS: Registry[int] = Registry("thing")


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Puts modules under the group `de3bert.plugins`, in a process that has not looked yet."""
    points: list[EntryPoint] = []

    def put(module: str, text: str) -> None:
        (tmp_path / f"{module}.py").write_text(text)
        sys.modules.pop(module, None)
        points.append(EntryPoint(module, module, plugins.GROUP))

    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(metadata, "entry_points", lambda group: points)
    monkeypatch.setattr(plugins, "_looked", False)
    monkeypatch.setattr(plugins, "_failures", {})
    monkeypatch.setattr(PARTS, "_parts", {"built": 1})
    monkeypatch.setattr(PARTS, "_origins", {})
    return put


def test_what_is_built_in_asks_nobody(install):
    install("plugin_a", "1 / 0")
    assert PARTS["built"] == 1
    assert "built" in PARTS
    assert plugins.failures() == {}


@pytest.mark.parametrize("look", [lambda: PARTS["new"], lambda: "new" in PARTS, lambda: [*PARTS]])
def test_the_first_look_beyond_brings_them_in(install, look):
    install("plugin_b", PART.format(name="new"))
    assert look() in (7, True, ["built", "new"])
    assert PARTS.origin("new") == "plugin_b"
    assert PARTS.origin("built") is None


def test_one_that_fails_is_told_and_the_others_stay(install):
    install("plugin_c", "raise RuntimeError('of an older version\\x1b')")
    install("plugin_d", PART.format(name="fine"))
    assert PARTS["fine"] == 7
    with pytest.raises(UsageError) as error:
        PARTS["nothing"]
    assert "The plugin plugin_c could not be imported: RuntimeError" in str(error.value)
    assert "\x1b" not in str(error.value)


def test_a_plugin_that_looks_while_it_is_imported(install):
    install("plugin_e", "from tests.test_plugins import PARTS\nassert 'no' not in PARTS\n")
    assert [*PARTS] == ["built"]
    assert plugins.failures() == {}
