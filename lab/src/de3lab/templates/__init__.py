"""Pages and Markdown from templates: one engine, and values are escaped in pages."""

from __future__ import annotations

import json
import re
from functools import cache
from html import escape
from importlib import resources
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape
from markupsafe import Markup

__all__ = ["as_json", "raw_file", "render"]

CODE = re.compile(r"`([^`]+)`")


def render(template: str, **values: Any) -> str:
    """A template of this folder, filled in; `.html` ones escape every value."""
    return _environment().get_template(template).render(**values)


def raw_file(name: str) -> Markup:
    """A file of this folder unchanged, for styles and scripts inside a page."""
    return Markup((resources.files(__name__) / name).read_text(encoding="utf-8"))


def as_json(document: Any) -> Markup:
    """JSON inside a page: a sign that could end the script is spelled by its number."""
    text = json.dumps(document, ensure_ascii=False, allow_nan=False)
    return Markup(text.replace("<", "\\u003c"))


def _with_code(text: str) -> Markup:
    """Escaped, with code between backticks marked as such."""
    return Markup(CODE.sub(r"<code>\1</code>", escape(text)))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("de3lab", "templates"),
        autoescape=select_autoescape(["html"]),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["code"] = _with_code
    return environment
