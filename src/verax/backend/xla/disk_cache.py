"""Compiled programs on disk, shared by processes (floor 4).

One idea: a program is stored under a hash of all that decides about its code
(`cache_key`), in a folder that only its user can write to (`cache_folder`), completely
or not at all (`cache_files`)::

    entry = entry_for(client, text, devices, options, how, calls)
    loaded, answer = through_cache(entry, compile, load)

The text of a program takes its array constants as arguments, so no file holds them.
"""

import errno
import os
import stat
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final

import jaxlib.version
from attrs import frozen
from jaxlib import _jax

from verax.backend.lowering.mlir_text import HostCalls
from verax.backend.runtime.log import log_detail
from verax.backend.runtime.metrics import RECORDER
from verax.backend.xla.compile_options import CompileOptions
from verax.backend.xla.machine import compiler_flags, model, processor, threads
from verax.ir.records import ReprMixin
from verax.ir.system import (
    effective_user,
    has_rights_of_another,
    system,
)
from verax.rules.values.lazy import loaded
from verax.rules.values.memo import pure
from verax.rules.values.state import STATE

# -----------------------------------------------------------------------------
# The files of the compilation cache.
#
# A file is there completely or not at all, and has a checksum, so that jaxlib
# never sees what was cut off or changed. Nothing is locked, since processes that write
# one file write the same program::
#
#     entry = Entry(folder, key)
#     entry.read() or entry.write(loaded.serialize())
#
# The folder is looked through only after a sixteenth of its limit was written, which a
# small file beside the programs measures; so an eviction costs nothing per program.


# -----------------------------------------------------------------------------
# Where compiled programs are kept if the user names no folder.
#
# The files are machine code that will be run, so the folder must belong to the user and
# be closed to others. Where it is not, it is not used, which `refusal` says and the
# log, once; nobody who has not asked for a cache is warned about it::
#
#     user_folder()     # Folder(Path("/home/ada/.cache/verax"), private=True)


AUTO: Final = "auto"
"""The value of `compilation_cache_dir` that stands for the user's cache folder."""
NAME: Final = "verax"
ROOT: Final = 0
MOST_LINKS: Final = 40
OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
HOMES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"darwin": ("Library", "Caches"), "win32": ("AppData", "Local")}
)
"""The caches of a user below the home directory, if not in `.cache`."""


class CompilationCacheWarning(UserWarning):
    """The compilation cache could not read or write an entry; the program runs."""


@frozen(repr=False)
class Folder(ReprMixin):
    """A folder of programs; `private` if verax has chosen it for the user.

    `refusal` says why it is not used; it is empty if it is.
    """

    path: Path
    private: bool = False
    refusal: str = ""

    def report(self, message: str) -> None:
        """Warn who has named the folder; others find it in the log, at level DEBUG."""
        message = f"compilation cache: {message}"
        if self.private:
            log_once(message)
        else:
            warnings.warn(message, CompilationCacheWarning, stacklevel=2)

    def make(self) -> None:
        """Have the folder, and those above it, for the user alone.

        Raises:
            OSError: it cannot be made.
        """
        if self.private:
            make_private(self.path)
        else:
            self.path.mkdir(parents=True, exist_ok=True)

    def trusts(self, status: os.stat_result) -> bool:
        """Whether a file in it is the user's alone to write, where that is required."""
        user = effective_user()
        if not self.private or user is None:
            return True
        return status.st_uid == user and not status.st_mode & OTHERS_WRITE


@pure()
def log_once(message: str) -> None:
    """Log a message; a memo, so that repetitions say nothing."""
    log_detail("%s", message)


def make_private(path: Path) -> None:
    """Make a folder and those above it, as far as they are missing, with mode 0700."""
    if path.is_dir():
        return
    make_private(path.parent)
    with suppress(FileExistsError):  # another process is as fast
        path.mkdir(mode=0o700)


def chosen_folder() -> Folder | None:
    """The folder that the configuration names; None if programs are not kept."""
    name = STATE.compilation_cache_dir
    if not name:
        return None
    return user_folder() if name == AUTO else Folder(Path(name))


def user_folder() -> Folder:
    """The folder of this user, with the reason if it cannot be trusted."""
    try:
        path = caches() / NAME
        refusal = objection(path)
    except (OSError, RuntimeError) as error:  # the second is that of no home at all
        path, refusal = Path(NAME), f"there is no cache folder: {error}"
    if refusal:
        log_once(f"compilation cache: not used, since {refusal}")
    return Folder(path, True, refusal)


