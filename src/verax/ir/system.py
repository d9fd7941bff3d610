"""Floor 0: what differs between operating systems, in one place.

One idea: no other module asks on which system it runs, or calls what only some systems
have; each function here says what happens where there is no such thing, so that a new
system is this file and its tests::

    after_fork(renew)      # nothing on Windows, which has no forks
    processors()           # 2 in a container that has two of sixty-four

Everything is looked up when it is called: tests put other systems in its place.
"""

import ctypes
import os
import sys
from collections.abc import Callable
from pathlib import Path


def system() -> str:
    """The name of the system as Python has it: "linux", "darwin", "win32".

    >>> system() == sys.platform
    True
    """
    return sys.platform


def after_fork(call: Callable[[], None]) -> None:
    """Have a function called in each forked child; nothing where there are no forks."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=call)


def processors() -> int:
    """The number of processors that this process may use, at least 1.

    That is the affinity of the process on Linux, elsewhere all of the machine.

    >>> 1 <= processors() <= (os.cpu_count() or 1)
    True
    """
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def effective_user() -> int | None:
    """The number of the user whose rights the process has; None where users have none.

    On Windows the folders of users are closed by their access lists.
    """
    return os.geteuid() if hasattr(os, "geteuid") else None


def has_rights_of_another() -> bool:
    """Whether the process runs with other rights than its user's (setuid)."""
    return hasattr(os, "geteuid") and os.geteuid() != os.getuid()


def sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where the system can."""
    if os.name != "posix":
        return
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def c_library() -> ctypes.CDLL | None:
    """The C library of the process, or None where it cannot be asked for by no name."""
    return ctypes.CDLL(None) if os.name == "posix" else None


def glibc() -> ctypes.CDLL | None:
    """The C library if it is glibc, else None."""
    library = c_library() if system().startswith("linux") else None
    is_glibc = library is not None and hasattr(library, "gnu_get_libc_version")
    return library if is_glibc else None
