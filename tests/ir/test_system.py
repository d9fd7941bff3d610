"""The seam of operating systems: what is done where something is missing."""

import ctypes
import os
import subprocess
import sys
from pathlib import Path

import pytest

from verax.ir.system import (
    after_fork,
    c_library,
    effective_user,
    glibc,
    has_rights_of_another,
    processors,
    sync_folder,
    system,
)

WINDOWS = """
import os, sys, shutil, subprocess, tempfile
import numpy, scipy
sys.platform = "win32"
# `os.name` stays: Python's own modules have been chosen by it.
for name in ("register_at_fork", "sched_getaffinity", "geteuid", "getuid", "fork"):
    if hasattr(os, name):
        delattr(os, name)
import verax, verax.numpy as vnp
from verax.backend.xla.disk_cache import user_folder
print(float(verax.jit(lambda x: (x @ x).sum())(vnp.ones((4, 4)))))
print(user_folder().refusal or "no objection")
"""


def test_a_system_without_forks_and_users(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("register_at_fork", "sched_getaffinity", "geteuid", "getuid"):
        monkeypatch.delattr(os, name, raising=False)
    after_fork(lambda: None)
    assert effective_user() is None
    assert not has_rights_of_another()
    assert processors() == os.cpu_count()
    monkeypatch.setattr(os, "cpu_count", lambda: None)
    assert processors() == 1


def test_a_system_with_forks_and_users(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[object] = []
    register = lambda after_in_child: calls.append(after_in_child)  # noqa: E731
    monkeypatch.setattr(os, "register_at_fork", register, raising=False)
    after_fork(test_a_system_without_forks_and_users)  # type: ignore[arg-type]  # any function
    assert calls == [test_a_system_without_forks_and_users]
    monkeypatch.setattr(os, "geteuid", lambda: 7, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 7, raising=False)
    assert (effective_user(), has_rights_of_another()) == (7, False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert has_rights_of_another()
    three = lambda process: {1, 5, 6}  # noqa: E731
    monkeypatch.setattr(os, "sched_getaffinity", three, raising=False)
    assert processors() == 3


def test_folders_are_flushed_where_they_can_be_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", flushed.append)
    sync_folder(tmp_path)
    assert len(flushed) == 1
    with pytest.raises(OSError):  # noqa: PT011  # it was closed
        os.fstat(flushed[0])
    monkeypatch.setattr(os, "name", "nt")
    sync_folder(Path("there is no such folder"))
    assert c_library() is None


@pytest.mark.parametrize("name", ["darwin", "win32"])
def test_glibc_is_that_of_linux(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", name)
    assert system() == name
    assert glibc() is None


def test_another_c_library_of_linux_is_no_glibc(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: object())
    assert glibc() is None


@pytest.mark.slow
def test_programs_run_where_python_has_no_forks_and_no_users() -> None:
    done = subprocess.run(
        [sys.executable, "-c", WINDOWS], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "64.0\nno objection\n"
