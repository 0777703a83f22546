"""Single rows are answered by the one graph of a bundle, and by nothing else than it would be."""

from __future__ import annotations

import pickle
from pathlib import Path

import numpy as np
import onnx
import pytest
from tests.export.bundles import bundle_copy, pointed_model, ready_graphs, trained_bundle
from tests.fixtures_trained import toy_data, toy_rows, trained_model
from tests.runtime.test_stopping import answers

import de3bert
from de3bert import Classifier
from de3bert.errors import De3Error
from de3bert.exits import Policy
from de3bert.files import read_json, write_json
from de3bert.runtime.engine import run_batch, run_stretches
from de3bert.runtime.manifest import MANIFEST, sign

__all__ = [
    "bundle_copy",
    "pointed_model",
    "ready_graphs",
    "toy_data",
    "trained_bundle",
    "trained_model",
]

TEXTS = [text for text, _ in toy_rows(24, seed=31)]
FITTING = ["edr(lambda=1.0) < 0.2", "edr(lambda=2.0) <= 0.5", "entropy < 0.3", "entropy < 0.9 x 2",
           "edr < 0.6 x 3", "full", "layer(2)"]  # fmt: skip
OTHERS = ["patience(2)", "max_probability > 0.8", "distance_ratio < 0.4"]


@pytest.fixture
def bundle(trained_bundle: Path) -> Classifier:
    return de3bert.load(trained_bundle)


def opened(bundle: Classifier) -> tuple[bool, bool]:
    """Whether the one graph is open, and whether the stretches are."""
    backend = bundle.backend
    assert backend._single is not None
    return backend._single.opened.made, backend._stretches.made


def test_the_rule_of_a_bundle_is_as_general_as_its_points(bundle):
    assert str(bundle.backend._single.form) == "patience(edr)"  # `fast` is EDR, `twice` counts


@pytest.mark.parametrize("line", FITTING)
def test_a_single_row_leaves_where_it_leaves_stretch_by_stretch(bundle, line):
    policy = Policy.parse(line)
    assert bundle.backend.alone(policy)
    layers = set()
    for row in bundle.encode(TEXTS).rows:
        alone, chained = (run(bundle.backend, [row], policy) for run in (run_batch, run_stretches))
        assert alone.exit_layers.tolist() == chained.exit_layers.tolist()
        assert alone.exit_layers.dtype == chained.exit_layers.dtype
        np.testing.assert_allclose(alone.logits, chained.logits, atol=1e-5)
        layers.add(int(alone.exit_layers[0]))
    assert len(layers) > 1 or line in ("full", "layer(2)")


@pytest.mark.parametrize("line", OTHERS)
def test_policies_of_another_kind_run_stretch_by_stretch(bundle, line):
    assert not bundle.backend.alone(Policy.parse(line))
    together = answers(bundle.predict(TEXTS, policy=line))
    assert [answers(bundle.predict([text], policy=line))[0] for text in TEXTS] == together
    assert opened(bundle) == (False, True)


def test_each_is_opened_when_it_is_needed(trained_bundle):
    single, batched, both = (de3bert.load(trained_bundle) for _ in range(3))
    assert opened(single) == (False, False)
    single.predict(TEXTS[:1])
    single.predict(TEXTS, batch_size=1)
    assert opened(single) == (True, False)
    batched.predict(TEXTS[:9], batch_size=4)  # the row that is left over too
    assert opened(batched) == (False, True)
    both.predict(TEXTS[:1])
    both.explain(TEXTS[0])  # what every exit says
    assert opened(both) == (True, True)


def test_explaining_opens_no_other_graph(bundle):
    bundle.explain(TEXTS[0])
    bundle.trace(TEXTS[:1], batch_size=1)
    assert opened(bundle) == (False, True)


def test_a_copy_in_another_process_has_it_too(bundle):
    copy = pickle.loads(pickle.dumps(bundle))
    assert copy.predict(TEXTS[:1]) == bundle.predict(TEXTS[:1])
    assert opened(copy) == (True, False)


def test_openvino_runs_stretch_by_stretch(trained_bundle):
    pytest.importorskip("openvino")
    other = de3bert.load(trained_bundle, backend="openvino")
    assert not other.backend.alone(Policy.parse("full"))
    assert answers(other.predict(TEXTS[:1])) == answers(
        de3bert.load(trained_bundle).predict(TEXTS[:1])
    )


