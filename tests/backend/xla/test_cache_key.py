"""What decides about the code of a program decides about the name of its file."""

import os
import platform
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jaxlib.version
import pytest

import verax
from verax.api.config.config import override
from verax.backend.runtime.client import default_client, local_devices
from verax.backend.xla import disk_cache
from verax.backend.xla.compile_options import CompileOptions, jaxlib_options
from verax.backend.xla.disk_cache import (
    compiler_flags,
    key_of,
    model,
    processor,
    threads,
)
from verax.rules.values.lazy import loaded

CPUINFO = """\
processor\t: {number}
vendor_id\t: GenuineIntel
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
    memos: list[Any] = [processor, model, loaded]
    for memo in memos:
        memo.cache_clear()
    yield
    for memo in memos:
        memo.cache_clear()


def key(text: str = "module {}", device: Any = None, **options: Any) -> str:
    devices = [device or local_devices()[0]]
    how = jaxlib_options([local_devices()[0]], CompileOptions(**options))
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
    how = jaxlib_options(local_devices()[:1], CompileOptions())
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
    lines = CPUINFO.format(**values).splitlines(keepends=True)

    class File:
        """A file that is not there."""

        def __init__(self, *parts: str) -> None:
            assert parts == ("/proc/cpuinfo",)

        def open(self) -> Any:
            if not values["kind"]:
                raise FileNotFoundError
            return open_lines(lines)

    monkeypatch.setattr(disk_cache, "Path", File)
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
