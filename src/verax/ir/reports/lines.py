"""Floor 0: what reports say of a line of the user's.

One idea: reports on costs, digits, values and memory have an entry for each line, and
the first fields of all of these are the same::

    @frozen(repr=False)
    class LineCost(AtLine):
        flops: float
"""

from attrs import frozen

from verax.ir.records import ReprMixin


@frozen(repr=False)
class AtLine(ReprMixin):
    """The entry of a line: its file, its number, its function and its text."""

    file: str
    line: int
    function: str
    code: str
