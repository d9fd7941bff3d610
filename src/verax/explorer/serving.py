"""`python -m verax explore --serve`: a page that follows the script (floor 6).

One idea: the page is made by the same command in a process of its own, so that each
time the script runs from scratch, and what it imports too; this process only watches
the files that were read, and hands out what was made last::

    Service(command, [script]).run(port=0, told=print)

The page itself may fetch nothing. It stands in a frame of another page, which asks for
the number of the last version and loads the frame again when there is a new one.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from errno import EADDRINUSE
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Condition, Event, Thread
from time import monotonic, time_ns
from traceback import walk_tb
from typing import Final, override
from urllib.parse import parse_qs, urlsplit

from attrs import frozen

from verax.explorer.composed import Mistake
from verax.ir.records import ReprMixin
from verax.rules.values.state import LIBRARY

HOST: Final = "127.0.0.1"
PAUSE: Final = 0.2
"""Seconds between two looks at the files."""
PATIENCE: Final = 20.0
"""Seconds that a question for a new version waits at most."""
HTML: Final = "text/html; charset=utf-8"
FRAME_POLICY: Final = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "connect-src 'self'; frame-src 'self'; frame-ancestors 'none'"
)
"""The browser's policy for the page around: it may ask this server, and no other."""
AROUND: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
html, body {{ height: 100%; margin: 0; overflow: hidden; color-scheme: light dark }}
iframe {{ width: 100%; height: 100%; border: 0; display: block }}
#news {{ position: fixed; right: 1rem; bottom: 1rem; padding: .3rem .8rem;
  border-radius: .4rem; font: 14px system-ui, sans-serif; color: #fff;
  background: #333d; pointer-events: none }}
#news:empty {{ display: none }}
</style>
</head>
<body>
<iframe src="/page" title="{title}"></iframe>
<div id="news" role="status"></div>
<script>
const frame = document.querySelector("iframe");
const news = document.getElementById("news");
const rest = (ms) => new Promise((done) => setTimeout(done, ms));
let known = "", shown = -1;
async function follow() {{
  for (;;) {{
    try {{
      const answer = await fetch(`/version?known=${{known}}`, {{ cache: "no-store" }});
      const state = await answer.json();
      known = `${{state.version}}.${{state.busy ? 1 : 0}}`;
      news.textContent = state.busy ? "running…" : "";
      if (state.version !== shown) {{
        if (shown !== -1 || state.version) frame.src = `/page?${{state.version}}`;
        shown = state.version;
      }}
    }} catch {{
      news.textContent = "the server has stopped";
      await rest(1000);
    }}
  }}
}}
follow();
</script>
</body>
</html>
"""
MESSAGE: Final = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ color-scheme: light dark; font: 16px system-ui, sans-serif; margin: 2rem }}
pre {{ font: 14px ui-monospace, monospace; white-space: pre-wrap }}
</style>
</head>
<body>
<h1>{title}</h1>
<pre>{text}</pre>
</body>
</html>
"""


def message(title: str, text: str) -> str:
    """A page of text.

    >>> "a &lt; b" in message("Error", "a < b")
    True
    """
    return MESSAGE.format(title=escape(title), text=escape(text))


# -----------------------------------------------------------------------------
# The files of the user's that a page was made from.


def files_of(target: str, error: BaseException | None) -> list[str]:
    """The script, and the modules below its folder that this process has read.

    Those at which an error stopped are among them, though they are not imported. The
    folder of a module, or of a saved program, is the working directory.
    """
    place = target.rpartition(":")[0] or target
    script = os.path.abspath(place)
    is_file = place.endswith(".py") or os.path.isfile(script)
    root = os.path.join(os.path.dirname(script) if is_file else os.getcwd(), "")
    names = {script: None} if is_file else {}
    for module in list(sys.modules.values()):
        names[getattr(module, "__file__", None) or ""] = None
    while error is not None:
        for frame, _ in walk_tb(error.__traceback__):
            names[frame.f_code.co_filename] = None
        names[getattr(error, "filename", None) or ""] = None
        error = error.__cause__ or error.__context__
    paths = [os.path.abspath(path) for path in names if isinstance(path, str) and path]
    return [p for p in paths if p == script or (p.startswith(root) and is_own(p))]


