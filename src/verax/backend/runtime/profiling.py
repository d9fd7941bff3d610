"""Profiles of a process, as recorded by jaxlib's profiler (floor 4).

A session records, one at a time in a process, since the profiler is the process's; what
it has seen is data in memory, and files that TensorBoard and Perfetto open::

    with ProfileSession("/tmp/profile") as session:
        f(x).block_until_ready()
    session.profile_data          # and plugins/profile/<time>/*.xplane.pb
"""

import gzip
import os
from collections.abc import Callable
from types import TracebackType
from typing import ClassVar, Final, Self

from jaxlib import _profile_data, _profiler

from verax.backend.runtime.client import check_backend, default_client
from verax.backend.runtime.perfetto import serve_once, write_perfetto
from verax.ir.locks import Lock, locked

type Annotation = _profiler.TraceMe
type Server = _profiler.ProfilerServer
type Folder = str | os.PathLike[str]

ProfileData = _profile_data.ProfileData
ProfilePlane = _profile_data.ProfilePlane
ProfileLine = _profile_data.ProfileLine
ProfileEvent = _profile_data.ProfileEvent


class ProfileOptions(_profiler.ProfileOptions):
    """Options of a recording; an unknown one is an `AttributeError`.

    Attributes:
        python_tracer_level: 1 records every call of a Python function, 0 does not.
        host_tracer_level: 0 to 3, how much of the host is recorded.
        enable_hlo_proto: keep the compiled programs.
        advanced_configuration: options of the platform by name.
        session_id: the name of the folder of the files; by default the time.

    Others are those of XLA's profiler: `include_dataset_ops`, `duration_ms`,
    `start_timestamp_ns`, `repository_path`, `raise_error_on_start_failure`.

    >>> options = ProfileOptions()
    >>> options.python_tracer_level = 0
    """

    __module__ = "verax.profiler"
    __slots__ = ()


class ProfileSession:
    """A recording: a context manager, or started and stopped by hand.

    Args:
        log_dir: where the files go; without it there are none.
        create_perfetto_link: print a link that opens the recording in Perfetto, and
            wait until it is opened.
        create_perfetto_trace: write `perfetto_trace.json.gz`, too.
        profiler_options: what to look at.
    """

    __module__ = "verax.profiler"

    def __init__(
        self,
        log_dir: Folder | None = None,
        create_perfetto_link: bool = False,
        create_perfetto_trace: bool = False,
        profiler_options: _profiler.ProfileOptions | None = None,
    ) -> None:
        self.log_dir = None if log_dir is None else os.fspath(log_dir)
        self.create_perfetto_link = create_perfetto_link
        self.create_perfetto_trace = create_perfetto_trace or create_perfetto_link
        self.profiler_options = profiler_options
        self.recorder: _profiler.ProfilerSession | None = None
        self.data: ProfileData | None = None

    @property
    def is_running(self) -> bool:
        """Whether it is recording."""
        return self.recorder is not None

    @property
    def profile_data(self) -> ProfileData | None:
        """The data that it has recorded, once it has stopped."""
        return self.data

    def start(self) -> Self:
        """Record from now on.

        Raises:
            RuntimeError: there is a recording already.
        """
        # The client starts first, or else its work is not seen.
        default_client()
        with PROFILER.lock:
            if PROFILER.session is not None:
                raise RuntimeError(
                    "Profile has already been started. Only one profile may be run at "
                    f"a time. It is recording to {PROFILER.session.log_dir!r}; stop it "
                    "with verax.profiler.stop_trace()"
                )
            options = self.profiler_options or ProfileOptions()
            self.recorder = _profiler.ProfilerSession(options)
            self.data = None
            PROFILER.session = self
        return self

    def stop(self) -> ProfileData:
        """End the recording, and write its files if there is a folder for them.

        Raises:
            RuntimeError: it is not recording.
        """
        with PROFILER.lock:
            if self.recorder is None:
                raise not_started()
            recorder, self.recorder = self.recorder, None
            PROFILER.session = None
            recorded = recorder.stop()
        self.data = ProfileData.from_serialized_xspace(recorded)
        if self.log_dir is not None:
            os.makedirs(self.log_dir, exist_ok=True)
            options = self.profiler_options
            if options is not None and options.session_id:
                write(self.data, self.log_dir, options.session_id)
            else:
                recorder.export(recorded, self.log_dir)
            self.to_perfetto(self.log_dir)
        return self.data

    def to_perfetto(self, folder: str) -> None:
        """Write and serve the file for Perfetto, if that is asked for."""
        for_perfetto(folder, self.create_perfetto_link, self.create_perfetto_trace)

    def export_profile_data(
        self,
        log_dir: Folder,
        create_perfetto_link: bool = False,
        create_perfetto_trace: bool = False,
        session_id: str | None = None,
    ) -> None:
        """Write the files of a recording that has ended; see `export_profile_data`."""
        export_profile_data(
            self, log_dir, create_perfetto_link, create_perfetto_trace, session_id
        )

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.is_running:
            self.stop()


