"""Graphs that differ in their weights alone are traced once, and are what tracing each gives."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper
from tests.fixtures_trained import toy_rows
from tests.model.families import tiny
from transformers import BertConfig, BertModel

import de3bert
from de3bert.export import segments, templates
from de3bert.export import write as writing
from de3bert.export.bundle import export_model
from de3bert.export.segments import Segment
from de3bert.model import EarlyExitForSequenceClassification
from de3bert.model.tokens import TextEncoder

TEXTS = [text for text, _ in toy_rows(20, seed=61)]


def model_of(backbone, method: str = "de3", **options) -> EarlyExitForSequenceClassification:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = EarlyExitForSequenceClassification.from_backbone(
            backbone, labels=["neg", "pos"], method=method, pooling="mean", max_length=24, **options
        )
        if model.prototypes is not None:
            model.prototypes.vectors.normal_()
            model.prototypes.initialised.fill_(True)
    return model


def bert(layers: int = 5, **settings) -> BertModel:
    sizes = {"vocab_size": 60, "hidden_size": 32, "num_hidden_layers": layers,
             "num_attention_heads": 4, "intermediate_size": 64,
             "max_position_embeddings": 64}  # fmt: skip
    config = BertConfig(**{**sizes, **settings})
    torch.manual_seed(1)
    return BertModel(config)


def saved(model, tokenizer, folder: Path) -> Path:
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(autouse=True)
def nothing_traced(monkeypatch) -> None:
    """Each test begins as a process does."""
    monkeypatch.setattr(templates, "TRACED", OrderedDict())


@pytest.fixture
def traced(monkeypatch) -> list[str]:
    """The modules that were traced, by class."""
    seen: list[str] = []

    def spy(module, *rest):
        seen.append(type(module).__name__)
        return captured(module, *rest)

    captured = templates.capture
    monkeypatch.setattr(templates, "capture", spy)
    return seen


def constants(path: Path) -> list[np.ndarray]:
    return [numpy_helper.to_array(each) for each in onnx.load(path).graph.initializer]


def program(path: Path) -> list[str]:
    return [node.op_type for node in onnx.load(path).graph.node]


def test_a_graph_filled_with_other_weights_is_the_graph_that_tracing_gives(
    tiny_tokenizer, tmp_path
):
    model = model_of(bert(3))
    for use in (True, False):
        (tmp_path / str(use)).mkdir()
        writer = writing.GraphWriter(model, TextEncoder(tiny_tokenizer, 24), templates=use)
        writer.write(tmp_path / str(use), (1, 2, 3))
        assert writer.templates.filled == (2 if use else 0)  # layer 3, a distance test
    for path in sorted((tmp_path / "True").glob("*.onnx")):
        other = tmp_path / "False" / path.name
        assert program(path) == program(other)
        for mine, right in zip(constants(path), constants(other), strict=True):
            np.testing.assert_array_equal(mine, right)


def test_layers_are_traced_once(traced, tiny_tokenizer, tmp_path):
    source = saved(model_of(bert(6)), tiny_tokenizer, tmp_path / "model")
    export_model(source, tmp_path / "bundle")
    assert sorted(traced) == ["Distances", "Segment", "Start"]


def other_weights(model: EarlyExitForSequenceClassification) -> EarlyExitForSequenceClassification:
    with torch.random.fork_rng(), torch.no_grad():
        torch.manual_seed(11)
        for weight in (*model.parameters(), *model.buffers()):
            if weight.is_floating_point():
                weight.normal_(std=0.3)
    return model


@pytest.mark.parametrize("method", ["de3", "gpfee"])
def test_a_second_model_of_the_same_shape_is_not_traced(method, traced, tiny_tokenizer, tmp_path):
    counts = []
    for name, change in (("first", lambda model: model), ("second", other_weights)):
        source = saved(change(model_of(bert(3), method)), tiny_tokenizer, tmp_path / name)
        export_model(source, tmp_path / f"{name}-bundle")
        counts.append(len(traced))
    assert counts[0] == counts[1] > 0
    model, bundle = (de3bert.load(tmp_path / name) for name in ("second", "second-bundle"))
    wanted, found = model.trace(TEXTS), bundle.trace(TEXTS)
    np.testing.assert_allclose(found.logits, wanted.logits, atol=1e-4)
    assert np.abs(wanted.logits - de3bert.load(tmp_path / "first").trace(TEXTS).logits).max() > 0.1


@pytest.mark.parametrize(
    "changed",
    [
        {"hidden_act": "relu"},
        {"layer_norm_eps": 1e-3},
        {"num_attention_heads": 8},
    ],
)
def test_another_program_of_the_same_shape_is_another(changed):
    first, second = model_of(bert(2)), model_of(bert(2, **changed))
    assert segments.program_kind(first) == segments.program_kind(other_weights(model_of(bert(2))))
    assert segments.program_kind(first) != segments.program_kind(second)


def test_what_is_remembered_holds_no_weights_and_is_bounded(tiny_tokenizer, tmp_path, monkeypatch):
    monkeypatch.setattr(templates, "KEPT", 2)
    source = saved(model_of(bert(3)), tiny_tokenizer, tmp_path / "model")
    export_model(source, tmp_path / "bundle")
    assert len(templates.TRACED) == 2
    for template in templates.TRACED.values():
        held = template.graph.graph.initializers
        assert template.roles
        assert all(held[name].const_value is None for name in template.roles)


def test_stretches_of_other_lengths_are_other_programs(traced, tiny_tokenizer, tmp_path):
    model = model_of(bert(5), exit_layers=[1, 2, 4])
    export_model(saved(model, tiny_tokenizer, tmp_path / "model"), tmp_path / "bundle")
    assert traced.count("Segment") == 2  # layer 2 and 5 are alike; 3 to 4 is another


def test_kinds_of_layers_that_alternate(tiny_tokenizer):
    """ModernBERT: some layers see the whole text, some a window of it."""
    model = model_of(tiny("modernbert"))
    writer = writing.GraphWriter(model, TextEncoder(tiny_tokenizer, 24))
    kinds = [Segment(model, n, n).kind(writer.prepared) for n in range(2, model.encoder.depth + 1)]
    sort = [layer.attention_type for layer in model.encoder.layers][1:]
    same = [[a == b for b in kinds] for a in kinds]
    assert same == [[a == b for b in sort] for a in sort]


def test_temperatures_are_part_of_the_program(tiny_tokenizer):
    model = model_of(bert(4), "joint-entropy")
    model.config.temperatures = [1.0, 2.0, 2.0, 3.0]
    writer = writing.GraphWriter(model, TextEncoder(tiny_tokenizer, 24))
    two, three, four = (Segment(model, n, n).kind(writer.prepared) for n in (2, 3, 4))
    assert two == three
    assert three != four


def test_layers_that_only_look_alike_are_found_out(traced, tiny_tokenizer, tmp_path, monkeypatch):
    """Whatever the modules do not tell, the comparison with the model does."""
    monkeypatch.setattr(segments, "module_kind", lambda module: type(module).__name__)
    backbone = bert(4)
    backbone.encoder.layer[2].intermediate.intermediate_act_fn = torch.nn.Tanh()
    model = model_of(backbone)
    monkeypatch.setattr(de3bert.runtime.load, "load", _loading(model, tiny_tokenizer))
    monkeypatch.setattr("de3bert.export.bundle.load", _loading(model, tiny_tokenizer))
    export_model(saved(model, tiny_tokenizer, tmp_path / "model"), tmp_path / "bundle")
    assert traced.count("Segment") == 1 + 3  # once with templates, then each by itself
    bundle = de3bert.load(tmp_path / "bundle")
    right = _loading(model, tiny_tokenizer)(tmp_path / "model")
    np.testing.assert_allclose(bundle.trace(TEXTS).logits, right.trace(TEXTS).logits, atol=1e-4)


def _loading(model, tokenizer):
    """A `load` that gives this very model, whose change no config can say."""
    from de3bert.runtime.load import load as usual
    from de3bert.runtime.torch_backend import TorchBackend

    def load(folder, **options):
        if (Path(folder) / "manifest.json").exists():
            return usual(folder, **options)
        return de3bert.Classifier(TorchBackend(model, TextEncoder(tokenizer, 24)), str(folder))

    return load


@pytest.mark.parametrize("pooling", ["cls", "shared_pooler", "own_pooler"])
def test_a_mask_that_is_handed_on_unchanged_keeps_its_name(pooling, tiny_tokenizer, tmp_path):
    """Without a mean over tokens the mask itself is part of the context, as it came in."""
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = EarlyExitForSequenceClassification.from_backbone(
            bert(2), labels=["neg", "pos"], method="joint-entropy", pooling=pooling, max_length=24
        )
    source = saved(model, tiny_tokenizer, tmp_path / "model")
    export_model(source, tmp_path / "bundle")
    first = onnx.load(tmp_path / "bundle" / "layers-01-01.onnx").graph
    assert {each.name for each in first.input} <= {"input_ids", "attention_mask", "token_type_ids"}
    assert "attention_mask" in {each.name for each in first.input}
    de3bert.load(tmp_path / "bundle").predict(TEXTS, policy="entropy < 0.5")