def caches() -> Path:
    """The folder in which the programs of this user keep their caches.

    `XDG_CACHE_HOME`, if it is an absolute path, decides on every platform.
    """
    asked = [os.environ.get("XDG_CACHE_HOME", "")]
    if system() == "win32":
        asked.append(os.environ.get("LOCALAPPDATA", ""))
    for name in asked:
        if Path(name).is_absolute():
            return Path(name)
    home = Path.home()
    if not home.is_absolute():
        raise RuntimeError("the home directory is unknown")
    return home.joinpath(*HOMES.get(system(), (".cache",)))


type Step = tuple[Path, os.stat_result]


def objection(path: Path) -> str:
    """Why others might put programs into a folder; empty if they cannot.

    A folder that is not there yet must be left to this user to make: root makes none
    in the homes of others, who could not use it afterwards.

    Raises:
        OSError: the way to the folder cannot be followed.
    """
    user = effective_user()
    if user is None:
        return ""  # the folders of users are closed by their access lists
    if has_rights_of_another():
        return "the process has the rights of another user"
    passed, complete = way(path)
    for place, status in passed:
        if stat.S_ISLNK(status.st_mode) and status.st_uid not in (ROOT, user):
            return f"the link {place} belongs to another user"
    place, status = passed[-1]
    if not stat.S_ISDIR(status.st_mode):
        return f"{place} is not a folder"
    if not complete:
        fine = status.st_uid in (ROOT, user)
        return "" if fine else f"{place} belongs to another user"
    if status.st_uid != user:
        return f"{place} belongs to another user"
    if status.st_mode & OTHERS_WRITE:
        return f"others may write to {place}; chmod 700 closes it"
    return ""


def way(path: Path) -> tuple[list[Step], bool]:
    """The folders and links on the way to a path, and whether all of it is there.

    Raises:
        OSError: a folder cannot be read, or links lead to each other.
    """
    here = Path(path.anchor)
    passed, names, links = [(here, here.stat())], [*reversed(path.parts[1:])], 0
    while names:
        name = names.pop()
        place = here.parent if name == ".." else here / name
        try:
            status = place.lstat()
        except FileNotFoundError:
            return passed, False
        passed.append((place, status))
        if not stat.S_ISLNK(status.st_mode):
            here = place
            continue
        links += 1
        if links > MOST_LINKS:
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(place))
        target = place.readlink()
        if target.is_absolute():
            here = Path(target.anchor)
        names += reversed(target.parts[1:] if target.is_absolute() else target.parts)
    return passed, True


MAGIC: Final = b"verax-executable 2\n"
DIGEST_SIZE: Final = 32
SUFFIX: Final = ".verax"
UNFINISHED: Final = ".tmp"
# How long an unfinished file may be there before it counts as abandoned.
ABANDONED_SECONDS: Final = 3600.0
# How exactly files remember when they were last read: touching them costs a write.
TOUCHED_SECONDS: Final = 3600.0
PAGE: Final = 4096
# The part of the limit that is written between two evictions, and freed by each.
SHARE: Final = 16
METER: Final = "written"
"""The file whose size is the number of pages written since the last eviction."""

type Opener = Callable[[str, int], int]


