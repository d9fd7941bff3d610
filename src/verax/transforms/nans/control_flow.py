"""Floor 3: flags in the jaxprs that an equation holds: calls, loops and choices.

One idea: each such equation is written again with the flagged jaxprs, whose code comes
out beside the results; a loop keeps the first code in its carries, with the iteration::

    outs, (site, iteration, *steps) = flagged_bodies(eqn, args, flag)

An equation whose row does not say how to go through its jaxprs may run them in any
order or not at all, and is one site like an equation without any.
"""

from collections.abc import Callable, Sequence

import numpy as np
from attrs import define

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import int32, is_inexact
from verax.ir.jaxpr import Eqn, Jaxpr
from verax.ir.walk import count_eqns, walk
from verax.ops.calls.call import CallParams, NamedCall, jit_p
from verax.ops.calls.subjaxprs import inlined
from verax.ops.control.cond_params import CondLanesParams, CondParams
from verax.ops.elementwise.arith import add
from verax.ops.elementwise.compare import eq
from verax.ops.elementwise.select import select
from verax.ops.reductions.reduce import reduce_min, reduce_sum
from verax.ops.structure.create import broadcasted_iota
from verax.ops.structure.shape import broadcast_in_dim, reshape
from verax.rules.rows.bodies import OfWholeValues, Role, Types, flat, thread_of, whole
from verax.rules.rows.builder import program
from verax.rules.values.array import Array

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
