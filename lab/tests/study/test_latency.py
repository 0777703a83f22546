"""Stored times that are not there or cannot be used."""

from __future__ import annotations

import pytest

from de3bert.errors import De3Error
from de3lab.study.latency import LATENCY, read_latency


def test_nothing_was_timed(tmp_path):
    assert read_latency(tmp_path) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [("{", "is damaged"), ('{"format": "de3bert-run"}', "is not the timing of a study's")],
)
def test_damaged_times_are_named(tmp_path, text, said):
    (tmp_path / LATENCY).write_text(text, encoding="utf-8")
    with pytest.raises(De3Error, match=said):
        read_latency(tmp_path)
