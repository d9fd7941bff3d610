"""Recordings for Perfetto, which takes them from a file or from this machine (floor 4).

Perfetto refuses what the profiler adds about the machine, so that is left out; its page
fetches a file from port 9001 of the machine on which the browser runs::

    serve_once(write_perfetto("/tmp/profile"))     # prints a link, waits for the page
"""

import gzip
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Final

PORT: Final = 9001
NAME: Final = "perfetto_trace.json.gz"


def write_perfetto(folder: str) -> Path:
    """The file for Perfetto, beside the newest recording below a folder.

    Raises:
        ValueError: there is no recording, or one of several machines.
    """
    recordings = list((Path(folder) / "plugins" / "profile").glob("*"))
    newest = max(recordings, key=lambda path: path.stat().st_mtime, default=None)
    result = [] if newest is None else list(newest.glob("*.trace.json.gz"))
    if newest is None or len(result) != 1:
        raise ValueError(
            f"{folder!r} has {len(result)} files *.trace.json.gz of the last "
            "recording, and the file for Perfetto is made of one"
        )
    recorded = json.loads(gzip.decompress(result[0].read_bytes()))
    recorded.pop("metadata", None)
    path = newest / NAME
    path.write_bytes(gzip.compress(json.dumps(recorded).encode()))
    return path


class OneFile(HTTPServer):
    """Serves one file, and notes when it was taken."""

    allow_reuse_address = True

    def __init__(self, path: Path, port: int) -> None:
        super().__init__(("127.0.0.1", port), OneFileHandler)
        self.path = path
        self.taken = False


class OneFileHandler(BaseHTTPRequestHandler):
    """Answers the page of Perfetto, which comes from another address."""

    server: OneFile

    def do_GET(self) -> None:
        if self.path != f"/{self.server.path.name}":
            self.send_error(404)
            return
        contents = self.server.path.read_bytes()
        self.send_response(200)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Content-Type", "application/gzip")
        self.send_header("Content-Length", str(len(contents)))
        self.end_headers()
        self.wfile.write(contents)
        self.server.taken = True

    def log_message(self, format: str, *args: object) -> None:
        """Standard error is the user's."""


@contextmanager
def serving(path: Path, port: int) -> Iterator[OneFile]:
    """A server of one file, within the block."""
    server = OneFile(path, port)
    try:
        yield server
    finally:
        server.server_close()


def serve_once(path: Path, port: int = PORT) -> None:
    """Print a link that opens a file in Perfetto, and wait until it is fetched."""
    with serving(path, port) as server:
        address = f"http://127.0.0.1:{server.server_port}/{path.name}"
        link = f"https://ui.perfetto.dev/#!/?url={address}"
        sys.stdout.write(f"Open URL in browser: {link}\n")
        sys.stdout.flush()
        while not server.taken:
            server.handle_request()
