"""Floor 2: what a `scan` knows, and the order of its operands.

Operands are constants, carries and arrays of rows, in this order, and results are
carries and arrays of rows::

    consts, carry, xs = p.parts(operands)
"""

from collections.abc import Mapping, Sequence
from typing import Any, Self

from attrs import frozen

from verax.ir.jaxpr import Jaxpr, Params
from verax.rules.rows.masks import Mask

GROUPS = ("ft_in", "ft_out")


@frozen(eq=False, repr=False)
class ScanParams(Params):
    """The body, from constants, carries and rows to carries and rows.

    `length` counts the steps, last row first if `reverse`; `unroll` steps are written
    after each other in the compiled loop. `linear` marks operands in which the results
    are known to be linear.
    """

    jaxpr: Jaxpr
    length: int
    linear: Mask
    num_carry: int
    num_consts: int
    reverse: bool
    unroll: int

    @classmethod
    def from_keywords(cls, fields: Mapping[str, Any]) -> Self:
        """Params by keyword; `ft_in` and `ft_out` may have the operands in groups.

        `ft_in` is what JAX's scan has instead of the counts: its `unpack()` returns
        constants, carries and rows. Which operands are linear is not known then.
        """
        if "ft_in" not in fields:
            return super().from_keywords(fields)
        consts, carry, xs = [len(group) for group in fields["ft_in"].unpack()]
        named = {n: value for n, value in fields.items() if n not in GROUPS}
        counts = {"num_consts": consts, "num_carry": carry}
        flags = {"linear": (False,) * (consts + carry + xs)}
        return super().from_keywords({**flags, **named, **counts})

    def parts[T](self, xs: Sequence[T]) -> tuple[list[T], list[T], list[T]]:
        """Operands: constants, carries, arrays of rows."""
        middle = self.num_consts + self.num_carry
        return (
            list(xs[: self.num_consts]),
            list(xs[self.num_consts : middle]),
            list(xs[middle:]),
        )

    def results[T](self, xs: Sequence[T]) -> tuple[list[T], list[T]]:
        """Results: carries, arrays of rows."""
        return list(xs[: self.num_carry]), list(xs[self.num_carry :])


@frozen(eq=False, repr=False)
class CheckpointedScanParams(ScanParams):
    """A loop that is run backwards as a nest of loops of the lengths `blocks`."""

    blocks: tuple[int, ...]


def in_turns[T](counts: Sequence[int], xs: Sequence[T]) -> list[T]:
    """(constants, carries, rows, their tangents) with each tangent by its primal."""
    parts = cut(counts, xs)
    return [x for i in range(3) for x in (*parts[i], *parts[i + 3])]


def in_order[T](counts: Sequence[int], xs: Sequence[T]) -> list[T]:
    """The inverse of `in_turns`."""
    a, c, x, ta, tc, tx = counts
    parts = cut((a, ta, c, tc, x, tx), xs)
    return [x for i in (0, 2, 4, 1, 3, 5) for x in parts[i]]


def cut[T](counts: Sequence[int], xs: Sequence[T]) -> list[list[T]]:
    """`xs` in pieces of these lengths."""
    source = iter(xs)
    return [[next(source) for _ in range(count)] for count in counts]
