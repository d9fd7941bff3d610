"""Floor 3: a program that says where its first NaN or infinity was made.

One idea: every equation with inexact results gets one flag, "operands clean, result
not", and the least number of a raised flag is one more output::

    flagged = flag(jaxpr, Kind.NAN)       # outputs of jaxpr, site, steps
    locate(jaxpr, site, steps)            # the path of the equation, as text too

Equations are numbered in the order of `verax.ir.walk.walk`. The result is a program
like any other: it is interpreted, compiled, and batched, where each batch element has a
site.
"""

from collections.abc import Sequence
from enum import Enum

import numpy as np

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float32, is_complex, is_inexact
from verax.ir.jaxpr import UNKNOWN_SOURCE, Atom, Eqn, Jaxpr, Literal, Var
from verax.ir.walk import count_eqns, interpret, itself
from verax.ops.elementwise.arith import add, min
from verax.ops.elementwise.bits import bitwise_and, bitwise_not, bitwise_or
from verax.ops.elementwise.compare import eq, lt, ne
from verax.ops.elementwise.complex import imag, real
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.rounding import is_finite
from verax.ops.elementwise.select import select
from verax.ops.reductions.reduce import reduce_or
from verax.rules.rows.builder import Builder
from verax.rules.values.array import Array
from verax.rules.values.memo import memo, recall
from verax.rules.values.state import Context, current_context, interpreting
from verax.transforms.engine.evaluate import literal_value
from verax.transforms.nans.control_flow import NONE, Code, flagged_bodies

PROGRAMS = 1 << 10


class Kind(Enum):
    """What is looked for."""

    NAN = "NaN"
    INFINITY = "infinity"
    EITHER = "NaN or infinity"


def bad_elements(x: Array, kind: Kind) -> Array:
    """Which elements are of the kind; complex ones if a part of them is."""
    if is_complex(x.aval.dtype):
        return bitwise_or(bad_elements(real(x), kind), bad_elements(imag(x), kind))
    if x.aval.dtype.itemsize == 1:
        x = convert(x, float32)
    if kind is Kind.NAN:
        return ne(x, x)
    wild = bitwise_not(is_finite(x))
    return wild if kind is Kind.EITHER else bitwise_and(wild, eq(x, x))


def has_bad(x: Array, kind: Kind) -> Array:
    """Whether an element is of the kind: a boolean scalar."""
    found = bad_elements(x, kind)
    return reduce_or(found, range(x.ndim)) if x.ndim else found


def is_bad_value(value: np.ndarray, kind: Kind) -> bool:
    """`has_bad` of values that are known."""
    nan = bool(np.any(np.isnan(value)))
    infinite = bool(np.any(np.isinf(value)))
    chosen = {Kind.NAN: nan, Kind.INFINITY: infinite, Kind.EITHER: nan or infinite}
    return chosen[kind]


def is_inexact_type(aval: ShapedArray) -> bool:
    """Whether values of the type can be NaN or infinite."""
    return is_inexact(aval.dtype)


def flag(jaxpr: Jaxpr, kind: Kind) -> Jaxpr:
    """`flagged`, found again where that was asked before."""
    return recall(flagged, jaxpr, current_context(), jaxpr, kind)


@memo(PROGRAMS)
def flagged(context: Context, jaxpr: Jaxpr, kind: Kind) -> Jaxpr:
    """The program with a flag at each inexact equation.

    Contract: outputs are those of `jaxpr`, then int32 scalars: the number of the
    equation that made the first one, or `NONE`, and, for each loop or choice between
    batch elements around it, from the outside in, the iteration or the element. There
    are as many of those as loops stand in each other; the rest of them mean nothing.
    """
    writer = Writer(kind)
    builder = writer.builder
    inputs = builder.input_atoms(jaxpr.in_avals)
    with interpreting(builder):
        outs = interpret(jaxpr, inputs, writer.write, itself)
        builder.source = UNKNOWN_SOURCE
        codes = [builder.atom(x) for x in writer.code or (NONE,)]
    return builder.close([*outs, *codes])[0]


class Writer:
    """One jaxpr while it is written again: which values are bad, and the code."""

    def __init__(self, kind: Kind) -> None:
        self.kind = kind
        self.builder = Builder("find_nans", source=UNKNOWN_SOURCE)
        self.bad: dict[Atom, Array] = {}
        self.code: list[object] = []
        self.number = 0

    def write(self, eqn: Eqn, ins: Sequence[Atom]) -> Sequence[Atom]:
        """Write an equation, and its flag or those of the jaxprs inside it."""
        builder, number = self.builder, self.number
        builder.source = eqn.source
        self.number += 1 + sum(map(count_eqns, eqn.params.subjaxprs()))
        args = builder.tracers(ins)
        inside = flagged_bodies(eqn, args, lambda inner: flag(inner, self.kind))
        if inside is None:
            outs = builder.copy(eqn, ins)
            self.mark(number, ins, outs)
            return outs
        results, code = inside
        atoms = [builder.atom(x) for x in results]
        self.merge(number + 1, code)
        return atoms

    def is_bad(self, atom: Atom) -> Array:
        """The flag of a value, which is worked out once."""
        if atom not in self.bad:
            (x,) = self.builder.tracers((atom,))
            self.bad[atom] = has_bad(x, self.kind)
        return self.bad[atom]

    def mark(self, number: int, ins: Sequence[Atom], outs: Sequence[Var]) -> None:
        """Raise the flag of an equation if it made what none of its operands has.

        What comes out of an infinite constant, a mask, is meant; a constant that is NaN
        is where the NaN comes from.
        """
        results = [self.is_bad(v) for v in outs if is_inexact_type(v.aval)]
        if not results or (self.kind is not Kind.NAN and any(map(is_meant, ins))):
            return
        raised = any_of(results)
        given = [
            self.is_bad(a) for a in ins if type(a) is Var and is_inexact_type(a.aval)
        ]
        if given:
            raised = bitwise_and(raised, bitwise_not(any_of(given)))
        here = select(raised, np.int32(number), NONE)
        first = self.code[0] if self.code else None
        self.code[:1] = [here if first is None else min(first, here)]

    def merge(self, base: int, code: Code) -> None:
        """Take over what the jaxprs of an equation found, numbered from `base`."""
        site, *steps = code
        here = select(eq(site, NONE), NONE, add(site, np.int32(base)))
        if not self.code:
            self.code = [here, *steps]
            return
        earlier = lt(here, self.code[0])
        known = self.code[1:]
        count = max_length(steps, known)
        pairs = zip(filled(steps, count), filled(known, count), strict=True)
        chosen = [select(earlier, new, old) for new, old in pairs]
        self.code = [min(self.code[0], here), *chosen]


def is_meant(atom: Atom) -> bool:
    """Whether an operand is an infinite scalar constant."""
    if not isinstance(atom, Literal) or atom.aval.shape:
        return False
    if not is_inexact_type(atom.aval):
        return False
    return bool(np.isinf(literal_value(atom)))


def max_length(*lists: Sequence[object]) -> int:
    """The length of the longest."""
    return sorted(map(len, lists))[-1]


def filled(steps: Sequence[object], count: int) -> list[object]:
    """`count` steps: those that are missing are never read."""
    return [*steps, *[np.int32(0)] * (count - len(steps))]


def any_of(flags: Sequence[Array]) -> Array:
    """Whether one of the boolean scalars is true."""
    result, *rest = flags
    for one in rest:
        result = bitwise_or(result, one)
    return result
