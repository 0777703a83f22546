"""The page behind a web server: ours, or one that knows nothing of it."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from tests.examples.reference import BROWSER

__all__ = ["copied", "plain_server", "serving"]


@contextmanager
def serving(model: Path) -> Iterator[str]:
    """The address that `serve.py` prints."""
    command = [sys.executable, str(BROWSER / "serve.py"), str(model), "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stdout is not None
        yield server.stdout.readline().strip()
    finally:
        server.terminate()
        server.communicate()


def copied(folder: Path, model: Path | None, *, libraries: bool = True) -> Path:
    """The page as somebody uploads it: its files, the model and the tokenizer in one folder."""
    folder.mkdir()
    for kind in ("*.html", "*.js", "*.css"):
        for path in BROWSER.glob(kind):
            shutil.copy(path, folder)
    if libraries:
        (folder / "node_modules").symlink_to(BROWSER / "node_modules")
    if model is not None:
        shutil.copy(model, folder / "model.onnx")
        shutil.copy(model.with_name("tokenizer.json"), folder)
    return folder


class Quiet(SimpleHTTPRequestHandler):
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {
        ".mjs": "text/javascript",
        ".wasm": "application/wasm",
    }

    def log_message(self, format: str, *given: object) -> None:
        """Tests look at the page."""


@contextmanager
def plain_server(folder: Path) -> Iterator[str]:
    """A server of files that sends no headers of its own."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder))) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://localhost:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()
