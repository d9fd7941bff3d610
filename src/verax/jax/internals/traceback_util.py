"""`jax._src.traceback_util`: tracebacks lose the frames of verax wherever they pass."""

from collections.abc import Callable
from types import FrameType
from typing import Any

from verax.api.config.tracebacks import (
    UnfilteredStackTrace as UnfilteredStackTrace,
    is_ours,
)

_exclude_paths: list[str] = []
"""Files to hide: libraries add theirs and take them out again; nothing reads it."""


def register_exclusion(path: str) -> None:
    """Frames of a library stay in tracebacks."""


def include_frame(frame: FrameType) -> bool:
    """Whether tracebacks show a frame."""
    return not is_ours(frame.f_code.co_filename)


def filter_traceback(trace: object) -> object:
    """A traceback, whose frames have been left out where it passed."""
    return trace


def api_boundary(f: Callable[..., object], **_: object) -> Callable[..., Any]:
    """`f` itself."""
    return f
