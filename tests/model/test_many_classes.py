"""Ten classes: rare ones, one that never occurs, the two likeliest, and Chinese texts."""

from __future__ import annotations

import math
import random
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from tests.exits import slow
from tests.exits.traces import make_trace
from tests.fixtures_trained import write_csv

import de3bert
from de3bert.data.read import read_table
from de3bert.data.table import Table
from de3bert.errors import De3Error, UsageError
from de3bert.exits import Policy, Signal, replay
from de3bert.exits.replay import exit_indices, margin
from de3bert.model import EarlyExitForSequenceClassification
from de3bert.model.prototypes import PrototypeBank
from de3bert.objective.distance import DAR_FORMS
from de3bert.runtime.calibrate_folder import calibrate_model
from de3bert.runtime.evaluate import evaluate, trace_table
from de3bert.training.adapt import adapt_model
from de3bert.training.fit import fit
from de3bert.training.recipe import recipe_from

K = 10
ONCE, NEVER = 7, 9  # a class with one row in all batches, and one with none


def batches(seed: int = 0) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Twelve batches of 16 rows: class 8 is in every fifth, 7 once, 9 in none."""
    generator = torch.Generator().manual_seed(seed)
    made = []
    for number in range(12):
        labels = torch.randint(0, 7, (16,), generator=generator)
        if number == 3:
            labels[5] = ONCE
        if number % 5 == 2:
            labels[[2, 11]] = 8
        made.append((torch.randn(16, 2, 6, generator=generator), labels))
    return made


def slow_prototypes(gamma: float) -> dict[tuple[int, int], list[float]]:
    """(exit, class) -> prototype, one row and one number at a time; absent where never set."""
    found: dict[tuple[int, int], list[float]] = {}
    for vectors, labels in batches():
        for exit_index in range(2):
            for label in range(K):
                mine = [vectors[n, exit_index].tolist() for n in range(16) if labels[n] == label]
                if not mine:
                    continue
                centre = [sum(column) / len(mine) for column in zip(*mine, strict=True)]
                old = found.get((exit_index, label), centre)
                found[exit_index, label] = [
                    (1 - gamma) * a + gamma * b for a, b in zip(old, centre, strict=True)
                ]
    return found


@pytest.fixture
def bank() -> PrototypeBank:
    bank = PrototypeBank(2, K, 6, gamma=0.5)
    for vectors, labels in batches():
        bank.update(vectors, labels)
    return bank


def test_prototypes_of_common_rare_and_absent_classes(bank):
    expected = slow_prototypes(0.5)
    for (exit_index, label), vector in expected.items():
        assert bank.vectors[exit_index, label].tolist() == pytest.approx(vector, abs=1e-5)
    assert {label for _, label in expected} == set(range(NEVER))
    assert bank.initialised.tolist() == [True] * NEVER + [False]
    assert bank.counts.tolist()[7:] == [1, 4, 0]
    assert int(bank.counts.sum()) == 12 * 16


def test_a_class_with_one_row_is_that_row_and_stays_it(bank):
    vectors, labels = batches()[3]
    (row,) = torch.nonzero(labels == ONCE).flatten().tolist()
    assert torch.equal(bank.vectors[:, ONCE], vectors[row])


def test_distances_of_ten_classes(bank):
    vectors = torch.randn(4, 2, 6, generator=torch.Generator().manual_seed(9))
    distances = bank(vectors)
    assert distances[..., NEVER].isnan().all()
    for row in range(4):
        for exit_index in range(2):
            for label in range(NEVER):
                a = vectors[row, exit_index].tolist()
                b = bank.vectors[exit_index, label].tolist()
                dot = sum(x * y for x, y in zip(a, b, strict=True))
                expected = 1 - dot / (math.hypot(*a) * math.hypot(*b))
                assert float(distances[row, exit_index, label]) == pytest.approx(expected, abs=1e-5)


def test_the_regulariser_skips_the_class_without_a_prototype(bank):
    vectors, _ = batches(seed=1)[0]
    labels = torch.tensor([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 9, 0, 1, 8, 7, 3])
    distances = bank(vectors)
    center, alienation = [], []
    for exit_index in range(2):
        own, shares = [], []
        for row, label in enumerate(labels.tolist()):
            if label == NEVER:
                continue
            seen = distances[row, exit_index].tolist()
            nearest = min(seen[k] for k in range(NEVER) if k != label)
            own.append(seen[label])
            shares.append(0.5 * (1 + (seen[label] - nearest) / max(seen[label], nearest)))
        center.append(sum(own) / 14)
        alienation.append(sum(shares) / 14)
    assert DAR_FORMS["center"](distances, labels, 1.0).tolist() == pytest.approx(center, abs=1e-5)
    found = DAR_FORMS["alienation"](distances, labels, 1.0).tolist()
    assert found == pytest.approx(alienation, abs=1e-5)


@pytest.fixture
def trace():
    rng = np.random.default_rng(2)
    logits = 2 * rng.normal(size=(60, 5, K))
    logits[:20] = np.round(logits[:20])  # ties for the first and the second place
    distances = rng.uniform(0, 2, size=(60, 4, K))
    return make_trace(logits, rng.integers(0, K, 60), distances)


@pytest.mark.parametrize("weight", [0.0, 0.667, 1.0, 3.0])
def test_the_two_likeliest_of_ten(trace, weight):
    signal = Signal.parse(f"edr(lambda={weight})")
    ratio = Signal.parse("distance_ratio")
    for number in range(4):
        view = trace.view(number)
        fused, ratios = signal(view), ratio(view)
        for row in range(trace.rows):
            logits = trace.logits[row, number].tolist()
            expected = slow.distance_ratio(logits, trace.distances[row, number].tolist())
            local = slow.entropy(logits)
            assert ratios[row] == pytest.approx(expected, abs=1e-5)
            assert fused[row] == pytest.approx(slow.edr(local, expected, weight), abs=1e-5)


def test_the_other_eight_classes_do_not_matter(trace):
    """The nearest prototype of all may be of a third class: only the two likeliest are asked."""
    order = np.argsort(-trace.logits[:, :-1], axis=-1, kind="stable")
    changed = trace.distances.copy()
    np.put_along_axis(changed, order[..., 2:], 1e-3, axis=-1)
    other = make_trace(trace.logits, trace.labels, changed)
    policy = Policy.parse("edr(lambda=1.0) < 0.6")
    assert (exit_indices(trace, policy) == exit_indices(other, policy)).all()
    swapped = trace.distances.copy()
    first, second = order[..., :1], order[..., 1:2]
    np.put_along_axis(swapped, first, np.take_along_axis(trace.distances, second, -1), -1)
    np.put_along_axis(swapped, second, np.take_along_axis(trace.distances, first, -1), -1)
    turned = make_trace(trace.logits, trace.labels, swapped)
    assert (exit_indices(trace, policy) != exit_indices(turned, policy)).any()


def test_one_row_alone_leaves_where_it_leaves_among_sixty(trace):
    policy = Policy.parse("edr(lambda=1.0) < 0.6")
    together = exit_indices(trace, policy)
    assert len(set(together.tolist())) > 2
    for row in range(trace.rows):
        assert exit_indices(trace.take(slice(row, row + 1)), policy)[0] == together[row]


CLASSES = {
    "finance": "股票基金", "realty": "房产楼盘", "stocks": "涨跌指数", "education": "学校考试",
    "science": "科技电脑", "society": "民生新闻", "politics": "政府会议", "sports": "球赛冠军",
    "game": "玩家装备", "film": "明星影视",
}  # fmt: skip
NAMES, WORDS = list(CLASSES), list(CLASSES.values())
COMMON = "的一是在有了和人这中大为上个来到时们我不"
RARE = NAMES[-1]


def chinese_rows(rows: int, seed: int, rare: int) -> list[tuple[str, str]]:
    """Titles without spaces: characters of a class among common ones; few of the last class."""
    chance = random.Random(seed)
    made = []
    for index in range(rows):
        number = K - 1 if index < rare else index % (K - 1)
        own = chance.choices(WORDS[number], k=chance.choice((1, 2, 3)))
        other = chance.choices(WORDS[chance.randrange(K - 1)], k=chance.choice((0, 0, 1)))
        mixed = own + other + chance.choices(COMMON, k=chance.randint(0, 9))
        chance.shuffle(mixed)
        made.append(("".join(mixed), NAMES[number]))
    chance.shuffle(made)
    return made


@pytest.fixture(scope="module")
def chinese_backbone(tmp_path_factory) -> Path:
    """A random BERT whose WordPiece vocabulary is single characters."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import BertConfig, BertModel, PreTrainedTokenizerFast

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    vocabulary = {piece: n for n, piece in enumerate([*special, *COMMON, *"".join(WORDS)])}
    assert len(vocabulary) == 5 + len(COMMON) + 4 * K  # no character stands for two classes
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(handle_chinese_chars=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]",
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("chinese") / "backbone"
    config = BertConfig(
        vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=4, num_attention_heads=4,
        intermediate_size=64, max_position_embeddings=40,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(7)
        BertModel(config).save_pretrained(folder)
    fast.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("titles")
    sizes = {"train": (360, 1, 1), "calibration": (90, 2, 0), "test": (100, 3, 4)}
    return {
        name: write_csv(folder / f"{name}.csv", chinese_rows(*of)) for name, of in sizes.items()
    }


def recipe(backbone: Path, data: dict[str, Path], **changes):
    files = {"train": str(data["train"]), "calibration": str(data["calibration"])}
    return recipe_from(
        {
            "backbone": str(backbone),
            "pooling": "mean",
            "data": {**files, "max_length": 24, **changes},
            "train": {"epochs": 4, "batch_size": 16, "learning_rate": 4e-3},
        }
    )


@pytest.fixture(scope="module")
def chinese_model(chinese_backbone, data, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("chinese-model") / "model"
    fit(recipe(chinese_backbone, data), out, progress=False)
    # One class has a single row, which is needed for training.
    rows = read_table(data["calibration"])
    calibrate_model(out, "layers=1.5", "fast", table=rows, force=True)
    return out


def test_characters_are_tokens(chinese_model):
    classifier = de3bert.load(chinese_model)
    rows = classifier.encode(["股票大涨", "球赛", "股龘 票"]).rows
    assert [len(row["input_ids"]) for row in rows] == [6, 4, 5]
    unknown = classifier.backend.encoder.tokenizer.unk_token_id
    assert [row["input_ids"].count(unknown) for row in rows] == [0, 0, 1]


def test_a_class_with_one_row_has_a_prototype(chinese_model):
    stored = load_file(chinese_model / "model.safetensors")
    classifier = de3bert.load(chinese_model)
    rare = classifier.label_names.index(RARE)
    assert len(classifier.label_names) == K
    assert stored["prototypes.initialised"].all()
    assert 1 <= int(stored["prototypes.counts"][rare]) <= 4  # once per epoch
    assert stored["prototypes.vectors"].shape == (3, K, 32)
    assert stored["prototypes.vectors"].norm(dim=-1).min() > 0


def answers(classifier, texts, batch_size, **how):
    found = classifier.predict(texts, batch_size=batch_size, **how)
    return [(each.label, each.exit_layer) for each in found]


def test_titles_from_training_to_answers(chinese_model, data):
    classifier = de3bert.load(chinese_model)
    test = read_table(data["test"])
    trace = trace_table(classifier, test)
    assert trace.distances.shape == (100, 3, K)
    assert len(set(trace.labels.tolist())) == K
    scored = evaluate(classifier, test, policy="full", metric="macro_f1")
    assert scored.scores["accuracy"] > 0.6  # by chance 0.1
    point = classifier.points["fast"]
    assert point.policy.needs_distances
    assert point.measured["layer_speedup"] >= 1.5
    one, eight = (answers(classifier, test.texts, size, point="fast") for size in (1, 8))
    assert one == eight
    assert len({layer for _, layer in one}) > 1
    played = replay(trace, point.policy)
    assert margin(trace, point.policy).min() > 1e-5
    names = [trace.label_names[label] for label in played.labels]
    assert list(zip(names, played.exit_layers.tolist(), strict=True)) == one


def test_titles_of_another_kind(chinese_model, data, tmp_path):
    """Adapted to rows without the rare class and one more; batches still do not matter."""
    table = read_table(data["test"])
    kept = [n for n, label in enumerate(table.labels) if label not in (RARE, NAMES[0])]
    found = adapt_model(chinese_model, table.take(kept), tmp_path / "out")
    old = load_file(chinese_model / "model.safetensors")["prototypes.vectors"]
    new = load_file(tmp_path / "out" / "model.safetensors")["prototypes.vectors"]
    classifier = de3bert.load(tmp_path / "out")
    by_layer = [[each for each in found.moved if each.layer == layer] for layer in (1, 2, 3)]
    for number, seen in enumerate(by_layer):
        assert [each.label for each in seen] == list(classifier.label_names)
        assert sum(each.rows for each in seen) == len(kept)
        for k, each in enumerate(seen):
            assert torch.equal(new[number, k], old[number, k]) == (each.rows == 0)
    # At the last internal exit most rows fall into the cluster of their own class.
    trace = classifier.trace(table.take(kept).texts)
    nearest = [trace.label_names[k] for k in trace.distances[:, -1].argmin(-1)]
    right = [a == table.labels[n] for a, n in zip(nearest, kept, strict=True)]
    assert sum(right) / len(right) > 0.6
    one, eight = (answers(classifier, table.texts, size, point="fast") for size in (1, 8))
    assert one == eight


def test_a_class_that_cannot_be_in_both_parts_is_named(chinese_backbone, data, tmp_path):
    alone = recipe(chinese_backbone, data)
    cut = alone.model_copy(update={"data": alone.data.model_copy(update={"calibration": None})})
    with pytest.raises(UsageError, match=r'Too few rows of "film" \(only 1\)'):
        fit(cut, tmp_path / "out", progress=False)


def test_a_class_that_never_occurred(chinese_backbone, tmp_path):
    """Its prototype is not set: distances cannot decide, entropy can, and nothing is adapted."""
    from de3bert.model.tokens import TextEncoder, load_tokenizer

    model = EarlyExitForSequenceClassification.from_backbone(
        chinese_backbone, labels=NAMES, pooling="mean", max_length=24
    )
    encoder = TextEncoder(load_tokenizer(str(chinese_backbone)), 24)
    rows = chinese_rows(64, 4, 0)
    batch = encoder.pad(encoder([text for text, _ in rows]).rows)
    labels = torch.tensor([NAMES.index(name) for _, name in rows])
    output = model.train()(**batch, labels=labels)
    assert output.loss.isfinite()
    assert output.distances[..., -1].isnan().all()
    assert output.distances[..., :-1].isfinite().all()
    model.eval().save_pretrained(tmp_path / "m")
    encoder.tokenizer.save_pretrained(tmp_path / "m")
    classifier = de3bert.load(tmp_path / "m")
    texts = [text for text, _ in rows]
    with pytest.raises(De3Error, match=f"never set: {RARE}"):
        classifier.predict(texts, policy="edr < 0.5")
    assert answers(classifier, texts, 1, policy="entropy < 0.99") == answers(
        classifier, texts, 8, policy="entropy < 0.99"
    )
    with pytest.raises(De3Error, match=f"nothing to start from: {RARE}"):
        adapt_model(tmp_path / "m", Table(texts), tmp_path / "out")
