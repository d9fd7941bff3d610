"""Floor 5: what a report of a bug should say of versions, devices and variables."""

import os
import platform
import sys

from verax.backend.runtime.client import default_client, devices as client_devices

VARIABLES = ("VERAX_", "JAX_", "XLA_", "TF_CPP_")


def version_of(name: str) -> str:
    """The version of an installed package."""
    try:
        from importlib.metadata import version

        out: str = version(name)
        return out
    except ModuleNotFoundError:  # PackageNotFoundError is one
        return "not installed, run from its sources"


def environment_info() -> str:
    """Versions, devices and the relevant environment variables, for bug reports."""
    options = [
        f"{name}={value}"
        for name, value in sorted(os.environ.items())
        if name.startswith(VARIABLES)
    ]
    result = ", ".join(map(str, client_devices()))
    lines = [
        f"verax:  {version_of('verax')}",
        f"jaxlib: {version_of('jaxlib')}",
        f"numpy:  {version_of('numpy')}",
        f"python: {sys.version}",
        f"system: {platform.platform()}",
        f"devices: {result} ({default_client().platform_version.splitlines()[0]})",
        *options,
    ]
    return "\n".join(lines)


def print_environment_info(return_string: bool = False) -> str | None:
    """Print what a bug report should contain, or return it.

    >>> import verax
    >>> verax.print_environment_info(return_string=True).startswith("verax:")
    True
    """
    text = environment_info()
    if return_string:
        return text
    print(text)
    return None
