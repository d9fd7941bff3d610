"""What decides about the code of a program decides about the name of its file."""

import os
import platform
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jaxlib.version
import numpy as np
import pytest

import verax
import verax.numpy as vnp
from verax.api.config.config import override
from verax.backend.runtime.client import default_client, local_devices
from verax.backend.xla import compile_options, disk_cache, executable, machine
from verax.backend.xla.compile_options import WIDE, CompileOptions, jaxlib_options
from verax.backend.xla.disk_cache import key_of
from verax.backend.xla.machine import (
    compiler_flags,
    has_wide_vectors,
    model,
    processor,
    threads,
)
from verax.rules.values.lazy import loaded

CPUINFO = """\
processor\t: {number}
vendor_id\t: {maker}
cpu family\t: 6
model\t\t: {kind}
cpu MHz\t\t: {speed}
flags\t\t: fpu sse2 avx2{more}

processor\t: {number}1
flags\t\t: fpu of another core
"""


@pytest.fixture(autouse=True)
def no_memos() -> Iterator[None]:
    """The machine is looked at again."""
    memos: list[Any] = [processor, model, has_wide_vectors, loaded]
    for memo in memos:
        memo.cache_clear()
    yield
    for memo in memos:
        memo.cache_clear()


def key(text: str = "module {}", device: Any = None, **options: Any) -> str:
    devices = [device or local_devices()[0]]
    how = jaxlib_options([local_devices()[0]], CompileOptions(**options), text)
    return key_of(default_client(), text, devices, how)


