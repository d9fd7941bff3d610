"""Recording where time goes, for TensorBoard and Perfetto (floor 6).

One idea: JAX's names over jaxlib's profiler; annotations cost next to nothing while
nothing is recorded::

    with verax.profiler.trace("/tmp/profile"):
        with verax.profiler.TraceAnnotation("step"):
            f(x).block_until_ready()
"""

import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import overload

from verax.backend.runtime.profiling import SESSION, Annotation, Server, annotation

__all__ = [
    "StepTraceAnnotation",
    "TraceAnnotation",
    "annotate_function",
    "start_server",
    "start_trace",
    "stop_server",
    "stop_trace",
    "trace",
]

type Folder = str | os.PathLike[str]


def start_trace(log_dir: Folder, *, python_frames: bool = False) -> None:
    """Record what the process does until `stop_trace`; the files go to `log_dir`.

    `python_frames` records every call of a Python function too, which slows the
    process down.

    Raises:
        RuntimeError: there is a recording already.
    """
    SESSION.start(os.fspath(log_dir), python_frames)


def stop_trace() -> None:
    """End the recording and write its files.

    Raises:
        RuntimeError: there is no recording to end.
    """
    SESSION.stop()


@contextmanager
def trace(log_dir: Folder, *, python_frames: bool = False) -> Iterator[None]:
    """Record what happens within the block; arguments are those of `start_trace`.

    Wait for results inside (`block_until_ready`), or the recording ends before them.

    >>> import tempfile, pathlib, verax
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with trace(folder):
    ...         _ = verax.jit(verax.numpy.sin)(1.0).block_until_ready()
    ...     len(list(pathlib.Path(folder).rglob("*.trace.json.gz")))
    1
    """
    start_trace(log_dir, python_frames=python_frames)
    try:
        yield
    finally:
        stop_trace()


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


def start_server(port: int) -> Server:
    """Serve profiles to TensorBoard on `port`, as long as the server is kept alive.

    Raises:
        RuntimeError: there is a server already.
    """
    return SESSION.serve(port)


def stop_server() -> None:
    """End the server of `start_server`.

    Raises:
        RuntimeError: there is none.
    """
    SESSION.stop_serving()
