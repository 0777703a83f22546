"""A cascade that begins with a small encoder of its own: costs, weights, folders, refusals."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.export.bundles import ROUNDING, apart
from tests.fixtures_trained import ToyData, toy_recipe
from tests.model.families import batch, tiny, tiny_bert
from transformers import BertConfig, BertModel, PreTrainedTokenizerBase
from typer.testing import CliRunner

import de3bert
from de3bert.cli.main import app
from de3bert.data.read import read_table
from de3bert.errors import De3Error, UsageError
from de3bert.export.bundle import export_model
from de3bert.model import EarlyExitForSequenceClassification
from de3bert.model.cascade import Cascade
from de3bert.model.encoder import Encoder
from de3bert.model.layer_cost import in_layers_of, layer_operations
from de3bert.model.layout import find_layout
from de3bert.runtime.calibrate_folder import calibrate_model
from de3bert.runtime.evaluate import evaluate, trace_table
from de3bert.training.fit import fit
from de3bert.training.recipe import recipe_from

Model = EarlyExitForSequenceClassification
NARROW = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32}


def bert(seed: int = 1, **changes: Any) -> BertModel:
    """A random BERT of the tests' vocabulary, 32 wide unless changed."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        sizes = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4,
                 "intermediate_size": 64, "max_position_embeddings": 64}  # fmt: skip
        model = BertModel(BertConfig(vocab_size=60, **{**sizes, **changes}))
        for parameter in model.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=0.15)
    return model.eval()


def cascade(small: Any, big: Any = None, **changes: Any) -> Model:
    return Model.from_backbone(
        bert(2) if big is None else big, num_labels=2, method="cascadebert", small_backbone=small,
        **changes,
    )  # fmt: skip


def encoder(module: Any) -> Encoder:
    return Encoder(module, find_layout(module))


# --- what it costs


def test_two_of_twelve_equal_layers_cost_what_the_paper_says() -> None:
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 64}
    model = cascade(bert(num_hidden_layers=2, **sizes), bert(num_hidden_layers=12, **sizes))
    assert model.config.exit_layers == [2, 14]
    assert (model.config.base_depth, model.config.depth, model.config.cascade) == (12, 14, 2)


def slow_operations(width: int, inner: int, layers: int, tokens: int = 32) -> int:
    """Two for each multiplication: four projections, two products of attention, two dense."""
    total = 0
    for _ in range(layers):
        total += 4 * 2 * tokens * width * width
        total += 2 * 2 * tokens * tokens * width
        total += 2 * 2 * tokens * width * inner
    return total


@pytest.mark.parametrize(
    ("changes", "units"),
    [({**NARROW, "num_hidden_layers": 2}, 1), ({**NARROW, "num_hidden_layers": 7}, 3),
     ({"intermediate_size": 256, "num_hidden_layers": 2}, 5), ({"num_hidden_layers": 6}, 6)],
)  # fmt: skip
def test_other_layers_cost_their_products_rounded_up(changes: dict[str, int], units: int) -> None:
    small, big = bert(**changes), bert(2)
    width, inner = small.config.hidden_size, small.config.intermediate_size
    spent = slow_operations(width, inner, small.config.num_hidden_layers)
    share = spent / (slow_operations(32, 64, 3) / 3)
    assert units - 1 < share <= units
    first, second = encoder(small), encoder(big)
    assert layer_operations(first) == spent
    assert in_layers_of(first, second) == units


def test_families_that_compute_attention_themselves_are_counted_too() -> None:
    for family in ("modernbert", "deberta-v2", "albert-1-group", "mpnet"):
        whole = encoder(tiny(family))
        assert in_layers_of(whole, whole) == whole.depth


# --- what it computes


