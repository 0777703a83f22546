"""A model that is not whole is measured by the backbone it is compared with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.exits.traces import random_trace
from tests.runtime.fakes import fake, texts_of

from de3bert.data.read import read_table
from de3bert.exits import Policy
from de3bert.exits.calibrate import measure
from de3bert.runtime.evaluate import evaluate

TRACE = replace(random_trace(rows=40, exits=3), exit_layers=(2, 4, 6), distances=None)


@pytest.mark.parametrize(("base", "ratio"), [(None, 1.0), (6, 1.0), (12, 2.0), (3, 0.5)])
def test_evaluation_and_trace_refer_to_the_base(base, ratio):
    classifier = fake(TRACE, base_depth=base)
    names = [TRACE.label_names[label] for label in TRACE.labels]
    table = read_table({"text": texts_of(TRACE), "label": names})
    assert evaluate(classifier, table).layer_speedup == ratio
    assert evaluate(classifier, table, policy="layer(2)").layer_speedup == 3 * ratio
    trace = classifier.trace(texts_of(TRACE), TRACE.labels)
    assert trace.base == (base or 6)
    assert measure(trace, Policy.parse("full"))["layer_speedup"] == ratio
    assert np.array_equal(trace.logits, TRACE.logits)


def test_answers_still_count_the_models_own_layers():
    classifier = fake(TRACE, base_depth=12)
    assert classifier.depth == 6
    assert classifier.predict(["0"])[0].layers == 6
