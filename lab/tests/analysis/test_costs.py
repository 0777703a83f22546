"""What exits cost: the paper's tables to the last digit, and models at hand."""

from __future__ import annotations

import json

import pytest
import torch
from transformers import BertConfig, BertModel

import de3bert
from de3bert.errors import De3Error, UsageError
from de3bert.model import EarlyExitForSequenceClassification as Model
from de3lab.analysis import ANALYSES, Subject, analyse
from de3lab.analysis.costs import PAPER_MODULES, PAPER_PARAMETERS, paper_anatomy
from de3lab.analysis.costs_tables import short
from de3lab.analysis.counting import count_by_formula
from de3lab.study.flops import Anatomy, modules_of
from de3lab.study.parameters import parameters_of, shares_of


@pytest.mark.parametrize("classes", [2, 3])
def test_every_module_of_the_paper(classes):
    found = modules_of(paper_anatomy(classes), 128)
    assert found == {
        "embedding": 786_432,
        "encoder layer": 1_813_512_192,
        "pooler": 1_179_648,
        "prediction head": 1_536 * classes,
        "prototypical network": 1_179_648,
        "internal classifier": 1_536 * classes,
        "EDR": 9_216,
    }
    published = {name: row[classes] for name, row in PAPER_MODULES.items()}
    assert {name: short(value) for name, value in found.items()} == published


@pytest.mark.parametrize("tokens", [127, 129])
def test_only_128_tokens_give_the_paper_s_table(tokens):
    layer = modules_of(paper_anatomy(2), tokens)["encoder layer"]
    assert short(layer) == {127: "1799.3M", 129: "1827.7M"}[tokens]


def test_sums_of_the_paper():
    found = modules_of(paper_anatomy(2), 128)
    decision = sum(found[name] for name in ("prototypical network", "internal classifier", "EDR"))
    assert decision == 1_191_936
    assert 100 * decision / found["encoder layer"] == pytest.approx(0.0657, abs=5e-5)
    whole = found["embedding"] + 12 * found["encoder layer"]
    assert whole + found["pooler"] + found["prediction head"] == 21_764_115_456


def test_with_attention():
    assert count_by_formula(paper_anatomy(2), 128).layers[0] == 1_862_270_976


@pytest.mark.parametrize(
    ("method", "classes", "added", "percent"),
    [
        ("de3", 2, 6_513_430, 5.949),
        ("de3", 3, 6_521_889, 5.957),
        ("de3", 14, 6_614_938, 6.042),
        ("deebert", 2, 16_918, 0.0155),
        ("deebert", 3, 25_377, 0.0232),
        ("full", 2, 0, 0.0),
    ],
)
def test_parameters_of_the_paper(method, classes, added, percent):
    with torch.device("meta"):
        model = Model.from_backbone(
            BertModel(BertConfig()), num_labels=classes, method=method, pooling="shared_pooler"
        )
    found = shares_of(model)
    assert found["backbone"] == 109_482_240
    assert found["added"] == sum(found["parts"].values()) == added
    assert found["added_percent"] == pytest.approx(percent, abs=5e-4)
    assert found["final head"] == 768 * classes + classes
    assert found["total"] == 109_482_240 + added + 769 * classes
    assert found["prototypes"] == (11 * classes * 768 if method == "de3" else 0)


def test_published_parameters_are_what_we_count():
    rounded = {"DeeBERT": "+16.92K", "DE3-BERT": "+6.51M", "BERT-base": "109.48M"}
    assert {name: row[2] for name, row in PAPER_PARAMETERS.items()} == rounded


def test_a_loss_that_learns_is_in_no_sum(untrained):
    model = de3bert.load(untrained("leebert", pooling="mean")).backend.model
    found = shares_of(model)
    assert found["total"] < sum(parameter.numel() for parameter in model.parameters())
    assert found["backbone"] == sum(p.numel() for p in model.encoder.parameters())


def numbers_of(*subjects, **settings):
    return analyse("costs", list(subjects), settings, "de3 analyze costs ...").numbers


