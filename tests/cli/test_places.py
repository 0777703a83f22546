"""Where results go is looked at before the work: no verb computes for nothing."""

from __future__ import annotations

import pytest

FAILED = 1
VERBS = {
    "train": ["train", "--data", "{test}", "--backbone", "{backbone}", "--out", "{place}"],
    "search": ["search", "{recipe}", "--out", "{place}"],
    "adapt": ["adapt", "{model}", "--data", "{test}", "--out", "{place}"],
    "trace": ["trace", "{model}", "--data", "{test}", "--out", "{place}"],
    "export": ["export", "{model}", "--data", "{test}", "--out", "{place}"],
    "curve": ["curve", "{trace}", "--plot", "{place}"],
    "demo": ["demo", "--out", "{place}"],
}
FOLDERS = ("train", "adapt", "export")  # replaced as a whole, so a link would be lost
# What does the work of a verb, or begins it.
WORK = (
    "de3bert.data.read.read_table",
    "de3bert.tasks.texts.read_table",
    "de3bert.runtime.load.load",
    "de3bert.model.early_exit.load_backbone",
    "de3bert.training.adapt.read_model",
    "de3bert.exits.trade_off.trade_off",
    "de3bert.demo.run._read",
    "de3bert.export.bundle.load",
)


@pytest.fixture
def call(de3, trained_model, tiny_backbone, toy_data, tmp_path, monkeypatch):
    """Runs a verb that must not come to its work."""

    def never(*given, **more):
        pytest.fail("work was done before the place was looked at")

    for name in WORK:
        monkeypatch.setattr(name, never)
    recipe = tmp_path / "r.toml"
    recipe.write_text(
        f'backbone = "{tiny_backbone}"\n[data]\ntrain = "{toy_data.train}"\n'
        '[search]\n"train.seed" = [1]\n'
    )
    given = {"test": toy_data.test, "backbone": tiny_backbone, "model": trained_model,
             "recipe": recipe, "trace": tmp_path / "t.trace"}  # fmt: skip

    def run(verb, place):
        return de3(*(each.format(**given, place=place) for each in VERBS[verb]))

    return run


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("file/below", "there is a file where a folder is needed"),
        ("x" * 300, "the name is too long"),
        ("x" * 252, "the name is too long"),
    ],
)
def test_a_place_where_nothing_can_be(call, tmp_path, verb, place, words):
    if verb in ("demo", "search") and place == "x" * 252:
        pytest.skip("a folder of that name can be made, and what is in it has names of its own")
    (tmp_path / "file").write_text("mine")
    before = sorted(path.name for path in tmp_path.iterdir())
    said = call(verb, tmp_path / (f"{place}.png" if verb == "curve" and "/" in place else place))
    assert (said.code, said.out) == (FAILED, ""), said.err
    assert words in said.err
    assert (tmp_path / "file").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == before


@pytest.mark.parametrize("verb", FOLDERS)
def test_a_link_in_the_place_of_a_folder(call, tmp_path, verb):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    said = call(verb, tmp_path / "link")
    assert (said.code, said.out) == (FAILED, "")
    assert "symbolic link" in said.err
    assert f"Give the folder itself: {tmp_path / 'real'}" in said.err
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("verb", ["trace", "curve"])
def test_a_folder_in_the_place_of_a_file(call, tmp_path, verb):
    (tmp_path / "there.png").mkdir()
    said = call(verb, tmp_path / "there.png")
    assert (said.code, said.out) == (FAILED, "")
    assert "there is a folder where a file is needed" in said.err


def test_a_profile_that_could_not_be_kept(de3, model_copy, monkeypatch):
    monkeypatch.setattr("de3bert.runtime.profile.profile", lambda *a, **k: pytest.fail("measured"))
    (model_copy / "profile.json").mkdir()
    said = de3("profile", model_copy)
    assert (said.code, said.out) == (FAILED, "")
    assert "there is a folder where a file is needed" in said.err
