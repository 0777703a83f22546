"""Pages of the documentation as tests read them: blocks, and which goes on from which."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

__all__ = ["DOCS", "ROOT", "Block", "Page", "chains", "commands", "page", "pages"]

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
BLOCK = re.compile(r'^```(\w*)(?: title="([^"]+)")?\n(.*?)^```', re.MULTILINE | re.DOTALL)
CONTINUES = re.compile(r"<!-- continues: (\S+) -->")


@dataclass(frozen=True)
class Block:
    """A fenced block: its language ("" for commands), the file it belongs to, if any, its text."""

    kind: str
    title: str
    text: str


@dataclass(frozen=True)
class Page:
    """A page, by its path in the repository."""

    path: str
    text: str

    @property
    def blocks(self) -> list[Block]:
        return [Block(*found) for found in BLOCK.findall(self.text)]

    @property
    def continues(self) -> str | None:
        """The page whose files this one needs, by its path in the repository."""
        found = CONTINUES.search(self.text)
        if found is None:
            return None
        return str((ROOT / self.path).parent.joinpath(found[1]).resolve().relative_to(ROOT))

    @property
    def runs(self) -> bool:
        """Whether there is anything in it to run."""
        return any(block.kind == "python" or commands(block) for block in self.blocks)


def page(path: str) -> Page:
    return Page(path, (ROOT / path).read_text(encoding="utf-8"))


def pages() -> list[Page]:
    """All pages with something to run, but those that change the package (docs/extend)."""
    paths = [path for path in sorted(DOCS.rglob("*.md")) if path.parent.name != "extend"]
    found = [page(str(path.relative_to(ROOT))) for path in paths]
    return [each for each in [page("README.md"), *found] if each.runs]


def chains() -> dict[str, list[Page]]:
    """First page -> the pages that need its files, each behind the one it continues."""
    after: dict[str | None, list[Page]] = {}
    for each in pages():
        after.setdefault(each.continues, []).append(each)

    def following(first: Page) -> Iterator[Page]:
        yield first
        for each in after.pop(first.path, []):
            yield from following(each)

    found = {each.path: list(following(each)) for each in after.pop(None)}
    assert not after, f"these pages continue one that is not there: {after}"
    return found


def commands(block: Block) -> list[str]:
    """The lines that call a program of ours, without what stands behind a comment sign."""
    if block.kind:
        return []
    lines = [line.partition("  #")[0].strip() for line in block.text.splitlines()]
    return [line for line in lines if re.match(r"(de3|python|echo) ", line)]


def split(line: str) -> tuple[str, list[str], str | None]:
    """A line of shell: what comes through a pipe, the words, the file that it writes to."""
    before, pipe, after = line.partition(" | ")
    piped = " ".join(shlex.split(before)[1:]) + "\n" if pipe else ""
    words = shlex.split(after if pipe else before)
    if ">" in words:
        return piped, words[: words.index(">")], words[words.index(">") + 1]
    return piped, words, None