def is_own(path: str) -> bool:
    """Whether a file belongs to the user, and to no installed library."""
    installed = "site-packages" in path or path.startswith(LIBRARY)
    return not installed and os.path.isfile(path)


@contextmanager
def noting_files(target: str, path: str | None) -> Iterator[None]:
    """Write the files that the block has read to `path`, if there is one."""
    error: BaseException | None = None
    try:
        yield
    except BaseException as raised:
        error = raised
        raise
    finally:
        if path is not None:
            Path(path).write_text(json.dumps(files_of(target, error)), "utf-8")


type Stamp = tuple[int, int] | None
"""When a file was written, and its size; None where there is none."""


def stamp(path: str) -> Stamp:
    """What changes with a file."""
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size


def stamp_at(path: str, began: int) -> Stamp:
    """The stamp of a file at some time in the past, in ns; None if it is younger."""
    now = stamp(path)
    return None if now is None or now[0] > began else now


# -----------------------------------------------------------------------------
# Making the page, again and again.


@frozen(repr=False)
class Version(ReprMixin):
    """What is shown: a page, or the text of an error."""

    number: int
    page: str
    busy: bool


class Service:
    """Makes the page whenever its files change, and hands out the last one.

    `command` makes it: it is called with `-o` and `--files`, and two paths.
    """

    def __init__(
        self, title: str, command: Sequence[str], files: Sequence[str]
    ) -> None:
        self.title = title
        self.command = tuple(command)
        self.files = tuple(files)
        self.changed = Condition()
        self.ended = Event()
        waiting = message(title, "The page is being made.")
        self.version = Version(0, waiting, busy=True)

    def run(self, port: int, told: Callable[[str], None]) -> None:
        """Serve until Ctrl-C; the address is `told` first.

        Raises:
            Mistake: the port cannot be had.
        """
        with server_at(port, self) as server:
            told(f"{self.title}: http://{HOST}:{server.server_port}/ (Ctrl-C ends it)")
            worker = Thread(target=self.work, daemon=True)
            worker.start()
            with suppress(KeyboardInterrupt):
                server.serve_forever()
            self.ended.set()
            with self.changed:
                self.changed.notify_all()
            with suppress(KeyboardInterrupt):
                worker.join()

    def work(self) -> None:
        """Make pages until the service ends."""
        with tempfile.TemporaryDirectory(prefix="verax-serve-") as folder:
            while not self.ended.is_set():
                before = {path: stamp(path) for path in self.files}
                began = time_ns()
                self.publish(busy=True)
                page = self.made(Path(folder), before)
                if page is not None:
                    new = {path: stamp_at(path, began) for path in self.files}
                    self.publish(page)
                    self.wait({path: before.get(path, new[path]) for path in new})

    def made(self, folder: Path, before: dict[str, Stamp]) -> str | None:
        """The page, or that of an error; None if files change meanwhile."""
        page, files = folder / "page.html", folder / "files.json"
        output = folder / "output.txt"
        for path in (page, files):
            path.unlink(missing_ok=True)
        command = [*self.command, "-o", str(page), "--files", str(files)]
        with output.open("wb") as out:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                while process.poll() is None:
                    if self.ended.wait(PAUSE / 4) or differs(before):
                        return None
            finally:
                process.kill()
                process.wait()
        if files.is_file():
            more = json.loads(files.read_text("utf-8"))
            # After an error the files of the page before count too: one may be right.
            kept = self.files if process.returncode else self.files[:1]
            self.files = tuple(dict.fromkeys([*kept, *more]))
        if process.returncode == 0 and page.is_file():
            return page.read_text("utf-8")
        text = output.read_text("utf-8", errors="replace").strip()
        print(text, file=sys.stderr, flush=True)
        return message(
            f"{self.title}: an error",
            text or f"the process ended with status {process.returncode}",
        )

    def publish(self, page: str | None = None, *, busy: bool = False) -> None:
        """Show a page, or only that one is being made."""
        now = self.version
        with self.changed:
            if page is None:
                self.version = Version(now.number, now.page, busy)
            else:
                self.version = Version(now.number + 1, page, busy)
            self.changed.notify_all()

    def wait(self, known: dict[str, Stamp]) -> None:
        """Wait until a file changes, or the service ends."""
        while not self.ended.wait(PAUSE) and not differs(known):
            pass

    def after(self, known: str) -> Version:
        """The version, once it is not the `known` one; some time later in any case."""
        end = monotonic() + PATIENCE
        with self.changed:
            self.changed.wait_for(
                lambda: self.ended.is_set() or state(self.version) != known,
                timeout=end - monotonic(),
            )
        return self.version


