"""Recipes: everything about a training in one checked TOML file."""

from __future__ import annotations

import tomllib

import pytest

from de3bert.errors import UsageError
from de3bert.training.recipe import Recipe, load_recipe, recipe_from, recipe_text, resolve

LEAST = {"backbone": "b", "data": {"train": "t.csv"}}


def test_defaults_are_spelled_out_and_read_back_to_the_same_recipe():
    recipe = recipe_from(
        {**LEAST, "exit_layers": [1, 3], "search": {"train.learning_rate": [1e-5, 2e-5]},
         "method_options": {"alpha": 0.01, "dar": "combined"}},
    )  # fmt: skip
    text = recipe_text(recipe)
    assert "learning_rate = 2e-05" in text
    assert recipe_from(tomllib.loads(text)) == recipe


@pytest.mark.parametrize("name", ["mnli", "mrpc", "qnli", "qqp", "rte", "sst2"])
def test_shipped_recipes_are_sound(name):
    recipe = recipe_from(load_recipe(name))
    assert isinstance(recipe, Recipe)
    assert recipe_from(tomllib.loads(recipe_text(recipe))) == recipe


def test_set_overrides_values_of_every_kind():
    recipe = recipe_from(
        LEAST,
        [
            "train.epochs=2",
            "train.learning_rate = 5e-5",
            "pooling=mean",
            'method="joint-entropy"',
            "exit_layers=[2, 4]",
            "method_options.alpha=0.5",
        ],
    )
    assert (recipe.train.epochs, recipe.train.learning_rate) == (2, 5e-5)
    assert (recipe.pooling, recipe.method, recipe.exit_layers) == ("mean", "joint-entropy", [2, 4])
    assert recipe.method_options == {"alpha": 0.5}


def test_later_sources_win_over_earlier_ones(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text('backbone = "b"\n[data]\ntrain = "t.csv"\ntext = "body"\n[train]\nseed = 1\n')
    recipe = resolve(path, {"train.seed": 2, "data.text": None, "method": "full"}, ["train.seed=3"])
    assert (recipe.train.seed, recipe.data.text, recipe.method) == (3, "body", "full")
    assert resolve(path, {"train.seed": 2}).train.seed == 2


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"epochs": 3}, "epochs: Extra inputs"),
        ({"train": {"lr": 1e-3}}, "train.lr: Extra inputs"),
        ({"train": {"epochs": "many"}}, "train.epochs: Input should be a valid number"),
        ({"train": {"batch_size": 0}}, "train.batch_size: Input should be greater"),
        ({"train": {"learning_rate": -1.0}}, "train.learning_rate: Input should be greater"),
        ({"train": {"mixed_precision": "fp8"}}, "train.mixed_precision"),
        ({"data": {"train": 3}}, "data.train: Input should be a valid string"),
        ({"data": {"train": "t.csv", "calibration_share": 1.5}}, "data.calibration_share"),
        ({"prototypes": "cubic"}, "prototypes: Input should be 'linear', 'identity' or 'none'"),
        ({"data": "t.csv"}, "data: Input should be a valid dictionary"),
        ({"backbone": None}, "backbone: Input should be a valid string"),
    ],
)
def test_what_is_wrong_is_named(change, named):
    with pytest.raises(UsageError) as error:
        recipe_from({**LEAST, **change})
    assert named in str(error.value)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("train.epochs=inf", "train.epochs: Input should be a finite number, got inf"),
        ("train.epochs=nan", "train.epochs: Input should be a finite number, got nan"),
        ("train.epochs=1e9", "train.epochs: Input should be less than or equal to 10000"),
        ("train.seed=-1", "train.seed: Input should be greater than or equal to 0, got -1"),
        ("train.seed=4294967296", "train.seed: Input should be less than or equal to 4294967295"),
        ("train.learning_rate=1e6", "train.learning_rate: Input should be less than or equal to 1"),
        ("train.learning_rate=inf", "train.learning_rate: Input should be a finite number"),
        ("train.head_rate=1e6", "train: Value error, learning_rate times head_rate is 20"),
        ("train.head_rate=nan", "train.head_rate: Input should be a finite number"),
        ("train.warmup=nan", "train.warmup: Input should be a finite number"),
        ("train.weight_decay=1e6", "train.weight_decay: Input should be less than or equal to 10"),
        ("train.max_grad_norm=inf", "train.max_grad_norm: Input should be a finite number"),
        ("train.gradient_accumulation=0", "train.gradient_accumulation: Input should be greater"),
        ("train.gradient_accumulation=1000000", "train.gradient_accumulation: Input should be"),
        ("train.batch_size=1000000000", "train.batch_size: Input should be less"),
        ("train.early_stopping=-1", "train.early_stopping: Input should be greater"),
        ("train.save_steps=0", "train.save_steps: Input should be greater"),
        ("data.max_length=1000000000", "data.max_length: Input should be less"),
        ("data.limit=1" + "0" * 30, "data.limit: Input should be less"),
        ("data.calibration_share=nan", "data.calibration_share: Input should be a finite number"),
    ],
)
def test_numbers_out_of_range(line, named):
    with pytest.raises(UsageError) as error:
        recipe_from(LEAST, [line])
    assert named in str(error.value)


