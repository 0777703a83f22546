"""Nothing that comes from outside steers the terminal it is shown on."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from de3bert.cli.output import json_text
from de3bert.printable import UNSAFE, cut_list, printable

CLEAR_SCREEN = "\x1b[2J\x1b]0;title\x07"


def test_control_characters_are_written_out():
    assert printable(CLEAR_SCREEN) == "\\x1b[2J\\x1b]0;title\\x07"
    assert printable("\x9b31m \x7f \r\b") == "\\x9b31m \\x7f \\x0d\\x08"
    assert printable("a\u202eb\u2066c \ud800") == "a\\u202eb\\u2066c \\ud800"
    assert printable("one\n\ttwo, déjà vu, 好, 🎬") == "one\n\ttwo, déjà vu, 好, 🎬"


@given(st.text(st.characters(exclude_categories=[])))
def test_whatever_is_shown_can_be_shown(text):
    shown = printable(text)
    assert not UNSAFE.search(shown)
    shown.encode("utf-8")


@given(st.text())
def test_json_is_safe_to_show_and_reads_back_the_same(text):
    written = json_text({"text": text})
    assert not UNSAFE.search(written)
    assert json.loads(written) == {"text": text}


@pytest.mark.parametrize(("count", "shown"), [(3, "0, 1, 2"), (12, "0, 1, 2, 3, 4, 5, 6, 7, 8, 9")])
def test_long_lists_are_cut(count, shown):
    text = cut_list(range(count))
    assert text.startswith(shown)
    assert text.endswith(" and 2 more") == (count == 12)