@frozen(repr=False)
class Entry(ReprMixin):
    """One program of the cache: a file that is there whole, or not."""

    folder: Folder
    key: str

    @property
    def path(self) -> Path:
        return self.folder.path / f"{self.key}{SUFFIX}"

    def read(self) -> bytes | None:
        """The serialised program; None if it is not there or not to be trusted."""
        path = self.path
        try:
            with open(path, "rb", opener=opened(self.folder.private)) as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode):
                    self.folder.report(f"{path} is not a regular file, so not used")
                    return None
                if not self.folder.trusts(status):
                    self.folder.report(f"{path} may be written by others, so not used")
                    return None
                data = file.read()
        except FileNotFoundError:
            return None
        except OSError as error:
            self.folder.report(f"cannot read {path}: {error}")
            return None
        start = len(MAGIC) + DIGEST_SIZE
        body = data[start:]
        if data[:start] != MAGIC + self.checksum(body):
            self.discard("is damaged or of another kind")
            return None
        if abs(time.time() - status.st_mtime) > TOUCHED_SECONDS:
            with suppress(OSError):
                os.utime(path)  # what was used last is evicted last
        return body

    def discard(self, why: str) -> None:
        """Remove the file: whatever is wrong with it, the next one will be right."""
        with suppress(OSError):
            self.path.unlink()
        self.folder.report(f"{self.path} {why}, so the program is compiled again")

    def write(self, body: bytes) -> str:
        """Store the serialised program, at once for all processes that look.

        Returns:
            What went wrong; empty if nothing did.
        """
        draft = self.folder.path / f"{self.key}.{os.urandom(8).hex()}{UNFINISHED}"
        try:
            self.folder.make()
            try:
                with open(draft, "xb", opener=opened(True)) as file:
                    file.write(MAGIC + self.checksum(body) + body)
                draft.replace(self.path)
            except BaseException:
                with suppress(OSError):
                    draft.unlink()
                raise
        except OSError as error:
            fault = f"cannot write to {self.folder.path}: {error}"
            self.folder.report(fault)
            return fault
        return ""

    def checksum(self, body: bytes) -> bytes:
        """Of the key too: a file under a wrong name is a wrong file."""
        from hashlib import sha256

        digest = sha256(self.key.encode())
        digest.update(body)
        checksum: bytes = digest.digest()
        return checksum


def opened(direct: bool, mode: int = 0o600) -> Opener:
    """The opener of files, new ones for their owner alone; `direct`: no links.

    It does not wait, as opening a pipe would for somebody who writes to it.
    """
    flag = getattr(os, "O_NOFOLLOW", 0) if direct else 0
    flag |= getattr(os, "O_NONBLOCK", 0)
    return lambda path, flags: os.open(path, flags | flag, mode)


