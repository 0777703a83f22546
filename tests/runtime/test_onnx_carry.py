"""What bundles carry from graph to graph: a router's certainty, and the vectors of earlier exits.

On a model small enough to compute by hand. The state of a row is (a, b) at each of its tokens, at
first twice the number of the word and minus it; every layer adds 1 to both. With v_m the state of
the first token after layer m, the exit there says

    certainty = sigmoid(a_m / 4),    logits = v_1 + ... + v_m,

so its logits read what earlier exits saw of the same row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper, save
from tests.exits.traces import make_trace

from de3bert import Classifier
from de3bert.exits import Policy, Trace, replay
from de3bert.runtime.bundle_backend import BundleBackend, OpenGraph
from de3bert.runtime.manifest import Graph, Manifest
from de3bert.runtime.model_info import ModelInfo
from de3bert.runtime.onnx_graph import OnnxGraph
from de3bert.runtime.sessions import share_threads

FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64
ROWS = ["rows", "tokens"]
WORDS = ["zero", "one", "two", "three", "four", "five", "six"]


def node(kind: str, inputs: Sequence[str], output: str, **attributes: object):
    return helper.make_node(kind, list(inputs), [output], **attributes)


def exit_nodes(*, looks_back: bool, hands_on: bool) -> list:
    """From the states `hidden_out` to what an exit gives."""
    both = ["memory", "vectors"] if looks_back else ["vectors"]
    nodes = [
        node("Gather", ["hidden_out", "first"], "pooled", axis=1),
        node("Unsqueeze", ["pooled", "axis"], "vectors"),
        node("Concat", both, "memory_out", axis=1),
        node("ReduceSum", ["memory_out", "axis"], "logits", keepdims=0),
    ]
    if hands_on:
        nodes += [
            node("Gather", ["pooled", "first"], "a", axis=1),
            node("Mul", ["a", "quarter"], "scaled"),
            node("Sigmoid", ["scaled"], "certainty"),
        ]
    return nodes


CONSTANTS = [
    helper.make_tensor("first", INT, [], [0]),
    helper.make_tensor("axis", INT, [1], [1]),
    helper.make_tensor("last", INT, [1], [2]),
    helper.make_tensor("quarter", FLOAT, [], [0.25]),
    helper.make_tensor("one", FLOAT, [], [1.0]),
    helper.make_tensor("sides", FLOAT, [1, 1, 2], [2.0, -1.0]),
]


def write(path: Path, nodes: list, inputs: list, outputs: dict[str, int]) -> None:
    graph = helper.make_graph(
        nodes,
        path.stem,
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in inputs],
        [
            helper.make_tensor_value_info(name, FLOAT, [None] * axes)
            for name, axes in outputs.items()
        ],
        CONSTANTS,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    save(model, path)


GIVEN = {"hidden_out": 3, "logits": 2, "certainty": 1, "memory_out": 3}


def build(folder: Path, open_graph: Callable[[Path], OpenGraph]) -> BundleBackend:
    start = [
        node("Cast", ["input_ids"], "numbers", to=FLOAT),
        node("Unsqueeze", ["numbers", "last"], "columns"),
        node("Mul", ["columns", "sides"], "embedded"),
        node("Add", ["embedded", "one"], "hidden_out"),
        node("Cast", ["attention_mask"], "mask", to=FLOAT),
    ]
    ids = [("input_ids", INT, ROWS), ("attention_mask", INT, ROWS)]
    nodes = start + exit_nodes(looks_back=False, hands_on=True)
    write(folder / "1.onnx", nodes, ids, {**GIVEN, "mask": 2})
    later = [node("Add", ["hidden", "one"], "hidden_out")]
    states = [("hidden", FLOAT, [*ROWS, 2]), ("memory", FLOAT, ["rows", "exits", 2])]
    for number in (2, 3):
        nodes = later + exit_nodes(looks_back=True, hands_on=True)
        write(folder / f"{number}.onnx", nodes, states, GIVEN)
    nodes = later + exit_nodes(looks_back=True, hands_on=False)
    write(folder / "4.onnx", nodes, states, {"logits": 2})
    return open_backend(folder, open_graph)


def open_backend(folder: Path, open_graph: Callable[[Path], OpenGraph]) -> BundleBackend:
    from tokenizers import Tokenizer, models, pre_tokenizers

    words = {word: number for number, word in enumerate(WORDS)}
    tokenizer = Tokenizer(models.WordLevel(words, unk_token="zero"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(folder / "tokenizer.json"))
    info = ModelInfo.of(
        {
            "id2label": {"0": "a", "1": "b"},
            "backbone_config": {"hidden_size": 2},
            "exit_layers": [1, 2, 3, 4],
            "max_length": 16,
            "method": "berxit",
            "pooling": "cls",
            "prototypes": "none",
            "router": "lte",
            "base_depth": 8,
        }
    )
    manifest = Manifest(
        precision="fp32",
        graphs=tuple(Graph(first=n, last=n, file=f"{n}.onnx") for n in (1, 2, 3, 4)),
        inputs=("input_ids", "attention_mask"),
        context={"mask": ["rows", "tokens"]},
        padding={"input_ids": 0, "attention_mask": 0},
        prototypes_unset=(),
        source={},
        made={},
    )
    return BundleBackend(folder, info, manifest, open_graph, threads=2)


def opened_by_onnx(path: Path) -> OpenGraph:
    share_threads(None)
    return OnnxGraph(path)


def opened_by_openvino(path: Path) -> OpenGraph:
    pytest.importorskip("openvino")
    from de3bert.runtime.openvino_graph import OpenVinoGraph

    return OpenVinoGraph(path, threads=1)


@pytest.fixture(scope="module", params=[opened_by_onnx, opened_by_openvino])
def bundle(request, tmp_path_factory) -> Classifier:
    return Classifier(build(tmp_path_factory.mktemp("carry"), request.param), "carry")


TEXTS = ["two", "six zero zero", "one one one one one", "four three", "three", "zero six six"]


def by_hand() -> Trace:
    first = np.asarray([WORDS.index(text.split()[0]) for text in TEXTS], dtype=np.float64)
    states = np.stack([2 * first, -first], axis=-1)[:, None] + np.arange(1, 5)[None, :, None]
    certainty = 1 / (1 + np.exp(-states[:, :-1, 0] / 4))
    return make_trace(states.cumsum(axis=1), certainty=certainty)


def test_a_trace_is_what_was_computed_by_hand(bundle):
    expected = by_hand()
    for size in (1, 4, 6):
        found = bundle.trace(TEXTS, batch_size=size)
        np.testing.assert_allclose(found.logits, expected.logits, atol=1e-5)
        np.testing.assert_allclose(found.certainty, expected.certainty, atol=1e-6)
        assert (found.base, found.depth) == (8, 4)


@pytest.mark.parametrize(
    "line", ["certainty > 0.85", "certainty > 0.7 x 2", "entropy < 0.05", "layer(3)", "full"]
)
@pytest.mark.parametrize("size", [1, 6])
def test_rows_that_stay_keep_their_own_memory(bundle, line, size):
    expected, policy = by_hand(), Policy.parse(line)
    answers = bundle.predict(TEXTS, policy=policy, batch_size=size)
    replayed = replay(expected, policy)
    assert [answer.exit_layer for answer in answers] == replayed.exit_layers.tolist()
    np.testing.assert_allclose([answer.score for answer in answers], replayed.scores, atol=1e-5)


def test_rows_really_leave_in_between():
    """Or else the test above would not drop rows of the memory at all."""
    left = replay(by_hand(), Policy.parse("certainty > 0.85")).exit_layers
    assert set(left.tolist()) == {1, 3, 4}


def test_dropping_rows_drops_them_from_the_memory(bundle):
    backend = bundle.backend
    state = backend.start(bundle.encode(TEXTS).rows)
    for layer in (1, 2):
        state, _ = backend.advance(state, layer, read=False)
    assert state.feeds["memory"].shape == (6, 2, 2)
    stay = np.asarray([True, False, False, True, False, True])
    kept = backend.keep(state, stay)
    assert kept.feeds["memory"].shape == (3, 2, 2)
    np.testing.assert_array_equal(kept.feeds["memory"], state.feeds["memory"][stay])
    assert kept.feeds["hidden"].shape == (3, 3, 2)


def test_it_has_a_router(bundle):
    assert bundle.has_router
    assert not bundle.has_prototypes