def test_a_recipe_cannot_allow_foreign_code():
    for line in ("trust_remote_code=true", "train.trust_remote_code=true",
                 "data.trust_remote_code=true"):  # fmt: skip
        with pytest.raises(UsageError, match="trust_remote_code: Extra inputs"):
            recipe_from(LEAST, [line])


def test_a_long_value_is_cut_and_printable():
    with pytest.raises(UsageError) as error:
        recipe_from({**LEAST, "train": {"epochs": "\x1b[2J" * 1000}})
    assert len(str(error.value)) < 300
    assert "\x1b" not in str(error.value)


@pytest.mark.parametrize(
    "line", ["train.epochs", "=3", "train.epochs.more=1", "backbone.name=x", "train.epochs=two"]
)
def test_overrides_that_cannot_be_meant(line):
    with pytest.raises(UsageError):
        recipe_from({**LEAST, "train": {"epochs": 1}}, [line])


def test_what_every_training_needs():
    with pytest.raises(UsageError, match="backbone is missing: pass --backbone"):
        resolve(None, {"data.train": "t.csv"})
    with pytest.raises(UsageError, match=r"data\.train is missing: pass --data"):
        resolve(None, {"backbone": "b"})
    assert resolve(None, {"backbone": "b"}, ["data.train=t.csv"]).data.train == "t.csv"


@pytest.mark.parametrize(
    "content",
    [
        b"backbone = ",
        b"[data\n",
        b"\xff\xfe\x00",
        b"a = 1\na = 2\n",
        b'{"json": 1}',
        b"a = " + b"[" * 20_000,
        b"a = " + b"9" * 20_000,
    ],
)
def test_a_file_that_is_not_toml(tmp_path, content):
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=r"bad\.toml is not valid TOML"):
        load_recipe(path)


@pytest.mark.parametrize("content", ['data = "t.csv"', "data = 2020-01-01", "train = []"])
def test_sections_that_are_values(tmp_path, content):
    path = tmp_path / "odd.toml"
    path.write_text(f'backbone = "b"\n{content}\n')
    with pytest.raises(UsageError, match=r"not valid|is missing|not a section"):
        resolve(path, {})


def test_a_file_that_is_too_large_or_no_name(tmp_path, monkeypatch):
    path = tmp_path / "large.toml"
    path.write_text("# " + "x" * 5000)
    monkeypatch.setenv("DE3_MAX_DOCUMENT", "4KB")
    with pytest.raises(UsageError, match=r"large\.toml: 4\.9 KB is more than the limit"):
        load_recipe(path)
    with pytest.raises(UsageError, match="cannot be read"):
        load_recipe("x" * 5000)


def test_an_unknown_recipe_suggests_the_nearest():
    with pytest.raises(UsageError) as error:
        load_recipe("sst-2")
    assert 'Did you mean "sst2"?' in str(error.value)
    assert "mnli, mrpc, qnli, qqp, rte, sst2" in str(error.value)


def test_a_folder_does_not_hide_a_shipped_recipe(tmp_path, monkeypatch):
    """`de3 search sst2 --out sst2` makes a folder of that name; the same command must go on."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sst2").mkdir()
    assert load_recipe("sst2")["method"] == "de3"


def test_the_fingerprint_follows_what_changes_the_result():
    base = recipe_from(LEAST)
    assert recipe_from(LEAST, ["train.seed=7"]).fingerprint() != base.fingerprint()
    assert recipe_from(LEAST, ["method_options.alpha=0.2"]).fingerprint() != base.fingerprint()
    searched = recipe_from({**LEAST, "search": {"train.seed": [1.0]}})
    assert searched.fingerprint() == base.fingerprint()


@pytest.mark.parametrize(
    ("rate", "head_rate", "heads"),
    [(2e-5, None, 1e-3), (0.01, None, 0.01), (2e-5, 1.0, 2e-5), (5e-5, 20.0, 1e-3)],
)
def test_how_fast_heads_learn(rate, head_rate, heads):
    from de3bert.training.recipe import TrainRecipe

    settings = TrainRecipe(learning_rate=rate, head_rate=head_rate)
    assert settings.head_learning_rate == pytest.approx(heads)
