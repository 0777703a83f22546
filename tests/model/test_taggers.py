"""Taggers: words are rows, halted words keep their states, prototypes are of tags."""

from __future__ import annotations

import pytest
import torch
from tests.tagged import TAGS, toy_sentences

from de3bert.errors import De3Error, UsageError
from de3bert.model import EarlyExitForSequenceClassification, EarlyExitForTokenClassification
from de3bert.model.tokens import load_tokenizer
from de3bert.model.word_encoder import NO_LABEL, WordEncoder
from de3bert.objective import ExitBatch
from de3bert.objective.per_row import cross_entropies
from de3bert.objective.until_halted import until_halted

PIECES = [["a", "film-movie", "was", "good"], ["the", "story"], ["plot-scene-actor"]]


@pytest.fixture(scope="module")
def encoder(tiny_backbone):
    return WordEncoder(load_tokenizer(str(tiny_backbone)), 32)


def build(backbone, method="sentee", **options):
    with torch.random.fork_rng():
        torch.manual_seed(5)
        return EarlyExitForTokenClassification.from_backbone(
            str(backbone), labels=TAGS, method=method, **options
        )


@pytest.fixture(scope="module")
def model(tiny_backbone):
    return build(tiny_backbone)


def batch_of(encoder, sentences, tags=None):
    rows = encoder(sentences).rows
    batch = encoder.pad(rows)
    if tags is not None:
        longest = max(map(len, tags))
        batch["labels"] = torch.tensor([t + [NO_LABEL] * (longest - len(t)) for t in tags])
    return batch


def test_pieces_know_their_words(encoder):
    rows = encoder(PIECES).rows
    assert rows[0]["word_ids"] == [0, 1, 2, 2, 2, 3, 4, 0]
    assert rows[2]["word_ids"] == [0, 1, 1, 1, 1, 1, 0]
    padded = encoder.pad(rows)
    assert padded["word_ids"].shape == padded["input_ids"].shape
    assert padded["word_ids"][1].tolist() == [0, 1, 2, 0, 0, 0, 0, 0]


def test_long_sentences_are_cut_and_counted(tiny_backbone):
    short = WordEncoder(load_tokenizer(str(tiny_backbone)), 6)
    encoded = short([["a"] * 9, ["the", "film"]])
    assert encoded.truncated == 1
    assert encoded.rows[0]["word_ids"] == [0, 1, 2, 3, 4, 0]


def test_a_word_that_gives_no_piece_is_an_unknown_one(tiny_backbone):
    from tokenizers import normalizers

    tokenizer = load_tokenizer(str(tiny_backbone))
    tokenizer.backend_tokenizer.normalizer = normalizers.BertNormalizer()
    row = WordEncoder(tokenizer, 32)([["a", "\u200d", "film"]]).rows[0]
    assert row["word_ids"] == [0, 1, 2, 3, 0]
    assert row["input_ids"][2] == tokenizer.unk_token_id


def test_byte_level_tokenizers_see_the_space_before_every_word(tmp_path):
    from tokenizers import ByteLevelBPETokenizer
    from transformers import PreTrainedTokenizerFast

    raw = ByteLevelBPETokenizer()
    raw.train_from_iterator(["one good film was a good film"] * 30, vocab_size=290)
    raw.save(str(tmp_path / "tokenizer.json"))
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    whole = tokenizer.tokenize("one good film")[1:]
    encoder = WordEncoder(tokenizer, 32)
    row = encoder([["good", "film"]]).rows[0]
    assert tokenizer.convert_ids_to_tokens(row["input_ids"]) == whole == ["Ġgood", "Ġfilm"]
    tokenizer.save_pretrained(tmp_path / "saved")
    again = PreTrainedTokenizerFast.from_pretrained(tmp_path / "saved")
    assert WordEncoder(again, 32)([["good", "film"]]).rows == [row]


def test_exits_read_the_first_piece_of_every_word(model, encoder):
    batch = batch_of(encoder, PIECES)
    output = model(**batch)
    assert output.exit_logits.shape == (7, 4, 3)  # 4 + 2 + 1 words
    prepared = model.encoder.prepare(**batch)
    hidden = prepared.embedded
    places = [(0, 1), (0, 2), (0, 5), (0, 6), (1, 1), (1, 2), (2, 1)]
    for number in range(1, 5):
        hidden = model.encoder.layer(prepared, number, hidden)
        own = torch.stack([hidden[row, token] for row, token in places])
        head = model.heads.exits[number - 1]
        torch.testing.assert_close(output.exit_logits[:, number - 1], head(own))


