from __future__ import annotations

from tests.demo.conftest import de3, demo

__all__ = ["de3", "demo"]
