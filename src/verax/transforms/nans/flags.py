"""Floor 3: a program that says where its first NaN or infinity was made.

One idea: every equation with inexact results gets one flag, "operands clean, result
not", and the least number of a raised flag is one more output::

    flagged = flag(jaxpr, Kind.NAN)       # outputs of jaxpr, site, steps
    locate(jaxpr, site, steps)            # the path of the equation, as text too

Equations are numbered in the order of `verax.ir.walk.walk`. The result is a program
like any other: it is interpreted, compiled, and batched, where each batch element has a
site.
"""

from collections.abc import Callable, Sequence
from enum import Enum

import numpy as np
from attrs import define

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import float32, int32, is_complex, is_inexact
from verax.ir.jaxpr import UNKNOWN_SOURCE, Atom, Eqn, Jaxpr, Literal, Var
from verax.ir.walk import count_eqns, interpret, itself, walk
from verax.ops.calls.call import CallParams, NamedCall, jit_p
from verax.ops.calls.subjaxprs import inlined
from verax.ops.control.cond_params import CondLanesParams, CondParams
from verax.ops.elementwise.arith import add, min
from verax.ops.elementwise.bits import bitwise_and, bitwise_not, bitwise_or
from verax.ops.elementwise.compare import eq, lt, ne
from verax.ops.elementwise.complex import imag, real
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.rounding import is_finite
from verax.ops.elementwise.select import select
from verax.ops.reductions.reduce import reduce_min, reduce_or, reduce_sum
from verax.ops.structure.create import broadcasted_iota
from verax.ops.structure.shape import broadcast_in_dim, reshape
from verax.rules.rows.bodies import OfWholeValues, Role, Types, flat, thread_of, whole
from verax.rules.rows.builder import Builder, program
from verax.rules.values.array import Array
from verax.rules.values.memo import memo, recall
from verax.rules.values.state import Context, current_context, interpreting
from verax.transforms.engine.engine import literal_value

# -----------------------------------------------------------------------------
# Flags in the jaxprs that an equation holds: calls, loops and choices.
#
# Each such equation is written again with the flagged jaxprs, whose code comes out
# beside the results; a loop keeps the first code in its carries, with the iteration::
#
#     outs, (site, iteration, *steps) = flagged_bodies(eqn, args, flag)
#
# An equation whose row does not say how to go through its jaxprs may run them in any
# order or not at all, and is one site like an equation without any.


type Code = Sequence[object]
"""Int32 scalars: the number of the equation in the jaxpr, and the steps inside."""
type Flag = Callable[[Jaxpr], Jaxpr]
type Written = tuple[Sequence[Array], Code]

NONE = np.int32(2**31 - 1)
"""The number of no equation: it is greater than every other."""
NUMBER = ShapedArray((), int32)


def flagged_bodies(eqn: Eqn, args: Sequence[Array], flag: Flag) -> Written | None:
    """An equation with flags inside; None if it has no jaxpr in which to flag.

    The number in the code counts the equations of all its jaxprs, in order.
    """
    p, thread = eqn.params, thread_of(eqn.primitive)
    if not is_open(eqn):
        return None
    if thread is not None:
        jaxprs = tuple(p.subjaxprs())
        through = Flagging(jaxprs, tuple(map(flag, jaxprs)), has_steps(eqn))
        return flat(thread(through, p, whole(args))), through.code
    assert isinstance(p, NamedCall), "is_open knows the equation"
    # The function itself: rules are applied before flags are.
    outs = jit_p.bind(CallParams(p.name, flag(p.jaxpr)), *args)
    count = len(p.jaxpr.outvars)
    return outs[:count], outs[count:]


def is_open(eqn: Eqn) -> bool:
    """Whether there are flags inside an equation."""
    p = eqn.params
    if thread_of(eqn.primitive) is not None:
        return any(map(has_sites, p.subjaxprs()))
    return isinstance(p, NamedCall) and has_sites(p.jaxpr)


def has_steps(eqn: Eqn) -> bool:
    """Whether the code of an equation has the number of a step, or of an element."""
    p = eqn.params
    one = isinstance(p, NamedCall | CondParams) and not isinstance(p, CondLanesParams)
    return thread_of(eqn.primitive) is not None and not one


def has_sites(jaxpr: Jaxpr) -> bool:
    """Whether an equation of the jaxpr has an inexact result."""
    return any(is_inexact(v.aval.dtype) for _, eqn in walk(jaxpr) for v in eqn.outvars)


