"""Floor 3: flags in the jaxprs that an equation holds: calls, loops and choices.

One idea: each such equation is written again with the flagged jaxprs, whose code comes
out as more results; a loop keeps the first code in its carries, with the iteration::

    outs, (site, iteration, *steps) = flagged_bodies(eqn, args, flag)

An equation of another kind, which has jaxprs that it may run in any order or not at
all, is one site like an equation without any.
"""

from collections.abc import Callable, Sequence

import numpy as np

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import int32, is_inexact
from verax.ir.jaxpr import Eqn, Jaxpr
from verax.ir.walk import count_eqns, walk
from verax.ops.calls.call import CallParams, jit_p
from verax.ops.calls.checkpoint import CheckpointParams, checkpoint_p
from verax.ops.calls.subjaxprs import inlined
from verax.ops.control.cond import bind_like
from verax.ops.control.cond_params import CondLanesParams, CondParams, mapped_operands
from verax.ops.control.scan import scan_p
from verax.ops.control.scan_params import ScanParams
from verax.ops.control.while_ import while_p
from verax.ops.control.while_params import WhileParams
from verax.ops.custom.jvp import CustomJvpParams
from verax.ops.custom.linear_call import LinearCallParams
from verax.ops.custom.vjp import CustomVjpParams
from verax.ops.custom.vmap import CustomVmapParams
from verax.ops.elementwise.arith import add
from verax.ops.elementwise.compare import eq
from verax.ops.elementwise.select import select
from verax.ops.reductions.reduce import reduce_min, reduce_sum
from verax.ops.structure.create import broadcasted_iota
from verax.ops.structure.shape import broadcast_in_dim, reshape
from verax.rules.rows.writing import program
from verax.rules.values.array import Array

type Code = Sequence[object]
"""Int32 scalars: the number of the equation in the jaxpr, and the steps inside."""
type Flag = Callable[[Jaxpr], Jaxpr]
type Written = tuple[Sequence[Array], Code]

NONE = np.int32(2**31 - 1)
"""The number of no equation: it is greater than every other."""
NUMBER = ShapedArray((), int32)
CALLS = (
    CallParams,
    CheckpointParams,
    CustomJvpParams,
    CustomVjpParams,
    CustomVmapParams,
    LinearCallParams,
)


def flagged_bodies(eqn: Eqn, args: Sequence[Array], flag: Flag) -> Written | None:
    """An equation with flags inside; None if it has no jaxpr in which to flag.

    The number in the code counts the equations of all its jaxprs, in order.
    """
    p = eqn.params
    if isinstance(p, CALLS):
        return flagged_call(p, args, flag) if has_sites(p.jaxpr) else None
    if isinstance(p, ScanParams):
        return flagged_scan(p, args, flag) if has_sites(p.jaxpr) else None
    if isinstance(p, WhileParams):
        both = (p.body_jaxpr, p.cond_jaxpr)
        return flagged_while(p, args, flag) if any(map(has_sites, both)) else None
    if isinstance(p, CondParams):
        return flagged_cond(p, args, flag) if any(map(has_sites, p.branches)) else None
    return None


def has_sites(jaxpr: Jaxpr) -> bool:
    """Whether an equation of the jaxpr has an inexact result."""
    return any(is_inexact(v.aval.dtype) for _, eqn in walk(jaxpr) for v in eqn.outvars)


def flagged_call(
    p: CallParams
    | CheckpointParams
    | CustomJvpParams
    | CustomVjpParams
    | CustomVmapParams
    | LinearCallParams,
    args: Sequence[Array],
    flag: Flag,
) -> Written:
    """The function itself: rules are applied before flags are."""
    count, jaxpr = len(p.jaxpr.outvars), flag(p.jaxpr)
    if isinstance(p, CheckpointParams):
        params = CheckpointParams(
            p.name, p.differentiated, p.prevent_cse, p.policy, jaxpr
        )
        outs = checkpoint_p.bind(params, *args)
    else:
        outs = jit_p.bind(CallParams(p.name, jaxpr), *args)
    return outs[:count], outs[count:]


def flagged_scan(p: ScanParams, args: Sequence[Array], flag: Flag) -> Written:
    consts, carry, xs = p.parts(args)
    jaxpr, count = flag(p.jaxpr), len(p.jaxpr.outvars)
    state = first_state(len(jaxpr.outvars) - count)
    fixed, moving, rows = p.parts(p.jaxpr.in_avals)
    end = len(fixed) + len(moving)

    def body(*ins: Array) -> Sequence[object]:
        before = ins[end : end + len(state)]
        outs = inlined(jaxpr, [*ins[:end], *ins[end + len(state) :]])
        after, ys = p.results(outs[:count])
        return [*after, *next_state(before, outs[count:]), *ys]

    avals = (*fixed, *moving, *[NUMBER] * len(state), *rows)
    operands = (*consts, *carry, *state, *xs)
    params = ScanParams(
        program(avals, body),
        p.length,
        (False,) * len(operands),
        len(carry) + len(state),
        len(consts),
        p.reverse,
        p.unroll,
    )
    outs = scan_p.bind(params, *operands)
    last = len(carry) + len(state)
    return [*outs[: len(carry)], *outs[last:]], code_of(outs[len(carry) : last])


