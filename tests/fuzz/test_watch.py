"""The judge itself: whatever a case must not do is found, or the fuzzer would find nothing."""

from __future__ import annotations

import ctypes
import os
import pickle
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.fuzz import outcome as outcome_module
from tests.fuzz.arena import Arena
from tests.fuzz.outcome import Finding
from tests.fuzz.values import CHUNKS

from de3bert.errors import De3Error, UsageError


def read_by_c(path: Path) -> None:
    """Past every hook of Python."""
    libc = ctypes.CDLL(None)
    handle = libc.open(os.fsencode(path), os.O_RDONLY)
    libc.close(handle)


def imported(folder: Path) -> None:
    (folder / "foreign_module.py").write_text("x = 1\n")
    sys.path.insert(0, str(folder))
    try:
        import foreign_module  # noqa: F401
    finally:
        sys.path.remove(str(folder))


FORBIDDEN: dict[str, Callable[[Path], object]] = {
    "another exception": lambda folder: 1 / 0,
    "no message": lambda folder: (_ for _ in ()).throw(De3Error(" ")),
    "the canary read": lambda folder: (folder / "outside.json").read_text(),
    "the canary read by a link": lambda folder: (folder / "link").read_text(),
    "the canary read by C": lambda folder: read_by_c(folder / "outside.onnx"),
    "a system file read": lambda folder: Path("/etc/passwd").read_text(),
    "a file written outside": lambda folder: (folder.parent / "x").write_text(""),
    "a folder made outside": lambda folder: (folder / ".." / "x").mkdir(),
    "a file removed outside": lambda folder: os.remove(folder.parent / "x"),
    "a canary moved": lambda folder: os.rename(folder / "outside.json", folder / "x"),
    "a command": lambda folder: os.system("true"),
    "a process": lambda folder: subprocess.run(["true"], check=True),
    "a connection": lambda folder: socket.socket().connect(("127.0.0.1", 9)),
    "a question": lambda folder: input(),
    "foreign code": imported,
    "a pickle": lambda folder: pickle.loads(CHUNKS["pickle"]),
}


@pytest.mark.parametrize("what", FORBIDDEN)
def test_what_is_forbidden_is_found(arena: Arena, what):
    case = arena.case("watch")
    (case.folder / "link").symlink_to(case.folder / "outside.json")
    with pytest.raises(Finding):
        case.call(lambda: FORBIDDEN[what](case.folder))
    assert arena.canaries[1].exists()
    assert not (case.folder.parent / "x").exists()


SPOKEN: dict[str, Callable[[], object]] = {
    "a steering character": lambda: print("\x1b[2J"),
    "one of a single byte": lambda: print("\x9b2J", file=sys.stderr),
    "from a library below": lambda: os.write(2, b"\x1b[0;93mwarning\x1b[m"),
    "a traceback": lambda: print("Traceback (most recent call last):", file=sys.stderr),
    "another exit code": lambda: sys.exit(3),
    "failure without a message": lambda: sys.exit(1),
    "what cannot be encoded": lambda: print("\ud800"),
    "no end": lambda: print("x" * 100_000, file=sys.stderr),
    "the canary": lambda: print("a secret that nobody asked for"),
}


@pytest.mark.parametrize("what", SPOKEN)
def test_what_must_not_be_said_is_found(arena: Arena, what):
    with pytest.raises(Finding):
        arena.case("watch")._run(SPOKEN[what], b"")


def test_a_case_ends_in_time(arena: Arena, monkeypatch):
    monkeypatch.setattr(outcome_module, "SECONDS", 0.2)
    with pytest.raises(Finding, match="TooLong"):
        arena.case("watch").call(lambda: time.sleep(5))


def test_a_case_is_bounded_in_memory(arena: Arena, monkeypatch):
    with pytest.raises(Finding, match="MemoryError"):
        arena.case("watch").call(lambda: bytearray(2 * outcome_module.ROOM))
    monkeypatch.setattr(outcome_module, "GROWTH", -1)
    with pytest.raises(Finding, match="MB of memory"):
        arena.case("watch").call(lambda: None)


def test_sound_endings_are_counted(arena: Arena):
    case = arena.case("watch")
    assert case.call(lambda: (case.folder / "made").mkdir()).kind == "success"
    for error in (De3Error, UsageError):
        raising = (_ for _ in ()).throw
        assert case.call(lambda e=error, r=raising: r(e("why"))).kind == error.__name__
