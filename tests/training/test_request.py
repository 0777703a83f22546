"""What is wrong with a request is said before torch is loaded and before anything is written."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from tests.fixtures_trained import toy_recipe, toy_rows, write_csv

from de3bert.errors import De3Error, UsageError
from de3bert.files import write_text
from de3bert.model import EarlyExitConfig
from de3bert.training import output_folder, request
from de3bert.training.fit import fit
from de3bert.training.recipe import Recipe, recipe_from, recipe_text

DRIVER = textwrap.dedent(
    """
    import sys
    from de3bert.cli.main import main

    sys.argv = ["de3", *sys.argv[1:]]
    try:
        main()
    except SystemExit as leaving:
        heavy = {"torch", "transformers"} & sys.modules.keys()
        print(leaving.code, *sorted(heavy))
    """
)


def ended(folder: Path, *arguments: str) -> tuple[str, str]:
    """The exit code with the heavy modules that were loaded, and what the verb said."""
    ran = subprocess.run(
        [sys.executable, "-c", DRIVER, *arguments], cwd=folder, capture_output=True, text=True
    )
    assert "Traceback" not in ran.stderr
    return ran.stdout.strip(), ran.stderr


TRAIN = ["train", "--data", "rows.csv", "--backbone", "b", "--out", "m"]
WRONG = {
    "empty": (["train", "--data", "empty.csv", "--backbone", "b", "--out", "m"], "1", "is empty"),
    "column": ([*TRAIN, "--text", "body"], "2", 'no column "body"'),
    "one class": (["train", "--data", "one.csv", "--backbone", "b", "--out", "m"], "2", "only the"),
    "rare": (["train", "--data", "rare.csv", "--backbone", "b", "--out", "m"], "2", '"odd" (only'),
    "recipe": ([*TRAIN, "--set", "train.epochs=inf"], "2", "finite number"),
    "seed": ([*TRAIN, "--seed", "-1"], "2", "train.seed"),
    "method": ([*TRAIN, "--method", "de4"], "2", 'Did you mean "de3"'),
    "option": ([*TRAIN, "--method", "de3", "--set", "method_options.gamma=5"], "2",
               "gamma must be at most 1"),
    "metric": ([*TRAIN, "--set", "data.metric=f2"], "2", "Unknown metric"),
    "test": ([*TRAIN, "--set", "data.test=nowhere.csv"], "2", "There is no file"),
    "teacher": ([*TRAIN, "--teacher", "nowhere"], "2", "has no teacher"),
    "place": ([*TRAIN[:-1], "rows.csv"], "2", "not a model folder"),
    "link": ([*TRAIN[:-1], "link"], "1", "symbolic link"),
    "below a file": ([*TRAIN[:-1], "rows.csv/m"], "1", "there is a file where a folder"),
    "long": ([*TRAIN[:-1], "m" * 300], "1", "the name is too long"),
    "words": (["train", "--data", "empty.csv", "--backbone", "b", "--out", "m", "--task", "words",
               "--method", "sentee"], "2", "cannot hold lists of words"),
    "task": ([*TRAIN, "--task", "words"], "2", "Methods for tagging"),
    "search": (["search", "no-search.toml", "--out", "s"], "2", "no [search] section"),
    "search rows": (["search", "empty.toml", "--out", "s"], "1", "is empty"),
    "search value": (["search", "value.toml", "--out", "s"], "2", "gamma must be at most 1"),
    "search place": (["search", "value.toml", "--set", "search={\"train.seed\"=[1]}",
                      "--out", "rows.csv"], "1", "there is a file where a folder"),
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("requests")
    write_csv(folder / "rows.csv", toy_rows(64, 5))
    write_csv(folder / "one.csv", [("good", "pos")] * 4)
    write_csv(folder / "rare.csv", [*toy_rows(64, 5), ("good", "odd")])
    (folder / "empty.csv").write_bytes(b"")
    (folder / "target").mkdir()
    (folder / "link").symlink_to("target")
    for name, data, more in (
        ("no-search", "rows.csv", ""),
        ("empty", "empty.csv", '[search]\n"train.seed" = [1]\n'),
        ("value", "rows.csv", '[search]\n"method_options.gamma" = [0.5, 5]\n'),
    ):
        (folder / f"{name}.toml").write_text(
            f'backbone = "b"\nmethod = "de3"\n[data]\ntrain = "{data}"\n{more}'
        )
    return folder


@pytest.mark.parametrize("case", WRONG)
def test_it_is_said_without_torch(folder, case):
    arguments, code, words = WRONG[case]
    before = sorted(path.name for path in folder.iterdir())
    found, said = ended(folder, *arguments)
    assert found == code, said  # and no heavy module beside it
    assert words in " ".join(said.split())
    assert sorted(path.name for path in folder.iterdir()) == before


def test_the_driver_would_see_torch(folder):
    """With a sound request and no backbone, torch is loaded: else the tests above say nothing."""
    found, said = ended(folder, *TRAIN[:-3], "./nowhere", "--out", "m")
    assert "torch" in found, said


@pytest.fixture
def recipe(tiny_backbone, toy_data) -> Recipe:
    return recipe_from(toy_recipe(tiny_backbone, toy_data))


@pytest.fixture
def no_work(monkeypatch):
    """Fails where rows are read or a backbone is loaded."""

    def never(*given, **more):
        pytest.fail("work was done before the place was looked at")

    monkeypatch.setattr(request, "read_splits", never)
    monkeypatch.setattr("de3bert.model.early_exit.load_backbone", never)


def test_places_are_refused_before_any_work(recipe, tmp_path, no_work):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    (tmp_path / "dangling").symlink_to(tmp_path / "nowhere")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "b.training").write_text("mine")
    (tmp_path / "c.training").symlink_to(tmp_path / "real")
    for name, words in (
        ("link", "symbolic link.*Give the folder itself"),
        ("dangling", "symbolic link"),
        ("file", "not a model folder"),
        ("file/m", "there is a file where a folder is needed"),
        ("b", "there is a file where a folder is needed"),
        ("c", "symbolic link"),
        ("x" * 250, "name is too long"),
    ):
        with pytest.raises(De3Error, match=words):
            fit(recipe, tmp_path / name, progress=False)
    assert list((tmp_path / "real").iterdir()) == []
    assert (tmp_path / "file").read_text() == "mine"


def test_a_folder_of_others_beside_the_model_is_never_cleared(recipe, tmp_path, no_work):
    """Checkpoints would lie in m.training, which is removed in the end."""
    (tmp_path / "m.training").mkdir()
    (tmp_path / "m.training" / "thesis.txt").write_text("years of work")
    for fresh in (False, True):
        with pytest.raises(UsageError, match=r"m\.training.*holds other files.*another --out"):
            fit(recipe, tmp_path / "m", fresh=fresh, progress=False)
    assert (tmp_path / "m.training" / "thesis.txt").read_text() == "years of work"


def test_a_refusal_leaves_no_folders(recipe, tmp_path):
    wrong = recipe_from(recipe.model_dump(), ["pooling=median"])
    with pytest.raises(UsageError, match="pooling"):
        fit(wrong, tmp_path / "deep" / "er" / "m", progress=False)
    assert list(tmp_path.iterdir()) == []


def test_the_name_of_our_models_is_that_of_the_config():
    assert EarlyExitConfig.model_type == output_folder.MODEL_TYPE


def test_foreign_code_is_asked_for_by_the_verb_alone(recipe, tmp_path, monkeypatch):
    """The option reaches every load of the backbone, the teacher's too; without it nothing does."""
    seen = []
    for name in ("de3bert.model.early_exit.load_backbone", "de3bert.training.fit.load_tokenizer",
                 "de3bert.training.masking.load_masked_model"):  # fmt: skip
        module, _, function = name.rpartition(".")
        usual = getattr(sys.modules[module], function)

        def spy(source, *, trust_remote_code=False, usual=usual, function=function):
            seen.append((function, trust_remote_code))
            return usual(source)

        monkeypatch.setattr(name, spy)
    short = recipe_from(recipe.model_dump(), ["method=pd", "train.epochs=0.1"])
    for trusted in (False, True):
        seen.clear()
        fit(short, tmp_path / f"m{trusted}", trust_remote_code=trusted, progress=False)
        assert {name for name, _ in seen} == {
            "load_backbone", "load_tokenizer", "load_masked_model",
        }  # fmt: skip
        assert len([name for name, _ in seen if name == "load_backbone"]) == 2
        assert {said for _, said in seen} == {trusted}


