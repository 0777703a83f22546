"""What every method adds to BERT-base, as published: built without memory for the weights."""

from __future__ import annotations

from functools import cache

import pytest
import torch
from torch import nn
from transformers import BertConfig, BertModel, RobertaConfig, RobertaModel

from de3bert.methods import METHODS
from de3bert.model import EarlyExitModel as Model
from de3bert.model.config import EarlyExitConfig
from de3bert.model.standard_size import exit_parameters

BERT = 109_482_240  # with its pooler, without a classifier
LAYER, POOLER, EMBEDDINGS = 7_087_872, 590_592, 23_837_184
LINEAR = {2: 16_918, 3: 25_377}  # 11 internal classifiers
PN = 11 * (768 * 768 + 768)  # 11 prototypical networks, with a bias
WORDS = ("sentee", "tokee", "de3-words")  # read single words, so that nobody pools

# Method -> parts of 2 and of 3 classes that exits before the last add.
EXITS: dict[str, dict[int, dict[str, int]]] = {
    **{
        name: {classes: {"classifiers": size} for classes, size in LINEAR.items()}
        for name in ("joint-entropy", "joint-entropy-calibrated", "mixed", "pabee", "pcee",
                     "ceebert", "oracle", "deebert", "cosee", "leebert", "de3-no-pn",
                     "de3-no-pn-no-dar", "sentee", "tokee")
    },
    **{
        name: {
            classes: {"classifiers": size, "prototypical networks": PN}
            for classes, size in LINEAR.items()
        }
        for name in ("de3", "de3-v2", "de3-v3", "de-cosee", "de3-words", "de3-fitted")
    },
    **{
        name: {2: {}, 3: {}}
        for name in ("full", "layers-k", "distilbert", "pd", "pkd", "theseus", "hashee")
    },
    "berxit": {
        classes: {"classifiers": size, "poolers": 11 * POOLER, "router": 769}
        for classes, size in LINEAR.items()
    },
    # 12 policies have 295,692; nobody asks whether to leave at the end, so here are 11.
    "consistentee": {
        classes: {"classifiers": size, "router": 295_692 - 24_641}
        for classes, size in LINEAR.items()
    },
    "fastbert": {2: {"classifiers": 11 * 181_250}, 3: {"classifiers": 11 * (181_250 + 129)}},
    # Published: 14,211,126 and 14,229,588 with the last pooler, the last projection and the gate.
    "gpfee": {
        2: {"classifiers": 14_211_126 - 12 * POOLER - 3_076 - 6, "poolers": 11 * POOLER},
        3: {"classifiers": 14_229_588 - 12 * POOLER - 4_614 - 12, "poolers": 11 * POOLER},
    },
    # Exits at layers 1, 4 and 6, each with as many weights as it mixes vectors.
    "righttool": {2: {"classifiers": 3 * 1_538 + 6}, 3: {"classifiers": 3 * 2_307 + 6}},
    **{
        name: {
            classes: {
                "classifiers": 768 * classes + classes,
                "poolers": POOLER,
                "small model": EMBEDDINGS + 2 * LAYER,
            }
            for classes in (2, 3)
        }
        for name in ("cascadebert", "cascade-truncated")
    },
}  # fmt: skip
# What the final head has; a linear one where nothing is said.
LAST = {
    "fastbert": {2: 181_250, 3: 181_250 + 129},
    "gpfee": {2: 3_076 + 6, 3: 4_614 + 12},
    "righttool": {2: 1_538 + 4, 3: 2_307 + 4},
}
HALVES = ("layers-k", "distilbert", "pd", "pkd", "theseus")  # of 6 layers


@cache
def built(name: str, classes: int) -> Model:
    with torch.device("meta"):
        if METHODS[name].cascade == "own":  # what it costs is counted by running, so not here
            config = EarlyExitConfig(
                backbone_config=BertConfig(), small_config=BertConfig(num_hidden_layers=2),
                method=name, method_options=dict(METHODS[name].options), pooling="own_pooler",
                prototypes="none", cascade=2, exit_layers=[2, 14], num_labels=classes,
            )  # fmt: skip
            return Model(config)
        return Model.from_backbone(BertModel(BertConfig()), num_labels=classes, method=name)


def size(*parts: nn.Module) -> int:
    return sum(parameter.numel() for part in parts for parameter in part.parameters())


def test_every_method_is_in_the_table() -> None:
    assert set(EXITS) == set(METHODS)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", EXITS)
def test_exits_cost_what_was_published(name: str, classes: int) -> None:
    assert built(name, classes).exit_parameters() == EXITS[name][classes]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("name", EXITS)
def test_the_rest_is_the_backbone_and_one_head(name: str, classes: int) -> None:
    model = built(name, classes)
    rest = size(model) - size(model.objective) - sum(EXITS[name][classes].values())
    head = LAST.get(name, {}).get(classes, 768 * classes + classes)
    no_pooler = name in WORDS or name == "fastbert"  # they read tokens
    kept = BERT - (6 * LAYER if name in HALVES else 0) - (POOLER if no_pooler else 0)
    assert rest == kept + head


@pytest.mark.parametrize("name", EXITS)
def test_the_list_of_methods_counts_the_same(name: str) -> None:
    assert exit_parameters(name) == EXITS[name][2]


def test_a_published_distilbert_has_no_pooler_and_no_token_types() -> None:
    kept = size(built("distilbert", 2)) - (768 * 2 + 2)
    assert kept == 66_955_008
    assert kept - POOLER - 2 * 768 == 66_362_880


def test_totals_and_shares_of_the_paper() -> None:
    """+16.92K and +6.51M (5.95 %) of two classes, +25.38K and +6.52M (5.96 %) of three."""
    for classes, plain, whole, share in [
        (2, 16_918, 6_513_430, 0.0595),
        (3, 25_377, 6_521_889, 0.0596),
    ]:
        assert sum(built("de3-no-pn", classes).exit_parameters().values()) == plain
        total = sum(built("de3", classes).exit_parameters().values())
        assert total == whole
        assert total / BERT == pytest.approx(share, abs=5e-5)


def test_prototypes_are_kept_but_not_learned() -> None:
    for name in ("de3", "de3-no-pn", "de-cosee"):
        bank = built(name, 2).prototypes
        assert size(bank) == 0
        assert bank.vectors.numel() == 11 * 2 * 768 == 16_896


def test_only_leebert_has_a_loss_that_learns() -> None:
    """12 weights of exits and 132 of pairs of them, for the time of the training."""
    learned = {name: size(built(name, 2).objective) for name in EXITS}
    assert {name: count for name, count in learned.items() if count} == {"leebert": 12 + 12 * 11}


@pytest.mark.parametrize(("layers", "expected"), [(6, 66_955_008), (4, 52_779_264)])
def test_backbones_that_were_cut(layers: int, expected: int) -> None:
    assert size(built(f"layers-{layers}", 2)) == expected + 1_538


def test_roberta() -> None:
    config = RobertaConfig(vocab_size=50_265, max_position_embeddings=514, type_vocab_size=1)
    with torch.device("meta"):
        model = Model.from_backbone(RobertaModel(config), num_labels=2, method="de3")
    assert size(model) == 124_645_632 + 1_538 + 6_513_430
