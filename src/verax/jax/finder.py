"""Answers `import jax...` with views of verax, and the version of the distribution.

`install` puts a finder at the front of `sys.meta_path`: from then on no module of a
real jax can be loaded in this process::

    verax.jax.install()
    import jax, flax, optax
"""

import sys
from collections.abc import Iterable, Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.metadata import Distribution, DistributionFinder
from pathlib import Path
from types import FrameType, ModuleType

from verax.jax.names import MODULES, VERSION
from verax.jax.record import RECORD
from verax.jax.views import WHERE, View, is_real_jax

ANY = DistributionFinder.Context()


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


class Finder(DistributionFinder, MetaPathFinder, Loader):
    """Finds `jax` and its modules among the views of verax."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if fullname != "jax" and not fullname.startswith("jax."):
            return None
        if fullname not in MODULES:
            if asked_by("importlib.util"):
                return None  # find_spec asks whether there is such a module
            RECORD.missing(fullname)
            raise ModuleNotFoundError(
                f"No module named {fullname!r} ({WHERE})", name=fullname
            )
        return ModuleSpec(fullname, self, origin=WHERE, is_package=True)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return View(spec.name, MODULES[spec.name], submodules(spec.name))

    def exec_module(self, module: ModuleType) -> None:
        """Nothing runs: a view looks names up when they are read."""

    def find_distributions(
        self, context: DistributionFinder.Context = ANY
    ) -> Iterable[Distribution]:
        wanted = context.name is None or context.name.lower() == "jax"
        return [Jax()] if wanted else []


def asked_by(module: str) -> bool:
    """Whether the import machinery was called by a module's code."""
    frame: FrameType | None = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename.startswith("<frozen import"):
        if frame.f_globals.get("__name__") == module:
            return True
        frame = frame.f_back
    return frame is not None and frame.f_globals.get("__name__") == module


def submodules(name: str) -> frozenset[str]:
    """The names of the modules directly below one."""
    start = f"{name}."
    return frozenset(
        rest
        for m in MODULES
        if m.startswith(start) and "." not in (rest := m[len(start) :])
    )


FINDER = Finder()


def install() -> None:
    """From now on, `import jax` gives verax; a second call does nothing.

    Raises:
        RuntimeError: the real jax has been imported already.
    """
    if is_real_jax():
        raise RuntimeError(
            "the real jax has been imported already, and its objects may be in use; "
            "call verax.jax.install() before anything imports jax, or start the "
            "program with python -m verax.jax"
        )
    if FINDER not in sys.meta_path:
        sys.meta_path.insert(0, FINDER)


def installed() -> bool:
    """Whether `import jax` gives verax in this process."""
    return FINDER in sys.meta_path
