"""A rule as nodes of a graph, against the same rule in plain Python, on any logits there are."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from tests.export.toy_graphs import Said, write_toy_graphs

from de3bert.exits.rule_form import IN_GRAPHS, RuleForm
from de3bert.exits.signals import single_row
from de3bert.export.nest import Nest
from de3bert.runtime.sessions import open_session, share_threads

LAYERS = (2, 3, 5, 6)
ROWS, CLASSES = 60, 3
NEAR = 1e-6  # float32 thresholds and the last bits of sums
FORMS = [*IN_GRAPHS, "patience", "patience(edr)", "patience(energy)", "patience(certainty)"]
USUAL = {"threshold": 0.5, "lambda": 1.0, "patience": 1, "max_layers": LAYERS[-1]}


@pytest.fixture(scope="module")
def said() -> Said:
    """Sure and unsure exits, ties of logits and of distances, and saturated ones."""
    rng = np.random.default_rng(11)
    logits = rng.normal(size=(ROWS, len(LAYERS), CLASSES)) * rng.choice(
        [0.1, 1, 4, 80], (ROWS, 1, 1)
    )
    distances = rng.uniform(0, 2, (ROWS, len(LAYERS) - 1, CLASSES))
    logits[:3] = np.round(logits[:3])
    distances[3:6] = 0
    distances[6:9] = 1e-13
    certainty = rng.uniform(0, 1, (ROWS, len(LAYERS) - 1))
    return Said(*(part.astype(np.float32) for part in (logits, distances, certainty)))


@pytest.fixture(scope="module")
def graphs(said: Said, tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("toy")
    return folder, write_toy_graphs(said, folder, LAYERS)


def opened(graphs, form: str, *, record: bool, required: bool = False):
    folder, stretches = graphs
    nest = Nest(folder, stretches, RuleForm.parse(form), CLASSES, record)
    path = Path(folder) / "one.onnx"
    ir.save(nest.build(USUAL, required=required), path)
    onnx.checker.check_model(path, full_check=True)
    share_threads(None)
    return open_session(path)


def ask(session, row: int, numbers: dict[str, float]):
    """The record of a row, by name."""
    types = {"threshold": np.float32, "lambda": np.float32}
    feeds = {name: np.array(value, types.get(name, np.int64)) for name, value in numbers.items()}
    names = [each.name for each in session.get_outputs()]
    values = session.run(names, {"input_ids": np.array([[row, 7, 9]]), **feeds})
    return dict(zip(names, values, strict=True))


def signal_at(form: RuleForm, said: Said, row: int, number: int, weight: float) -> float:
    assert form.signal is not None
    if form.signal == "certainty":
        return float(said.certainty[row, number])
    compute = getattr(single_row, form.signal)
    logits, distances = said.logits[row, number].tolist(), said.distances[row, number].tolist()
    return float(compute(logits, distances, {"lambda": weight}))


def by_hand(form: RuleForm, said: Said, row: int, numbers: dict[str, float]):
    """Where a row leaves, the signals on its way, and how near one came to the threshold."""
    run, answer, signals, nearest = 0, None, [], math.inf
    threshold = float(np.float32(numbers.get("threshold", 0)))
    for number, layer in enumerate(LAYERS[:-1]):
        forced = LAYERS[number + 1] > numbers["max_layers"]
        if form.signal is None:
            best = int(np.argmax(said.logits[row, number]))
            run = run + 1 if best == answer else 0
            answer = best
            signals.append(float(run))
            leave = run >= numbers["patience"]
        else:
            value = signal_at(form, said, row, number, numbers.get("lambda", 0.0))
            signals.append(value)
            met = value > threshold if form.rising else value < threshold
            run = run + 1 if met else 0
            leave = run >= (numbers["patience"] if form.counted else 1)
            nearest = min(nearest, abs(value - threshold))
        if leave or forced:
            return layer, signals, nearest
    return LAYERS[-1], signals, nearest


def choices(form: RuleForm, said: Said):
    """Numbers of the rule: thresholds amid the signals and outside of them, and limits."""
    weights = (0.0, 0.5, 3.0) if form.signal == "edr" else (0.0,)
    patience = (1, 2, 3) if form.counted else (1,)
    for weight, count, limit in itertools.product(weights, patience, (1, 3, 4, 6, 99)):
        if form.signal is None:
            thresholds = [0.0]
        else:
            seen = [
                signal_at(form, said, row, number, weight)
                for row in range(ROWS)
                for number in range(len(LAYERS) - 1)
            ]
            low, high = min(seen), max(seen)
            thresholds = [*np.quantile(seen, [0.1, 0.5, 0.9]), low - 0.05, high + 0.05]
        for threshold in thresholds:
            numbers = {"threshold": float(threshold), "lambda": weight, "patience": count,
                       "max_layers": limit}  # fmt: skip
            yield {name: numbers[name] for name in form.inputs}


@pytest.mark.parametrize("record", [False, True])
@pytest.mark.parametrize("name", FORMS)
def test_rows_leave_where_they_leave_by_hand(said, graphs, name, record):
    form, session = RuleForm.parse(name), opened(graphs, name, record=record)
    rng, left, aside, asked = np.random.default_rng(2), set(), 0, 0
    for numbers in choices(form, said):
        for row in rng.choice(ROWS, 12, replace=False).tolist():
            layer, signals, nearest = by_hand(form, said, row, numbers)
            asked += 1
            if nearest < NEAR:
                aside += 1
                continue
            found = ask(session, row, numbers)
            assert found["exit_layer"] == layer, (row, numbers)
            left.add(layer)
            at = LAYERS.index(layer)
            assert (found["logits"][0] == said.logits[row, at]).all()
            if record:
                assert (found["exit_logits"][: at + 1] == said.logits[row, : at + 1]).all()
                assert np.isnan(found["exit_logits"][at + 1 :]).all()
                ran = len(signals)
                kept = found["exit_signals"]
                np.testing.assert_allclose(kept[:ran], signals, rtol=1e-5, atol=1e-7)
                assert np.isnan(kept[ran:]).all()
    assert left == set(LAYERS)
    assert aside <= 0.05 * asked


@pytest.mark.parametrize("name", [name for name in FORMS if name != "patience"])
def test_a_threshold_that_is_no_number_lets_nobody_go(graphs, name):
    form = RuleForm.parse(name)
    session = opened(graphs, name, record=False)
    for row in range(ROWS):
        assert ask(session, row, {"threshold": math.nan})["exit_layer"] == LAYERS[-1]
    if form.signal == "edr":
        assert ask(session, 0, {"lambda": math.nan})["exit_layer"] == LAYERS[-1]


def test_numbers_that_are_left_out_are_the_defaults(graphs):
    session = opened(graphs, "edr", record=False)
    assert [each.name for each in session.get_inputs()] == ["input_ids"]
    given = {"threshold": 0.5, "lambda": 1.0, "max_layers": 6}
    for row in range(ROWS):
        usual, same = ask(session, row, {}), ask(session, row, given)
        assert all((usual[name] == same[name]).all() for name in usual)


def test_numbers_can_be_asked_for(graphs):
    session = opened(graphs, "patience(edr)", record=False, required=True)
    names = ["input_ids", "threshold", "lambda", "patience", "max_layers"]
    assert [each.name for each in session.get_inputs()] == names
    with pytest.raises(ValueError, match="threshold"):
        ask(session, 0, {"lambda": 1.0, "patience": 1, "max_layers": 6})


def test_distances_are_left_alone_where_entropy_decides(graphs, tmp_path):
    """An exit whose distances cannot be computed is passed as long as nobody asks for them."""
    folder, stretches = graphs
    for path in Path(folder).glob("*.onnx"):
        (tmp_path / path.name).write_bytes(path.read_bytes())
    for stretch in stretches[:-1]:
        broken = onnx.load(tmp_path / stretch.distances)
        broken.graph.initializer[0].CopyFrom(
            onnx.numpy_helper.from_array(np.zeros((0, CLASSES), np.float32), "apart")
        )
        onnx.save(broken, tmp_path / stretch.distances)
    session = opened((tmp_path, stretches), "edr", record=False)
    assert ask(session, 0, {"lambda": 0.0, "threshold": 0.01})["exit_layer"] in LAYERS
    assert ask(session, 0, {"threshold": 1.01})["exit_layer"] == LAYERS[0]
    with pytest.raises(Exception, match="Gather"):
        ask(session, 0, {"threshold": 0.0})
