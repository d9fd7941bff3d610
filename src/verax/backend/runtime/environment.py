"""Environment variables with two names: ours, and JAX's (floor 4).

The first name that is set decides::

    first_variable(("VERAX_PLATFORMS", "JAX_PLATFORMS"))
"""

import os


def first_variable(names: tuple[str, ...]) -> tuple[str, str] | None:
    """The first of the environment variables that is set and not empty."""
    return next(
        ((name, os.environ[name]) for name in names if os.environ.get(name)), None
    )
