"""The files of the compilation cache (floor 4).

One idea: a file is there completely or not at all, and has a checksum, so that jaxlib
never sees what was cut off or changed. Nothing is locked, since processes that write
one file write the same program::

    entry = Entry(folder, key)
    entry.read() or entry.write(loaded.serialize())

The folder is looked through only after a sixteenth of its limit was written, which a
small file beside the programs measures; so an eviction costs nothing per program.
"""

import os
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from attrs import frozen

from verax.backend.xla.cache_folder import Folder
from verax.ir.records import ReprMixin
from verax.rules.values.lazy import LazyModule

# Imported when first called: it costs as much as ten modules of ours.
hashlib = LazyModule("hashlib")

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
        digest = hashlib.sha256(self.key.encode())
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
    """How much of a disk a file of so many bytes takes, in pages."""
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
    found, total = [], 0
    now = time.time()
    with os.scandir(directory) as items:
        for item in items:
            if not item.name.endswith((SUFFIX, UNFINISHED)):
                continue
            with suppress(OSError):
                status = item.stat(follow_symlinks=False)
                size = pages(status.st_size) * PAGE
                if item.name.endswith(SUFFIX):
                    found.append((status.st_mtime, size, item.path))
                elif now - status.st_mtime > ABANDONED_SECONDS:
                    Path(item.path).unlink()
                    continue
                total += size
    for _, size, path in sorted(found)[:-1]:
        if total <= limit:
            return
        with suppress(OSError):
            Path(path).unlink(missing_ok=True)
            total -= size
