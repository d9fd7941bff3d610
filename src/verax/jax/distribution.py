"""The distribution `jax`, for `importlib.metadata`.

Loaded when a program asks: `importlib.metadata` alone is fifty modules::

    importlib.metadata.version("jax")
"""

from collections.abc import Iterable
from importlib.metadata import Distribution
from pathlib import Path

from verax.jax.names import VERSION


class Jax(Distribution):
    """The distribution `jax`, of the version whose surface verax follows."""

    def read_text(self, filename: str) -> str | None:
        if filename == "METADATA":
            return f"Metadata-Version: 2.1\nName: jax\nVersion: {VERSION}\n"
        return None

    def locate_file(self, path: object) -> Path:
        return Path(__file__).parent / str(path)

    @property
    def version(self) -> str:
        return VERSION


def find_distributions(
    context: object = None,
) -> Iterable[Distribution]:
    """The distribution, where it is asked for: by its name, or all that there are."""
    name = getattr(context, "name", None)
    return [Jax()] if name is None or str(name).lower() == "jax" else []
