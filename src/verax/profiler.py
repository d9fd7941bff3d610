"""Recording where time goes, for TensorBoard and Perfetto (floor 6).

JAX's names over jaxlib's profiler; annotations cost next to nothing while nothing is
recorded::

    with verax.profiler.trace("/tmp/profile"):
        with verax.profiler.TraceAnnotation("step"):
            f(x).block_until_ready()
"""

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import overload

from verax.backend.runtime.profiling import (
    PROFILER,
    Annotation,
    Folder,
    ProfileData,
    ProfileEvent,
    ProfileLine,
    ProfileOptions,
    ProfilePlane,
    ProfileSession,
    Server,
    annotation,
    device_memory_profile,
    export_profile_data,
    is_recording,
    register_subprocess,
    save_device_memory_profile,
)

__all__ = [
    "ProfileData",
    "ProfileEvent",
    "ProfileLine",
    "ProfileOptions",
    "ProfilePlane",
    "ProfileSession",
    "StepTraceAnnotation",
    "TraceAnnotation",
    "annotate_function",
    "device_memory_profile",
    "export_profile_data",
    "register_subprocess",
    "save_device_memory_profile",
    "start_server",
    "start_trace",
    "stop_server",
    "stop_trace",
    "trace",
]


def start_trace(
    log_dir: Folder | None,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
    *,
    python_frames: bool = False,
) -> ProfileSession:
    """Record what the process does until `stop_trace`; the files go to `log_dir`.

    Arguments are those of `ProfileSession`. Without `profiler_options`, `python_frames`
    says whether to record every call of a Python function too, which slows the process
    down.

    Raises:
        RuntimeError: there is a recording already.
    """
    if profiler_options is None:
        profiler_options = ProfileOptions()
        profiler_options.python_tracer_level = int(python_frames)
    return ProfileSession(
        log_dir, create_perfetto_link, create_perfetto_trace, profiler_options
    ).start()


def stop_trace() -> ProfileData:
    """End the recording and write its files; what it has recorded.

    Raises:
        RuntimeError: there is no recording to end.
    """
    return PROFILER.running().stop()


@contextmanager
def trace(
    log_dir: Folder | None = None,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
    *,
    python_frames: bool = False,
) -> Iterator[ProfileSession]:
    """Record what happens within the block; arguments are those of `start_trace`.

    Wait for results inside (`block_until_ready`), or the recording ends before them.
    Afterwards the session has the data, also without a folder for files.

    >>> import verax
    >>> with trace() as session:
    ...     _ = verax.jit(verax.numpy.sin)(1.0).block_until_ready()
    >>> "/host:CPU" in [plane.name for plane in session.profile_data.planes]
    True
    """
    session = start_trace(
        log_dir,
        create_perfetto_link,
        create_perfetto_trace,
        profiler_options,
        python_frames=python_frames,
    )
    try:
        yield session
    finally:
        if session.is_running:
            session.stop()


class TraceAnnotation:
    """A context manager: what happens inside has a name in a recording.

    Keywords are shown with it.

    >>> with TraceAnnotation("load", rows=3):
    ...     pass
    """

    def __init__(self, name: str, **metadata: object) -> None:
        if not isinstance(name, str):
            raise TypeError(f"the name of an annotation must be a string, not {name!r}")
        self.annotation: Annotation = annotation(name, metadata)

    def set_metadata(self, **metadata: object) -> None:
        """Show more keywords with it, such as what is known only inside."""
        self.annotation.set_metadata(**metadata)

    @staticmethod
    def is_enabled() -> bool:
        """Whether something is being recorded."""
        return is_recording()

    def __enter__(self) -> "TraceAnnotation":
        self.annotation.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.annotation.__exit__(kind, error, traceback)


class StepTraceAnnotation(TraceAnnotation):
    """A `TraceAnnotation` that is a step of training: give it `step_num=`.

    >>> with StepTraceAnnotation("train", step_num=1):
    ...     pass
    """

    def __init__(self, name: str, **metadata: object) -> None:
        super().__init__(name, _r=1, **metadata)


@overload
def annotate_function[**P, R](
    func: Callable[P, R], name: str | None = None, **metadata: object
) -> Callable[P, R]: ...
@overload
def annotate_function[**P, R](
    func: None = None, name: str | None = None, **metadata: object
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def annotate_function[**P, R](
    func: Callable[P, R] | None = None, name: str | None = None, **metadata: object
) -> Callable[P, R] | Callable[[Callable[P, R]], Callable[P, R]]:
    """A function whose calls have a name in a recording, by default its own.

    >>> @annotate_function(name="double")
    ... def f(x):
    ...     return 2 * x
    >>> f(3)
    6
    """

    def annotated(function: Callable[P, R]) -> Callable[P, R]:
        title = name or str(getattr(function, "__qualname__", function))

        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            with TraceAnnotation(title, **metadata):
                return function(*args, **kwargs)

        return call

    return annotated if func is None else annotated(func)


def start_server(port: int, requires_backend: bool = True) -> Server:
    """Serve profiles to TensorBoard on `port`, until `stop_server`.

    The backend is started first, so that its work is seen, unless `requires_backend` is
    false.

    Raises:
        ValueError: there is a server already.
    """
    return PROFILER.serve(port, requires_backend)


def stop_server() -> None:
    """End the server of `start_server`.

    Raises:
        ValueError: there is none.
    """
    PROFILER.stop_serving()