@pytest.mark.parametrize(("limit", "layer"), [(0, 1), (1, 1), (3, 3), (9, 4)])
def test_rows_go_no_deeper_than_they_may(bundle, limit, layer):
    (row,) = bundle.encode(TEXTS[:1]).rows
    found, logits = bundle.backend.answer_one(row, Policy.parse("edr < 0.0"), at_most=limit)
    assert found == layer
    chained = run_stretches(bundle.backend, [row], Policy.parse(f"layer({layer})"))
    np.testing.assert_allclose(logits, chained.logits, atol=1e-5)


def without_single(folder: Path) -> None:
    """As bundles were before they had the graph."""
    (folder / "single.onnx").unlink()
    document = read_json(folder / MANIFEST)
    del document["single"], document["files"]["single.onnx"]
    write_json(folder / MANIFEST, document)


def test_a_bundle_without_it_still_runs(bundle_copy, bundle):
    without_single(bundle_copy)
    older = de3bert.load(bundle_copy)
    assert older.backend._stretches.made  # what is wrong with graphs is said on loading
    for line in FITTING:
        found = answers(older.predict(TEXTS, policy=line, batch_size=1))
        assert found == answers(bundle.predict(TEXTS, policy=line, batch_size=1))
    assert older.weights_sha256 == bundle.weights_sha256


def change_single(folder: Path, **metadata: str) -> None:
    path = folder / "single.onnx"
    model = onnx.load(path)
    for each in model.metadata_props:
        each.value = metadata.get(each.key.removeprefix("de3bert."), each.value)
    onnx.save(model, path)
    sign(folder, path.name)


def test_a_file_of_another_format(bundle_copy):
    change_single(bundle_copy, format="9")
    with pytest.raises(De3Error, match="not a model in one file that this version"):
        de3bert.load(bundle_copy).predict(TEXTS[:1])


def test_a_file_with_another_rule(bundle_copy):
    change_single(bundle_copy, rule="entropy")
    with pytest.raises(De3Error, match=r"has the rule entropy, its manifest says patience\(edr\)"):
        de3bert.load(bundle_copy).predict(TEXTS[:1])


def test_a_file_that_is_none(bundle_copy):
    (bundle_copy / "single.onnx").write_bytes(b"")
    sign(bundle_copy, "single.onnx")
    with pytest.raises(De3Error, match=r"single\.onnx could not be loaded"):
        de3bert.load(bundle_copy)


def test_an_operator_that_the_runtime_does_not_have(bundle_copy):
    path = bundle_copy / "single.onnx"
    model = onnx.load(path)
    model.graph.node[0].op_type = "OfTomorrow"
    onnx.save(model, path)
    sign(bundle_copy, path.name)
    with pytest.raises(De3Error, match=r"needs ONNX Runtime 1\.18 or later; this is") as error:
        de3bert.load(bundle_copy).predict(TEXTS[:1])
    assert "Traceback" not in str(error.value)


def test_a_rule_that_this_version_does_not_know(bundle_copy):
    document = read_json(bundle_copy / MANIFEST)
    document["single"]["rule"] = "wisdom"
    write_json(bundle_copy / MANIFEST, document)
    with pytest.raises(De3Error, match="no rule of the form 'wisdom'"):
        de3bert.load(bundle_copy)


class Says:
    """A file that says what it is told."""

    def __init__(self, logits: list[list[float]]) -> None:
        self.logits = np.array(logits, dtype=np.float32)

    def answer(self, *_: object) -> tuple[int, np.ndarray]:
        return 1, self.logits


def test_logits_that_are_not_numbers_are_looked_at_exit_by_exit(bundle, monkeypatch):
    right = bundle.predict(TEXTS[:1])
    monkeypatch.setattr(bundle.backend._single, "opened", lambda: Says([[np.nan, 1.0]]))
    assert answers(bundle.predict(TEXTS[:1])) == answers(right)


def test_logits_of_too_many_classes(bundle, monkeypatch):
    monkeypatch.setattr(bundle.backend._single, "opened", lambda: Says([[0.0, 1.0, 2.0]]))
    with pytest.raises(De3Error, match=r"single\.onnx gives logits of \(1, 3\)"):
        bundle.predict(TEXTS[:1])


def test_ids_that_the_model_does_not_have(bundle):
    row = {name: [10**6] for name in ("input_ids", "attention_mask", "token_type_ids")}
    with pytest.raises(De3Error, match=r"single\.onnx failed at run time"):
        run_batch(bundle.backend, [row], Policy.parse("full"))
