"""The tagger as transformers knows it: auto classes, pipeline, tokens in place of words."""

from __future__ import annotations

import json
import os
import subprocess

import pytest
import torch
from tests.tagged import TAGS
from tests.warm import python

import de3bert
from de3bert.errors import De3Error
from de3bert.model import EarlyExitConfig, EarlyExitForTokenClassification, EarlyExitModel
from de3bert.model.tokens import load_tokenizer
from de3bert.model.word_encoder import WordEncoder
from de3bert.runtime.load import task_of_model

OPEN = """
import sys
{imports}
from transformers import AutoConfig, AutoModelForTokenClassification, AutoTokenizer, pipeline
folder = sys.argv[1]
model = AutoModelForTokenClassification.from_pretrained(folder)
assert type(model).__name__ == "EarlyExitForTokenClassification", type(model)
assert AutoConfig.from_pretrained(folder).task == "token-classification"
tag = pipeline("token-classification", folder)
for words in ("the good film was a plot", "story"):
    print(*[each["entity"] for each in tag(words)])
"""
ORDERS = {
    "de3bert first": "import de3bert, transformers",
    "transformers first": "import transformers, de3bert",
    "names first": "from transformers import AutoModelForTokenClassification\nimport de3bert",
}


@pytest.mark.parametrize("order", ORDERS)
def test_a_tagger_is_found_in_a_fresh_process(order, sentee_model):
    own = {key: value for key, value in os.environ.items() if key != "TRANSFORMERS_VERBOSITY"}
    command = [*python("torch"), "-c", OPEN.format(imports=ORDERS[order]), str(sentee_model)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=own)
    assert done.returncode == 0, done.stderr
    sentences = [["the", "good", "film", "was", "a", "plot"], ["story"]]
    tagger = de3bert.load(sentee_model)
    expected = [answer.tags for answer in tagger.predict(sentences, "full")]
    lines = [line.split() for line in done.stdout.strip("\n").split("\n")]
    shown = [[tag for tag in tags if tag != "O"] for tags in expected]  # a pipeline leaves O out
    assert lines == shown
    assert any(shown)


@pytest.fixture(scope="module")
def model(tiny_backbone):
    with torch.random.fork_rng():
        torch.manual_seed(3)
        return EarlyExitForTokenClassification.from_backbone(
            str(tiny_backbone), labels=TAGS, method="de3-words"
        )


@pytest.fixture(scope="module")
def batch(tiny_backbone):
    encoder = WordEncoder(load_tokenizer(str(tiny_backbone)), 32)
    return encoder.pad(encoder([["a", "film-movie", "was"], ["the", "story", "is", "fine"]]).rows)


def test_without_words_every_token_has_an_answer(model, batch):
    words = model(**batch)
    plain = {name: value for name, value in batch.items() if name != "word_ids"}
    tokens = model(**plain)
    rows, length = batch["input_ids"].shape
    assert tokens.logits.shape == (rows, length, 3)
    assert tokens.exit_logits.shape == (rows, length, 4, 3)
    assert tokens.distances.shape == (rows, length, 3, 3)
    ids = batch["word_ids"]
    first = (ids > 0) & (ids != torch.nn.functional.pad(ids[:, :-1], (1, 0)))
    torch.testing.assert_close(tokens.exit_logits[first], words.exit_logits)
    as_tuple = model(**plain, return_dict=False)
    assert torch.equal(as_tuple[0], tokens.logits)


def test_labels_of_tokens_are_labels_of_their_words(model, batch):
    plain = {name: value for name, value in batch.items() if name != "word_ids"}
    ids = batch["word_ids"]
    first = (ids > 0) & (ids != torch.nn.functional.pad(ids[:, :-1], (1, 0)))
    flat = torch.tensor([0, 1, 2, 2, 0, 1, 2])
    of_tokens = torch.full(ids.shape, -100)
    of_tokens[first] = flat
    of_words = torch.tensor([[0, 1, 2, -100], [2, 0, 1, 2]])
    expected = model(**batch, labels=of_words)
    found = model(**plain, labels=of_tokens)
    torch.testing.assert_close(found.loss, expected.loss)
    assert found.logits.shape[:2] == ids.shape
    with pytest.raises(De3Error, match="do not fit"):
        model(**plain, labels=of_words)


def test_a_base_class_finds_the_class_of_the_task(tiny_backbone):
    made = EarlyExitModel.from_backbone(str(tiny_backbone), labels=TAGS, method="tokee")
    assert type(made) is EarlyExitForTokenClassification
    assert made.config.keeps_memory is False


def test_configs_of_before_are_read(sentee_model, tmp_path):
    """They said `token_exits: words`, and nothing of a task or of memory."""
    import shutil

    folder = shutil.copytree(sentee_model, tmp_path / "old")
    path = folder / "config.json"
    config = json.loads(path.read_text())
    for name in ("task", "keeps_memory"):
        config.pop(name)
    config |= {"token_exits": "words", "architectures": ["EarlyExitForSequenceClassification"]}
    path.write_text(json.dumps(config))
    read = EarlyExitConfig.from_pretrained(folder)
    assert (read.task, read.token_exits) == ("token-classification", "none")
    sentences = [["a", "good", "film"], ["the", "plot"]]
    tagger = de3bert.load(folder)
    assert tagger.task.name == "token-classification"
    assert tagger.predict(sentences) == de3bert.load(sentee_model).predict(sentences)


@pytest.mark.parametrize("given", ["nonsense", 7])
def test_a_task_that_nobody_knows(sentee_model, tmp_path, given):
    import shutil

    folder = shutil.copytree(sentee_model, tmp_path / "odd")
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "task": given}))
    with pytest.raises(De3Error, match="damaged or incomplete"):
        de3bert.load(folder)
    with pytest.raises(De3Error, match="damaged or incomplete"):
        task_of_model(folder)
