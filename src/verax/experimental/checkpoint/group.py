"""The processes that write one checkpoint, and how they wait for one another.

They meet in the store of the distributed runtime, not by computing, so that a save in a
thread does not mix with the program's own collectives::

    group.agree(lambda: new_name())   # the first one's answer, everywhere
    group.barrier("written")
"""

from collections.abc import Callable

from attrs import frozen

from verax.backend.runtime.client import process_count
from verax.ir.records import ReprMixin


@frozen(repr=False)
class Group(ReprMixin):
    """All processes of the program."""

    path: str
    size: int

    @classmethod
    def of_save(cls, path: str) -> "Group":
        """The processes that save to a path; each of them calls this."""
        return cls(path, process_count())

    def agree(self, make: Callable[[], str]) -> str:
        """What `make` returns in process 0, in all processes."""
        return make()

    def barrier(self, name: str) -> None:
        """Wait until all processes are here."""
