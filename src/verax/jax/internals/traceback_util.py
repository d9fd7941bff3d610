"""`jax._src.traceback_util`: verax's tracebacks hide no frames."""

from collections.abc import Callable
from typing import Any

_exclude_paths: list[str] = []
"""Files to hide: libraries add theirs and take them out again; nothing reads it."""


def register_exclusion(path: str) -> None:
    """Tracebacks hide no files."""


def include_frame(frame: object) -> bool:
    """Whether tracebacks show a frame: they show all."""
    return True


def api_boundary(f: Callable[..., Any], **_: object) -> Callable[..., Any]:
    """`f` itself."""
    return f
