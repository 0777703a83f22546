"""A real browser that tests drive in real time: Chromium's debugging protocol through two pipes."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["Chromium"]

PATIENCE = 60.0  # seconds; a busy machine takes a while to start a browser
OPTIONS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
    "--disable-extensions", "--disable-background-networking", "--remote-debugging-pipe",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE localhost",  # no page of ours needs others
)  # fmt: skip


class Chromium:
    """One page of a browser.

    Args:
        path: the browser.
        profile: an empty folder.
    """

    def __init__(self, path: str, profile: Path) -> None:
        theirs_in, self._out = os.pipe()
        self._in, theirs_out = os.pipe()
        command = [path, *OPTIONS, f"--user-data-dir={profile}", "about:blank"]
        # The browser reads from 3 and writes to 4. Numbers above keep the copies apart.
        moved = [os.dup2(end, at, inheritable=True) for end, at in
                 ((theirs_in, 203), (theirs_out, 204))]  # fmt: skip
        nothing = os.open(os.devnull, os.O_RDWR)
        self._process = os.posix_spawn(
            path, command, os.environ, setpgroup=0,
            file_actions=[
                *((os.POSIX_SPAWN_DUP2, nothing, stream) for stream in (0, 1, 2)),
                (os.POSIX_SPAWN_DUP2, 203, 3), (os.POSIX_SPAWN_DUP2, 204, 4),
            ],
        )  # fmt: skip
        for end in (theirs_in, theirs_out, *moved, nothing):
            os.close(end)
        self._read, self._asked = b"", 0
        self.said: list[str] = []  # errors and warnings of the page
        self._addresses: list[str] = []
        self._session: str | None = None
        page = next(each for each in self.ask("Target.getTargets")["targetInfos"]
                    if each["type"] == "page")  # fmt: skip
        attached = self.ask("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **given: Any) -> dict[str, Any]:
        """Sends a command and gives its result."""
        self._asked += 1
        message = {"id": self._asked, "method": method, "params": given}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._asked:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result
            self._note(answer)

    def open(self, address: str, before: str = "") -> None:
        """Opens a page; `before` is a script that runs ahead of those of the page."""
        self.said.clear()
        script = self.ask("Page.addScriptToEvaluateOnNewDocument", source=before)
        self.ask("Page.navigate", url=address)
        self.until("document.readyState !== 'loading'")
        self.ask("Page.removeScriptToEvaluateOnNewDocument", identifier=script["identifier"])

    def run(self, script: str) -> Any:
        """The value of an expression in the page, waited for if it is a promise."""
        seen = self.ask(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in seen, seen["exceptionDetails"]
        return seen["result"].get("value")

    def until(self, script: str) -> Any:
        """The value of an expression as soon as it is true."""
        ends = time.monotonic() + PATIENCE
        while not (value := self.run(script)):
            assert time.monotonic() < ends, f"never true: {script}; the page said {self.said}"
            time.sleep(0.02)
        return value

    @contextmanager
    def addresses(self) -> Iterator[list[str]]:
        """Of all that is asked for meanwhile."""
        self.ask("Network.enable")
        self._addresses = found = []
        yield found
        self.ask("Network.disable")

    def close(self) -> None:
        for end in (self._out, self._in):
            os.close(end)
        os.killpg(self._process, signal.SIGKILL)
        os.waitpid(self._process, 0)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            part = os.read(self._in, 1 << 20)
            assert part, "the browser has ended"
            self._read += part
        message, _, self._read = self._read.partition(b"\0")
        read: dict[str, Any] = json.loads(message)
        return read

    def _note(self, event: dict[str, Any]) -> None:
        if event.get("method") == "Network.requestWillBeSent":
            self._addresses.append(event["params"]["request"]["url"])
        if event.get("method") == "Runtime.exceptionThrown":
            self.said.append(str(event["params"]["exceptionDetails"]))
        if event.get("method") == "Log.entryAdded":
            entry = event["params"]["entry"]
            self.said.append(f"{entry['text']} {entry.get('url', '')}")
