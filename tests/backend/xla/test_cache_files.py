"""The files of the compilation cache: whole or not there, bounded, safe for many."""

import errno
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import verax
from verax.backend.xla import disk_cache
from verax.backend.xla.disk_cache import (
    ABANDONED_SECONDS,
    METER,
    PAGE,
    SHARE,
    TOUCHED_SECONDS,
    CompilationCacheWarning,
    Entry,
    Folder,
    bound,
    evict,
    log_once,
)

SOURCE = Path(verax.__file__).parents[1]
KEY = "5" * 64


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A folder that verax has chosen."""
    return Folder(tmp_path / "verax", private=True)


def put(folder: Folder, name: str, pages: int = 1, age: float = 0.0) -> Path:
    """An entry that takes so many pages and was used so long ago."""
    entry = Entry(folder, name)
    assert entry.write(b"x" * ((pages - 1) * PAGE + 100)) == ""
    os.utime(entry.path, (time.time() - age,) * 2)
    return entry.path


def names(folder: Folder) -> list[str]:
    """What is in the folder, without `os.scandir`, which one test counts.

    Python 3.13 calls it in `Path.iterdir`.
    """
    return sorted(os.listdir(folder.path))


def test_what_was_written_is_read(folder: Folder) -> None:
    entry = Entry(folder, KEY)
    assert entry.read() is None
    for body in (b"", b"a program", bytes(100_000)):
        assert entry.write(body) == ""
        assert entry.read() == body
    assert names(folder) == [f"{KEY}.verax"]
    assert entry.path.stat().st_mode & 0o777 == 0o600


def test_every_flipped_bit_and_every_missing_tail_is_found(folder: Folder) -> None:
    entry = Entry(folder, KEY)
    entry.write(b"a program")
    good = entry.path.read_bytes()
    damaged = [good[:n] for n in range(len(good))]
    damaged += [
        good[:i] + bytes([good[i] ^ (1 << i % 8)]) + good[i + 1 :]
        for i in range(len(good))
    ]
    for data in damaged:
        entry.path.write_bytes(data)
        assert entry.read() is None
        assert not entry.path.exists()


PIPES = """
import os, stat, sys, warnings
from pathlib import Path
from verax.backend.xla.disk_cache import METER, Entry, bound
from verax.backend.xla.disk_cache import Folder
warnings.simplefilter("ignore")
path = Path(sys.argv[1])
os.mkfifo(path / "pipe.verax")
os.mkfifo(path / METER)
(path / "device.verax").symlink_to("/dev/zero")
for private in (False, True):
    for name in ("pipe", "device"):
        assert Entry(Folder(path, private), name).read() is None
