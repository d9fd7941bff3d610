"""Python runs this when a process starts: the mode, then the user's `sitecustomize`.

It stands alone, since most processes never ask for jax, and some run where verax is
not installed: neither pays, and neither fails::

    VERAX_AS_JAX=1 PYTHONPATH=.../verax/jax/startup python worker.py
"""

import os
import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, DistributionFinder
from importlib.util import module_from_spec
from types import ModuleType

FLAG = "VERAX_AS_JAX"
"""The environment variable that a program sets for the processes it starts."""

HERE = os.path.dirname(os.path.abspath(__file__))


class Waiting(DistributionFinder):
    """Loads verax as jax when the process first asks for jax, or for its version."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        finder = self.successor() if fullname == "jax" else None
        return finder.find_spec(fullname, path, target) if finder else None

    def find_distributions(
        self, context: DistributionFinder.Context | None = None
    ) -> Iterable[Distribution]:
        wanted = context is not None and context.name == "jax"
        finder = self.successor() if wanted else None
        return finder.find_distributions(context) if finder and context else []

    def successor(self) -> DistributionFinder | None:
        """The finder that replaces this one, or None where verax is not installed."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        try:
            module = import_module("verax.jax.finder")
        except ModuleNotFoundError:
            return None
        module.install()
        finder: DistributionFinder = module.FINDER
        return finder


def start() -> None:
    """Wait for jax, and run the `sitecustomize` that this one stands before."""
    if os.environ.get(FLAG) == "1":
        sys.meta_path.insert(0, Waiting())
    sys.path[:] = [p for p in sys.path if os.path.abspath(p) != HERE]
    spec = PathFinder.find_spec("sitecustomize")
    if spec is not None and spec.loader is not None:
        sys.modules["sitecustomize"] = module = module_from_spec(spec)
        spec.loader.exec_module(module)


if __name__ == "sitecustomize":
    start()