@pytest.mark.parametrize("changes", [{}, NARROW, {"num_hidden_layers": 7, **NARROW}])
@torch.no_grad()
def test_each_exit_is_its_own_encoder_alone(changes: dict[str, int]) -> None:
    """Also of layers that are spread over fewer units, or units over fewer layers."""
    small, big = bert(7, **changes), bert(2)
    given = {"input_ids": batch()["input_ids"], "attention_mask": batch()["attention_mask"]}
    states = [each(**given).last_hidden_state for each in (small, big)]
    model = cascade(small, big, pooling="mean", poolers="none")
    found = model(**given).exit_logits
    present = given["attention_mask"].unsqueeze(-1).float()
    for number, own in enumerate(states):
        mean = (own * present).sum(1) / present.sum(1)
        head = model.heads.exits[number]
        expected = mean @ head.weight[:, : own.shape[-1]].T + head.bias
        torch.testing.assert_close(found[:, number], expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("family", ["roberta", "modernbert", "deberta-v2", "albert-1-group"])
@torch.no_grad()
def test_families_may_differ(family: str) -> None:
    given = {"input_ids": batch()["input_ids"], "attention_mask": batch()["attention_mask"]}
    small, big = bert(7, **NARROW), tiny(family)
    expected = small(**given).last_hidden_state[:, 0]
    model = cascade(small, big, pooling="cls", poolers="none")
    head = model.heads.exits[0]
    found = model(**given).exit_logits
    torch.testing.assert_close(
        found[:, 0], expected @ head.weight[:, :16].T + head.bias, atol=1e-5, rtol=1e-4
    )
    plain = Model.from_backbone(tiny(family), num_labels=2, method="full", pooling="cls")
    plain.heads.exits[0].load_state_dict(model.heads.exits[1].state_dict())
    torch.testing.assert_close(found[:, 1], plain(**given).logits, atol=1e-5, rtol=1e-4)


@torch.no_grad()
def test_the_first_layers_as_small_encoder_are_the_truncated_cascade() -> None:
    """The same numbers, whichever way the two layers came in: outputs, loss and costs."""
    truncated = Model.from_backbone(tiny_bert(), num_labels=2, method="cascade-truncated", small=2)
    first = tiny_bert()
    first.encoder.layer = first.encoder.layer[:2]
    first.config.num_hidden_layers = 2
    own = cascade(first, tiny_bert())
    own.heads.load_state_dict(truncated.heads.state_dict())
    assert own.config.exit_layers == truncated.config.exit_layers == [2, 5]
    assert own.config.pooling == truncated.config.pooling == "own_pooler"
    labels, hard = torch.tensor([0, 1, 1]), {"difficult": torch.tensor([True, False, False])}
    found = [m(**batch(), labels=labels, extras=hard) for m in (own, truncated)]
    assert torch.equal(found[0].exit_logits, found[1].exit_logits)
    assert torch.equal(found[0].loss, found[1].loss)
    assert own.state_dict().keys() == truncated.state_dict().keys()


@torch.no_grad()
def test_the_small_encoders_own_pooler_reads_it() -> None:
    small, big = bert(7, **NARROW), bert(2)
    expected = small(**batch()).pooler_output
    theirs = big(**batch()).pooler_output
    model = cascade(small, big)
    assert model.config.pooling == "own_pooler"
    prepared = model.encoder.prepare(**batch())
    hidden, seen = prepared.embedded, []
    for number in range(1, model.encoder.depth + 1):
        hidden = model.encoder.layer(prepared, number, hidden)
        if number in model.config.exit_layers:
            seen.append(model.read(hidden, prepared.mask, number)[0])
    torch.testing.assert_close(seen[0][:, :16], expected, atol=1e-5, rtol=1e-4)
    assert not seen[0][:, 16:].any()
    torch.testing.assert_close(seen[1], theirs, atol=1e-5, rtol=1e-4)


def test_new_tokens_and_another_attention_reach_both(tmp_path: Path) -> None:
    model = cascade(bert(7, **NARROW))
    model.resize_token_embeddings(63)
    model.save_pretrained(tmp_path)
    again = Model.from_pretrained(tmp_path)
    ids = torch.tensor([[7, 62, 61]])
    torch.testing.assert_close(again(ids).exit_logits, model(ids).exit_logits, atol=1e-6, rtol=0)
    before = model(**batch()).exit_logits
    model.set_attn_implementation("eager")
    for part in (model.encoder.small, model.encoder.big):
        assert part.backbone.config._attn_implementation == "eager"
    torch.testing.assert_close(model(**batch()).exit_logits, before, atol=1e-5, rtol=1e-4)


# --- from training to a bundle


@pytest.fixture
def settings(tiny_backbone: Path, small_backbone: Path, toy_data: ToyData) -> dict[str, Any]:
    return {
        **toy_recipe(tiny_backbone, toy_data),
        "method": "cascadebert",
        "small_backbone": str(small_backbone),
    }


@pytest.fixture(scope="module")
def trained(
    tmp_path_factory: pytest.TempPathFactory, tiny_backbone: Path, small_backbone: Path,
    toy_data: ToyData,
) -> Path:  # fmt: skip
    recipe = {**toy_recipe(tiny_backbone, toy_data), "method": "cascadebert",
              "small_backbone": str(small_backbone)}  # fmt: skip
    return fit(recipe_from(recipe), tmp_path_factory.mktemp("own") / "model", progress=False).folder


READ = """
import sys, json, de3bert
classifier = de3bert.load(sys.argv[1])
answers = classifier.predict(["a good film", "bad plot", "the best joy"], policy="full")
light = "torch" not in sys.modules
print(json.dumps([[a.label, a.exit_layer, round(a.score, 4)] for a in answers] + [light]))
"""


def in_a_new_process(folder: Path) -> list[Any]:
    done = subprocess.run(
        [sys.executable, "-c", READ, str(folder)], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    found: list[Any] = json.loads(done.stdout)
    return found


def test_a_folder_says_everything_about_both(trained: Path, tmp_path: Path) -> None:
    config = json.loads((trained / "config.json").read_text(encoding="utf-8"))
    assert (config["cascade"], config["exit_layers"], config["base_depth"]) == (1, [1, 5], 4)
    assert config["small_config"]["hidden_size"] == 16
    record = json.loads((trained / "training.json").read_text(encoding="utf-8"))
    assert record["small_backbone"].endswith("small-bert")
    assert min(record["exit_accuracy"].values()) > 0.8
    card = " ".join((trained / "README.md").read_text(encoding="utf-8").split())
    assert "small-bert` at the cost of 1 of its layers." in card
    moved = Path(shutil.copytree(trained, tmp_path / "moved"))
    *answers, light = in_a_new_process(moved)
    assert [layer for _, layer, _ in answers] == [5, 5, 5]
    assert not light


def test_it_calibrates_exports_and_runs_without_torch(
    trained: Path, toy_data: ToyData, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(trained, tmp_path / "model"))
    table = read_table(toy_data.calibration)
    point = calibrate_model(folder, "layers=1.5", "fast", table=table, default=True)
    model = de3bert.load(folder)
    assert model.depth == 5
    tested = evaluate(model, read_table(toy_data.test))
    left = {int(layer): rows for layer, rows in tested.exit_histogram.items()}
    mean = (left.get(1, 0) + 5 * left.get(5, 0)) / sum(left.values())
    assert tested.layers_mean == pytest.approx(mean)
    assert tested.layer_speedup == pytest.approx(4 / mean)
    assert str(point.policy).startswith("max_probability")
    export_model(folder, tmp_path / "bundle")
    bundle = de3bert.load(tmp_path / "bundle")
    theirs = trace_table(model, table)
    assert apart(theirs, trace_table(bundle, table)) <= ROUNDING
    assert bundle.points
    *answers, light = in_a_new_process(tmp_path / "bundle")
    assert light
    assert [a[:2] for a in answers] == [a[:2] for a in in_a_new_process(folder)[:-1]]


def test_the_command_takes_it(
    settings: dict[str, Any], tiny_backbone: Path, small_backbone: Path, toy_data: ToyData,
    tmp_path: Path,
) -> None:  # fmt: skip
    words = ["train", "--data", str(toy_data.train), "--backbone", str(tiny_backbone), "--out",
             str(tmp_path / "m"), "--method", "cascadebert", "--small-backbone",
             str(small_backbone), "--set", "train.epochs=0.1", "--quiet", "--json"]  # fmt: skip
    said = CliRunner().invoke(app, words)
    assert said.exit_code == 0, said.output
    assert json.loads(said.stdout)["exit_accuracy"].keys() == {"1", "5"}
    assert f'small_backbone = "{small_backbone}"' in (tmp_path / "m" / "recipe.toml").read_text()


def test_a_setting_that_is_not_given_changes_no_fingerprint(settings: dict[str, Any]) -> None:
    """Unfinished trainings of other methods go on where they were."""
    with_one = recipe_from(settings).fingerprint()
    settings["small_backbone"] = "another"
    assert recipe_from(settings).fingerprint() != with_one
    del settings["small_backbone"]
    recipe = recipe_from({**settings, "method": "de3"})
    assert recipe.small_backbone is None
    assert "small_backbone" not in recipe.model_dump(exclude_none=True)


# --- what is refused


def test_a_cascade_without_a_small_encoder_names_both_ways(
    settings: dict[str, Any], tmp_path: Path
) -> None:
    del settings["small_backbone"]
    for way in (
        lambda: fit(recipe_from(settings), tmp_path / "m", progress=False),
        lambda: Model.from_backbone(bert(), num_labels=2, method="cascadebert"),
    ):
        with pytest.raises(UsageError, match=r"small_backbone = FOLDER.*cascade-truncated"):
            way()
    assert not (tmp_path / "m.training").exists()


def test_a_method_without_use_for_it_says_so(settings: dict[str, Any], tmp_path: Path) -> None:
    for method in ("de3", "cascade-truncated"):
        recipe = recipe_from({**settings, "method": method})
        with pytest.raises(UsageError, match=r"no use for a small_backbone.*: cascadebert\."):
            fit(recipe, tmp_path / "m", progress=False)


def other_words(folder: Path, small_backbone: Path, change: Any) -> Path:
    made = Path(shutil.copytree(small_backbone, folder))
    path = made / "tokenizer.json"
    tokenizer = json.loads(path.read_text(encoding="utf-8"))
    change(tokenizer)
    path.write_text(json.dumps(tokenizer), encoding="utf-8")
    return made


def rename_a_word(tokenizer: dict[str, Any]) -> None:
    words = tokenizer["model"]["vocab"]
    words["splendid"] = words.pop("good")


def keep_capitals(tokenizer: dict[str, Any]) -> None:
    tokenizer["normalizer"] = None


@pytest.mark.parametrize(
    ("change", "said"),
    [(rename_a_word, r"of which 2 are not in both"), (keep_capitals, r"cut into other pieces")],
)
def test_another_tokenizer_is_refused(
    tiny_backbone: Path, small_backbone: Path, tmp_path: Path, change: Any, said: str
) -> None:
    strange = other_words(tmp_path / "strange", small_backbone, change)
    with pytest.raises(UsageError, match=said) as error:
        cascade(str(strange), str(tiny_backbone))
    assert "cascade-truncated" in str(error.value)
    assert str(tiny_backbone) in str(error.value)


def test_modules_with_other_vocabularies_are_refused() -> None:
    other = BertModel(BertConfig(vocab_size=61, **NARROW, num_hidden_layers=1))
    with pytest.raises(UsageError, match=r"61 and 60 entries"):
        cascade(other)


def test_a_wider_small_encoder_is_refused() -> None:
    with pytest.raises(UsageError, match="64 wide and the backbone 32"):
        cascade(bert(hidden_size=64))


def test_a_folder_without_a_tokenizer_or_without_an_encoder_is_refused(
    tiny_backbone: Path, small_backbone: Path, tmp_path: Path
) -> None:
    bare = Path(shutil.copytree(small_backbone, tmp_path / "bare"))
    for name in ("tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"):
        (bare / name).unlink(missing_ok=True)
    with pytest.raises(De3Error, match="tokenizer of"):
        cascade(str(bare), str(tiny_backbone))
    (bare / "config.json").unlink()
    with pytest.raises(De3Error, match="bare does not load as an encoder"):
        cascade(str(bare), str(tiny_backbone))


def test_configs_that_lie_about_the_small_model_are_refused(trained: Path, tmp_path: Path) -> None:
    for number, change in enumerate(
        ({"small_config": None}, {"small_config": "x"}, {"small_config": {"model_type": "nope"}},
         {"cascade": 0}, {"small_layout": {"stack": "nowhere"}}, {"small_layout": "x"})
    ):  # fmt: skip
        folder = Path(shutil.copytree(trained, tmp_path / str(number)))
        path = folder / "config.json"
        config = json.loads(path.read_text(encoding="utf-8"))
        path.write_text(json.dumps({**config, **change}), encoding="utf-8")
        with pytest.raises(De3Error):
            de3bert.load(folder).predict(["a good film"])


def test_old_folders_with_first_layers_load_as_before(
    tiny_tokenizer: PreTrainedTokenizerBase, tmp_path: Path
) -> None:
    """Such as they were saved: the method cascadebert, and nothing said of a small config."""
    model = Model.from_backbone(tiny_bert(), num_labels=2, method="cascade-truncated", small=2)
    model.save_pretrained(tmp_path)
    tiny_tokenizer.save_pretrained(tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    for name in ("small_config", "small_layout"):
        config.pop(name, None)
    config |= {"method": "cascadebert", "method_options": {
        "small": 2.0, "difficulty": 0.5, "margin": 0.5, "difficulty_epochs": 1 / 3}}  # fmt: skip
    path.write_text(json.dumps(config), encoding="utf-8")
    again = Model.from_pretrained(tmp_path)
    assert isinstance(again.encoder, Cascade)
    with torch.no_grad():
        assert torch.equal(again(**batch()).exit_logits, model(**batch()).exit_logits)
    assert [a.exit_layer for a in de3bert.load(tmp_path).predict(["good"], policy="layer(2)")] == [
        2
    ]