@define(eq=False, repr=False)
class Flagging(OfWholeValues):
    """The programs of one equation with their flags, and the code that they end with.

    The state of a call or a branch is its code, with which it does not begin.
    """

    flagged: tuple[Jaxpr, ...]
    steps: bool
    code: Code = ()

    @property
    def depth(self) -> int:
        """How many numbers a code has inside."""
        both = zip(self.jaxprs, self.flagged, strict=True)
        return max([len(f.outvars) - len(jaxpr.outvars) for jaxpr, f in both])

    def enter(self, role: Role) -> Sequence[object]:
        return first_state(self.depth) if role is Role.STEP else ()

    def tells(self, number: int) -> bool:
        return has_sites(self.jaxprs[number])

    def program(
        self,
        number: int,
        role: Role,
        types: Sequence[Types],
        due: Sequence[Types | None],
    ) -> Jaxpr:
        jaxpr, flagged = self.jaxprs[number], self.flagged[number]
        base = sum(map(count_eqns, self.jaxprs[:number]))
        count, own = len(jaxpr.outvars), len(jaxpr.invars)
        depth, tells = self.depth, self.tells(number)

        def once(*ins: Array) -> Sequence[object]:
            outs = inlined(flagged, ins)
            return [*outs[:count], *numbered(outs[count:], base, depth)]

        def again(*ins: Array) -> Sequence[object]:
            if role is Role.TEST and not tells:
                return inlined(jaxpr, ins[:own])
            outs = once(*ins[:own])
            state = kept(ins[own:], outs[count:])
            return [*outs[:count], *(state if role is Role.TEST else counted(state))]

        if role in (Role.CALL, Role.BRANCH):
            return program(jaxpr.in_avals, once)
        states = len(first_state(depth))
        return program((*jaxpr.in_avals, *[NUMBER] * states), again)

    def leave(self, role: Role, state: Sequence[Array], lanes: Shape = ()) -> None:
        code: Code = state
        if role is Role.STEP:
            code = code_of(state)
        elif lanes:
            code = first_lane(state)
        elif self.steps:
            code = [state[0], np.int32(0), *state[1:]]
        self.code = earliest(self.code, code) if self.code else code


def numbered(code: Code, base: int, depth: int) -> list[object]:
    """A code of `depth` numbers, counted from `base`."""
    site, *steps = code
    shifted = select(eq(site, NONE), NONE, add(site, np.int32(base))) if base else site
    return [shifted, *steps, *[np.int32(0)] * (depth - 1 - len(steps))]


def first_state(depth: int) -> list[object]:
    """What a loop carries: the number of steps, that of the site, and its code."""
    return [np.int32(0), np.int32(0), NONE, *[np.int32(0)] * (depth - 1)]


def kept(before: Sequence[Array], code: Code) -> list[object]:
    """The state after `code` was found: what it was, if there was a code already."""
    count, when, *old = before
    fresh = eq(old[0], NONE)
    codes = [select(fresh, x, y) for x, y in zip(code, old, strict=True)]
    return [count, select(fresh, count, when), *codes]


def counted(state: Sequence[object]) -> list[object]:
    """The state at the end of a step."""
    count, *rest = state
    return [add(count, np.int32(1)), *rest]


def code_of(state: Sequence[object]) -> list[object]:
    """The code of a loop, from its last state."""
    _, when, site, *steps = state
    return [site, when, *steps]


def earliest(first: Code, second: Code) -> list[object]:
    """The first code, or if there is none the second, of what runs later."""
    none = eq(first[0], NONE)
    return [select(none, y, x) for x, y in zip(first, second, strict=True)]


def first_lane(code: Sequence[Array]) -> list[object]:
    """The code of the batch element whose equation comes first, with its number."""
    flat = [reshape(x, (x.aval.size,)) for x in code]
    size = flat[0].aval.size
    site = reduce_min(flat[0], (0,))
    numbers = broadcasted_iota(int32, (size,), 0)
    none = np.int32(size)
    here = eq(flat[0], broadcast_in_dim(site, (size,), ()))
    far = broadcast_in_dim(none, (size,), ())
    lane = reduce_min(select(here, numbers, far), (0,))
    chosen = eq(numbers, broadcast_in_dim(lane, (size,), ()))
    zeros = broadcast_in_dim(np.int32(0), (size,), ())
    steps = [reduce_sum(select(chosen, x, zeros), (0,)) for x in flat[1:]]
    return [site, lane, *steps]


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
