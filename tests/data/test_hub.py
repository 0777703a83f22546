"""Hub ids, with a local folder of Parquet files standing in for the hub."""

import pytest

from de3bert.data.hub import looks_like_id
from de3bert.data.read import read_table
from de3bert.data.stream import stream_texts
from de3bert.errors import De3Error, UsageError

datasets = pytest.importorskip("datasets")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    features = datasets.Features(
        {
            "sentence": datasets.Value("string"),
            "label": datasets.ClassLabel(names=["negative", "positive"]),
        }
    )
    home = tmp_path / "reviews"
    home.mkdir()
    splits = {
        "train": {"sentence": ["a", "b", "c"], "label": [0, 1, 1]},
        "test": {"sentence": ["d"], "label": [-1]},
    }
    for name, rows in splits.items():
        data = datasets.Dataset.from_dict(rows, features=features)
        data.to_parquet(home / f"{name}-00000-of-00001.parquet")
    return home


def test_a_split_comes_with_its_class_names(folder):
    table = read_table(str(folder), split="train", limit=2)
    assert (table.texts, table.labels) == (["a", "b"], [0, 1])
    assert table.label_names == ["negative", "positive"]
    assert table.source == f"{folder} train"


def test_the_split_must_be_named_and_exist(folder):
    with pytest.raises(UsageError, match=r"splits train, test|splits test, train"):
        read_table(folder)
    with pytest.raises(UsageError, match="valid"):
        read_table(folder, split="valid")


def test_hidden_labels_are_refused_only_when_needed(folder):
    with pytest.raises(UsageError, match="choose another split"):
        read_table(folder, split="test")
    assert read_table(folder, split="test", need_labels=False).labels is None


@pytest.mark.parametrize(
    ("error", "kind", "words"),
    [
        (FileNotFoundError("nowhere"), UsageError, "neither a local file"),
        (ValueError("BuilderConfig 'x' not found"), UsageError, "BuilderConfig"),
        (ConnectionError("no route"), De3Error, "Check the network"),
    ],
)
def test_what_the_library_raises_is_explained(monkeypatch, error, kind, words):
    def fail(*arguments, **options):
        raise error

    monkeypatch.setattr(datasets, "load_dataset", fail)
    with pytest.raises(De3Error, match=words) as caught:
        read_table("owner/name", config="x", split="train")
    assert type(caught.value) is kind


def test_config_and_split_are_handed_on(monkeypatch):
    calls = []

    def load(*arguments, **options):
        calls.append((arguments, options))
        return datasets.Dataset.from_dict({"sentence": ["a"], "label": [1]})

    monkeypatch.setattr(datasets, "load_dataset", load)
    assert read_table("nyu-mll/glue", config="sst2", split="train").texts == ["a"]
    assert calls == [(("nyu-mll/glue", "sst2"), {"split": "train"})]


def test_only_owner_and_name_look_like_an_id():
    assert looks_like_id("nyu-mll/glue")
    assert not any(map(looks_like_id, ["glue", "a/b/c", "./a", "../a/b", "/tmp/a", "a/b c"]))


def test_a_folder_is_never_a_matter_of_the_network(tmp_path, monkeypatch):
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    empty, odd = tmp_path / "empty", tmp_path / "odd"
    empty.mkdir()
    odd.mkdir()
    (odd / "rows.parquet").write_bytes(b"no rows")
    for folder in (empty, odd):
        with pytest.raises(De3Error) as caught:
            read_table(folder)
        said = str(caught.value)
        assert "network" not in said.lower()
        assert str(folder) in said
        assert "Give the file in it that holds the rows" in said
        assert len(said) < 1500


def test_an_id_that_is_not_reached_says_what_can_be_done(monkeypatch):
    def fail(*arguments, **options):
        raise ConnectionError("no route " * 1000)

    monkeypatch.setattr(datasets, "load_dataset", fail)
    with pytest.raises(De3Error) as caught:
        read_table("owner/name")
    said = str(caught.value)
    assert all(words in said for words in ("network", "HF_HUB_OFFLINE", "save the rows as a file"))
    assert len(said) < 1000


def test_a_long_list_of_splits_is_cut(monkeypatch):
    many = {f"split {number}": None for number in range(100)}
    monkeypatch.setattr(datasets, "load_dataset", lambda *arguments, **options: many)
    with pytest.raises(UsageError, match="and 90 more: name one of them"):
        read_table("owner/name")


def test_a_folder_is_streamed(folder):
    (folder / "test-00000-of-00001.parquet").unlink()
    assert [row.given for row in stream_texts(folder)] == ["a", "b", "c"]
