"""Docstrings here say `Example:`; Griffe knows the section with code in it as `Examples:`."""

from __future__ import annotations

import re
from typing import Any

import griffe

__all__ = ["ExampleSections"]

EXAMPLE = re.compile(r"^Example:$", re.MULTILINE)


class ExampleSections(griffe.Extension):
    """Shows the examples of docstrings as code."""

    def on_instance(self, *, obj: griffe.Object, **more: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub("Examples:", obj.docstring.value)