def test_on_models(trained_model, untrained, tmp_path):
    plain = untrained("full", pooling="mean")
    record = {"seconds": 60.0, "steps": 120}
    (plain / "training.json").write_text(json.dumps(record))
    found = numbers_of(Subject("de3", str(trained_model)), Subject("plain", str(plain)), length=20)
    de3, full = found["kinds"]
    assert (de3["method"], full["method"], found["plain"]) == ("de3", "full", "plain")
    stored = parameters_of(trained_model)
    assert de3["parameters"]["total"] == sum(stored.values())
    assert de3["parameters"]["parts"] == {
        "classifiers": 3 * (32 * 2 + 2),
        "prototypical networks": stored["projectors"],
    }
    anatomy = Anatomy.of_folder(trained_model)
    assert de3["flops"]["convention"] == modules_of(anatomy, 20)
    products = count_by_formula(anatomy, 20)
    counted = de3["flops"]["counted"]
    assert counted["encoder layer"] == products.layers[0]
    assert counted["mean pooling"] == 2 * 20 * 32
    assert (counted["EDR"], counted["internal classifier"]) == (2 * 32 * 2, 2 * 32 * 2)
    exits = sum(sum(parts.values()) for parts in products.exits)
    assert de3["flops"]["pass"] == 4 * products.layers[0] + exits
    assert full["flops"]["pass"] == full["flops"]["pass_without_exits"]
    assert set(full["flops"]["counted"]) == {
        "embedding", "encoder layer", "mean pooling", "prediction head",
    }  # fmt: skip
    trained = json.loads((trained_model / "training.json").read_text())
    per_step = trained["seconds"] / trained["steps"]
    assert de3["training"]["seconds_per_step"] == pytest.approx(per_step)
    assert de3["training"]["time_ratio"] == pytest.approx(per_step / 0.5)
    assert full["training"]["time_ratio"] == 1.0
    assert de3["training"]["flops_ratio"] == de3["flops"]["pass"] / full["flops"]["pass"] > 1


def test_seeds_share_a_label(model_copy, trained_model):
    (model_copy / "training.json").write_text(json.dumps({"seconds": 30.0, "steps": 10}))
    runs = [Subject("de3", str(path)) for path in (trained_model, model_copy)]
    (kind,) = numbers_of(*runs, length=8)["kinds"]
    trained = json.loads((trained_model / "training.json").read_text())
    own = trained["seconds"] / trained["steps"]
    assert (kind["runs"], kind["training"]["runs"]) == (2, 2)
    assert kind["training"]["seconds_per_step"] == pytest.approx((own + 3.0) / 2)
    assert kind["training"]["time_ratio"] is None  # nobody to compare with


def test_tables_and_figure_come_from_stored_numbers(trained_model, untrained, tmp_path):
    bare = untrained("joint-entropy", pooling="shared_pooler")
    found = numbers_of(Subject("joint", str(bare)), Subject("de3", str(trained_model)), length=16)
    again = json.loads(json.dumps(found))
    parameters, joint, de3, training, paper = ANALYSES["costs"].tables(again)
    assert [row[0] for row in parameters.rows] == ["joint", "de3"]
    assert "prototypical network" not in [row[0] for row in joint.rows]
    assert ("pooler", "2,048", "2,048") in joint.rows
    assert ("prototypical network", "2,048", "2,048") in de3.rows
    assert training.rows[0][:5] == ("joint", 0, None, None, None)
    assert "there are no ratios" in training.note
    assert "shared" in training.note
    for row in paper.rows:
        assert (row[2], row[5]) == (row[3], row[6]), row[0]
    ANALYSES["costs"].draw(tmp_path / "figure.png", again)
    assert (tmp_path / "figure.png").stat().st_size > 1000


def test_what_is_refused(trained_model, trained_bundle, model_copy):
    with pytest.raises(UsageError, match=r"is a bundle, .* Give the model folder"):
        numbers_of(Subject("de3", str(trained_bundle)))
    for length in (0, 25):
        with pytest.raises(UsageError, match=f"1 to 24 tokens, got --length {length}"):
            numbers_of(Subject("de3", str(trained_model)), length=length)
    for text in ("{", '{"seconds": 3}', '{"seconds": "long", "steps": 2}'):
        (model_copy / "training.json").write_text(text)
        with pytest.raises(De3Error, match=r"training.json is damaged"):
            numbers_of(Subject("de3", str(model_copy)), length=8)
    (model_copy / "training.json").unlink()
    (kind,) = numbers_of(Subject("de3", str(model_copy)), length=8)["kinds"]
    assert kind["training"]["runs"] == 0