def test_a_batch_in_chunks_is_the_same_batch(tiny_backbone, encoder, monkeypatch):
    model = build(tiny_backbone, "de3-words")
    rows = toy_sentences(30, 9)
    batch = batch_of(encoder, [w for w, _ in rows], [[TAGS.index(t) for t in ts] for _, ts in rows])
    cut = model(**batch)
    monkeypatch.setattr("de3bert.model.early_exit.length_chunks", lambda mask: None)
    whole = model(**batch)
    torch.testing.assert_close(cut.exit_logits, whole.exit_logits, atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(cut.loss, whole.loss)


def test_the_batch_above_really_ran_in_chunks(encoder):
    from de3bert.model.chunks import length_chunks

    rows = toy_sentences(30, 9)
    assert length_chunks(batch_of(encoder, [w for w, _ in rows])["attention_mask"]) is not None


def test_the_loss_is_that_of_the_flat_list_of_words(model, encoder):
    tags = [[0, 1, 2, 2], [2, 0], [1]]
    output = model(**batch_of(encoder, PIECES, tags))
    flat = torch.tensor([tag for row in tags for tag in row])
    each = cross_entropies(output.exit_logits, flat).mean(0)
    expected = (each * torch.tensor([1.0, 2.0, 3.0, 4.0])).sum() / 10
    torch.testing.assert_close(output.loss, expected)


def test_halted_words_keep_their_states_bit_by_bit(model, encoder):
    batch = batch_of(encoder, PIECES)
    halts = torch.tensor([[4, 2, 4, 1], [4, 4, 0, 0], [3, 0, 0, 0]])
    seen: list[torch.Tensor] = []
    watch = model.heads.register_forward_hook(lambda _m, given, _o: seen.append(given[0].pooled))
    try:
        model(**batch, halts=halts)
        states = torch.stack(seen, 1)  # (words, exits, hidden)
        seen.clear()
        model(**batch)
        free = torch.stack(seen, 1)
    finally:
        watch.remove()
    last = [4, 2, 4, 1, 4, 4, 3]
    for word, layer in enumerate(last):
        for above in range(layer, 4):
            assert torch.equal(states[word, above], states[word, layer - 1])
    assert torch.equal(states[:4, 0], free[:4, 0])  # nothing had halted yet
    assert not torch.equal(states[0, 3], free[0, 3])  # it read a halted neighbour
    assert torch.allclose(states[4:6, 3], free[4:6, 3], atol=1e-6)  # another sentence did not


def test_all_pieces_of_a_word_halt_together(model, encoder):
    batch = batch_of(encoder, [PIECES[0]])
    kept = []
    own = model.encoder.own_layer
    model.encoder.own_layer = lambda p, n, h: kept.append(h) or own(p, n, h)
    try:
        model(**batch, halts=torch.tensor([[4, 1, 4, 4]]))
    finally:
        del model.encoder.own_layer
    pieces = slice(2, 5)  # film - movie
    assert torch.equal(kept[1][0, pieces], kept[2][0, pieces])
    assert torch.equal(kept[2][0, pieces], kept[3][0, pieces])
    for other in (0, 1, 5, 6, 7):  # special tokens among them
        assert not torch.equal(kept[1][0, other], kept[2][0, other])


def test_an_exit_learns_only_from_the_words_that_get_to_it():
    logits = torch.randn(3, 4, 3, requires_grad=True)
    labels = torch.tensor([0, 1, 2])
    extras = {"reached": torch.tensor([4, 2, 1])}
    loss = until_halted(ExitBatch(logits, labels, None, {}, extras=extras))
    each = cross_entropies(logits, labels)
    expected = [each[:, 0].mean(), each[:2, 1].mean(), each[0, 2], each[0, 3]]
    torch.testing.assert_close(loss, torch.stack(expected))
    loss.sum().backward()
    assert logits.grad[1, 2:].abs().sum() == 0
    assert logits.grad[2, 1:].abs().sum() == 0
    plain = until_halted(ExitBatch(logits, labels, None, {}))
    torch.testing.assert_close(plain, each.mean(0))


def test_halts_reach_the_loss(tiny_backbone, encoder):
    model = build(tiny_backbone, "tokee")
    batch = batch_of(encoder, PIECES[:2], [[0, 1, 2, 2], [2, 0]])
    halts = torch.tensor([[4, 2, 4, 1], [4, 3, 0, 0]])
    output = model(**batch, halts=halts)
    each = cross_entropies(output.exit_logits, torch.tensor([0, 1, 2, 2, 2, 0]))
    counts = torch.tensor(
        [[1, 1, 1, 1], [1, 1, 0, 0], [1, 1, 1, 1], [1, 0, 0, 0], [1, 1, 1, 1], [1, 1, 1, 0]]
    )
    means = (each * counts).sum(0) / counts.sum(0)
    torch.testing.assert_close(output.loss, (means * torch.tensor([0.1, 0.2, 0.3, 0.4])).sum())


def test_prototypes_are_the_means_of_tags(tiny_backbone, encoder):
    model = build(tiny_backbone, "de3-words")
    tags = [[0, 1, 2, 2], [2, 0], [1]]
    batch = batch_of(encoder, PIECES, tags)
    projected = model(**{k: v for k, v in batch.items() if k != "labels"}).projected
    assert projected.shape == (7, 3, 32)
    model.eval()
    model.training = True  # prototypes move, dropout stays off
    output = model(**batch)
    flat = torch.tensor([tag for row in tags for tag in row])
    means = torch.stack([projected[flat == tag].mean(0) for tag in range(3)], 1)
    torch.testing.assert_close(model.prototypes.vectors, means)
    assert model.prototypes.counts.tolist() == [2, 2, 3]
    assert output.distances.shape == (7, 3, 3)


def test_gradients_take_the_ways_they_take_with_texts(tiny_backbone, encoder):
    model = build(tiny_backbone, "de3-words", alpha=1.0)
    model.train()
    tags = [[0, 1, 2, 2], [2, 0], [1]]
    model(**batch_of(encoder, PIECES, tags)).loss.backward()
    assert all(p.grad.abs().sum() > 0 for p in model.projectors.parameters())
    assert all(p.grad.abs().sum() > 0 for p in model.heads.parameters())
    assert not model.prototypes.vectors.requires_grad
    model.zero_grad()
    without = build(tiny_backbone, "de3-words", dar="none")
    without.train()
    without(**batch_of(encoder, PIECES, tags)).loss.backward()
    assert all(p.grad is None or p.grad.abs().sum() == 0 for p in without.projectors.parameters())


def test_what_does_not_fit_is_refused(tiny_backbone, model, encoder):
    batch = batch_of(encoder, PIECES)
    with pytest.raises(UsageError, match="Method sentee is for token-classification"):
        EarlyExitForSequenceClassification.from_backbone(
            str(tiny_backbone), labels=TAGS, method="sentee"
        )
    with pytest.raises(De3Error, match="3 labels do not fit a batch of 7 words"):
        model(**batch, labels=torch.tensor([[0], [1], [2]]))
    with pytest.raises(UsageError, match='leave pooling out, got "mean"'):
        build(tiny_backbone, pooling="mean")


def test_saving_and_loading_changes_nothing(tiny_backbone, encoder, tmp_path):
    model = build(tiny_backbone, "de3-words")
    model.train()
    model(**batch_of(encoder, PIECES, [[0, 1, 2, 2], [2, 0], [1]]))
    model.eval()
    model.save_pretrained(tmp_path / "m")
    again = EarlyExitForTokenClassification.from_pretrained(tmp_path / "m")
    assert again.config.task == "token-classification"
    with pytest.raises(UsageError, match="Use EarlyExitForTokenClassification"):
        EarlyExitForSequenceClassification.from_pretrained(tmp_path / "m")
    batch = batch_of(encoder, PIECES)
    assert torch.equal(again(**batch).exit_logits, model(**batch).exit_logits)
    assert torch.equal(again(**batch).distances, model(**batch).distances)
