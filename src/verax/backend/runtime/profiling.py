"""Where the time of a process goes, as recorded by jaxlib's profiler (floor 4).

One idea: there is one session at a time, it lives in one slot, and what it has seen is
written as files that TensorBoard and Perfetto open::

    SESSION.start("/tmp/profile")
    SESSION.stop()                 # plugins/profile/<time>/*.trace.json.gz, *.xplane.pb
"""

import threading
from pathlib import Path
from typing import Final

from jaxlib import _profiler

from verax.backend.runtime.client import default_client

type Annotation = _profiler.TraceMe
type Server = _profiler.ProfilerServer


class Session:
    """The one recording of the process, and the one server."""

    __slots__ = ("directory", "lock", "server", "session")

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.session: _profiler.ProfilerSession | None = None
        self.directory = ""
        self.server: Server | None = None

    def start(self, directory: str, python_frames: bool) -> None:
        """Record from now on; the client starts first, else its work is not seen.

        Raises:
            RuntimeError: there is a recording already.
        """
        with self.lock:
            if self.session is not None:
                raise RuntimeError(
                    f"the profiler is already recording to {self.directory!r}; stop "
                    "it with verax.profiler.stop_trace()"
                )
            default_client()
            options = _profiler.ProfileOptions()
            options.python_tracer_level = int(python_frames)
            self.session = _profiler.ProfilerSession(options)
            self.directory = directory

    def stop(self) -> None:
        """End the recording, and write it.

        Raises:
            RuntimeError: there is no recording to end.
        """
        with self.lock:
            if self.session is None:
                raise RuntimeError(
                    "the profiler is not recording; start it with "
                    "verax.profiler.start_trace(folder)"
                )
            session, self.session = self.session, None
            Path(self.directory).mkdir(parents=True, exist_ok=True)
            session.stop_and_export(self.directory)

    def serve(self, port: int) -> Server:
        """The server from which TensorBoard takes profiles.

        Raises:
            RuntimeError: there is one already.
        """
        with self.lock:
            if self.server is not None:
                raise RuntimeError(
                    "a profiler server is already running; stop it with "
                    "verax.profiler.stop_server()"
                )
            self.server = _profiler.start_server(port)
            return self.server

    def stop_serving(self) -> None:
        """End the server.

        Raises:
            RuntimeError: there is none.
        """
        with self.lock:
            if self.server is None:
                raise RuntimeError("no profiler server is running")
            self.server = None


SESSION: Final = Session()


def annotation(name: str, metadata: dict[str, object]) -> Annotation:
    """A context manager that names what happens inside, in a recording."""
    return _profiler.TraceMe(name, **metadata)
