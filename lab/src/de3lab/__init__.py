"""The laboratory of de3bert: methods compared, models analysed, the paper table by table.

With it installed, `de3` has the verbs `compare`, `analyze` and `paper`.
"""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.2.0"