def test_the_text_and_the_options() -> None:
    assert key() == key()
    keys = [
        key(),
        key("module @f {}"),
        key(effort="fast"),
        key(effort="light"),
        key(overrides=(("xla_cpu_enable_fast_math", True),)),
        key(overrides=(("xla_cpu_enable_fast_math", False),)),
    ]
    with override("compilation_cache_key", "model 7"):
        keys.append(key())
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (jaxlib.version, "__version__"),
        (jaxlib.version, "_git_hash"),
        (verax, "__version__"),
        (disk_cache, "FORMAT"),
    ],
)
def test_the_versions(owner: Any, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = key()
    monkeypatch.setattr(owner, name, "0.0.1")
    loaded.cache_clear()  # type: ignore[attr-defined]  # a memo
    assert key() != before


@pytest.mark.parametrize("name", ["platform", "platform_version"])
def test_the_platform(name: str) -> None:
    client: Any = default_client()
    fields = {"platform": client.platform, "platform_version": client.platform_version}
    how = jaxlib_options(local_devices()[:1], CompileOptions(), "")
    keys = {
        key_of(SimpleNamespace(**fields | change), "", local_devices()[:1], how)  # type: ignore[arg-type]  # read alone
        for change in ({}, {name: "another"})
    }
    assert len(keys) == 2


@pytest.mark.parametrize("change", [{"id": 7}, {"device_kind": "another"}])
def test_the_devices(change: dict[str, object]) -> None:
    device = local_devices()[0]
    fields = {"id": device.id, "device_kind": device.device_kind}
    assert key(device=SimpleNamespace(**fields)) == key()
    assert key(device=SimpleNamespace(**fields | change)) != key()


def told(monkeypatch: pytest.MonkeyPatch, **fields: object) -> str:
    """The processor that /proc/cpuinfo tells of."""
    values = {"number": 0, "kind": 85, "speed": 2000, "more": ""} | fields
    values.setdefault("maker", "GenuineIntel")
    lines = CPUINFO.format(**values).splitlines(keepends=True)

    class File:
        """A file that is not there."""

        def __init__(self, *parts: str) -> None:
            assert parts == ("/proc/cpuinfo",)

        def open(self) -> Any:
            if not values["kind"]:
                raise FileNotFoundError
            return open_lines(lines)

    monkeypatch.setattr(machine, "Path", File)
    processor.cache_clear()  # type: ignore[attr-defined]  # a memo
    model.cache_clear()  # type: ignore[attr-defined]  # a memo
    return f"{processor()} {model()}"


class open_lines:
    """Lines, as an open file has them."""

    def __init__(self, lines: list[str]) -> None:
        self.lines = lines

    def __enter__(self) -> Iterator[str]:
        return iter(self.lines)

    def __exit__(self, *_: object) -> None:
        pass


def test_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    before, plain = key(), told(monkeypatch)
    assert key() != before
    assert told(monkeypatch, speed=3000) == plain
    assert told(monkeypatch, more=" avx512f") != plain
    assert told(monkeypatch, kind=106) != plain
    assert "another core" not in plain


def test_machines_that_are_not_known_share_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(platform, "node", lambda: "ada")
    one = told(monkeypatch, kind="")
    monkeypatch.setattr(platform, "node", lambda: "grace")
    assert "ada" in one
    assert told(monkeypatch, kind="") != one


@pytest.mark.parametrize("variable", ["NPROC", "PJRT_NPROC"])
def test_the_number_of_threads(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before, known = key(), threads()
    monkeypatch.setenv(variable, "3")
    assert key() != before
    monkeypatch.delenv(variable)
    assert threads() == known
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: range(77), raising=False)
    assert key() != before


def test_the_flags_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    plain = key()
    monkeypatch.setenv("XLA_FLAGS", " --xla_cpu_enable_fast_math=true  --xla_b=1")
    assert compiler_flags() == "--xla_cpu_enable_fast_math=true --xla_b=1"
    fast = key()
    assert fast != plain
    file = tmp_path / "flags"
    file.write_text("--xla_cpu_enable_fast_math=true\n--xla_b=1\n")
    monkeypatch.setenv("XLA_FLAGS", str(file))
    assert key() == fast
    file.write_text("--xla_cpu_enable_fast_math=false")
    assert key() not in (fast, plain)


@pytest.mark.parametrize(
    ("more", "maker", "wide"),
    [
        ("", "GenuineIntel", False),
        (" avx512f avx512_vnni", "GenuineIntel", False),
        (" avx512f avx512_fp16", "GenuineIntel", True),
        (" avx512f", "AuthenticAMD", True),
        ("", "AuthenticAMD", False),
    ],
)
def test_wide_vectors_are_preferred_where_they_slow_no_clock(
    more: str, maker: str, wide: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    told(monkeypatch, more=more, maker=maker)
    assert has_wide_vectors() is wide


def widths(text: str = "", **options: Any) -> list[object]:
    """What a program is compiled with, of the width of vectors."""
    return widths_of(
        jaxlib_options([local_devices()[0]], CompileOptions(**options), text)
    )


def widths_of(how: Any) -> list[object]:
    """What jaxlib's options say of it."""
    return [value for name, value in how.env_option_overrides if name == WIDE[0]]


def test_the_width_of_vectors_is_the_users_to_say(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.setattr(compile_options, "has_wide_vectors", lambda: True)
    assert widths() == widths(cpu_lowerings="auto") == [512]
    assert widths(cpu_lowerings="xla") == []
    with override("cpu_lowerings", "xla"):
        assert widths() == []
    assert widths(overrides=[(WIDE[0], 128)]) == [128]
    monkeypatch.setenv("XLA_FLAGS", f"--{WIDE[0]}=256")
    assert widths() == []
    monkeypatch.delenv("XLA_FLAGS")
    monkeypatch.setattr(compile_options, "has_wide_vectors", lambda: False)
    assert widths() == []


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((500, 512), []), ((512, 500), [512]), ((100, 100), [512]), ((), [512])],
)
def test_transposes_with_a_rest_in_each_row_have_narrow_vectors(
    shape: tuple[int, ...], expected: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("XLA_FLAGS", raising=False)
    monkeypatch.setattr(compile_options, "has_wide_vectors", lambda: True)
    made: list[object] = []

    def recorded(*args: Any) -> Any:
        made.append(how := jaxlib_options(*args))
        return how

    monkeypatch.setattr(executable, "jaxlib_options", recorded)
    function = verax.jit(lambda x: vnp.sin(x).T + 1)
    text = function.lower(np.ones(shape, np.float32)).as_text()
    assert ("stablehlo.transpose" in text) == bool(shape)
    assert widths(text) == expected
    function(np.ones(shape, np.float32))
    assert [widths_of(how) for how in made] == [expected]


def test_values_do_not_depend_on_the_width_of_vectors() -> None:
    x = np.random.default_rng(0).standard_normal((300, 700)).astype(np.float32)

    def function(x: Any) -> Any:
        return vnp.exp(x).sum(1), vnp.tanh(x - 1), (x > 0).sum(0), vnp.cumsum(x, 1)

    narrow, wide = (
        verax.jit(function, compiler_options={WIDE[0]: width})(x)
        for width in (256, 512)
    )
    for one, other in zip(narrow, wide, strict=True):
        np.testing.assert_array_equal(one, other)
