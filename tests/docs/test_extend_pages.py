"""The pages on extending the package: a copy is changed as they say, and their commands run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.docs.pages import DOCS, ROOT, Block, commands, page, split
from tests.docs.toy_demo import adapted, write_reviews
from tests.fixtures_trained import trained_model
from tests.plugins.test_example import installed
from tests.warm import python

__all__ = ["installed", "trained_model"]

ALL = sorted(str(path.relative_to(ROOT)) for path in (DOCS / "extend").glob("*.md"))
# A page without files of the package to touch is followed by a test of its own.
PAGES = [path for path in ALL if any(block.title for block in page(path).blocks)]
PAGES.append("docs/extend/plugin.md")
# Runs the commands of a page in one process of the changed package: torch is imported once.
DRIVER = """
import os, sys
from pathlib import Path
from unittest import mock
import pytest
from tests.docs.toy_demo import stand_in
tree, folder, backbone = map(Path, sys.argv[1:])
stand_in(lambda name, value: mock.patch(name, value).start(), backbone)
from de3bert.cli.main import main
for line in sys.stdin.read().splitlines():
    program, *words = line.split("\\t")
    print("$", program, *words, flush=True)
    os.chdir(tree if program == "python" else folder)
    if program == "python":  # -m pytest ...
        assert words[:2] == ["-m", "pytest"], words
        code = pytest.main([*words[2:], "-p", "no:cacheprovider"])
    else:
        sys.argv, code = ["de3", *words], 0
        try:
            main()
        except SystemExit as leaving:
            code = leaving.code
    assert not code, code
"""


def apply(block: Block, tree: Path) -> None:
    """Changes the file of a block: a diff where it matches once, else more lines at its end."""
    file = tree / block.title
    if block.kind != "diff":
        file.parent.mkdir(parents=True, exist_ok=True)
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        file.write_text(f"{before}\n\n{block.text}" if before else block.text, encoding="utf-8")
        return
    lines = [(line[:1], line[1:]) for line in block.text.splitlines()]
    old = "\n".join(text for sign, text in lines if sign != "+")
    new = "\n".join(text for sign, text in lines if sign != "-")
    whole = file.read_text(encoding="utf-8")
    assert whole.count(old) == 1, f"{block.title} has this not once:\n{old}"
    file.write_text(whole.replace(old, new), encoding="utf-8")


def run(tree: Path, folder: Path, backbone: Path, lines: list[str], site: str) -> str:
    """What the lines say with the changed package, and nothing of the one that is installed."""
    paths = [str(tree / "src"), str(tree), *([site] if site else [])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [*python(), "-c", DRIVER, str(tree), str(folder), str(backbone)],
        input="\n".join("\t".join(split(line)[1]) for line in lines),
        cwd=folder, env=environment, capture_output=True, text=True, timeout=280,
    )  # fmt: skip
    assert done.returncode == 0, f"{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("path", PAGES)
def test_a_page_can_be_followed(path, tmp_path, trained_model, tiny_backbone, installed):
    followed = page(path)
    tree, folder = tmp_path / "clone", tmp_path / "work"
    for name in ("src", "tests"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tree)
    for block in followed.blocks:
        if block.title.endswith(".py"):
            apply(block, tree)
    shutil.copytree(trained_model, folder / "runs" / "mine")
    write_reviews(folder / "reviews")
    lines = [adapted(line) for block in followed.blocks for line in commands(block)]
    assert lines
    plugin = str(installed) if "pip install ./examples/plugin" in followed.text else ""
    said = run(tree, folder, tiny_backbone, lines, plugin)
    assert said.count("$ ") == len(lines)
    assert said.count(" passed") == len([line for line in lines if line.startswith("python ")])


def test_the_page_on_plugins_shows_the_example():
    """What it does is tested in tests/plugins."""
    shown, plugin = page("docs/extend/plugin.md"), ROOT / "examples" / "plugin"
    text = {block.kind: block.text for block in reversed(shown.blocks)}
    module = plugin / "src" / "de3_margin" / "__init__.py"
    assert text["python"] == module.read_text(encoding="utf-8")
    assert text["toml"] in (plugin / "pyproject.toml").read_text(encoding="utf-8")
    assert len([line for line in text["python"].splitlines() if line.strip()]) < 40


def test_a_diff_that_does_not_fit_is_noticed(tmp_path):
    (tmp_path / "a.py").write_text("one\ntwo\n")
    apply(Block("diff", "a.py", " one\n+new\n"), tmp_path)
    assert (tmp_path / "a.py").read_text() == "one\nnew\ntwo\n"
    with pytest.raises(AssertionError, match="has this not once"):
        apply(Block("diff", "a.py", " three\n+new\n"), tmp_path)


def test_every_page_is_followed_by_some_test():
    tests = [path.read_text(encoding="utf-8") for path in (ROOT / "tests").rglob("test_*.py")]
    for path in set(ALL) - set(PAGES):
        assert any(Path(path).name in text for text in tests), path
