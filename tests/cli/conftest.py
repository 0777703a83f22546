from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.fixtures_trained import model_copy, toy_data, trained_model

from de3bert.cli.main import main

__all__ = ["de3", "model_copy", "toy_data", "trained_model"]


@dataclass(frozen=True)
class Said:
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The whole of stdout as one JSON document."""
        return json.loads(self.out, parse_constant=_no_constant)

    @property
    def lines(self) -> list[Any]:
        """Each line of stdout as a JSON document."""
        return [json.loads(line, parse_constant=_no_constant) for line in self.out.splitlines()]


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


Command = Callable[..., Said]


@pytest.fixture
def de3(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Command:
    """Runs a verb in this process, through the same `main` as the installed command."""

    def run(*arguments: str | Path, stdin: str | bytes = "") -> Said:
        data = stdin.encode() if isinstance(stdin, str) else stdin
        monkeypatch.setattr(sys, "argv", ["de3", *map(str, arguments)])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        capfd.readouterr()
        code = 0
        try:
            main()
        except SystemExit as leaving:
            code = int(leaving.code or 0)
        out, err = capfd.readouterr()
        assert "Traceback" not in err
        return Said(code, out, err)

    return run
