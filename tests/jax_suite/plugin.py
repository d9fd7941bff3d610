"""A plugin of pytest: JAX's own tests from a clone of JAX, with verax as `jax`.

`make jax-tests JAX_TESTS=<clone>` runs them::

    JAX_TESTS=../jax python -m pytest -p tests.jax_suite.plugin ../jax/tests/lax_test.py

The helpers of the tests (`jax._src.test_util` and what it needs to run tests at all)
come from the clone. A private name of JAX's that verax does not have is `Absent`: only
the tests that use it fail, not the file that imports it. Tests that are listed in
`expected.txt` are expected to fail, for the reason that stands above them.
"""

import importlib.util
import os
import sys
from collections.abc import Container, Iterable, Iterator, Sequence
from dis import opname
from importlib.machinery import ModuleSpec
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest

import verax.jax
from tests.jax_suite.expected import LEFT_OUT, read
from tests.jax_suite.internals import NAMES, tell
from verax.backend.runtime.metrics import RECORDER
from verax.jax import finder, views
from verax.jax.names import MODULES

CLONE = Path(os.environ["JAX_TESTS"]).resolve()

HELPERS = frozenset(
    {
        "jax._src.deprecations",
        "jax._src.hypothesis_test_util",
        "jax._src.lax_reference",
        "jax._src.public_test_util",
        "jax._src.test_loader",
        "jax._src.test_util",
        "jax._src.test_warning_util",
        "jax.experimental.sparse.test_util",
    }
)
"""Modules of the clone that are there for its tests alone."""

BELOW = "jax._src.internal_test_util"


# --------------------------------------------------------------------- absent names


class Absent(type):
    """A name of JAX's internals that verax lacks: asking it for anything fails."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if module_is_read(sys._getframe(1)):
            return absent(f"{cls.__qualname__}.{name}")
        raise AttributeError(f"{cls.__qualname__} has no place in verax")

    def __call__(cls, *args: object, **kwargs: object) -> Any:
        if module_is_read(sys._getframe(1)):
            return absent(f"{cls.__qualname__}(...)")
        raise AttributeError(f"{cls.__qualname__} has no place in verax")

    def __iter__(cls) -> Iterator[Any]:
        return iter(())

    def __setitem__(cls, key: object, value: object) -> None:
        """A table that nobody reads."""

    def __instancecheck__(cls, x: object) -> bool:
        return False


def absent(name: str) -> Any:
    """What stands for a name."""
    return Absent(name.rpartition(".")[2], (), {"__qualname__": name})


def module_is_read(frame: FrameType) -> bool:
    """Whether code at the top of a module, or of a class, asks."""
    return not frame.f_code.co_flags & CO_OPTIMIZED


def is_import(frame: FrameType) -> bool:
    """Whether a frame is at `from module import name`."""
    return opname[frame.f_code.co_code[frame.f_lasti]] == "IMPORT_FROM"


def in_tests(frame: FrameType) -> bool:
    """Whether a file of tests is being read, with its classes, or a list of cases."""
    file = frame.f_code.co_filename
    below = file.startswith(str(CLONE / "tests")) and module_is_read(frame)
    return below or file.endswith("test_harnesses.py")


# -------------------------------------------------------------------------- modules


class Lenient(views.View):
    """A private module of JAX's, with `Absent` for what a file imports in vain."""

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith("__"):
                raise
            frame = sys._getframe(1)
            if not (is_import(frame) or in_tests(frame)):
                raise
            return absent(f"{self.__name__}.{name}")


class Clone:
    """Finds the helpers in the clone, and private modules wherever they are."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        if fullname in HELPERS or fullname.startswith(BELOW):
            file = CLONE.joinpath(*fullname.split("."))
            inside = [str(file)] if file.is_dir() else None
            file = file / "__init__.py" if inside else file.with_suffix(".py")
            if file.exists():
                return importlib.util.spec_from_file_location(
                    fullname, file, submodule_search_locations=inside
                )
        inner = fullname.startswith(("jax._src.", "jax.ex"))
        if inner and (fullname in MODULES or in_clone(fullname)):
            return ModuleSpec(fullname, self, origin=views.WHERE, is_package=True)  # type: ignore[arg-type]
        return None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        sources = MODULES.get(spec.name, ())
        module = Lenient(spec.name, sources, finder.submodules(spec.name))
        views.own_names(module).update(NAMES.get(spec.name, {}))
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Nothing runs: a view looks names up when they are read."""


def in_clone(name: str) -> bool:
    """Whether JAX has such a module."""
    file = CLONE.joinpath(*name.split("."))
    return file.is_dir() or file.with_suffix(".py").exists()


# ------------------------------------------------------------------ names of tests


def distinct(functions: Iterable[Any], used: Container[str]) -> Iterator[Any]:
    """Tests with names of their own: `abs` and `absolute` are one function here."""
    told = set()
    for function in functions:
        while getattr(function, "__x_use_name__", False) and (
            function.__name__ in told or function.__name__ in used
        ):
            function.__name__ += "_"
        told.add(function.__name__)
        yield function


def name_apart() -> None:
    """Have absl give the tests that are made of one names of their own."""
    parameterized: Any = importlib.import_module("absl.testing.parameterized")
    update = parameterized._update_class_dict_for_param_test_case

    def update_class(name: str, dct: Any, reprs: Any, test: str, tests: Any) -> None:
        update(name, dct, reprs, test, distinct(tests, dct))

    parameterized._update_class_dict_for_param_test_case = update_class


# --------------------------------------------------------------------------- pytest


def pytest_configure(config: pytest.Config) -> None:
    """Leave files of tests out that are not to run."""
    config.args[:] = [name for name in config.args if Path(name).name not in LEFT_OUT]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that are expected to fail."""
    reasons = read()
    for item in items:
        if reason := reasons.get(item.nodeid.removeprefix("tests/")):
            item.add_marker(pytest.mark.xfail(reason=reason))


if importlib.util.find_spec("absl"):
    name_apart()
verax.jax.install()
RECORDER.listen(tell)
sys.meta_path.insert(0, Clone())
