"""What MkDocs calls: pages made from the code, and files of the repository outside docs/."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

HERE = Path(__file__).parent
ROOT = HERE.parents[1]


def _beside(name: str) -> ModuleType:
    """A module of this folder, which is no package: MkDocs loads hooks by their path."""
    known = f"de3_docs_{name}"
    if known not in sys.modules:
        spec = importlib.util.spec_from_file_location(known, HERE / f"{name}.py")
        assert spec is not None
        assert spec.loader is not None
        module = sys.modules[known] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[known]


def generated_pages() -> dict[str, str]:
    """Path in the site -> Markdown, of the pages that are made from the code."""
    return {
        "reference/api.md": _beside("api_reference").page(),
        "reference/cli.md": _beside("cli_reference").page(),
        "reference/support.md": _beside("support_matrix").page(ROOT),
    }


def on_files(files: Any, config: Any) -> Any:
    """Adds generated pages, and every file of the repository that a page links to."""
    from mkdocs.structure.files import File

    for path, text in generated_pages().items():
        files.append(File.generated(config, path, content=text))
    outside = _beside("outside")
    for file in outside.linked_files(ROOT):
        files.append(File.generated(config, outside.site_path(file), abs_src_path=str(ROOT / file)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Links to files outside docs/ lead to their copies in the site."""
    outside = _beside("outside")
    return str(outside.relinked(ROOT, page.file.src_uri, markdown))
