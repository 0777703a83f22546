"""Runs one case and judges it: it succeeds, or it fails with a message, and does nothing else."""

from __future__ import annotations

import contextlib
import io
import os
import re
import resource
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

from de3bert.errors import De3Error, UsageError

__all__ = ["Finding", "Outcome", "captured", "judged", "limited", "settled"]

SECONDS = 15
GROWTH = 1.5 * 2**30
ROOM = 3 << 30  # of addresses, beyond what the process has
LONGEST_MESSAGE = 20_000
# All control characters but newline and tab.
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Finding(AssertionError):  # noqa: N818  # it is no error of the test
    """A case that ended as no case may end."""


class TooLong(BaseException):
    """No `except Exception` keeps a case alive."""


@dataclass(frozen=True)
class Outcome:
    """How a case ended and what it said."""

    kind: str
    out: str = ""
    err: str = ""


def _too_long(number: int, frame: FrameType | None) -> None:
    raise TooLong(f"the case took more than {SECONDS} s")


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Bounds of time and memory. A limit of pytest's own goes on behind it."""
    began, peak = time.monotonic(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    handler = signal.signal(signal.SIGALRM, _too_long)
    remaining, _ = signal.setitimer(signal.ITIMER_REAL, SECONDS)
    room = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (_addresses() + ROOM, room[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, room)
        left = max(0.1, remaining - (time.monotonic() - began)) if remaining else 0
        signal.setitimer(signal.ITIMER_REAL, left)
        signal.signal(signal.SIGALRM, handler)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak) * 1024
    if grown > GROWTH:
        raise Finding(f"the case took {grown >> 20} MB of memory")


def _addresses() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


class Said:
    """What went to the two streams, from Python and from the libraries below."""

    out, err = b"", b""


@contextlib.contextmanager
def captured(stdin: bytes) -> Iterator[Said]:
    """The streams of a process of its own: as strict about characters as real ones."""
    said = Said()
    usual = sys.stdin, sys.stdout, sys.stderr
    kept = [os.dup(number) for number in (1, 2)]
    files = [os.memfd_create(name) for name in ("out", "err")]
    for number, file in zip((1, 2), files, strict=True):
        os.dup2(file, number)
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin))
    sys.stdout = open(1, "w", encoding="utf-8", errors="strict", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    try:
        yield said
    finally:
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(ValueError):
                stream.flush()
        sys.stdin, sys.stdout, sys.stderr = usual
        for number, file, old in zip((1, 2), files, kept, strict=True):
            os.dup2(old, number)
            os.close(old)
            os.lseek(file, 0, os.SEEK_SET)
        said.out, said.err = (_content(file) for file in files)


def _content(file: int) -> bytes:
    with os.fdopen(file, "rb") as stream:
        return stream.read()


def settled(work: Callable[[], Any]) -> str:
    """How a piece of work ended: success, or the kind of its error; anything else is a finding."""
    try:
        work()
    except UsageError as error:
        return _with_words("UsageError", error)
    except De3Error as error:
        return _with_words("De3Error", error)
    except SystemExit as leaving:
        return {0: "success", 1: "De3Error", 2: "UsageError"}.get(int(leaving.code or 0), "?")
    except BaseException as error:
        raise Finding(f"{type(error).__name__}: {error!s:.500}\n{_way(error)}") from None
    return "success"


def _way(error: BaseException) -> str:
    """The last few places of ours that the error came through, and where it was raised."""
    steps = traceback.extract_tb(error.__traceback__)
    ours = [step for step in steps if "de3bert" in step.filename][-6:]
    shown = ours if not steps or steps[-1] in ours else [*ours, steps[-1]]
    return "\n".join(f"  {step.filename}:{step.lineno} {step.line}" for step in shown)


def _with_words(kind: str, error: De3Error) -> str:
    if not str(error).strip():
        raise Finding(f"a {kind} without a message")
    return kind


def judged(kind: str, said: Said) -> Outcome:
    """Checks what was said; a Finding names what is wrong with it."""
    try:
        out, err = said.out.decode(), said.err.decode()
    except UnicodeDecodeError as error:
        raise Finding(f"what was printed is not UTF-8: {error}") from error
    for name, text in (("stdout", out), ("stderr", err)):
        if control := CONTROL.search(text):
            around = text[max(0, control.start() - 60) : control.end() + 60]
            raise Finding(f"a control character on {name}: {around!r}")
    if "Traceback" in err:
        raise Finding(f"a traceback:\n{err[-3000:]}")
    if kind == "?":
        raise Finding(f"another exit code than 0, 1 and 2:\n{err[-1000:]}")
    if kind != "success" and not err.strip():
        raise Finding(f"{kind} without a message")
    if len(err) > LONGEST_MESSAGE:
        raise Finding(f"a message of {len(err)} characters: {err[:300]!r}")
    return Outcome(kind, out, err)