@locked
class Profiler:
    """The one recording of the process, and the one server."""

    lock: ClassVar[Lock]

    def __init__(self) -> None:
        self.session: ProfileSession | None = None
        self.server: Server | None = None

    def running(self) -> ProfileSession:
        """The recording.

        Raises:
            RuntimeError: there is none.
        """
        session = self.session
        if session is None:
            raise not_started()
        return session

    def serve(self, port: int, requires_backend: bool) -> Server:
        """The server from which TensorBoard takes profiles.

        Raises:
            ValueError: there is one already.
        """
        if requires_backend:
            default_client()
        with self.lock:
            if self.server is not None:
                raise ValueError(
                    "Only one profiler server can be active at a time. Stop the other "
                    "with verax.profiler.stop_server()"
                )
            self.server = _profiler.start_server(port)
            return self.server

    def stop_serving(self) -> None:
        """End the server.

        Raises:
            ValueError: there is none.
        """
        with self.lock:
            if self.server is None:
                raise ValueError(
                    "No active profiler server. Start one with "
                    "verax.profiler.start_server(port)"
                )
            self.server = None


PROFILER: Final = Profiler()


def not_started() -> RuntimeError:
    """The error for a recording that is not running."""
    return RuntimeError(
        "No profile started: the profiler is not recording; start it with "
        "verax.profiler.start_trace(folder)"
    )


def export_profile_data(
    profile_data: ProfileData | ProfileSession,
    log_dir: Folder,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    session_id: str | None = None,
) -> None:
    """Write the files of a recording below `log_dir`, in a folder `session_id`.

    Arguments are those of `ProfileSession`; by default the folder has the name that the
    options of the session say, or the time.

    Raises:
        TypeError: `profile_data` is neither data nor a session.
        RuntimeError: the session is running, or was never started.
    """
    data: object = profile_data
    if isinstance(profile_data, ProfileSession):
        if profile_data.is_running:
            raise RuntimeError(
                "a recording cannot be exported while it is running; stop it first"
            )
        if (data := profile_data.data) is None:
            raise RuntimeError("the session has recorded nothing: it was never started")
        options = profile_data.profiler_options
        if session_id is None and options is not None:
            session_id = options.session_id
    if not isinstance(data, ProfileData):
        raise TypeError(
            "export_profile_data takes ProfileData or a ProfileSession, not a "
            f"{type(data).__name__}"
        )
    write(data, os.fspath(log_dir), session_id or "")
    for_perfetto(os.fspath(log_dir), create_perfetto_link, create_perfetto_trace)


def write(data: ProfileData, folder: str, session_id: str) -> None:
    """The files of recorded data.

    Raises:
        RuntimeError: jaxlib is too old to write data that it has given out.
    """
    export = getattr(_profiler, "export_to_xprof", None)
    if export is None:
        raise RuntimeError(
            "export_profile_data and session_id need jaxlib 0.12; give the session a "
            "log_dir, and it writes its files when it stops"
        )
    export(data, folder, session_id=session_id)


def for_perfetto(folder: str, link: bool, trace: bool) -> None:
    """Write the file for Perfetto, and serve it, if that is asked for."""
    if link or trace:
        path = write_perfetto(folder)
        if link:
            serve_once(path)


def device_memory_profile(backend: str | None = None) -> bytes:
    """A compressed profile of what holds device memory now, for the program `pprof`.

    It counts the buffers and programs of a backend by where they were made.

    >>> device_memory_profile()[:2] == b"\\x1f\\x8b"
    True
    """
    return gzip.compress(check_backend(backend).heap_profile())


def save_device_memory_profile(filename: Folder, backend: str | None = None) -> None:
    """Write `device_memory_profile` to a file."""
    with open(filename, "wb") as file:
        file.write(device_memory_profile(backend))


def register_subprocess(pid: int, port: int) -> Callable[[], None]:
    """Record another process with this one: the one with a server on `port`.

    Recordings with the option `advanced_configuration={"profile_subprocesses": True}`
    hold what it did, too, until the function that is returned is called or collected.

    Raises:
        RuntimeError: the process is registered already, or cannot be reached.
    """
    return _profiler.register_subprocess(pid, port)


def annotation(name: str, metadata: dict[str, object]) -> Annotation:
    """A context manager that names what happens inside, in a recording."""
    return _profiler.TraceMe(name, **metadata)


def is_recording() -> bool:
    """Whether annotations go anywhere."""
    return _profiler.TraceMe.is_enabled()
