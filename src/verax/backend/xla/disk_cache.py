"""Compiled programs on disk, shared by processes (floor 4).

One idea: a program is stored under a hash of all that decides about its code,
completely or not at all, and with a checksum, so that jaxlib never sees what others
wrote::

    entry = Entry(directory, key_of(client, text, devices, options))
    entry.read() or entry.write(loaded.serialize())

The text of a program takes its array constants as arguments, so no file holds them.
"""

import os
import platform
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import jaxlib.version
from attrs import frozen
from jaxlib import _jax

from verax.backend.runtime.metrics import RECORDER
from verax.ir.records import ReprMixin
from verax.rules.values.lazy import LazyModule
from verax.rules.values.memo import pure
from verax.rules.values.state import STATE

# Imported when first called: both cost as much as twenty modules of ours.
hashlib = LazyModule("hashlib")
tempfile = LazyModule("tempfile")

MAGIC: Final = b"verax-executable 1\n"
SUFFIX: Final = ".verax"
# How long an unfinished file may be there before it counts as abandoned.
ABANDONED_SECONDS: Final = 3600.0
# Flags that say where to write what, and change no code.
IDLE_FLAGS: Final = ("--xla_dump", "--xla_hlo_profile", "--xla_log")


class CompilationCacheWarning(UserWarning):
    """The compilation cache could not read or write an entry; the program runs."""


@frozen(repr=False)
class Entry(ReprMixin):
    """One program of the cache: a file that is there whole, or not."""

    directory: Path
    key: str

    @property
    def path(self) -> Path:
        return self.directory / f"{self.key}{SUFFIX}"

    def read(self) -> bytes | None:
        """The serialised program; None if it is not there or not to be trusted."""
        try:
            data = self.path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            warn(f"cannot read {self.path}: {error}")
            return None
        start = len(MAGIC) + hashlib.sha256().digest_size
        body = data[start:]
        if data[:start] != MAGIC + self.checksum(body):
            warn(
                f"{self.path} is damaged or of another kind, so the program is "
                "compiled again"
            )
            return None
        with suppress(OSError):
            os.utime(self.path)  # what was used last is evicted last
        return body

    def write(self, body: bytes) -> bool:
        """Store the serialised program, at once for all processes that look."""
        name = ""
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            with tempfile.NamedTemporaryFile(
                dir=self.directory, prefix=f"{self.key}.", suffix=".tmp", delete=False
            ) as file:
                name = file.name
                file.write(MAGIC + self.checksum(body) + body)
            Path(name).replace(self.path)
        except OSError as error:
            warn(f"cannot write to {self.directory}: {error}")
            with suppress(OSError):
                Path(name or self.path.with_suffix(".none")).unlink()
            return False
        return True

    def checksum(self, body: bytes) -> bytes:
        """Of the key too: a file under a wrong name is a wrong file."""
        checksum: bytes = hashlib.sha256(self.key.encode() + body).digest()
        return checksum


def warn(message: str) -> None:
    warnings.warn(
        f"compilation cache: {message}", CompilationCacheWarning, stacklevel=2
    )


def evict(directory: Path, limit: int) -> None:
    """Remove what was used longest ago until the files have at most `limit` bytes.

    Other processes may do the same at the same time.
    """
    found = []
    now = time.time()
    for path in directory.iterdir():
        with suppress(OSError):
            status = path.stat()
            if path.suffix == SUFFIX:
                found.append((status.st_mtime, status.st_size, path))
            elif path.suffix == ".tmp" and now - status.st_mtime > ABANDONED_SECONDS:
                path.unlink()
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= limit:
            return
        with suppress(OSError):
            path.unlink()
        total -= size


@pure()
def processor() -> str:
    """What the code of a program for the CPU depends on: the processor's features."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("flags", "Features")):
                return f"{platform.machine()} {line}"
    return f"{platform.machine()} {platform.processor()}"


def compiler_flags() -> str:
    """The XLA flags of the environment that may change code, in order."""
    flags = os.environ.get("XLA_FLAGS", "").split()
    return " ".join(flag for flag in flags if not flag.startswith(IDLE_FLAGS))


def key_of(
    client: _jax.Client,
    text: str,
    devices: Sequence[_jax.Device],
    options: _jax.CompileOptions,
) -> str:
    """A hash of all that decides about the code, the same in every process."""
    parts = [
        MAGIC.decode(),
        jaxlib.version.__version__,
        client.platform,
        client.platform_version,
        processor() if client.platform == "cpu" else "",
        compiler_flags(),
        *[device.device_kind for device in devices],
        STATE.compilation_cache_key or "",
        text,
    ]
    digest = hashlib.sha256(options.SerializeAsString())
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    name: str = digest.hexdigest()
    return name


type Load = Callable[[bytes], _jax.LoadedExecutable]


def through_cache(
    entry: Entry | None, compile: Callable[[], _jax.LoadedExecutable], load: Load
) -> tuple[_jax.LoadedExecutable, str]:
    """The program, and where it came from: "disk" or "compiler"."""
    if entry is not None:
        found = loaded_entry(entry, load)
        if found is not None:
            RECORDER.record("disk_hits")
            return found, "disk"
        RECORDER.record("disk_misses")
    started = time.perf_counter()
    program = compile()
    seconds = time.perf_counter() - started
    RECORDER.record("compiles")
    RECORDER.record("compile_seconds", seconds)
    if entry is not None and seconds >= STATE.persistent_cache_min_compile_time_secs:
        store(entry, program)
    return program, "compiler"


def loaded_entry(entry: Entry, load: Load) -> _jax.LoadedExecutable | None:
    """The program of an entry; None if there is none that jaxlib can load."""
    data = entry.read()
    if data is None:
        return None
    try:
        return load(data)
    except RuntimeError as error:
        warn(
            f"{entry.path} cannot be loaded, so the program is compiled again: {error}"
        )
        return None


def store(entry: Entry, program: _jax.LoadedExecutable) -> None:
    """Write a program to its entry, if it is large enough and can be serialised."""
    try:
        data = program.serialize()
    except RuntimeError as error:
        warn(f"a program cannot be serialised, so it is not stored: {error}")
        return
    if len(data) < STATE.persistent_cache_min_entry_size_bytes:
        return
    if entry.write(data):
        RECORDER.record("disk_writes")
        limit = STATE.compilation_cache_max_size
        if limit >= 0:
            evict(entry.directory, limit)


def entry_for(
    client: _jax.Client,
    text: str,
    devices: Sequence[_jax.Device],
    options: _jax.CompileOptions,
) -> Entry | None:
    """Where a program is stored; None if nothing is to be stored.

    Programs over several processes are not: each has a part of its own.
    """
    directory = STATE.compilation_cache_dir
    if not directory or not STATE.enable_compilation_cache:
        return None
    here = client.process_index()
    if any(device.process_index != here for device in devices):
        return None
    return Entry(Path(directory), key_of(client, text, devices, options))
