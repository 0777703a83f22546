"""Serve the page of this folder with a model, to this machine alone.

    python examples/browser/serve.py MODEL.onnx [PORT]

MODEL.onnx is what `de3 export MODEL --one-file MODEL.onnx --record --no-defaults` wrote, with
tokenizer.json beside it. Any web server can serve the folder with these two files in it; this one
also sends the two headers without which browsers give a page no threads.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = Path(__file__).parent
HEADERS = {
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Embedder-Policy": "require-corp",
    "Cache-Control": "no-cache",
}
TYPES = {
    ".html": "text/html",
    ".js": "text/javascript",
    ".mjs": "text/javascript",
    ".css": "text/css",
    ".json": "application/json",
    ".wasm": "application/wasm",
}


class Handler(SimpleHTTPRequestHandler):
    """The files of this folder, and the model with its tokenizer from wherever they lie."""

    extensions_map = TYPES | {"": "application/octet-stream"}  # not those of the machine

    def __init__(self, *given: object, model: Path, **named: object) -> None:
        self.elsewhere = {"/model.onnx": model, "/tokenizer.json": model.parent / "tokenizer.json"}
        super().__init__(*given, directory=str(HERE), **named)  # type: ignore[arg-type]

    def translate_path(self, path: str) -> str:
        found = self.elsewhere.get(path.partition("?")[0])
        return super().translate_path(path) if found is None else str(found)

    def end_headers(self) -> None:
        for name, value in HEADERS.items():
            self.send_header(name, value)
        super().end_headers()

    def log_message(self, format: str, *given: object) -> None:
        """Only what could not be served is worth a line."""
        if str(given[1]) >= "400":
            super().log_message(format, *given)


def main(model: str, port: str = "8000") -> None:
    if not Path(model).is_file():
        raise SystemExit(f"There is no file {model}.")
    if not (HERE / "node_modules").is_dir():
        raise SystemExit(f"The libraries of the page are not installed: npm ci --prefix {HERE}")
    handler = partial(Handler, model=Path(model).resolve())
    try:
        server = ThreadingHTTPServer(("127.0.0.1", int(port)), handler)
    except (OSError, OverflowError, ValueError) as error:
        raise SystemExit(f"The port {port} cannot be used: {error}") from error
    with server:
        print(f"http://localhost:{server.server_port}", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 3:
        raise SystemExit(__doc__)
    with suppress(KeyboardInterrupt):
        main(*sys.argv[1:])
