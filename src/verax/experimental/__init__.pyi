# What __init__.py shows, for type checkers: `python -m tests.stubs` writes this file.
# fmt: off
# isort: skip_file
from verax.experimental import (
    layout as layout, serialize_executable as serialize_executable,
)
from verax.api.host.callbacks import io_callback as io_callback
__all__ = [
    "io_callback", "layout", "serialize_executable",
]
