"""Where compiled programs are kept if the user names no folder (floor 4).

One idea: the files are machine code that will be run, so the folder must belong to the
user and be closed to others. Where it is not, it is not used, which `refusal` says and
the log, once; nobody who has not asked for a cache is warned about it::

    user_folder()     # Folder(Path("/home/ada/.cache/verax"), private=True)
"""

import errno
import os
import stat
import sys
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final

from attrs import frozen

from verax.ir.records import ReprMixin
from verax.rules.values.lazy import LazyModule
from verax.rules.values.memo import pure
from verax.rules.values.state import STATE

log_detail = LazyModule("verax.backend.runtime.log").log_detail

AUTO: Final = "auto"
"""The value of `compilation_cache_dir` that stands for the user's cache folder."""
NAME: Final = "verax"
ROOT: Final = 0
MOST_LINKS: Final = 40
OTHERS_WRITE: Final = stat.S_IWGRP | stat.S_IWOTH
HOMES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {"darwin": ("Library", "Caches"), "win32": ("AppData", "Local")}
)
"""Where the caches of a user are below the home directory, if not in `.cache`."""


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
        if not self.private or not hasattr(os, "geteuid"):
            return True
        return status.st_uid == os.geteuid() and not status.st_mode & OTHERS_WRITE


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
    if sys.platform == "win32":
        asked.append(os.environ.get("LOCALAPPDATA", ""))
    for name in asked:
        if Path(name).is_absolute():
            return Path(name)
    home = Path.home()
    if not home.is_absolute():
        raise RuntimeError("the home directory is unknown")
    return home.joinpath(*HOMES.get(sys.platform, (".cache",)))


type Step = tuple[Path, os.stat_result]


def objection(path: Path) -> str:
    """Why others might put programs into a folder; empty if they cannot.

    A folder that is not there yet must be left to this user to make: root makes none
    in the homes of others, who could not use it afterwards.

    Raises:
        OSError: the way to the folder cannot be followed.
    """
    if not hasattr(os, "geteuid"):
        return ""  # elsewhere the folders of users are closed by their access lists
    user = os.geteuid()
    if user != os.getuid():
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
