"""Points of a changed bundle are not calibrated on rows that say nothing."""

from __future__ import annotations

import pytest

from de3bert.data.read import read_table
from de3bert.errors import UsageError
from de3bert.export.bundle import export_model

TWO = {"text": ["a good film", "a dull plot"], "label": ["pos", "neg"]}
ONE_CLASS = {"text": ["a good film"] * 40, "label": ["pos"] * 40}


@pytest.mark.parametrize(
    ("rows", "words"), [(TWO, "2 rows are too few"), (ONE_CLASS, "none of the class neg")]
)
def test_they_are_refused_before_anything_is_exported(pointed_model, tmp_path, rows, words):
    with pytest.raises(UsageError, match=words):
        export_model(pointed_model, tmp_path / "bundle", exits=[2, 4], table=read_table(rows))
    assert list(tmp_path.iterdir()) == []


def test_forced_points_keep_the_reasons(pointed_model, ready_graphs, tmp_path):
    made = export_model(
        pointed_model, tmp_path / "bundle", int8=True, table=read_table(TWO), force=True
    )
    assert made.recalibrated is not None
    assert any("too few" in reason for reason in made.recalibrated.warnings)
