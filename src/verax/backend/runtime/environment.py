"""Environment variables with two names, ours and JAX's, and files of GPUs (floor 4).

The first name that is set decides::

    first_variable(("VERAX_PLATFORMS", "JAX_PLATFORMS"))
"""

import os
from typing import Final

# The second is that of any GPU under Windows, seen from its Linux.
GPU_FILES: Final = ("/dev/nvidia[0-9]*", "/dev/dxg")


def first_variable(names: tuple[str, ...]) -> tuple[str, str] | None:
    """The first of the environment variables that is set and not empty."""
    return next(
        ((name, os.environ[name]) for name in names if os.environ.get(name)), None
    )


def gpu_files() -> list[str]:
    """The files of NVIDIA's GPUs; none on a machine that has no such GPU."""
    from glob import glob

    return [path for pattern in GPU_FILES for path in glob(pattern)]
