"""Tokens that stop one by one: which layer is whose, and that a stopped token really stands."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from tests.export.bundles import ROUNDING, apart
from tests.fixtures_trained import ToyData, once, toy_recipe
from tests.model.families import FAMILIES, batch, tiny, tiny_bert
from torch import Tensor
from transformers import PreTrainedTokenizerBase

import de3bert
from de3bert.bench.run import Request, run_bench
from de3bert.data.read import read_table
from de3bert.errors import UsageError
from de3bert.exits.token_hash import HASHES, TokenCounts, count_tokens, equal_buckets
from de3bert.exits.token_layers import TokenLayers, bucket_layers, last_layers
from de3bert.export.bundle import export_model
from de3bert.model import EarlyExitConfig, EarlyExitForSequenceClassification
from de3bert.model.token_exits import TokenTable
from de3bert.runtime.evaluate import evaluate, trace_table
from de3bert.training.fit import fit
from de3bert.training.recipe import recipe_from

Model = EarlyExitForSequenceClassification
SPECIAL = (0, 1, 2, 3, 4)  # of the tiny tokenizer
NAMES = ("frequency", "information", "random", "occurrence", "cluster")


def build(family: str = "bert", *, order: list[int] | None = None, **options: Any) -> Model:
    """A model whose ids 5 to 49 stop somewhere on the way, unless told otherwise."""
    with torch.random.fork_rng():
        torch.manual_seed(5)
        model = Model.from_backbone(tiny(family), num_labels=2, method="hashee", **options)
    fill(model, list(range(5, 50)) if order is None else order)
    return model


def fill(model: Model, order: list[int]) -> None:
    table(model).fill(equal_buckets(order, len(table(model).layers)))


def table(model: Model) -> TokenTable:
    found = model.encoder.token_exits
    assert isinstance(found, TokenTable)
    return found


def counted(counts: list[list[int]], seed: int = 0) -> TokenCounts:
    return TokenCounts(np.array(counts), seed)


# --- which layer is whose


def test_known_buckets() -> None:
    """a10 b8 c6 d5 e4 f3 g2 in 3 buckets from layer 1: a, b -> 1; c, d -> 2; e, f, g -> 3."""
    buckets = HASHES["frequency"](counted([[0, 2, 10, 8, 3, 6, 5, 4, 0]]), 3)
    assert buckets == [[2, 3], [5, 6], [7, 4, 1]]
    part = TokenTable(9, 3, {"buckets": 3.0})
    part.fill(buckets)
    assert part.token_layers.tolist() == [3, 3, 1, 1, 3, 2, 2, 3, 3]


@pytest.mark.parametrize(
    ("buckets", "last", "layers"),
    [(6, 12, (2, 4, 6, 8, 10, 12)), (6, 6, (1, 2, 3, 4, 5, 6)), (3, 3, (1, 2, 3)),
     (1, 12, (12,)), (6, 4, (1, 2, 2, 3, 4, 4)), (5, 12, (3, 5, 8, 10, 12))],
)  # fmt: skip
def test_buckets_are_evenly_spread_up_to_the_last_layer(
    buckets: int, last: int, layers: tuple[int, ...]
) -> None:
    assert bucket_layers(buckets, last) == layers


@given(
    seen=st.integers(0, 60), buckets=st.integers(1, 8), last=st.integers(1, 12), seed=st.integers()
)
def test_buckets_are_of_equal_size_and_the_rest_is_last(
    seen: int, buckets: int, last: int, seed: int
) -> None:
    order = np.random.default_rng(seed % 2**32).permutation(70)[:seen].tolist()
    part = TokenTable(70, last, {"buckets": float(buckets)})
    part.fill(equal_buckets(order, buckets))
    size = seen // buckets
    for place, number in enumerate(order):
        bucket = min(place // size, buckets - 1) if size else buckets - 1
        assert part.token_layers[number] == math.ceil((bucket + 1) * last / buckets)
    others = sorted(set(range(70)) - set(order))
    assert (part.token_layers[others] == last).all()


def test_frequent_tokens_go_first_and_ties_by_number() -> None:
    counts = counted([[0, 3, 1, 0, 5, 1], [0, 0, 2, 0, 0, 2]])
    assert HASHES["frequency"](counts, 4) == [
        [4],
        [1],
        [2],
        [5],
    ]  # 5, 3, 3, 3; 0 and 3 are never seen


def test_informative_tokens_go_first() -> None:
    counts = [[40, 10, 0, 7, 0], [40, 1, 6, 7, 0], [40, 1, 0, 7, 0]]
    total = sum(map(sum, counts))
    informative = {}
    for number in range(5):
        own = sum(row[number] for row in counts)
        parts = [
            (row[number] / total)
            * math.log((row[number] / total) / (own / total * sum(row) / total))
            for row in counts
            if row[number]
        ]
        informative[number] = sum(parts)
    (order,) = HASHES["information"](counted(counts), 1)
    assert order == sorted((0, 1, 2, 3), key=lambda number: -informative[number])
    assert set(order[:2]) == {1, 2}  # 0 and 3 say nothing of the class


def test_random_is_one_layer_per_id_and_another_for_another_seed() -> None:
    counts = [[1] * 30 + [0] * 5]
    first, again, other = (HASHES["random"](counted(counts, seed), 1)[0] for seed in (1, 1, 2))
    assert first == again != other
    assert sorted(first) == sorted(other) == list(range(30))


# Three clusters of embeddings: four short ones (sum of lengths 4), two long ones (12), one of 5.
CLUSTERED = [[5.0, 0.0], *([1.0, 0.01 * n] for n in range(4)), [-6.0, 0.0], [-6.0, 0.1]]


def test_clusters_of_short_embeddings_go_first() -> None:
    vectors = np.array(CLUSTERED, dtype=np.float32)
    found = TokenCounts(np.zeros((2, 7), dtype=np.int64), 3, frozenset({3, 6}), vectors)
    # 3 and 6 are special: they count as members of their clusters, and stop nowhere.
    assert HASHES["cluster"](found, 3) == [[1, 2, 4], [0], [5]]
    assert HASHES["cluster"](found, 1) == [[0, 1, 2, 4, 5]]
    same = replace(found, embeddings=np.ones((7, 2), dtype=np.float32))
    assert sorted(chain(*HASHES["cluster"](same, 3))) == [0, 1, 2, 4, 5]
    assert sorted(chain(*HASHES["cluster"](found, 50))) == [0, 1, 2, 4, 5]
    part = TokenTable(7, 6, {"hash": "cluster", "buckets": 3.0})
    part.fill(HASHES["cluster"](found, 3))
    assert part.token_layers.tolist() == [4, 2, 2, 6, 2, 6, 6]


@settings(max_examples=40, deadline=None)  # ten starts of k-means each
@given(rows=st.integers(4, 25), count=st.integers(1, 4), seed=st.integers(0, 99))
def test_every_embedding_is_in_the_cluster_whose_mean_is_nearest(
    rows: int, count: int, seed: int
) -> None:
    """A fixed point of k-means, found slowly; and the order of the sums of lengths."""
    vectors = np.random.default_rng(seed).normal(size=(rows, 3)).astype(np.float32)
    found = TokenCounts(np.zeros((2, rows), dtype=np.int64), seed, embeddings=vectors)
    buckets = HASHES["cluster"](found, count)
    assert sorted(chain(*buckets)) == list(range(rows))
    sums = [sum(math.dist(vectors[number], (0, 0, 0)) for number in each) for each in buckets]
    assert sums == sorted(sums)
    means = [vectors[each].astype(float).mean(0) for each in buckets if each]
    for place, each in enumerate(each for each in buckets if each):
        for number in each:
            apart = [math.dist(vectors[number], mean) for mean in means]
            assert apart[place] <= min(apart) + 1e-4


def test_counting_leaves_special_tokens_out() -> None:
    texts = [([2, 7, 7, 9, 3], 0), ([2, 9, 9, 9, 1, 3], 1)]
    found = count_tokens(texts, 12, 2, (0, 1, 2, 3, 999), seed=4)
    expected = [Counter({7: 2, 9: 1}), Counter({9: 3})]
    assert found.counts.tolist() == [[each[number] for number in range(12)] for each in expected]
    assert (found.seen.tolist(), found.seed) == ([7, 9], 4)
    assert found.special == {0, 1, 2, 3, 999}


# --- looking up


def slow_layers(ids: list[int], layers: list[int], last: int) -> list[int]:
    return [layers[number] if number < len(layers) else last for number in ids]


@given(ids=st.lists(st.lists(st.integers(0, 40), min_size=3, max_size=3), min_size=1, max_size=4))
def test_ids_beyond_the_table_go_through_all_layers(ids: list[list[int]]) -> None:
    layers = np.random.default_rng(1).integers(1, 7, size=20)
    expected = [slow_layers(row, layers.tolist(), 9) for row in ids]
    assert last_layers(np.array(ids), layers, 9).tolist() == expected
    assert last_layers(torch.tensor(ids), torch.from_numpy(layers), 9).tolist() == expected


def test_occurrences_draw_a_layer_each_whatever_stands_around_them() -> None:
    part = TokenTable(1000, 12, {"hash": "occurrence", "buckets": 6.0})
    part.fill(equal_buckets(range(5, 900), 6))
    noise = torch.Generator().manual_seed(3)
    ids = torch.randint(5, 900, (200, 64), generator=noise)
    ids[:, 0], ids[:, 7] = 2, 950  # a special token, and one that was never seen
    found = part(ids)
    assert (found[:, [0, 7]] == 12).all()
    drawn = found[:, [*range(1, 7), *range(8, 64)]]
    shares = torch.tensor([(drawn == layer).float().mean() for layer in (2, 4, 6, 8, 10, 12)])
    assert shares.sum() == pytest.approx(1.0, abs=1e-5)
    torch.testing.assert_close(shares, torch.full((6,), 1 / 6), atol=0.015, rtol=0)
    # One id in many places, and many ids in one place: every layer comes up.
    same = part(torch.full((1, 64), 77))[0]
    assert set(same.tolist()) == {2, 4, 6, 8, 10, 12}
    assert set(part(torch.arange(5, 105)[:, None])[:, 0].tolist()) == {2, 4, 6, 8, 10, 12}
    steps = same.diff().tolist()
    assert len({tuple(steps[start : start + 3]) for start in range(0, 60, 3)}) > 15
    # Neither the other rows nor the padding behind a text change anything.
    for row in (0, 3, 199):
        assert torch.equal(part(ids[row : row + 1, :20])[0], found[row, :20])
    assert np.array_equal(part.arrays()(ids.numpy()), found.numpy())


def test_mean_layers_count_every_token_once() -> None:
    layers = TokenLayers(np.array([6, 1, 2, 3]), 6)
    assert layers.mean([[0, 1, 1], [3], [9, 2]]) == pytest.approx((6 + 1 + 1 + 3 + 6 + 2) / 6)
    with pytest.raises(UsageError, match="No rows"):
        layers.mean([])


# --- running


def run(model: Model, inputs: dict[str, Tensor]) -> list[Tensor]:
    """The embedded batch and the states after every layer."""
    prepared = model.encoder.prepare(**inputs)
    found = [prepared.embedded]
    for number in range(1, model.encoder.depth + 1):
        found.append(model.encoder.layer(prepared, number, found[-1]))
    return found


@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_a_stopped_token_stands_bit_for_bit_and_is_still_read(family: str) -> None:
    model, inputs = build(family, buckets=3.0), batch()
    layers, states = table(model)(inputs["input_ids"]), run(model, inputs)
    present = inputs["attention_mask"].bool()
    stopping = {int(each) for each in layers[present]}
    assert len(stopping) >= 3  # tokens of all kinds are in the batch
    for number in range(1, model.encoder.depth + 1):
        same = (states[number] == states[number - 1]).all(-1)
        assert torch.equal(same[present], (layers < number)[present])
    # Slowly: each layer is run on everything, then the stopped ones are put back one by one.
    prepared = model.encoder.prepare(**inputs)
    hidden = prepared.embedded
    for number in range(1, model.encoder.depth + 1):
        fresh = model.encoder.own_layer(prepared, number, hidden)
        for row, place in np.ndindex(*layers.shape):
            if layers[row, place] < number:
                fresh[row, place] = hidden[row, place]
        hidden = fresh
    assert torch.equal(hidden, states[-1])
    # The last token of the first row has stopped after layer 1; its neighbours see what it was.
    changed = {**inputs, "input_ids": inputs["input_ids"].clone()}
    changed["input_ids"][0, 3] += 1
    assert not torch.allclose(run(model, changed)[-1][0, 0], states[-1][0, 0], atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
@torch.no_grad()
def test_with_all_tokens_at_the_last_layer_it_is_the_plain_model(family: str) -> None:
    plain = Model.from_backbone(tiny(family), num_labels=2, method="full")
    for order in ([], list(range(5, 50))):
        model = build(family, order=order, buckets=1.0)
        for part in ("pooling", "heads"):
            getattr(model, part).load_state_dict(getattr(plain, part).state_dict())
        assert torch.equal(model(**batch()).logits, plain(**batch()).logits)
    stopping = build(family, buckets=3.0)
    stopping.heads.load_state_dict(plain.heads.state_dict())
    assert not torch.allclose(stopping(**batch()).logits, plain(**batch()).logits, atol=1e-4)


@torch.no_grad()
def test_rows_do_not_depend_on_their_neighbours_or_padding() -> None:
    for name in NAMES:
        model, inputs = build(buckets=3.0, hash=name), batch()
        together = model(**inputs).logits
        for row, length in enumerate((7, 4, 2)):
            alone = {key: tensor[row : row + 1, :length] for key, tensor in inputs.items()}
            torch.testing.assert_close(
                model(**alone).logits[0], together[row], atol=1e-6, rtol=1e-5
            )


def test_the_gradient_flows_through_stopped_tokens() -> None:
    model = build(buckets=3.0).train()
    model(**batch(), labels=torch.tensor([0, 1, 1])).loss.backward()
    assert not [name for name, each in model.named_parameters() if each.grad is None]


def test_layers_behind_the_last_are_not_kept() -> None:
    model = Model.from_backbone(
        tiny_bert(num_hidden_layers=4), num_labels=2, method="hashee", last=2.0, buckets=2.0
    )
    assert (model.encoder.depth, model.config.base_depth) == (2, 4)
    assert model.config.exit_layers == [2]
    assert table(model).layers == (1, 2)
    assert table(model).token_layers.unique().tolist() == [2]


def test_it_adds_no_parameters() -> None:
    plain = Model.from_backbone(tiny_bert(), num_labels=2, method="full")
    model = Model.from_backbone(tiny_bert(), num_labels=2, method="hashee")
    assert model.num_parameters() == plain.num_parameters()
    assert model.exit_parameters() == {}


# --- files and graphs


@pytest.mark.parametrize("name", NAMES)
def test_a_saved_model_comes_back_with_its_table(name: str, tmp_path: Path) -> None:
    model = build(buckets=3.0, hash=name)
    model.save_pretrained(tmp_path)
    again, info = Model.from_pretrained(tmp_path, output_loading_info=True)
    assert not info["missing_keys"]
    assert again.config.token_exits == "hash"
    assert torch.equal(table(again).token_layers, table(model).token_layers)
    assert table(again).token_layers.unique().numel() >= 2
    with torch.no_grad():
        assert torch.equal(model(**batch()).logits, again(**batch()).logits)


def test_a_table_missing_from_a_checkpoint_lets_tokens_through(tmp_path: Path) -> None:
    model = build(buckets=3.0)
    state = {k: v for k, v in model.state_dict().items() if "token_layers" not in k}
    model.save_pretrained(tmp_path, state_dict=state)
    again = Model.from_pretrained(tmp_path)
    assert table(again).token_layers.tolist() == [3] * 60


def test_new_tokens_go_through_all_layers(tmp_path: Path) -> None:
    model = build(buckets=3.0)
    before = table(model).token_layers.clone()
    model.resize_token_embeddings(63)
    assert torch.equal(table(model).token_layers[:60], before)
    assert table(model).token_layers[60:].tolist() == [3, 3, 3]
    model.save_pretrained(tmp_path)
    again = Model.from_pretrained(tmp_path)
    ids = torch.tensor([[7, 62, 61]])
    torch.testing.assert_close(again(ids).logits, model(ids).logits, atol=1e-7, rtol=0)
    model.resize_token_embeddings(58)
    assert torch.equal(table(model).token_layers, before[:58])


TEXTS = ["good", "the film was great and the plot was not", "awful zyxw story " * 9, "a bore"]
PAIRS = [("good film", "bad plot and a bore"), ("the", "story was very so it")]


@pytest.mark.parametrize(("family", "name"), [("bert", "frequency"), ("modernbert", "occurrence")])
def test_a_bundle_answers_as_its_model(
    family: str, name: str, tiny_tokenizer: PreTrainedTokenizerBase, tmp_path: Path
) -> None:
    model = build(family, buckets=3.0, hash=name, max_length=24)
    with torch.no_grad():
        model.heads.exits[0].weight *= 20
    model.save_pretrained(tmp_path / "model")
    tiny_tokenizer.save_pretrained(tmp_path / "model")
    export_model(tmp_path / "model", tmp_path / "bundle")
    ours, theirs = de3bert.load(tmp_path / "model"), de3bert.load(tmp_path / "bundle")
    for texts in (TEXTS, PAIRS):
        expected = ours.trace(texts, batch_size=len(texts))
        assert np.abs(expected.logits[:, 0, 0] - expected.logits[:, 0, 1]).max() > 0.1
        for size in (1, len(texts)):
            assert apart(expected, theirs.trace(texts, batch_size=size)) <= ROUNDING
    rows = {"text": TEXTS, "label": ["LABEL_0", "LABEL_1"] * 2}
    found = [evaluate(each, read_table(rows)) for each in (ours, theirs)]
    assert found[0].token_layers_mean == found[1].token_layers_mean
    assert 1 < (found[0].token_layers_mean or 0) < model.encoder.depth


def test_later_graphs_get_the_layers_of_the_tokens(
    tiny_tokenizer: PreTrainedTokenizerBase, tmp_path: Path
) -> None:
    """No method has both stopping tokens and several exits, but nothing forbids it."""
    made = build(buckets=3.0, max_length=24)
    document = {**made.config.to_dict(), "exit_layers": [1, 3]}
    with torch.random.fork_rng():
        torch.manual_seed(2)
        model = Model(EarlyExitConfig(**document)).eval()
        for parameter in model.encoder.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.15)
        for head in model.heads.exits:
            torch.nn.init.normal_(head.weight)
    fill(model, list(range(5, 50)))
    model.save_pretrained(tmp_path / "model")
    tiny_tokenizer.save_pretrained(tmp_path / "model")
    export_model(tmp_path / "model", tmp_path / "bundle")
    ours, theirs = de3bert.load(tmp_path / "model"), de3bert.load(tmp_path / "bundle")
    expected = ours.trace(TEXTS, batch_size=4)
    assert apart(expected, theirs.trace(TEXTS, batch_size=4)) <= ROUNDING
    policy = f"entropy < {float(np.median(entropies(expected.logits[:, 0])))!r}"
    layers = [answer.exit_layer for answer in ours.predict(TEXTS, policy=policy)]
    assert set(layers) == {1, 3}
    for size in (1, 4):
        answers = theirs.predict(TEXTS, policy=policy, batch_size=size)
        assert [answer.exit_layer for answer in answers] == layers


def entropies(logits: NDArray[np.float32]) -> NDArray[np.float64]:
    from de3bert.exits import signals

    return np.asarray(signals.entropy(logits.astype(np.float64)))


# --- training


@pytest.fixture(scope="session")
def trained(
    tmp_path_factory: pytest.TempPathFactory, tiny_backbone: Path, toy_data: ToyData
) -> Path:
    settings = {
        **toy_recipe(tiny_backbone, toy_data),
        "method": "hashee",
        "method_options": {"buckets": 4.0},
    }
    recipe = recipe_from(settings)
    return once(tmp_path_factory, "hashee", lambda out: fit(recipe, out, progress=False))


def test_training_fills_the_table_and_learns_with_it(
    trained: Path, toy_data: ToyData, tiny_tokenizer: PreTrainedTokenizerBase
) -> None:
    record = json.loads((trained / "training.json").read_text(encoding="utf-8"))
    losses = [entry["loss"] for entry in record["log"] if "loss" in entry]
    assert np.mean(losses[-10:]) < 0.7 * np.mean(losses[:10])
    assert record["exit_accuracy"]["4"] > 0.8
    model = Model.from_pretrained(trained)
    texts = read_table(toy_data.train).texts
    counts = Counter(word for text in texts for word in text.split())
    vocabulary = tiny_tokenizer.get_vocab()
    order = sorted(counts, key=lambda word: (-counts[word], vocabulary[word]))
    size = len(order) // 4
    for place, word in enumerate(order):
        layer = min(place // size, 3) + 1
        assert table(model).token_layers[vocabulary[word]] == layer
    unseen = set(vocabulary) - set(counts)
    assert {"[CLS]", "[SEP]", "[UNK]", "[PAD]", "never"} <= unseen
    for word in unseen:
        assert table(model).token_layers[vocabulary[word]] == 4


def test_the_cost_is_said_in_layers_per_token(
    trained: Path, toy_data: ToyData, tiny_tokenizer: PreTrainedTokenizerBase
) -> None:
    classifier = de3bert.load(trained)
    rows = read_table(toy_data.test)
    found, trace = evaluate(classifier, rows), trace_table(classifier, rows)
    layers = table(Model.from_pretrained(trained)).token_layers.tolist()
    every = [
        layers[number]
        for text in rows.texts
        for number in tiny_tokenizer(text, truncation=True, max_length=24)["input_ids"]
    ]
    mean = sum(every) / len(every)
    assert 1 < mean < 4
    assert found.token_layers_mean == pytest.approx(mean)
    assert found.token_layer_speedup == pytest.approx(4 / mean)
    assert trace.info["token_layers_mean"] == pytest.approx(mean)
    # A text as a whole goes through all layers; the two ratios are of different things.
    assert (found.layers_mean, found.layer_speedup) == (4.0, 1.0)
    assert found.to_json()["token_layer_speedup"] == found.token_layer_speedup


def test_texts_that_stop_as_a_whole_have_no_layers_per_token(
    trained_model: Path, toy_data: ToyData
) -> None:
    classifier = de3bert.load(trained_model)
    table = read_table(toy_data.test).take(range(8))
    found = evaluate(classifier, table)
    assert found.token_layers_mean is None
    assert found.token_layer_speedup is None
    assert "token_layers_mean" not in trace_table(classifier, table).info


def test_batching_never_changes_an_answer(trained: Path, toy_data: ToyData) -> None:
    classifier = de3bert.load(trained)
    texts = read_table(toy_data.test).texts
    trace = classifier.trace(texts, batch_size=120)
    sure = np.abs(trace.logits[:, 0, 0] - trace.logits[:, 0, 1]) > ROUNDING
    expected = [classifier.label_names[label] for label in trace.predictions[:, 0]]
    order = np.random.default_rng(3).permutation(len(texts))
    for size in (1, 7, 64):
        answers = classifier.predict([texts[row] for row in order], batch_size=size)
        for row, answer in zip(order, answers, strict=True):
            assert answer.exit_layer == 4
            assert answer.label == expected[row] or not sure[row]


@pytest.mark.parametrize("name", ["information", "random", "occurrence", "cluster"])
def test_every_hash_trains(
    name: str, tiny_backbone: Path, toy_data: ToyData, tmp_path: Path
) -> None:
    settings = {
        **toy_recipe(tiny_backbone, toy_data, epochs=1),
        "method": "hashee",
        "method_options": {"hash": name, "buckets": 2.0},
    }
    done = fit(recipe_from(settings), tmp_path / "model", progress=False)
    assert done.exit_accuracy[4] > 0.6
    layers = table(Model.from_pretrained(tmp_path / "model")).token_layers
    assert set(layers.unique().tolist()) == ({0, 4} if name == "occurrence" else {2, 4})


# --- pairs of texts


def test_pairs_of_texts_go_all_the_way(
    tiny_backbone: Path,
    tiny_tokenizer: PreTrainedTokenizerBase,
    toy_data: ToyData,
    tmp_path: Path,
) -> None:
    """Training, answers, evaluation, export and timing; both texts count for the table."""
    texts = read_table(toy_data.train).texts[:160]
    rows = [
        {"a": text, "b": other, "label": "ab"[len(text) > len(other)]}
        for text, other in pairwise(texts)
    ]
    path = tmp_path / "pairs.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    settings = {
        **toy_recipe(tiny_backbone, toy_data, epochs=1),
        "method": "hashee",
        "method_options": {"buckets": 4.0},
    }
    columns = {"text": "a", "text_pair": "b", "label": "label"}
    settings["data"] = {"train": str(path), "max_length": 48, **columns}
    out = tmp_path / "model"
    fit(recipe_from(settings), out, progress=False)
    layers = table(Model.from_pretrained(out)).token_layers.tolist()
    ends = {tiny_tokenizer.vocab[name] for name in ("[CLS]", "[SEP]")}
    assert {layers[number] for number in ends} == {4}
    assert set(layers) == {1, 2, 3, 4}
    # A word that stands in second texts alone has a place in the table as well.
    only = {word for row in rows for word in row["b"].split()}
    assert min(layers[tiny_tokenizer.vocab[word]] for word in only) == 1
    export_model(out, tmp_path / "bundle")
    ours, theirs = de3bert.load(out), de3bert.load(tmp_path / "bundle")
    pairs = [(row["a"], row["b"]) for row in rows[:20]]
    expected = ours.trace(pairs, batch_size=20)
    for size in (1, 20):
        assert apart(expected, theirs.trace(pairs, batch_size=size)) <= ROUNDING
    sure = np.abs(np.diff(expected.logits[:, 0])).ravel() > 1e-3
    given = [answer.label for answer in theirs.predict(pairs)]
    for answer, label, certain in zip(ours.predict(pairs), given, sure, strict=True):
        assert answer.label == label or not certain
    rows_read = read_table(path, text="a", text_pair="b", label="label")
    every = [
        layers[number]
        for row in rows
        for number in tiny_tokenizer(row["a"], row["b"], max_length=48, truncation=True)[
            "input_ids"
        ]
    ]
    for classifier in (ours, theirs):
        said = evaluate(classifier, rows_read)
        assert said.token_layers_mean == pytest.approx(sum(every) / len(every))
    request = Request(
        bundle=str(tmp_path / "bundle"), against=("hf", "ort", "ort-fused"), rounds=1, texts=4
    )
    timed = run_bench(request, rows_read, command="de3 bench")
    assert len(timed["contenders"]) >= 4


# --- refusing


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"hash": "frequenzy"}, r'hash of tokens "frequenzy"\. Did you mean "frequency"'),
        ({"buckets": 0.0}, r"buckets must be a whole number from 1 on, got 0"),
        ({"buckets": 2.5}, r"buckets must be a whole number from 1 on, got 2\.5"),
        ({"last": 4.0}, r"last=4, but the backbone has 3 layers; take 1 to 3, or 0 for all"),
        ({"last": 1.5}, r"last must be a whole number from 0 on, got 1\.5"),
        ({"last": -1.0}, r"last must be a whole number from 0 on, got -1"),
    ],
)
def test_wrong_options_are_refused_when_the_model_is_built(
    options: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        Model.from_backbone(tiny_bert(), num_labels=2, method="hashee", **options)


def test_a_damaged_table_of_a_bundle_is_said_so(tmp_path: Path) -> None:
    (tmp_path / "token_layers.npy").write_bytes(b"no table")
    with pytest.raises(de3bert.errors.De3Error, match=r"token_layers\.npy is damaged"):
        TokenLayers.load(tmp_path, 3, {})
    assert TokenLayers.load(tmp_path / "elsewhere", 3, {}) is None