def test_the_verb_passes_the_word_on(folder, tiny_backbone, monkeypatch, tmp_path):
    from typer.testing import CliRunner

    from de3bert.cli.main import app

    given = []

    def stop(*arguments, trust_remote_code, **more):
        given.append(trust_remote_code)
        raise De3Error("enough")

    monkeypatch.setattr("de3bert.training.fit.fit", stop)
    call = ["train", "--data", str(folder / "rows.csv"), "--backbone", str(tiny_backbone),
            "--out", str(tmp_path / "m")]  # fmt: skip
    for more in ([], ["--trust-remote-code"]):
        CliRunner().invoke(app, [*call, *more])
    assert given == [False, True]


def test_test_rows_are_read_before_the_training(folder, recipe, tmp_path, monkeypatch):
    from typer.testing import CliRunner

    from de3bert.cli.main import app

    monkeypatch.setattr("de3bert.training.fit.fit", lambda *a, **k: pytest.fail("it trained"))
    settings = recipe.model_dump()
    settings["data"]["test"] = str(folder / "empty.csv")
    write_text(tmp_path / "r.toml", recipe_text(recipe_from(settings)))
    said = CliRunner().invoke(
        app, ["train", "--recipe", str(tmp_path / "r.toml"), "--out", str(tmp_path / "m")]
    )
    assert "is empty" in str(said.exception)
