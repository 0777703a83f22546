"""Exits on classifiers of others: the end answers as it did, and the rest is fitted."""

from __future__ import annotations

import json
import shutil
from inspect import signature
from typing import get_type_hints

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.conftest import TINY_WORDS
from tests.fixtures_trained import toy_recipe, toy_rows
from tests.model.families import FAMILIES, batch
from tests.training.classifiers import saved, tiny_classifier
from transformers import AutoModelForSequenceClassification, AutoTokenizer, pipeline

import de3bert
from de3bert.data.read import read_table
from de3bert.data.table import Table
from de3bert.errors import De3Error, UsageError
from de3bert.model.attaching import from_classifier
from de3bert.model.loading import read_model
from de3bert.training.attach import attach_model
from de3bert.training.attachable import AttachOptions
from de3bert.training.fit import fit
from de3bert.training.recipe import recipe_from

NAMED = ("bert", "roberta", "distilbert", "deberta-v2", "modernbert", "electra", "albert-1-group",
         "xlm-roberta")  # fmt: skip


def texts(rows: int = 200, seed: int = 8) -> list[str]:
    return [text for text, _ in toy_rows(rows, seed)]


def table(rows: int = 200, *, labels: bool = False, seed: int = 8) -> Table:
    made = toy_rows(rows, seed)
    columns = {"text": [text for text, _ in made]}
    if labels:
        columns["label"] = [label for _, label in made]
    return read_table(columns, need_labels=False)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory, tiny_tokenizer):
    folder = tmp_path_factory.mktemp("checkpoint") / "tiny-classifier"
    return saved(tiny_classifier("bert"), tiny_tokenizer, folder)


@pytest.fixture(scope="module")
def attached(tmp_path_factory, checkpoint):
    out = tmp_path_factory.mktemp("attached") / "model"
    attach_model(checkpoint, table(), out)
    return out


@pytest.mark.parametrize("family", FAMILIES)
def test_the_final_logits_are_those_of_the_original_to_the_last_bit(family, tmp_path):
    classifier = tiny_classifier(family, ("a", "b", "c"))
    given = batch()
    given["input_ids"] = given["input_ids"] % 50
    with torch.no_grad():
        expected = classifier(**given).logits
    model = from_classifier(classifier)
    with torch.no_grad():
        assert torch.equal(model(**given).logits, expected)
    model.save_pretrained(tmp_path)
    with torch.no_grad():
        assert torch.equal(read_model(str(tmp_path)).eval()(**given).logits, expected)


def balanced(family: str, names: tuple[str, ...], tokenizer):
    """A classifier that gives each class to about as many texts, but never the class `never`."""
    classifier = tiny_classifier(family, names)
    *_, last = (m for m in classifier.modules() if isinstance(m, torch.nn.Linear)
                and m.out_features == len(names))  # fmt: skip
    given = tokenizer(texts(), padding=True, return_tensors="pt", return_token_type_ids=False)
    with torch.no_grad():
        last.bias -= classifier(**given).logits.median(0).values
        if "never" in names:
            last.bias[names.index("never")] = -1000.0
    return classifier


def realigned(model: torch.nn.Module) -> None:
    """Weights where torch puts them. Mapped from a file they begin anywhere, and where they begin
    decides in which order a product of one row is summed up, so in its last bit.
    """
    for parameter in model.parameters():
        parameter.data = parameter.data.clone()


@pytest.mark.parametrize("family", NAMED)
def test_attach_end_to_end(family, tmp_path, tiny_tokenizer):
    """From a folder of transformers to stopping early and a bundle, by all families."""
    classifier = balanced(family, ("neg", "pos"), tiny_tokenizer)
    source = saved(classifier, tiny_tokenizer, tmp_path / "source")
    out = tmp_path / "out"
    found = attach_model(source, table(120), out)
    assert found.method == "full+attached"
    clf = de3bert.load(out)
    tokenizer = AutoTokenizer.from_pretrained(source)
    original = AutoModelForSequenceClassification.from_pretrained(source).eval()
    for each in (original, clf.backend.model):
        realigned(each)
    for text in texts(12, seed=3):
        with torch.no_grad():
            logits = original(**tokenizer(text, return_tensors="pt")).logits[0]
        assert np.array_equal(clf.trace([text]).logits[0, -1], logits.numpy())
        answer = clf.predict([text], point="full")[0]
        assert answer.label == original.config.id2label[int(logits.argmax())]
    early = clf.predict(texts(30), policy="edr(lambda=1.0) < 0.95")
    assert min(answer.exit_layer for answer in early) < clf.depth