def first_state(depth: int) -> list[object]:
    """What a loop carries: the number of steps, that of the site, and its code."""
    return [np.int32(0), np.int32(0), NONE, *[np.int32(0)] * (depth - 1)]


def next_state(before: Sequence[Array], found: Sequence[object]) -> list[object]:
    """The state after a step in which `found` was found."""
    count, when, *code = before
    fresh = eq(code[0], NONE)
    kept = [select(fresh, x, y) for x, y in zip(found, code, strict=True)]
    return [add(count, np.int32(1)), select(fresh, count, when), *kept]


def code_of(state: Sequence[object]) -> list[object]:
    """The code of a loop, from its last state."""
    _, when, site, *steps = state
    return [site, when, *steps]


def flagged_while(p: WhileParams, args: Sequence[Array], flag: Flag) -> Written:
    """The predicate is flagged inside the body, and once more after the last step."""
    cond_consts, body_consts, carry = p.parts(args)
    step, test = flag(p.body_jaxpr), flag(p.cond_jaxpr)
    look = has_sites(p.cond_jaxpr) and not p.cond_jaxpr.effects
    depth = max(len(step.outvars) - len(carry), len(test.outvars) - 1)
    state = first_state(depth)
    c, b, n = len(cond_consts), len(body_consts), len(carry)

    def tested(*xs: object) -> list[object]:
        found = inlined(test, xs)[1:] if look else [NONE]
        base = np.int32(count_eqns(p.body_jaxpr))
        shifted = select(eq(found[0], NONE), NONE, add(found[0], base))
        return [shifted, *found[1:], *[np.int32(0)] * (depth - len(found))]

    def more(*ins: Array) -> Sequence[object]:
        return inlined(p.cond_jaxpr, ins[: c + n])

    def body(*ins: Array) -> Sequence[object]:
        own, now = ins[c : c + b], ins[c + b : c + b + n]
        outs = inlined(step, [*own, *now])
        found = [*outs[n:], *[np.int32(0)] * (depth - len(outs) + n)]
        both = earliest(tested(*ins[:c], *now), found)
        return [*outs[:n], *next_state(ins[c + b + n :], both)]

    more_avals = [*p.cond_jaxpr.in_avals, *[NUMBER] * len(state)]
    first = p.cond_jaxpr.in_avals[:c]
    body_avals = [*first, *p.body_jaxpr.in_avals, *[NUMBER] * len(state)]
    params = WhileParams(program(body_avals, body), c + b, program(more_avals, more), c)
    operands = (*cond_consts, *cond_consts, *body_consts, *carry, *state)
    outs = while_p.bind(params, *operands)
    after = next_state(outs[n:], tested(*cond_consts, *outs[:n]))
    return outs[:n], code_of(after)


def earliest(first: Sequence[object], second: Sequence[object]) -> list[object]:
    """The first code, or if there is none the second, of what runs later."""
    none = eq(first[0], NONE)
    return [select(none, x, y) for x, y in zip(second, first, strict=True)]


def flagged_cond(p: CondParams, args: Sequence[Array], flag: Flag) -> Written:
    index, *operands = args
    count = len(p.out_avals)
    written = [flag(branch) for branch in p.branches]
    depth = max(len(branch.outvars) for branch in written) - count
    branches, base = [], 0
    for branch, jaxpr in zip(p.branches, written, strict=True):
        branches.append(numbered(jaxpr, count, base, depth))
        base += count_eqns(branch)
    outs = bind_like(p, branches, index, operands, mapped_operands(p))
    code = outs[count:]
    return outs[:count], first_lane(code) if isinstance(p, CondLanesParams) else code


def numbered(jaxpr: Jaxpr, count: int, base: int, depth: int) -> Jaxpr:
    """A flagged branch with `depth` numbers as its code, counted from `base`."""

    def body(*ins: Array) -> Sequence[object]:
        outs = inlined(jaxpr, ins)
        site, *steps = outs[count:]
        shifted = select(eq(site, NONE), NONE, add(site, np.int32(base)))
        rest = [np.int32(0)] * (depth - 1 - len(steps))
        return [*outs[:count], shifted, *steps, *rest]

    return program(jaxpr.in_avals, body)


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