def differs(known: dict[str, Stamp]) -> bool:
    """Whether a file has changed."""
    return any(stamp(path) != then for path, then in known.items())


def state(version: Version) -> str:
    """A version as the page around names it."""
    return f"{version.number}.{int(version.busy)}"


# -----------------------------------------------------------------------------
# The server.


class Server(ThreadingHTTPServer):
    """A server of one service, for this machine alone."""

    daemon_threads = True

    def __init__(self, port: int, service: Service) -> None:
        self.service = service
        super().__init__((HOST, port), Handler)

    @property
    def hosts(self) -> tuple[str, str]:
        """The names under which browsers may ask: others come from other pages."""
        return f"{HOST}:{self.server_port}", f"localhost:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """Answers: the page around, the page, and the number of its version."""

    server: Server
    server_version = "verax"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer a question."""
        service, url = self.server.service, urlsplit(self.path)
        if self.headers.get("Host") not in self.server.hosts:
            self.answer(403, "text/plain", "this server is for this machine alone\n")
        elif url.path == "/":
            title = escape(f"{service.title} · verax")
            self.answer(200, HTML, AROUND.format(title=title), FRAME_POLICY)
        elif url.path == "/page":
            self.answer(200, HTML, service.version.page)
        elif url.path == "/version":
            known = parse_qs(url.query).get("known", [""])[0]
            now = service.after(known)
            body = json.dumps({"version": now.number, "busy": now.busy})
            self.answer(200, "application/json", body)
        else:
            self.answer(404, "text/plain", "there is no such page\n")

    def answer(self, status: int, kind: str, body: str, policy: str = "") -> None:
        """Send a text."""
        content = body.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        if policy:
            self.send_header("Content-Security-Policy", policy)
        with suppress(ConnectionError):
            self.end_headers()
            self.wfile.write(content)

    @override
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


def server_at(port: int, service: Service) -> Server:
    """A server at a port; at any that is free for 0.

    Raises:
        Mistake: it cannot be had.
    """
    try:
        return Server(port, service)
    except OSError as error:
        why = "is taken" if error.errno == EADDRINUSE else f"is not to be had ({error})"
        raise Mistake(
            f"--serve {port}: the port {why}; give another, or none to take a free one"
        ) from None
    except OverflowError:
        raise Mistake(f"--serve {port}: ports are numbers up to 65535") from None


def serve(target: str, arguments: Sequence[str], port: int) -> None:
    """Serve the page of `python -m verax explore` with these arguments until Ctrl-C.

    Raises:
        Mistake: there is no such script, or the port cannot be had.
    """
    place, _, name = target.rpartition(":")
    files = [os.path.abspath(place or name)] if os.path.isfile(place or name) else []
    if not files and (place or name).endswith(".py"):
        raise Mistake("there is no such script")
    command = [sys.executable, "-m", "verax", "explore", *arguments]
    service = Service(target, command, files or [os.getcwd()])
    service.run(port, lambda text: print(text, flush=True))