def test_attached_models_become_bundles(attached, tmp_path):
    from de3bert.export.bundle import export_model

    export_model(attached, tmp_path / "bundle")
    bundle, model = de3bert.load(tmp_path / "bundle"), de3bert.load(attached)
    for policy in ("full", "edr(lambda=1.0) < 0.6", "entropy < 0.5"):
        pairs = zip(
            bundle.predict(texts(40), policy=policy),
            model.predict(texts(40), policy=policy),
            strict=True,
        )
        for one, other in pairs:
            assert (one.label, one.exit_layer) == (other.label, other.exit_layer)


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_modernbert_heads_of_both_kinds_export(pooling, tmp_path, tiny_tokenizer):
    """A head that reads all tokens needs the mask in the graph as well."""
    from de3bert.export.bundle import export_model

    classifier = tiny_classifier("modernbert")
    classifier.config.classifier_pooling = pooling
    source = saved(classifier, tiny_tokenizer, tmp_path / "source")
    attach_model(source, table(60), tmp_path / "out")
    export_model(tmp_path / "out", tmp_path / "bundle")
    found = de3bert.load(tmp_path / "bundle").predict(texts(9), point="full")
    expected = de3bert.load(tmp_path / "out").predict(texts(9), point="full")
    assert [each.label for each in found] == [each.label for each in expected]


def test_no_weight_of_the_classifier_changes(checkpoint, attached):
    before, after = load_file(checkpoint / "model.safetensors"), load_file(
        attached / "model.safetensors"
    )  # fmt: skip
    kept = {name.partition("bert.")[2] or name for name in before}
    stored = {name: tensor for name, tensor in after.items()}
    same = 0
    for name, tensor in before.items():
        tail = name.removeprefix("bert.")
        matches = [n for n in stored if n.endswith((f".{tail}", f".{name}"))
                   or n.endswith(tail.replace("encoder.layer.", "layers."))]  # fmt: skip
        assert any(torch.equal(stored[n], tensor) for n in matches), name
        same += 1
    assert same == len(kept)


def test_it_is_an_ordinary_model_folder(attached):
    config = json.loads((attached / "config.json").read_text())
    assert config["heads"] == "attached"
    assert config["fitted"]["labels"] == "answers"
    assert sorted(config["fitted"]["strengths"]) == ["1", "2"]
    assert "README.md" in {item.name for item in attached.iterdir()}
    assert "fitted to 180 texts" in (attached / "README.md").read_text()
    answer = pipeline("text-classification", str(attached))("good film")[0]
    assert answer["label"] in ("neg", "pos")


def test_with_labels_exits_learn_labels(checkpoint, tmp_path):
    found = attach_model(checkpoint, table(300, labels=True), tmp_path / "out")
    assert found.exits.labels == "given"
    assert found.method == "full+fitted"
    # The end is random and the exits are not: they have seen what the words mean.
    final = found.accuracy[max(found.accuracy)]
    assert max(found.accuracy.values()) > final + 0.1
    blind = attach_model(checkpoint, table(300, labels=True), tmp_path / "b", labels=False)
    assert blind.exits.labels == "answers"


def test_the_same_texts_give_the_same_model(checkpoint, tmp_path):
    for name in ("a", "b"):
        attach_model(checkpoint, table(80), tmp_path / name)
    first, second = (load_file(tmp_path / name / "model.safetensors") for name in ("a", "b"))
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_python_takes_texts_and_gives_a_classifier(checkpoint, tmp_path):
    clf = de3bert.attach(str(checkpoint), texts(90), tmp_path / "out", exit_layers=[2])
    assert clf.backend.exit_layers == (2, 3)
    assert len(clf.predict(texts(3), policy="entropy < 0.5")) == 3
    pairs = list(zip(texts(90), texts(90, seed=1), strict=True))
    assert de3bert.attach(str(checkpoint), pairs, tmp_path / "pairs").info.text_pairs is True


