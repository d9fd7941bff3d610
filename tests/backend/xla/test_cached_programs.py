"""Programs that another process has compiled: same bits, no noise."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.api.config.config import override
from verax.backend.xla.disk_cache import Entry, Folder

SOURCE = Path(verax.__file__).parents[1]
HERE = Path(__file__).parent
X = np.arange(5, dtype=np.float32)

DEEP = """
import verax, verax.numpy as vnp
def deep(x):
    for _ in range(30):
        x = vnp.sin(x @ x) + vnp.exp(-x)
    return x.sum()
step = verax.jit(verax.grad(deep))
step(vnp.ones((7, 7))).block_until_ready()
print(step.explain(vnp.ones((7, 7))).caches[-1])
"""


def run(arguments: list[str], **environment: str) -> str:
    """What a fresh process prints, whose errors are none, not even noise of XLA's."""
    inherited = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("VERAX_", "JAX_", "XDG_", "TF_CPP_", "XLA_"))
    }
    done = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        env={**inherited, "PYTHONPATH": str(SOURCE), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.slow(jaxlib=True)
def test_programs_of_many_kinds_compute_the_same_bits_from_disk(tmp_path: Path) -> None:
    def told() -> dict[str, list[str]]:
        said: dict[str, list[str]] = json.loads(
            run(
                [str(HERE / "cached_programs.py")],
                VERAX_COMPILATION_CACHE_DIR=str(tmp_path),
                VERAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0",
                VERAX_NUM_CPU_DEVICES="4",
            )
        )
        return said

    first, second = told(), told()
    assert {name: origin for name, (origin, _) in first.items()} == dict.fromkeys(
        first, "compiler"
    )
    assert second == {name: ["disk", digest] for name, (_, digest) in first.items()}
    assert len(list(tmp_path.glob("*.verax"))) == len(first)


@pytest.mark.slow(jaxlib=True)
def test_the_second_run_reads_what_the_first_has_compiled(tmp_path: Path) -> None:
    home = {"HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path / "caches")}
    folder = tmp_path / "caches" / "verax"
    off = run(["-c", DEEP], **home, JAX_ENABLE_COMPILATION_CACHE="0")
    assert off == "not asked: enable_compilation_cache is off\n"
    none = run(["-c", DEEP], **home, VERAX_COMPILATION_CACHE_DIR="")
    assert none == "not asked: compilation_cache_dir is not set\n"
    dumped = run(["-c", DEEP], **home, XLA_FLAGS=f"--xla_dump_to={tmp_path}/dump")
    assert dumped == "not asked: XLA is asked to dump what it compiles\n"
    assert not folder.exists()
    first = run(["-c", DEEP], **home)
    (path,) = folder.glob("*.verax")
    assert first == f"miss: written to {path}\n"
    assert folder.stat().st_mode & 0o777 == 0o700
    assert run(["-c", DEEP], **home) == f"hit: read from {path}\n"


@pytest.mark.slow(jaxlib=True)
@pytest.mark.parametrize("home", ["/dev/null", "/proc/self", "relative"])
def test_homes_that_cannot_be_written_are_no_fault(home: str) -> None:
    said = run(["-c", DEEP], HOME=home)
    assert said.startswith(("not asked: ", "miss: not kept: cannot write to "))


@pytest.fixture
def cache(tmp_path: Path) -> Any:
    """A cache that keeps everything, for the tests of one process."""
    with ExitStack() as stack:
        for option, value in (
            ("enable_compilation_cache", True),
            ("compilation_cache_dir", tmp_path),
            ("persistent_cache_min_compile_time_secs", 0),
        ):
            stack.enter_context(override(option, value))
        yield tmp_path


def shaped(x: Any) -> Any:
    return verax.ShapeDtypeStruct(x.shape, x.dtype)


def printing(x: Any) -> Any:
    verax.debug.print("{}", x.sum())
    return x * 2


@pytest.mark.parametrize(
    "function",
    [
        printing,
        lambda x: verax.pure_callback(lambda v: np.asarray(v), shaped(x), x),
        lambda x: verax.experimental.io_callback(
            lambda v: np.asarray(v), shaped(x), x, ordered=True
        ),
    ],
)
def test_programs_that_call_this_process_are_not_kept(
    cache: Path, function: Callable[[Any], Any]
) -> None:
    jitted = verax.jit(function)
    jitted(X)
    verax.effects_barrier()
    answer = jitted.explain(X).caches[-1]
    assert str(answer) == "not asked: the program calls functions of this process"
    assert not list(cache.iterdir())


def test_options_that_dump_are_not_kept(cache: Path) -> None:
    dumping: dict[str, Any] = {"xla_dump_to": str(cache / "dump")}
    jitted = verax.jit(lambda x: x * 2.5, compiler_options=dumping)
    jitted(X)
    assert "asked to dump" in str(jitted.explain(X).caches[-1])
    assert not list(cache.glob("*.verax"))


def test_a_folder_that_is_refused_is_told(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    (cache / "verax").mkdir()
    (cache / "verax").chmod(0o777)
    jitted = verax.jit(lambda x: vnp.cos(x) * 2.125)
    with override("compilation_cache_dir", "auto"):
        before = str(jitted.explain(X).caches[-1])
        jitted(X)
        after = str(jitted.explain(X).caches[-1])
    assert before == after
    assert before.startswith("not asked: others may write to")
    assert not list((cache / "verax").iterdir())


@pytest.mark.slow(jaxlib=True)
def test_a_program_from_disk_is_saved_without_compiling(cache: Path) -> None:
    def saved() -> Any:
        return verax.jit(lambda x: vnp.sin(x) * 3.375).lower(X).compile()

    saved()
    verax.clear_caches()
    stage = saved()
    loaded = verax.stages.deserialize(stage.serialize())
    assert np.array_equal(loaded(X), stage(X))
    (path,) = cache.glob("*.verax")
    Entry(Folder(cache), path.stem).write(b"what the file says")
    assert stage.program.executable.serialize() == b"what the file says"
    path.unlink()
    again = verax.stages.deserialize(stage.serialize())
    assert np.array_equal(again(X), stage(X))