bound(path, 1, 2**20)
assert Entry(Folder(path), "pipe").write(b"program") == ""
assert Entry(Folder(path), "pipe").read() == b"program"
"""


@pytest.mark.slow(jaxlib=True)
@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with a name")
def test_pipes_and_devices_in_place_of_files_are_not_waited_for(
    tmp_path: Path,
) -> None:
    command = [sys.executable, "-c", PIPES, str(tmp_path)]
    subprocess.run(command, check=True, timeout=60)


@pytest.mark.parametrize("private", [True, False])
def test_only_who_names_a_folder_is_warned(tmp_path: Path, private: bool) -> None:
    entry = Entry(Folder(tmp_path, private), KEY)
    entry.path.write_bytes(b"damaged")
    with pytest.MonkeyPatch.context() as patch:
        warned: list[str] = []
        patch.setattr("warnings.warn", lambda text, *a, **k: warned.append(text))
        assert entry.read() is None
        assert bool(warned) != private


def test_a_file_that_others_may_write_to_is_not_read(folder: Folder) -> None:
    entry = Entry(folder, KEY)
    entry.write(b"a program")
    entry.path.chmod(0o620)
    assert entry.read() is None
    entry.path.chmod(0o644)
    assert entry.read() == b"a program"
    entry.path.rename(folder.path / "moved")
    entry.path.symlink_to(folder.path / "moved")
    assert entry.read() is None


def test_files_of_others_are_not_read(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = Entry(folder, KEY)
    entry.write(b"a program")
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)
    assert entry.read() is None


class FullDisk:
    """A file on a disk that is full before the last byte."""

    def __init__(self, file: Any, number: int) -> None:
        self.file, self.number = file, number

    def __enter__(self) -> "FullDisk":
        return self

    def __exit__(self, *_: object) -> None:
        self.file.close()

    def write(self, data: bytes) -> None:
        self.file.write(data[:-1])
        raise OSError(self.number, os.strerror(self.number))


@pytest.mark.parametrize(
    "number", [errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EIO, errno.EROFS]
)
def test_a_write_that_fails_half_way_leaves_nothing(
    folder: Folder, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = Entry(folder, KEY)
    entry.write(b"before")
    monkeypatch.setattr(
        disk_cache,
        "open",
        lambda path, mode, opener: FullDisk(path.open("xb"), number),
        raising=False,
    )
    assert os.strerror(number) in entry.write(b"after")
    monkeypatch.undo()
    assert names(folder) == [f"{KEY}.verax"]
    assert entry.read() == b"before"


def test_a_folder_that_cannot_be_made_is_no_fault(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    log_once.cache_clear()  # type: ignore[attr-defined]  # a memo
    entry = Entry(Folder(tmp_path / "file" / "verax", private=True), KEY)
    assert entry.read() is None
    assert "cannot write to" in entry.write(b"a program")
    with pytest.warns(CompilationCacheWarning, match="cannot write"):
        Entry(Folder(tmp_path / "file" / "verax"), KEY).write(b"a program")


def test_interrupted_writes_leave_nothing(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(path: Path, target: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Entry(folder, KEY).write(b"a program")
    assert names(folder) == []


def test_what_was_read_long_ago_leaves_first(folder: Folder) -> None:
    paths = [put(folder, name, age=9e5 - i) for i, name in enumerate("abcd")]
    assert Entry(folder, "a").read() is not None  # and is new again
    evict(folder.path, 3 * PAGE)
    assert [path.exists() for path in paths] == [True, False, True, True]
    evict(folder.path, 3 * PAGE - 1)
    assert [path.exists() for path in paths] == [True, False, False, True]
    evict(folder.path, 0)
    assert names(folder) == ["a.verax"]


@pytest.mark.parametrize(
    ("age", "touched"),
    [
        (TOUCHED_SECONDS / 2, False),
        (TOUCHED_SECONDS * 2, True),
        (-TOUCHED_SECONDS * 2, True),  # the clock was wrong
    ],
)
def test_reading_touches_a_file_now_and_then(
    folder: Folder, age: float, touched: bool
) -> None:
    path = put(folder, "a", age=age)
    before = path.stat().st_mtime_ns
    assert Entry(folder, "a").read() is not None
    assert (path.stat().st_mtime_ns != before) == touched


def test_abandoned_drafts_are_removed_and_others_count(folder: Folder) -> None:
    path, last = put(folder, "a", age=50.0), put(folder, "b")
    old, new, foreign = [folder.path / n for n in ("o.tmp", "n.tmp", "notes.txt")]
    for file in (old, new, foreign):
        file.write_bytes(b"x" * PAGE)
    os.utime(old, (time.time() - 2 * ABANDONED_SECONDS,) * 2)
    evict(folder.path, 3 * PAGE)
    assert names(folder) == ["a.verax", "b.verax", "n.tmp", "notes.txt"]
    evict(folder.path, 2 * PAGE)
    assert not path.exists()
    assert last.exists()
    assert new.exists()


def test_the_folder_is_looked_through_once_for_many_writes(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    scans = 0
    scandir = os.scandir

    def counted(path: Path) -> Any:
        nonlocal scans
        scans += 1
        return scandir(path)

    monkeypatch.setattr(os, "scandir", counted)
    limit = 64 * PAGE
    for i in range(200):
        size = put(folder, f"{i:03}", age=1000 - i).stat().st_size
        bound(folder.path, size, limit)
        count = len(names(folder)) - (METER in names(folder))
        assert count <= 64
        assert (folder.path / f"{i:03}.verax").exists()
    assert scans == 200 // (64 // SHARE)


def test_a_tiny_limit_holds_after_each_write(folder: Folder) -> None:
    for i in range(5):
        path = put(folder, str(i), age=10 - i)
        bound(folder.path, path.stat().st_size, int(1.5 * PAGE))
        assert names(folder) == [path.name]


WORKER = """
import os, random, sys
from pathlib import Path
from verax.backend.xla.disk_cache import Entry, bound
from verax.backend.xla.disk_cache import Folder
directory, seed, limit, rounds = sys.argv[1], *map(int, sys.argv[2:])
folder, draw = Folder(Path(directory), private=True), random.Random(seed)
def body(n):
    return bytes([n]) * (1000 + 700 * n)
hits = 0
for _ in range(rounds):
    n = draw.randrange(40)
    entry = Entry(folder, f"{n:064}")
    found = entry.read()
    if found is None:
        assert entry.write(body(n)) == ""
        bound(folder.path, len(body(n)), limit)
    else:
        hits += 1
        assert found == body(n), "another program"
print(hits)
"""


def start(folder: Folder, seed: int, limit: int, rounds: int) -> subprocess.Popen[str]:
    numbers = map(str, (seed, limit, rounds))
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", WORKER, str(folder.path), *numbers],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture
def started() -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts workers, all of which have ended afterwards."""
    running: list[subprocess.Popen[str]] = []

    def begin(*args: Any) -> subprocess.Popen[str]:
        running.append(start(*args))
        return running[-1]

    yield begin
    for process in running:
        if process.poll() is None:
            process.kill()
        process.communicate(timeout=60)


@pytest.mark.slow(nightly=True)
def test_eight_processes_write_read_and_evict(
    folder: Folder, started: Callable[..., subprocess.Popen[str]]
) -> None:
    limit = 24 * PAGE
    workers = [started(folder, seed, limit, 400) for seed in range(8)]
    hits = 0
    for worker in workers:
        said, errors = worker.communicate(timeout=300)
        assert (worker.returncode, errors) == (0, "")
        hits += int(said)
    assert hits > 100
    bound(folder.path, limit, limit)
    left = [path for path in folder.path.iterdir() if path.name != METER]
    assert all(path.suffix == ".verax" for path in left)
    assert sum(-(-path.stat().st_size // PAGE) for path in left) <= 24


@pytest.mark.slow
def test_killed_while_writing(
    folder: Folder, started: Callable[..., subprocess.Popen[str]]
) -> None:
    """Whenever a process dies, others find whole files or none."""
    for seed in range(4):
        worker = started(folder, seed, 12 * PAGE, 10**9)
        deadline = time.monotonic() + 60
        while not (folder.path.exists() and names(folder)):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(0.05 * (seed + 1))
        worker.send_signal(signal.SIGKILL)
        worker.wait(timeout=60)
        survivor = started(folder, 99, 12 * PAGE, 200)
        _, errors = survivor.communicate(timeout=300)
        assert (survivor.returncode, errors) == (0, "")
    drafts = list(folder.path.glob("*.tmp"))
    for draft in drafts:
        os.utime(draft, (0, 0))
    evict(folder.path, 12 * PAGE)
    assert not list(folder.path.glob("*.tmp"))