def test_the_options_of_attach_are_those_of_attach_model():
    known = get_type_hints(attach_model)
    every = signature(attach_model).parameters.values()
    chosen = [each.name for each in every if each.kind == each.KEYWORD_ONLY]
    assert get_type_hints(AttachOptions) == {name: known[name] for name in chosen}


def test_exits_on_a_plain_model_of_ours(tiny_backbone, toy_data, tmp_path):
    settings = toy_recipe(tiny_backbone, toy_data, epochs=1) | {"method": "full"}
    fit(recipe_from(settings), tmp_path / "full", progress=False)
    rows = read_table(toy_data.train)
    found = attach_model(tmp_path / "full", rows, tmp_path / "out")
    assert found.method == "full+fitted"
    full, exits = de3bert.load(tmp_path / "full"), de3bert.load(tmp_path / "out")
    given = texts(20)
    assert [each.score for each in full.predict(given)] == [
        each.score for each in exits.predict(given, point="full")
    ]
    # The same by a recipe in one go.
    fit(recipe_from(settings | {"exits": "fitted"}), tmp_path / "one", progress=False)
    config = json.loads((tmp_path / "one" / "config.json").read_text())
    assert config["method"] == "full+fitted"
    again = attach_model(
        tmp_path / "full", rows, tmp_path / "two", held=read_table(toy_data.calibration), rows=None
    )
    assert config["fitted"].pop("data") != []
    assert config["fitted"] == again.exits.to_json()


# What cannot be done, told in words and with nothing left behind.


def refused(kind, match, source, given, out, **options):
    with pytest.raises(kind, match=match):
        attach_model(source, given, out, **options)
    assert not out.exists()
    assert not list(out.parent.glob(".*partial*"))


def test_an_encoder_without_a_head(tiny_backbone, tmp_path):
    refused(UsageError, "no trained classification head.*de3 train", tiny_backbone, table(),
            tmp_path / "out")  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"problem_type": "multi_label_classification"}, "multi-label"),
        ({"problem_type": "regression"}, "predicts a value"),
    ],
)
def test_heads_that_choose_no_class(changes, match, checkpoint, tmp_path):
    source = shutil.copytree(checkpoint, tmp_path / "source")
    config = json.loads((source / "config.json").read_text())
    (source / "config.json").write_text(json.dumps(config | changes))
    refused(UsageError, match, source, table(), tmp_path / "out")


def test_a_head_of_one_value(tmp_path, tiny_tokenizer):
    source = saved(tiny_classifier("bert", ("score",)), tiny_tokenizer, tmp_path / "source")
    refused(UsageError, "predicts a value", source, table(), tmp_path / "out")
    with pytest.raises(UsageError, match="predicts a value"):
        from_classifier(tiny_classifier("bert", ("score",)))
    with pytest.raises(UsageError, match="not a transformers classifier"):
        from_classifier(torch.nn.Linear(2, 2))


def test_fewer_rows_than_classes(tmp_path, tiny_tokenizer):
    names = [f"intent {number}" for number in range(60)]
    source = saved(tiny_classifier("bert", names), tiny_tokenizer, tmp_path / "source")
    refused(UsageError, "too few to fit exits for 60 classes", source, table(40), tmp_path / "out")
    refused(UsageError, "gives 10 rows", source, table(10), tmp_path / "out")


def test_a_class_that_no_text_has(tmp_path, tiny_tokenizer):
    source = saved(balanced("bert", ("neg", "never", "pos"), tiny_tokenizer), tiny_tokenizer,
                   tmp_path / "source")  # fmt: skip
    refused(UsageError, "the final exit never predicts never", source, table(),
            tmp_path / "out")  # fmt: skip
    refused(UsageError, "have none of never", source, table(labels=True), tmp_path / "out")
    for number, labels in enumerate((True, False)):
        out = tmp_path / str(number)
        attach_model(source, table(labels=labels), out, force=True)
        assert len(de3bert.load(out).predict(texts(5), policy="edr(lambda=1.0) < 0.9")) == 5


