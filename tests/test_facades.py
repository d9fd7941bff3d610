"""Packages that hold no code load what is used and nothing else, and hide nothing."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from textwrap import dedent
from types import ModuleType

import pytest

from tests.stubs import SOURCE, stub, stubs, table_of
from verax.ir.facade import facade, homes

STUBS = dict(stubs())
PACKAGES = {
    ".".join(path.parent.relative_to(SOURCE.parent).parts): path.with_suffix(".py")
    for path in STUBS
}
# What a program is spared that only imports verax and its common packages: a new import
# among those that come with them is seen here. Raise the bound with a reason.
MOST_MODULES = 142  # what tells of NaNs is loaded when one is looked for
NOT_LOADED = (
    "scipy",
    "opt_einsum",
    "hypothesis",
    "jax",
    "json",
    "logging",
    "difflib",
    "jaxlib.mlir",
    "jaxlib.lapack",
    "jaxlib.xla_client",
    "verax.backend.eager.nan_checks",
    "verax.backend.programs.program",
    "verax.export",
    "verax.image",
    "verax.numpy.fft",
    "verax.numpy.linalg.norms",
    "verax.ops.calls.inspect_sharding",
    "verax.ops.conv.primitive",
    "verax.ops.fft",
    "verax.ops.hoisting",
    "verax.ops.linalg.svd",
    "verax.ops.random.keys",
    "verax.ops.table",
    "verax.ops.elementwise.trig",
    "verax.profiler",
    "verax.stages",
    "verax.test_util",
    "verax.transforms.nans",
)


def run(script: str) -> str:
    """What a new interpreter prints."""
    command = [sys.executable, "-c", dedent(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not done.returncode, done.stderr
    assert not done.stderr
    return done.stdout


def test_importing_loads_few_modules_and_starts_no_backend() -> None:
    words = run(
        """
        import gc, sys
        collections = []
        gc.callbacks.append(lambda phase, info: collections.append(phase))
        import verax, verax.numpy, verax.lax, verax.nn, verax.random
        from verax.backend.runtime import client
        assert client.SLOT.client is None
        assert len(collections) < 20, "the collector ran all the time"
        print(*sys.modules)
        """
    ).split()
    own = [name for name in words if name.split(".")[0] == "verax"]
    loaded = [name for name in NOT_LOADED if name in words]
    assert not loaded
    assert len(own) <= MOST_MODULES


@pytest.mark.slow
def test_first_jit_loads_what_it_runs_and_hardly_collects_garbage() -> None:
    *words, before, after, enabled = run(
        """
        import gc, sys
        import verax
        collections = []
        gc.callbacks.append(lambda phase, info: collections.append(phase))
        verax.jit
        before = len(collections)
        verax.jit(lambda x: 2 * x)(1.0)
        print(*sys.modules, before, len(collections), gc.isenabled())
        """
    ).split()
    assert "verax.api.jit" in words
    unused = ("build", "differences", "keys", "log")
    assert not {f"verax.api.explain.{name}" for name in unused} & {*words}
    assert int(before) == 0
    assert int(after) < 10
    assert enabled == "True"


@pytest.mark.parametrize("path", STUBS, ids=str)
def test_stub_says_what_the_table_says(path: Path) -> None:
    assert path.read_text() == STUBS[path], "run `python -m tests.stubs`"


def test_every_facade_has_a_stub_and_every_stub_a_facade() -> None:
    assert set(SOURCE.rglob("*.pyi")) == set(STUBS)


@pytest.mark.parametrize("package", PACKAGES)
def test_every_name_is_found_and_listed(package: str) -> None:
    module = import_module(package)
    table = table_of(ast.parse(PACKAGES[package].read_text()), package)
    assert table
    assert set(table) <= set(dir(module))
    assert module.__all__ == [name for name in table if name[0] != "_"]
    for name, (home, original) in table.items():
        value = getattr(import_module(home), original) if original else None
        actual = getattr(module, name)
        assert actual is value or (value is None and isinstance(actual, ModuleType))


@pytest.mark.parametrize("package", PACKAGES)
def test_no_name_is_that_of_another_module(package: str) -> None:
    """Python would put the module there as soon as anybody imports it."""
    folder = PACKAGES[package].parent
    table = table_of(ast.parse(PACKAGES[package].read_text()), package) or {}
    inside = {path.stem for path in folder.glob("*.py")}
    inside |= {path.parent.name for path in folder.glob("*/__init__.py")}
    source = PACKAGES[package].read_text()
    for name in inside & {name for name, (_, original) in table.items() if original}:
        assert f"import {name} as {name}\n" in source


@pytest.mark.slow
def test_names_are_loaded_while_a_program_is_traced() -> None:
    """Whatever is first named inside a trace writes nothing into the program."""
    assert not run(
        f"""
        import importlib, threading
        import verax

        def read(x):
            for package in {list(PACKAGES)}:
                module = importlib.import_module(package)
                for name in module.__all__:
                    getattr(module, name)
            return x

        program = verax.make_jaxpr(read)(1.0)
        assert not program.eqns, program
        assert verax.jit(verax.grad(read))(1.0) == 1.0
        """
    )


@pytest.mark.slow
def test_threads_may_be_the_first_to_name_anything() -> None:
    assert not run(
        f"""
        import importlib, threading
        import verax

        start, failed = threading.Barrier(6), []

        def read(turn):
            start.wait()
            packages = {list(PACKAGES)}
            for package in packages[turn:] + packages[:turn]:
                module = importlib.import_module(package)
                for name in module.__all__[:: 1 if turn % 2 else -1]:
                    try:
                        getattr(module, name)
                    except Exception as error:
                        failed.append((package, name, error))

        threads = [threading.Thread(target=read, args=(i,)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300)
        assert not failed, failed
        """
    )


def test_a_name_that_is_nowhere_is_an_error_of_the_package() -> None:
    numpy = import_module("verax.numpy")
    with pytest.raises(AttributeError, match=r"module 'verax.numpy' .* 'nowhere'"):
        _ = numpy.nowhere
    assert not hasattr(numpy, "nowhere")
    with pytest.raises(ImportError, match="cannot import name 'nowhere'"):
        exec("from verax.numpy import nowhere")


def test_star_imports_take_what_is_listed() -> None:
    actual: dict[str, object] = {}
    exec("from verax.nn import *", actual)
    assert set(actual) - {"__builtins__"} == set(import_module("verax.nn").__all__)


def test_a_name_is_looked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("imagined")
    monkeypatch.setitem(sys.modules, "imagined", module)
    read, listed = facade("imagined", {"math": "sin sine=sin _pi=pi"}, "sub")
    assert read("__all__") == ["sub", "sin", "sine"]
    assert "sine" in listed()
    assert "sine" not in vars(module)
    assert read("sine") is read("sin") is vars(module)["sine"]


def test_homes_of_names() -> None:
    assert homes("a", {".b": "c d=e", "f": "g"}, "h") == {
        "h": ("a.h", ""),
        "c": ("a.b", "c"),
        "d": ("a.b", "e"),
        "g": ("f", "g"),
    }


def test_stub_of_a_table() -> None:
    source = """
    __getattr__, __dir__ = facade(__name__, {".b": "c d=c e=f"}, modules="h")
    """
    text = stub(ast.parse(dedent(source)), "a")
    assert text is not None
    assert text.splitlines()[3:] == [
        "from a import h as h",
        "from a.b import c as c, f",
        "d = c",
        "e = f",
        "__all__ = [",
        '    "c", "d", "e", "h",',
        "]",
    ]
    assert stub(ast.parse("x = 1"), "a") is None