def pages(size: int) -> int:
    """The disk space of a file of so many bytes, in pages."""
    return -(-size // PAGE)


def bound(directory: Path, size: int, limit: int) -> None:
    """Note that a file of `size` bytes was written; evict some if that is due."""
    with suppress(OSError):
        meter = directory / METER
        with open(meter, "ab", opener=opened(False, 0o666)) as file:
            file.write(b"\0" * pages(size))
            file.flush()
            written = os.fstat(file.fileno()).st_size
        if written * PAGE * SHARE >= limit:
            meter.unlink(missing_ok=True)  # first: what is written from now on counts
            evict(directory, limit - limit // SHARE)


def evict(directory: Path, limit: int) -> None:
    """Remove what was used longest ago until the files take at most `limit` bytes.

    The last one stays. Other processes may do the same, write and read meanwhile.
    """
    result, total = [], 0
    now = time.time()
    with os.scandir(directory) as items:
        for item in items:
            if not item.name.endswith((SUFFIX, UNFINISHED)):
                continue
            with suppress(OSError):
                status = item.stat(follow_symlinks=False)
                size = pages(status.st_size) * PAGE
                if item.name.endswith(SUFFIX):
                    result.append((status.st_mtime, size, item.path))
                elif now - status.st_mtime > ABANDONED_SECONDS:
                    Path(item.path).unlink()
                    continue
                total += size
    for _, size, path in sorted(result)[:-1]:
        if total <= limit:
            return
        with suppress(OSError):
            Path(path).unlink(missing_ok=True)
            total -= size


# -----------------------------------------------------------------------------
# What decides about the code of a compiled program, as the name of its file.
#
# Two processes share a program only if a compiler would give them the same one,
# so all that it looks at goes into one hash::
#
#     key_of(client, text, devices, options)      # "5e884898da28..."


# Imported when first called: it costs as much as ten modules of ours.

FORMAT: Final = "verax-executable 2"
# Flags and options that ask XLA to write down how it compiles.
DUMPS: Final = "xla_dump"


def key_of(
    client: _jax.Client,
    text: str,
    devices: Sequence[_jax.Device],
    options: _jax.CompileOptions,
) -> str:
    """A hash of all that decides about the code, the same in every process."""
    on_cpu = client.platform == "cpu"
    parts = [
        FORMAT,
        loaded("verax", "__version__"),
        jaxlib.version.__version__,
        jaxlib.version._git_hash,
        client.platform,
        client.platform_version,
        *([processor(), model(), threads()] if on_cpu else ()),
        compiler_flags(),
        repr([(device.id, device.device_kind) for device in devices]),
        STATE.compilation_cache_key or "",
        text,
    ]
    from hashlib import sha256

    digest = sha256(options.SerializeAsString())
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    name: str = digest.hexdigest()
    return name


# -----------------------------------------------------------------------------
# Compiled programs on disk, shared by processes.


type Load = Callable[[bytes], _jax.LoadedExecutable]


@frozen(repr=False)
class DiskAnswer(ReprMixin):
    """Whether a program was on disk; `hit` is None where the cache is not asked.

    `note` says in which file it is, or why in none.
    """

    hit: bool | None
    note: str = ""

    @property
    def origin(self) -> str:
        """The origin of the program: "disk" or "compiler"."""
        return "disk" if self.hit else "compiler"


def through_cache(
    entry: Entry | DiskAnswer, compile: Callable[[], _jax.LoadedExecutable], load: Load
) -> tuple[_jax.LoadedExecutable, DiskAnswer]:
    """The program, and what the cache did for it."""
    if isinstance(entry, Entry):
        out = loaded_entry(entry, load)
        if out is not None:
            RECORDER.record("disk_hits")
            return out, DiskAnswer(True, f"read from {entry.path}")
        RECORDER.record("disk_misses")
    started = time.perf_counter()
    program = compile()
    seconds = time.perf_counter() - started
    RECORDER.record("compiles")
    RECORDER.record("compile_seconds", seconds)
    if isinstance(entry, DiskAnswer):
        return program, entry
    fault = store(entry, program, seconds)
    note = f"not kept: {fault}" if fault else f"written to {entry.path}"
    return program, DiskAnswer(False, note)


def loaded_entry(entry: Entry, load: Load) -> _jax.LoadedExecutable | None:
    """The program of an entry; None if there is none that jaxlib can load."""
    data = entry.read()
    if data is None:
        return None
    try:
        return load(data)
    except RuntimeError as error:
        entry.discard(f"cannot be loaded ({error})")
        return None


def store(entry: Entry, program: _jax.LoadedExecutable, seconds: float) -> str:
    """Write a program that took so long to compile to its entry.

    Returns:
        Why it was not written; empty if it was.
    """
    least = STATE.persistent_cache_min_compile_time_secs
    if seconds < least:
        return (
            f"compiled in {seconds:.2g} s, and persistent_cache_min_compile_time_secs "
            f"is {least:g}"
        )
    try:
        data = program.serialize()
    except RuntimeError as error:
        fault = f"it cannot be serialised: {error}"
        entry.folder.report(f"a program is not kept, since {fault}")
        return fault
    if len(data) < STATE.persistent_cache_min_entry_size_bytes:
        return "it is smaller than persistent_cache_min_entry_size_bytes"
    limit = STATE.compilation_cache_max_size
    if 0 <= limit < len(data):
        return "it is larger than compilation_cache_max_size"
    fault = entry.write(data)
    if not fault:
        RECORDER.record("disk_writes")
        if limit >= 0:
            bound(entry.folder.path, len(data), limit)
    return fault


def entry_for(
    client: _jax.Client,
    text: str,
    devices: Sequence[_jax.Device],
    options: CompileOptions,
    how: _jax.CompileOptions,
    calls: HostCalls,
) -> Entry | DiskAnswer:
    """The file for a program, or why there is none; `how` is `options` for jaxlib.

    Programs whose compilation the user wants to see are not. One over several processes
    is the same in each, so that what any of them has written all may read.
    """
    if not STATE.enable_compilation_cache:
        return DiskAnswer(None, "enable_compilation_cache is off")
    folder = chosen_folder()
    if folder is None:
        return DiskAnswer(None, "compilation_cache_dir is not set")
    if STATE.compilation_cache_max_size == 0:
        return DiskAnswer(None, "compilation_cache_max_size is 0")
    if calls.functions:
        return DiskAnswer(None, "the program calls functions of this process")
    if calls.partitions:
        return DiskAnswer(None, "rules of this process partition the program")
    dumped = any(name.startswith(DUMPS) for name, _ in options.overrides)
    if dumped or f"--{DUMPS}" in compiler_flags():
        return DiskAnswer(None, "XLA is asked to dump what it compiles")
    if folder.refusal:
        return DiskAnswer(None, folder.refusal)
    return Entry(folder, key_of(client, text, devices, how))
