"""The runtime's messages, made readable (floor 4).

XLA's messages carry a status code in front and boilerplate behind; users get the part
between, and the original stays as the cause.

    >>> from verax.backend.runtime.errors import trimmed
    >>> trimmed("INVALID_ARGUMENT: No such compile option: 'x'")
    "No such compile option: 'x'"
"""

import re
from typing import Final

from verax.rules.programs.host import JaxRuntimeError

STATUS: Final = re.compile(r"^[A-Z][A-Z_]+: ")
NO_MEMORY: Final = re.compile(r"Out of memory allocating (\d+) bytes")
BOILERPLATE: Final = (
    "<unknown>:0: error: Failed to parse using StableHLO",
    "See https://openxla.org/",
)
# In front once for each program that waited for the one that failed.
PASSED_ON: Final = re.compile(r"(?:Error dispatching computation: )+")
LONGEST: Final = 2000


class CompileError(JaxRuntimeError):
    """XLA refused a program, or an option of its compilation."""

    __module__ = "verax.errors"


class ExecutionError(JaxRuntimeError):
    """A compiled program failed while running, or refused its arguments."""

    __module__ = "verax.errors"


class RuleFailed(Exception):
    """A rule of the user's, which XLA asked while it compiled, raised `error`."""

    def __init__(self, error: BaseException) -> None:
        super().__init__(str(error))
        self.error = error


def trimmed(message: str) -> str:
    """The message without status code, boilerplate and what exceeds 2,000 letters.

    >>> trimmed("UNKNOWN: -:1:1: error: bad" + chr(10) + "See https://openxla.org/x")
    '-:1:1: error: bad'
    >>> trimmed("INTERNAL: " + 40 * "Error dispatching computation: " + "Gloo failed")
    'Gloo failed'
    """
    lines = PASSED_ON.sub("", STATUS.sub("", message)).splitlines()
    kept = "\n".join(line for line in lines if not line.startswith(BOILERPLATE)).strip()
    return kept if len(kept) <= LONGEST else kept[:LONGEST] + " ..."


def explained(message: str) -> str:
    """An explanation of what went wrong in a run, with sizes in common units.

    >>> explained("RESOURCE_EXHAUSTED: Out of memory allocating 3221225472 bytes.")
    'Out of memory: a single piece of 3221225472 bytes (3.0 GiB) could not be
    allocated.'
    """
    text = trimmed(message)
    match = NO_MEMORY.search(text)
    if match is None:
        return text
    size = int(match[1])
    rest = text.replace(match[0], "", 1).strip(" .")
    told = (
        f"Out of memory: a single piece of {size} bytes ({size / 2**30:.1f} GiB) could "
        "not be allocated."
    )
    return f"{told} {rest}" if rest else told
