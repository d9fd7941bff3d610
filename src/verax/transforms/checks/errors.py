"""Floor 3: an error under way: the number of the check that failed first, and values.

One idea: checks are numbered in the order of the program, so where nothing is repeated
the first failure is the least number; loops keep what they had before::

    error = first_of(error, shifted(found, base))        # one after another
    error = kept(before, after)                          # an earlier step wins
"""

from collections.abc import Mapping, Sequence

import numpy as np
from attrs import frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import int32, is_extended
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.ops.calls.subjaxprs import blank
from verax.ops.elementwise.arith import add, min
from verax.ops.elementwise.compare import eq
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select, stop_gradient
from verax.rules.programs.failures import PASSED, Kind, by_kind
from verax.rules.values.array import Array

NUMBER = ShapedArray((), int32)


@frozen(eq=False, repr=False)
class Failure(ReprMixin):
    """The number of a check, PASSED for none, and the values of each kind.

    Values of a kind mean something only where the check shows values of that kind.
    """

    code: object
    values: Mapping[Kind, Sequence[object]]

    def flat(self, kinds: Sequence[Kind]) -> list[object]:
        """The number, then the values of these kinds; zeros stand for those not had."""
        found = [self.values.get(kind) or list(map(blank, kind)) for kind in kinds]
        return [self.code, *[x for values in found for x in values]]


@frozen(eq=False, repr=False)
class Checked(ReprMixin):
    """A program that has the outputs of another, then its error.

    The error is a number, then values for each of the `kinds`; there are `count`
    checks.
    """

    jaxpr: Jaxpr
    kinds: tuple[Kind, ...]
    count: int

    def parted(self, outs: Sequence[Array]) -> tuple[list[Array], Failure]:
        """The outputs of the program itself, and the error."""
        own = len(outs) - 1 - sum(map(len, self.kinds))
        code, *values = outs[own:]
        return list(outs[:own]), Failure(code, by_kind(self.kinds, values))

    @property
    def error_avals(self) -> tuple[ShapedArray, ...]:
        """The types of the error."""
        return error_avals(self.kinds)


NOTHING = Failure(PASSED, {})


def error_avals(kinds: Sequence[Kind]) -> tuple[ShapedArray, ...]:
    """The types of an error with these kinds of values."""
    return (NUMBER, *[aval for kind in kinds for aval in kind])


def from_flat(kinds: Sequence[Kind], xs: Sequence[object]) -> Failure:
    """The error that `Failure.flat` took apart."""
    return Failure(xs[0], by_kind(kinds, xs[1:]))


def all_kinds(parts: Sequence[Checked]) -> tuple[Kind, ...]:
    """The kinds of several programs, each once."""
    return tuple(dict.fromkeys([kind for part in parts for kind in part.kinds]))


def shown(values: Sequence[object], kind: Kind) -> list[object]:
    """What a message shows, in the types of its kind, and without derivatives."""
    pairs = zip(values, kind, strict=True)
    return [
        x if is_extended(aval.dtype) else stop_gradient(convert(x, aval.dtype))
        for x, aval in pairs
    ]


def shifted(found: Failure, base: int) -> Failure:
    """The error with its numbers counted from `base`."""
    if not base or found.code is PASSED:
        return found
    code = select(eq(found.code, PASSED), PASSED, add(found.code, np.int32(base)))
    return Failure(code, found.values)


def first_of(before: Failure, after: Failure) -> Failure:
    """The error of two parts of a program: numbers of the first are less."""
    if before.code is PASSED:
        return after
    if after.code is PASSED:
        return before
    code = min(before.code, after.code)
    return Failure(code, values_of(before, after))


def kept(before: Failure, after: Failure) -> Failure:
    """The error of two steps of a loop, whose numbers are the same."""
    code = select(eq(before.code, PASSED), after.code, before.code)
    return Failure(code, values_of(before, after))


def values_of(before: Failure, after: Failure) -> dict[Kind, Sequence[object]]:
    """The values: those from before if there was an error already."""
    values = dict(before.values)
    if after.values:
        clean = eq(before.code, PASSED)
        for kind, news in after.values.items():
            olds = values.get(kind, news)
            pairs = zip(news, olds, strict=True)
            values[kind] = [x if x is y else select(clean, x, y) for x, y in pairs]
    return values
