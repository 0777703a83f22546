"""The page in a real browser: the answers of Python, what it shows, and what it says of faults."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.examples.chromium import Chromium
from tests.examples.reference import BROWSER, Reference, assert_same
from tests.examples.serving import copied, plain_server, serving

from de3bert.export.one_file import export_one_file

STATE = "document.body?.dataset.state"
SETTLED = f"{STATE} !== 'loading' && {STATE}"
# What `OneFile` answers in the page, beside it.
ANSWERS = """(async () => {
  const { fetched, libraries, threads } = await import("/loading.js");
  const { OneFile } = await import("/one-file.js");
  const { ort, Tokenizer } = await libraries(threads().count);
  const files = await Promise.all(["model.onnx", "tokenizer.json"].map((name) => fetched(name)));
  const classifier = await OneFile.open(ort, Tokenizer, ...files);
  const found = [];
  for (const [text, numbers] of ASKED) found.push(await classifier.answer(text, numbers));
  return JSON.stringify(found);
})()"""


@pytest.fixture(scope="module")
def address(one_file: Path, page_libraries: Path) -> Iterator[str]:
    with serving(one_file) as found:
        yield found


@pytest.fixture(scope="module")
def reference(one_file: Path) -> Reference:
    return Reference(one_file)


def text_of(page: Chromium, part: str) -> str:
    found: str = page.run(f"document.getElementById('{part}').textContent")
    return found


def opened(page: Chromium, address: str) -> None:
    page.open(address)
    assert page.until(SETTLED) == "ready", text_of(page, "failed")
    assert page.said == []


def failing(page: Chromium, address: str, before: str = "") -> str:
    page.open(address, before)
    assert page.until(SETTLED) == "failed"
    return text_of(page, "failed")


def typed(page: Chromium, text: str, part: str = "text") -> None:
    page.run(
        f"(() => {{ const box = document.getElementById('{part}'); box.value = {json.dumps(text)};"
        "box.dispatchEvent(new Event('input', { bubbles: true })); })()"
    )


def chosen(page: Chromium, part: str, value: object, event: str) -> None:
    page.run(
        f"(() => {{ const control = document.getElementById('{part}'); control.value = '{value}';"
        f"control.dispatchEvent(new Event('{event}', {{ bubbles: true }})); }})()"
    )


def rows(page: Chromium) -> list[list[str]]:
    found: list[list[str]] = page.run(
        "[...document.querySelectorAll('#exits tr')].map((row) =>"
        "[row.dataset.state, ...[...row.cells].map((cell) => cell.textContent)])"
    )
    return found


@pytest.mark.parametrize("threads", [1, 2])
def test_answers_are_those_of_python(chromium, address, reference, texts, threads):
    opened(chromium, f"{address}/?threads={threads}")
    assert f"· {threads} thread" in text_of(chromium, "facts")
    asked = [(text, reference.points[point]) for point in ("fast", "full") for text in texts]
    found = json.loads(chromium.run(ANSWERS.replace("ASKED", json.dumps(asked))))
    wanted = [each for text, numbers in asked for each in reference.answers([text], numbers)]
    assert len({each.layer for each in wanted}) > 1
    assert_same(found, wanted)


def test_any_server_of_files_will_do(chromium, reference, one_file, tmp_path, page_libraries):
    with plain_server(copied(tmp_path / "page", one_file)) as address:
        opened(chromium, address)
        reason = "the server does not send the headers that threads need"
        assert f"1 thread ({reason})" in text_of(chromium, "facts")
        asked = [("a great film", reference.points["fast"])]
        found = json.loads(chromium.run(ANSWERS.replace("ASKED", json.dumps(asked))))
        assert_same(found, reference.answers(["a great film"], asked[0][1]))


def test_a_text_is_answered_while_it_is_typed(chromium, address, reference, texts):
    opened(chromium, address)
    fast = reference.points["fast"]
    early = next(text for text in texts if reference.answers([text], fast)[0].layer == 2)
    typed(chromium, early)
    wanted = reference.answers([early], fast)[0]
    chromium.until("document.getElementById('left').textContent.startsWith('2 of 4 layers, ')")
    assert text_of(chromium, "label").startswith(wanted.label)
    shown = rows(chromium)
    assert [row[0] for row in shown] == ["passed", "left", "skipped", "skipped"]
    assert [row[1] for row in shown] == ["1", "2", "3", "4"]
    assert shown[0][3].endswith(" goes on")
    assert shown[1][3].endswith(", leaves here")
    assert shown[2][2:] == ["not run", ""]
    whole = reference.answers([early], reference.points["full"])[0].label
    same = "the same answer" if whole == wanted.label else f"it says {whole}"
    said = f"^All 4 layers: [0-9.]+ ms, {same}$"
    chromium.until(f"/{said}/.test(document.getElementById('whole').textContent)")
    typed(chromium, "a bad, dull story", "pair")
    paired = reference.answers([f"{early}\ta bad, dull story"], fast)[0]
    shown_label = f"{paired.label} {100 * paired.probability:.1f} %"
    chromium.until(f"document.getElementById('label').textContent === '{shown_label}'")
    typed(chromium, "  ")
    chromium.until("document.getElementById('label').textContent === '…'")
    assert {row[0] for row in rows(chromium)} == {"none"}
    assert chromium.said == []


def test_threshold_and_points(chromium, address, reference):
    opened(chromium, address)
    text = chromium.run("document.getElementById('text').value")
    names = chromium.run("[...document.getElementById('point').options].map((each) => each.value)")
    assert names == [*reference.points]
    for point in ("full", "second", "fast"):
        chosen(chromium, "point", point, "change")
        layer = reference.answers([text], reference.points[point])[0].layer
        chromium.until(
            f"document.getElementById('left').textContent.startsWith('{layer} of 4 layers')"
        )
        words = {"full": "runs all layers", "second": "runs 2 layers"}.get(
            point, "leaves at EDR < "
        )
        assert text_of(chromium, "chosen").startswith(words)
    chosen(chromium, "number", 1, "input")  # everything is below that
    chromium.until("document.getElementById('left').textContent.startsWith('1 of 4 layers')")
    assert chromium.run("document.getElementById('point').value") == "(own)"
    assert text_of(chromium, "chosen").startswith("leaves at EDR < 1, λ ")
    chosen(chromium, "point", "fast", "change")
    assert "(own)" not in chromium.run("document.getElementById('point').textContent")


def test_no_other_host_is_asked_and_every_control_has_a_name(chromium, address):
    with chromium.addresses() as asked:
        opened(chromium, address)
    assert f"{address}/model.onnx" in asked
    assert all(each.startswith((address, "data:", f"blob:{address}")) for each in asked)
    tree = chromium.ask("Accessibility.getFullAXTree")["nodes"]
    kinds = ("textbox", "slider", "combobox", "button", "table", "progressbar")
    named = [(each["role"]["value"], each["name"]["value"]) for each in tree
             if each.get("role", {}).get("value") in kinds]  # fmt: skip
    assert {kind for kind, _ in named} >= {"textbox", "slider", "combobox", "button", "table"}
    assert all(name for _, name in named)


@pytest.mark.parametrize("width", [320, 375, 1200])
def test_it_is_not_wider_than_the_screen(chromium, address, width):
    chromium.ask("Emulation.setDeviceMetricsOverride", width=width, height=800,
                 deviceScaleFactor=1, mobile=width < 500)  # fmt: skip
    try:
        opened(chromium, address)
        assert chromium.run("document.documentElement.scrollWidth - innerWidth") <= 0
    finally:
        chromium.ask("Emulation.clearDeviceMetricsOverride")


@pytest.mark.parametrize(
    ("before", "said"),
    [
        ("delete globalThis.WebAssembly", "This browser has no WebAssembly"),
        ("WebAssembly.validate = () => false", "has no SIMD instructions"),
    ],
)
def test_a_browser_that_cannot(chromium, address, before, said):
    assert said in failing(chromium, address, before)


def test_a_number_of_threads_that_is_none(chromium, address):
    assert '?threads= takes a number from 1 to 99, and got "many".' in failing(
        chromium, f"{address}/?threads=many"
    )


def other_tokenizer(folder: Path) -> None:
    path = folder / "tokenizer.json"
    path.write_text(path.read_text(encoding="utf-8") + "\n", encoding="utf-8")


FAULTS: dict[str, tuple[Any, str]] = {
    "no model": (
        lambda folder: (folder / "model.onnx").unlink(),
        "There is no model.onnx beside this page.",
    ),
    "no tokenizer": (
        lambda folder: (folder / "tokenizer.json").unlink(),
        "There is no tokenizer.json beside this page.",
    ),
    "another tokenizer": (other_tokenizer, "This tokenizer.json is another model's."),
    "no packages": (lambda folder: (folder / "node_modules").unlink(), 'Run "npm ci"'),
    "half a model": (
        lambda folder: (folder / "model.onnx").write_bytes(
            (folder / "model.onnx").read_bytes()[:5000]
        ),
        "This ONNX file is cut off.",
    ),
    "a text": (
        lambda folder: (folder / "model.onnx").write_text("<html>not found</html>"),
        "This is no ONNX file.",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_faulty_files_are_named(chromium, one_file, tmp_path, fault, page_libraries):
    spoil, said = FAULTS[fault]
    folder = copied(tmp_path / "page", one_file)
    spoil(folder)
    with plain_server(folder) as address:
        assert said in failing(chromium, address)


def test_a_file_without_a_record_is_refused(chromium, trained_bundle, tmp_path):
    export_one_file(trained_bundle, tmp_path / "model.onnx", no_defaults=True)
    with serving(tmp_path / "model.onnx") as address:
        assert "--record --no-defaults" in failing(chromium, address)


def test_the_server_says_what_it_lacks(tmp_path):
    script = shutil.copy(BROWSER / "serve.py", tmp_path)

    def said(*arguments: object) -> str:
        call = [sys.executable, str(script), *map(str, arguments)]
        done = subprocess.run(call, capture_output=True, text=True)
        assert done.returncode == 1
        return done.stderr

    assert "python examples/browser/serve.py MODEL.onnx" in said()
    assert "There is no file" in said(tmp_path / "model.onnx")
    assert "npm ci --prefix" in said(script)
    (tmp_path / "node_modules").mkdir()
    for port in ("many", "-1", "99999"):
        assert f"The port {port} cannot be used" in said(script, port)
