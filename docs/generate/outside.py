"""Files of the repository outside docs/ that pages link to: copied into the site.

In the sources a link says where a file really is, so that it works in an editor and on a code
host. The site has such files under `repository/`, with the folders they have in the repository.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

__all__ = ["linked_files", "relinked", "site_path"]

LINK = re.compile(r"(\]\()([^)#\s]+)(#[^)\s]*)?(\))")
WORDED = re.compile(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
COPIES = "repository/"
# Pages of the site that nobody has to link to.
ALWAYS = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "lab/README.md",
    "lab/report/README.md",
    "lab/results/README.md",
)


def linked_files(root: Path) -> list[str]:
    """Paths in the repository of all files outside docs/ that a page, or such a file, links to."""
    waiting = [str(path.relative_to(root)) for path in sorted((root / "docs").rglob("*.md"))]
    found: set[str] = set(ALWAYS)
    waiting += ALWAYS
    while waiting:
        page = waiting.pop()
        for target in targets(root, page):
            if target not in found and not target.startswith("docs/"):
                found.add(target)
                waiting += [target] if target.endswith(".md") else []
    return sorted(found)


def targets(root: Path, page: str) -> Iterator[str]:
    """Paths in the repository of the files that a page links to."""
    text = FENCE.sub("", (root / page).read_text(encoding="utf-8"))
    for _, link, _, _ in LINK.findall(text):
        target = _resolved(page, link)
        if (root / target).is_file():
            yield target


def site_path(target: str) -> str:
    """Where a file of the repository is in the site's sources."""
    return target.removeprefix("docs/") if target.startswith("docs/") else COPIES + target


def relinked(root: Path, page: str, markdown: str) -> str:
    """The text of a page with its links as they are in the site.

    A link to a folder loses its address, since the site has no page for it.

    Args:
        page: its path in the site's sources.
    """
    real = page.removeprefix(COPIES) if page.startswith(COPIES) else f"docs/{page}"

    def moved(match: re.Match[str]) -> str:
        link, anchor = match[2], match[3] or ""
        target = _resolved(real, link)
        if "://" in link or not (root / target).is_file():
            return match[0]
        new = os.path.relpath(site_path(target), os.path.dirname(page) or ".")
        return f"{match[1]}{new}{anchor}{match[4]}"

    return LINK.sub(moved, WORDED.sub(lambda found: _plain(root, real, found), markdown))


def _plain(root: Path, page: str, match: re.Match[str]) -> str:
    """The words of a link to a folder of the repository; any other link unchanged."""
    is_folder = "://" not in match[2] and (root / _resolved(page, match[2])).is_dir()
    return match[1] if is_folder and not match[2].startswith("#") else match[0]


def _resolved(page: str, link: str) -> str:
    return os.path.normpath(os.path.join(os.path.dirname(page), link.partition("#")[0]))
