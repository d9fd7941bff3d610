"""Answers `import jax...` with views of verax, and the version of the distribution.

`install` puts a finder at the front of `sys.meta_path`: from then on no module of a
real jax can be loaded in this process::

    verax.jax.install()
    import jax, flax, optax
"""

import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec
from types import FrameType, ModuleType

from verax.jax.identity import take_identity
from verax.jax.names import MODULES
from verax.jax.views import RECORD, WHERE, View, is_real_jax


class Finder:
    """Finds `jax` and its modules among the views of verax.

    Python asks no finder or loader for a base class, and `importlib.abc` is slow to
    import.
    """

    @staticmethod
    def find_distributions(context: object = None) -> Iterable[object]:
        """The distribution `jax`, as `importlib.metadata` asks for it."""
        from verax.jax.distribution import find_distributions

        return find_distributions(context)

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
        return ModuleSpec(
            fullname,
            self,  # type: ignore[arg-type]  # see above: it has a loader's methods
            origin=WHERE,
            is_package=True,
        )

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return View(spec.name, MODULES[spec.name], submodules(spec.name))

    def exec_module(self, module: ModuleType) -> None:
        """Nothing runs: a view looks names up when they are read."""


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
        take_identity()


def installed() -> bool:
    """Whether `import jax` gives verax in this process."""
    return FINDER in sys.meta_path
