"""Floor 1: which line of the user's an operation comes from.

One idea: walk up the frames until one is outside the library, keep its code object
and instruction, and work out the line only when it is needed::

    source = user_source()
    print(source.file, source.line)
"""

import os
import sys

from verax.ir.jaxpr import UNKNOWN_SOURCE, Eqn, Source

LIBRARY = (
    os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    + os.sep
)
SKIPPED = (LIBRARY, "<attrs ", "<string>")
CACHE_SIZE = 1 << 16


class ElementError(FloatingPointError):
    """An error about the elements that one operation computed."""

    def at(self, eqn: Eqn) -> "ElementError":  # for those who need it
        """The error, where the operation that was run is `eqn` of a program."""
        return self


class SourceCache:
    """One `Source` per place, and which files belong to the library.

    The key of a place is the identity of its code object, which the source keeps alive.
    """

    def __init__(self) -> None:
        self.places: dict[tuple[int, int], Source] = {}
        self.skipped: dict[str, bool] = {}

    def add(self, source: Source) -> Source:
        """Keep a source; all are forgotten when there are too many."""
        if len(self.places) >= CACHE_SIZE:
            self.places.clear()
        self.places[id(source.code), source.instruction] = source
        return source

    def is_library(self, file: str) -> bool:
        """Whether frames of `file` are passed over."""
        found = self.skipped[file] = file.startswith(SKIPPED)
        return found


SOURCES = SourceCache()


def user_source(depth: int = 2) -> Source:
    """The innermost place outside verax, at least `depth` frames up."""
    frame = sys._getframe(depth)
    skipped = SOURCES.skipped
    while True:
        code = frame.f_code
        file = code.co_filename
        library = skipped.get(file)
        if library is None:
            library = SOURCES.is_library(file)
        if not library:
            break
        outer = frame.f_back
        if outer is None:
            return UNKNOWN_SOURCE
        frame = outer
    found = SOURCES.places.get((id(code), frame.f_lasti))
    return SOURCES.add(Source(code, frame.f_lasti)) if found is None else found