def test_a_tokenizer_of_another_model(checkpoint, tmp_path, tiny_tokenizer):
    source = shutil.copytree(checkpoint, tmp_path / "source")
    bigger = AutoTokenizer.from_pretrained(source)
    bigger.add_tokens(["film"[:3] + str(number) for number in range(20)] + ["zebra"])
    bigger.save_pretrained(source)
    given = Table([f"zebra {text}" for text in texts(60)], source="here")
    refused(
        De3Error, "does not fit its model: it gives the token id", source, given, tmp_path / "out"
    )


def test_texts_of_another_language_are_mentioned(checkpoint, tmp_path):
    given = Table(["xyz abc uvw xyz" if row % 4 else text for row, text in enumerate(texts(80))])
    found = attach_model(checkpoint, given, tmp_path / "out")
    assert any("unknown to the tokenizer" in note for note in found.notes)


def test_weights_that_give_no_numbers(checkpoint, tmp_path):
    source = shutil.copytree(checkpoint, tmp_path / "source")
    tensors = load_file(source / "model.safetensors")
    words = next(n for n in tensors if n.endswith("word_embeddings.weight"))
    tensors[words][TINY_WORDS.index("hated")] = float("nan")  # only texts with this word
    save_file(tensors, source / "model.safetensors", metadata={"format": "pt"})
    first = next(n for n, text in enumerate(texts(), start=1) if "hated" in text.split())
    refused(De3Error, rf"not finite at layer 1 \(the first is row {first}\)", source, table(),
            tmp_path / "out", held=table(40, seed=1))  # fmt: skip
    tensors[words][:] = float("nan")
    save_file(tensors, source / "model.safetensors", metadata={"format": "pt"})
    refused(De3Error, "are not finite", source, table(), tmp_path / "out")


def test_labels_of_another_task(checkpoint, tmp_path):
    given = read_table({"text": texts(60), "label": ["spam", "ham"] * 30})
    refused(UsageError, "--no-labels", checkpoint, given, tmp_path / "out")


def test_places_and_lengths(checkpoint, attached, tmp_path):
    refused(UsageError, "is the model folder itself or inside it", checkpoint, table(),
            checkpoint / "inside")  # fmt: skip
    with pytest.raises(UsageError, match="holds a model already"):
        attach_model(checkpoint, table(), attached)
    refused(UsageError, "reads 64 tokens at most", checkpoint, table(), tmp_path / "out",
            max_length=100)  # fmt: skip
    refused(UsageError, "There is no exit before the last", checkpoint, table(), tmp_path / "out",
            exit_layers=[3])  # fmt: skip
    refused(UsageError, "has no labels to fit", checkpoint, table(), tmp_path / "out", labels=True)
    refused(UsageError, "one has texts, the other pairs", checkpoint, table(), tmp_path / "out",
            held=Table(texts(40), pairs=texts(40)))  # fmt: skip


def test_many_states_are_kept_in_a_file(checkpoint, tmp_path, monkeypatch):
    from de3bert.training import states

    attach_model(checkpoint, table(90), tmp_path / "memory")
    monkeypatch.setattr(states, "IN_MEMORY", 0)
    attach_model(checkpoint, table(90), tmp_path / "file")
    first, second = (load_file(tmp_path / n / "model.safetensors") for n in ("memory", "file"))
    assert all(torch.equal(first[name], second[name]) for name in first)
    assert sorted(item.name for item in tmp_path.iterdir()) == ["file", "memory"]
    monkeypatch.setattr(states.os, "posix_fallocate", full_disk)
    refused(De3Error, "not enough space in .* for the states of 81 rows", checkpoint, table(90),
            tmp_path / "out")  # fmt: skip


def full_disk(*_: object) -> None:
    raise OSError(28, "No space left on device")


def test_at_most_so_many_rows(checkpoint, tmp_path):
    found = attach_model(checkpoint, table(200), tmp_path / "out", rows=100)
    assert (found.exits.rows, found.exits.held) == (90, 10)
    assert np.isclose(sum(found.exits.seconds.values()), found.seconds)
