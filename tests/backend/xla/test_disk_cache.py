"""The compilation cache on disk: hits, damage, several processes, limits, privacy."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.api.config.config import override
from verax.backend.programs.program import MADE
from verax.backend.xla.disk_cache import METER, CompilationCacheWarning, Entry, Folder

SOURCE = Path(verax.__file__).parent.parent
X = np.arange(6, dtype=np.float32)


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[Path]:
    """An empty cache that keeps everything."""
    directory = tmp_path / "made" / "when needed"
    with ExitStack() as stack:
        for option, value in (
            ("enable_compilation_cache", True),
            ("compilation_cache_dir", directory),
            ("persistent_cache_min_compile_time_secs", 0),
        ):
            stack.enter_context(override(option, value))
        yield directory


def compiled(function: Callable[..., Any], *args: Any) -> Any:
    """The compiled stage, as in a new process: never one from the caches in memory."""
    MADE.cache_clear()

    def again(*xs: Any) -> Any:
        return function(*xs)

    return verax.jit(again).lower(*args).compile()


def origin(stage: Any) -> str:
    actual: str = stage.program.executable.origin
    return actual


def cube(x: Any) -> Any:
    return x * x * x + vnp.sin(x)


def files(directory: Path) -> list[Path]:
    if not directory.exists():
        return []
    return sorted(path for path in directory.iterdir() if path.name != METER)


def test_second_compilation_comes_from_disk(cache: Path) -> None:
    first, second = compiled(cube, X), compiled(cube, X)
    assert (origin(first), origin(second)) == ("compiler", "disk")
    assert np.array_equal(first(X), second(X))
    assert [path.suffix for path in files(cache)] == [".verax"]
    assert second.memory_analysis() == first.memory_analysis()


def test_nothing_is_kept_without_a_directory_or_when_disabled(cache: Path) -> None:
    with override("enable_compilation_cache", False):
        compiled(cube, X)
    with override("compilation_cache_dir", None):
        compiled(cube, X)
    assert files(cache) == []


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("persistent_cache_min_compile_time_secs", 1e6),
        ("persistent_cache_min_entry_size_bytes", 10**9),
    ],
)
def test_small_programs_can_be_left_out(cache: Path, option: str, value: float) -> None:
    with override(option, value):
        compiled(cube, X)
    assert files(cache) == []


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-7],
        lambda data: data + b"\0",
        lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
        lambda data: b"#!/bin/sh\n" + data,
    ],
)
def test_damaged_entry_is_reported_and_replaced(
    cache: Path, damage: Callable[[bytes], bytes]
) -> None:
    compiled(cube, X)
    (path,) = files(cache)
    good = path.read_bytes()
    path.write_bytes(damage(good))
    with pytest.warns(CompilationCacheWarning, match="damaged or of another kind"):
        again = compiled(cube, X)
    assert origin(again) == "compiler"
    assert np.array_equal(again(X), compiled(cube, X)(X))
    assert origin(compiled(cube, X)) == "disk"


def test_entry_under_a_wrong_name_is_not_taken(cache: Path) -> None:
    compiled(cube, X)
    compiled(vnp.cos, X)
    one, other = files(cache)
    one.write_bytes(other.read_bytes())
    with pytest.warns(CompilationCacheWarning):
        stages = compiled(cube, X), compiled(vnp.cos, X)
    assert np.array_equal(stages[0](X), verax.jit(cube)(X))
    assert np.array_equal(stages[1](X), verax.jit(vnp.cos)(X))


def test_entry_that_jaxlib_refuses_is_replaced(cache: Path) -> None:
    compiled(cube, X)
    (path,) = files(cache)
    Entry(Folder(path.parent), path.stem).write(b"checksummed, and no program")
    with pytest.warns(CompilationCacheWarning, match="cannot be loaded"):
        assert origin(compiled(cube, X)) == "compiler"
    assert origin(compiled(cube, X)) == "disk"


def test_unwritable_directory_is_a_warning(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    with (
        override("enable_compilation_cache", True),
        override("compilation_cache_dir", blocked),
        override("persistent_cache_min_compile_time_secs", 0),
        pytest.warns(CompilationCacheWarning, match="cannot"),
    ):
        assert origin(compiled(cube, X)) == "compiler"


def test_captured_arrays_are_not_in_the_file(cache: Path) -> None:
    secret = np.frombuffer(b"a captured array of bytes, secret" * 8, np.uint8)
    held = vnp.asarray(secret)
    stage = compiled(lambda x: x + held.sum() + secret[:6], X)
    assert stage(X).shape == (6,)
    (path,) = files(cache)
    assert b"captured" not in path.read_bytes()
    # And so another array of the same type takes the same program.
    other = vnp.asarray(secret[::-1].copy())
    changed = secret[::-1].copy()
    again = compiled(lambda x: x + other.sum() + changed[:6], X)
    assert origin(again) == "disk"
    assert np.array_equal(again(X), X + changed.sum() + changed[:6])


def test_programs_that_call_the_host_are_not_stored(cache: Path) -> None:
    def shouting(x: Any) -> Any:
        like = verax.ShapeDtypeStruct((6,), np.float32)
        return verax.pure_callback(lambda v: np.asarray(v) + 1, like, x)

    for _ in range(2):
        stage = compiled(shouting, X)
        assert origin(stage) == "compiler"
        assert np.array_equal(stage(X), X + 1)
    assert files(cache) == []


def test_lapack_runs_from_disk(cache: Path) -> None:
    matrix = np.array([[4, 1], [1, 3]], np.float32)
    compiled(vnp.linalg.cholesky, matrix)
    stage = compiled(vnp.linalg.cholesky, matrix)
    assert origin(stage) == "disk"
    assert np.allclose(stage(matrix), np.linalg.cholesky(matrix))


def test_size_is_bounded_while_compiling(cache: Path) -> None:
    compiled(cube, X)
    (path,) = files(cache)
    with override("compilation_cache_max_size", int(1.5 * path.stat().st_size)):
        compiled(lambda x: cube(x) + 1, X)
    assert len(files(cache)) == 1
    assert not path.exists()
    (path,) = files(cache)
    for limit in (0, path.stat().st_size - 100):
        with override("compilation_cache_max_size", limit):
            compiled(lambda x: cube(x) + 2, X)
        assert files(cache) == [path]


PROGRAM = """
import sys
import numpy as np
import verax, verax.numpy as vnp
verax.config.update("persistent_cache_min_compile_time_secs", 0)
x = np.arange(8, dtype=np.float32)
for n in range(3):
    stage = verax.jit(lambda x: vnp.tanh(x) * n + 1).lower(x).compile()
    assert np.allclose(stage(x), np.tanh(x) * n + 1)
    print(stage.program.executable.origin)
"""


def start(directory: Path) -> subprocess.Popen[str]:
    environment = {
        **os.environ,
        "PYTHONPATH": str(SOURCE),
        "VERAX_ENABLE_COMPILATION_CACHE": "1",
        "VERAX_COMPILATION_CACHE_DIR": str(directory),
    }
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow(jaxlib=True)
def test_several_processes_at_once(tmp_path: Path) -> None:
    running = [start(tmp_path) for _ in range(3)]
    for process in running:
        process.communicate(timeout=300)
        assert process.returncode == 0
    assert [path.suffix for path in files(tmp_path)] == [".verax"] * 3
    last = start(tmp_path)
    said, _ = last.communicate(timeout=300)
    assert said.split() == ["disk"] * 3


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("compilation_cache_max_size", "much"),
        ("compilation_cache_max_size", True),
        ("persistent_cache_min_compile_time_secs", "1s"),
        ("compilation_cache_dir", 3),
        ("enable_compilation_cache", 2),
    ],
)
def test_options_are_checked(option: str, value: object) -> None:
    with pytest.raises(TypeError, match=f"option {option} takes"):
        verax.config.update(option, value)
