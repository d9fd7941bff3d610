"""Floor 1: traits: facts about a primitive that passes ask for and no rule states.

A row states them in its column `traits`, and a family fills in what holds for all of
its members, so that no pass keeps a list of names::

    sin_p = elementwise("sin", np.sin, ..., traits=Traits(Work.SLOW))
    traits_of(eqn.primitive).work is Work.SLOW

Of a primitive without traits nothing is assumed.
"""

from collections.abc import Callable, Sequence
from enum import Enum
from typing import Any, Final

from attrs import field, frozen

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Primitive
from verax.ir.records import ReprMixin

type Avals = Sequence[ShapedArray]
type Flops = Callable[[Any, Avals, Avals], float | None]
"""From params, types of operands and of results to a number of operations; None if it
depends on more than these."""


class Work(Enum):
    """The effort that a compiler makes for one equation, the least first.

    CHEAP: it is computed again wherever it is read, rather than stored.
    ROOT: so are small arrays of it, such as the deviations of rows.
    LIGHT: it takes little of the time of a program.
    SLOW: dozens of instructions for each element.
    STORED: operands and results are stored, for it is no part of a loop with others.
    BLOCK: the same, and the blocks of a program are made around such.
    WHOLE: the same, and a program of such compiles best as one function.

    >>> [work.name for work in Work][:3]
    ['CHEAP', 'ROOT', 'LIGHT']
    """

    __module__ = "verax.extend"

    CHEAP = "cheap"
    ROOT = "root"
    LIGHT = "light"
    SLOW = "slow"
    STORED = "stored"
    BLOCK = "block"
    WHOLE = "whole"


LIGHT: Final = (Work.CHEAP, Work.ROOT, Work.LIGHT, Work.SLOW)
STORED: Final = (Work.STORED, Work.BLOCK, Work.WHOLE)


@frozen(repr=False)
class Traits(ReprMixin):
    """Facts about a primitive, beside its rules. The law `traits` checks some of them.

    Attributes:
        work: the effort that a compiler makes for it.
        flops: counts the operations of one run; None to guess them from the types.
        elementwise: each element of a result depends on one of each operand.
        commutative: its two operands may change places, unless one is NaN.
        fma: the compiler may join it with a sum that follows, with one rounding.
        makes_nans: it computes, so that a NaN in a result may be its own doing. What
            moves, picks or converts elements, or asks the host for them, makes none.
        additive: f(x + y) is f(x) + f(y), element by element, of its only operand.
        keeps_zero: f(0) is 0, for its only operand; None if nothing is said.
        marker: it is there to be seen, so that nothing may compute it in advance.
        loop: its programs run any number of times.
        quick_in_numpy: NumPy is so good at it that compiling it gains nothing.
        view: it moves no byte.
        reads_part: it reads no more of its first operand than it returns.
        writes_part: the number of the operand that it writes into a part of its first.
        light: `work` is LIGHT or less, or SLOW.
        stored: `work` is STORED or more.
        fuses: a compiler writes it into one loop with others of its shape.

    >>> traits = Traits(Work.SLOW, elementwise=True)
    >>> traits.light, traits.stored, traits.fuses
    (True, False, True)
    """

    __module__ = "verax.extend"

    work: Work | None = None
    flops: Flops | None = None
    elementwise: bool = False
    commutative: bool = False
    fma: bool = False
    makes_nans: bool = True
    additive: bool = False
    keeps_zero: bool | None = None
    marker: bool = False
    loop: bool = False
    quick_in_numpy: bool = False
    view: bool = False
    reads_part: bool = False
    writes_part: int | None = None
    # Passes ask for these of each equation, so they are computed once.
    light: bool = field(init=False, eq=False)
    stored: bool = field(init=False, eq=False)
    fuses: bool = field(init=False, eq=False)

    @light.default
    def takes_little_time(self) -> bool:
        """Whether it takes little of the time of a program."""
        return self.work in LIGHT

    @stored.default
    def is_stored(self) -> bool:
        """Whether compilers store its results and do not compute them twice."""
        return self.work in STORED

    @fuses.default
    def joins_loops(self) -> bool:
        """Whether a compiler writes it into one loop with others of its shape."""
        return self.elementwise and self.work is not None


NO_TRAITS: Final = Traits()


def traits_of(primitive: Primitive) -> Traits:
    """The traits that the row of a primitive states.

    >>> from verax.ops.elementwise.arith import add_p, sub_p
    >>> traits_of(add_p).commutative, traits_of(sub_p).commutative
    (True, False)
    """
    traits: Traits = getattr(primitive, "traits", NO_TRAITS)
    return traits


def no_flops(p: object, ins: Avals, outs: Avals) -> float:
    """No operation: data is moved, or only seen in another way.

    >>> Traits(flops=no_flops, makes_nans=False).flops(None, (), ())
    0.0
    """
    return 0.0


def unknown_flops(p: object, ins: Avals, outs: Avals) -> None:
    """Types do not say: it runs outside the program."""


def each_result(p: object, ins: Avals, outs: Avals) -> float:
    """One operation for each element of the result."""
    return float(outs[0].size)


def each_operand(p: object, ins: Avals, outs: Avals) -> float:
    """One operation for each element of the first operand."""
    return float(ins[0].size)


def each_update(p: object, ins: Avals, outs: Avals) -> float:
    """One operation for each element that is scattered."""
    return float(ins[-1].size)
