"""Python runs this when a process starts: the mode, then the user's `sitecustomize`.

It stands alone, since most processes never ask for jax, and some run where verax is
not installed: neither pays, and neither fails::

    VERAX_AS_JAX=1 PYTHONPATH=.../verax/jax/startup python worker.py
"""

import os
import sys
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType

FLAG = "VERAX_AS_JAX"
"""The environment variable that a program sets for the processes it starts."""

HERE = os.path.dirname(os.path.abspath(__file__))


class Waiting:
    """Loads verax as jax when the process first asks for jax, or for its version.

    It has a finder's methods, but neither base class nor types of arguments: to
    import those takes longer than the rest of Python's start.
    """

    def find_spec(
        self, fullname: str, path: object = None, target: object = None
    ) -> ModuleSpec | None:
        home = self.successor() if fullname == "jax" else None
        if home is None:
            return None
        spec: ModuleSpec | None = home.FINDER.find_spec(fullname)
        return spec

    def find_distributions(self, context: object = None) -> object:
        home = self.successor() if getattr(context, "name", None) == "jax" else None
        return home.FINDER.find_distributions(context) if home else ()

    def successor(self) -> ModuleType | None:
        """The home of the finder that replaces this one; None without verax."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        try:
            home = import_module("verax.jax.finder")
        except ModuleNotFoundError:
            return None
        home.install()
        return home


def start() -> None:
    """Wait for jax, and run the `sitecustomize` that this one stands before."""
    if os.environ.get(FLAG) == "1":
        sys.meta_path.insert(0, Waiting())
    sys.path[:] = [p for p in sys.path if os.path.abspath(p) != HERE]
    if PathFinder.find_spec("sitecustomize") is not None:
        del sys.modules["sitecustomize"]
        import_module("sitecustomize")


if __name__ == "sitecustomize":
    start()
