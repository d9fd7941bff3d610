"""Floor 3: checks in the jaxprs that an equation holds: calls, loops and choices.

One idea: such an equation is written again with checked jaxprs, whose error comes out
as more results; a loop carries the error of its first step that has one::

    outs, failure = with_bodies(eqn.params, args, checked)
"""

from collections.abc import Callable, Sequence

from attrs import evolve

from verax.ir.jaxpr import Jaxpr, Params
from verax.ops.calls.call import CallParams, jit_p
from verax.ops.calls.check import first_failure, unchecked
from verax.ops.calls.checkpoint import CheckpointParams, checkpoint_p
from verax.ops.calls.subjaxprs import blank, inlined
from verax.ops.control.cond import bind_like
from verax.ops.control.cond_params import CondLanesParams, CondParams, mapped_operands
from verax.ops.control.scan import scan_p
from verax.ops.control.scan_params import ScanParams
from verax.ops.control.while_ import while_p
from verax.ops.control.while_params import WhileParams, linear_flags
from verax.ops.custom.jvp import CustomJvpParams
from verax.ops.custom.solve import (
    CustomLinearSolveParams,
    CustomRootParams,
    custom_root_p,
    linear_solve_p,
)
from verax.ops.custom.vjp import CustomVjpParams
from verax.ops.custom.vmap import CustomVmapParams
from verax.rules.programs.failures import PASSED, Kind
from verax.rules.rows.writing import program
from verax.rules.values.array import Array
from verax.transforms.checks.custom import checked_jvp, checked_vjp
from verax.transforms.checks.errors import (
    NOTHING,
    Checked,
    Failure,
    all_kinds,
    error_avals,
    from_flat,
    kept,
    shifted,
)

type Check = Callable[[Jaxpr], Checked]
type Written = tuple[Sequence[Array], Failure]

CALLS = (
    CallParams,
    CheckpointParams,
    CustomJvpParams,
    CustomVjpParams,
    CustomVmapParams,
)
SOLVES = (CustomLinearSolveParams, CustomRootParams)


def bodies_of(p: Params) -> tuple[Jaxpr, ...]:
    """The jaxprs of an equation in which there are checks, in the order of numbers.

    An equation of another kind, whose jaxprs run in any order or not at all, is checked
    as one without any.
    """
    if isinstance(p, (*CALLS, ScanParams)):
        return (p.jaxpr,)
    if isinstance(p, SOLVES):
        return (p.solve,)
    if isinstance(p, WhileParams):
        return (p.cond_jaxpr, p.body_jaxpr)
    return p.branches if isinstance(p, CondParams) else ()


def with_bodies(p: Params, args: Sequence[Array], check: Check) -> Written:
    """An equation that `bodies_of` knows, with checks inside."""
    if isinstance(p, ScanParams):
        return checked_scan(p, args, check)
    if isinstance(p, WhileParams):
        return checked_while(p, args, check)
    if isinstance(p, CondParams):
        return checked_cond(p, args, check)
    if isinstance(p, SOLVES):
        return checked_solve(p, args, check)
    assert isinstance(p, CALLS), "bodies_of knows the equation"
    body = check(p.jaxpr)
    outs: Sequence[Array]
    if isinstance(p, CheckpointParams):
        outs = checkpoint_p.bind(evolve(p, jaxpr=body.jaxpr), *args)
    elif isinstance(p, CustomJvpParams):
        outs = checked_jvp(p, body, args)
    elif isinstance(p, CustomVjpParams):
        outs = checked_vjp(p, body, args)
    elif isinstance(p, CallParams):
        outs = jit_p.bind(evolve(p, jaxpr=body.jaxpr), *args)
    else:  # a batch of what checks itself is checked, so the user's rule is not asked
        outs = jit_p.bind(CallParams(p.name, body.jaxpr), *args)
    return body.parted(outs)


def checked_solve(
    p: CustomLinearSolveParams | CustomRootParams, args: Sequence[Array], check: Check
) -> Written:
    """A solve that gives its error beside the solution, which has no derivative.

    The other functions are for derivatives, and run in those of the program alone.
    """
    body = check(p.solve)
    if isinstance(p, CustomRootParams):
        f, tangent = unchecked(p.f), unchecked(p.tangent_solve)
        root = evolve(p, f=f, solve=body.jaxpr, tangent_solve=tangent)
        return body.parted(custom_root_p.bind(root, *args))
    back = None if p.transpose_solve is None else unchecked(p.transpose_solve)
    matvec = unchecked(p.matvec)
    solve = evolve(p, matvec=matvec, solve=body.jaxpr, transpose_solve=back)
    return body.parted(linear_solve_p.bind(solve, *args))


def initial(body: Sequence[Checked]) -> list[object]:
    """What a loop carries before its first step: no error."""
    return [PASSED, *[blank(aval) for aval in error_avals(all_kinds(body))[1:]]]


def checked_scan(p: ScanParams, args: Sequence[Array], check: Check) -> Written:
    consts, carry, xs = p.parts(args)
    step = check(p.jaxpr)
    state = initial((step,))
    fixed, moving, rows = p.parts(p.jaxpr.in_avals)
    end = len(fixed) + len(moving)

    def body(*ins: Array) -> Sequence[object]:
        before = from_flat(step.kinds, ins[end : end + len(state)])
        inner = [*ins[:end], *ins[end + len(state) :]]
        outs, found = step.parted(inlined(step.jaxpr, inner))
        after, ys = p.results(outs)
        return [*after, *kept(before, found).flat(step.kinds), *ys]

    avals = (*fixed, *moving, *step.error_avals, *rows)
    operands = (*consts, *carry, *state, *xs)
    linear = p.linear[:end]
    params = evolve(
        p,
        jaxpr=program(avals, body),
        linear=(*linear, *[False] * len(state), *p.linear[end:]),
        num_carry=len(carry) + len(state),
    )
    outs = scan_p.bind(params, *operands)
    first, last = len(carry), len(carry) + len(state)
    return [*outs[:first], *outs[last:]], from_flat(step.kinds, outs[first:last])


def checked_while(p: WhileParams, args: Sequence[Array], check: Check) -> Written:
    """A loop with one more carry: what the predicate said, which is asked once a step.

    So what is checked in the predicate is checked as often as it runs.
    """
    cond_consts, body_consts, carry = p.parts(args)
    test, step = check(p.cond_jaxpr), check(p.body_jaxpr)
    kinds = all_kinds((test, step))
    c, b, n = len(cond_consts), len(body_consts), len(carry)

    def tested(before: Failure, xs: Sequence[object]) -> tuple[Array, Failure]:
        (go,), found = test.parted(inlined(test.jaxpr, xs))
        return go, kept(before, found) if test.count else before

    def body(*ins: Array) -> Sequence[object]:
        before = from_flat(kinds, ins[c + b + 1 + n :])
        outs, found = step.parted(
            inlined(step.jaxpr, [*ins[c : c + b], *ins[c + b + 1 : c + b + 1 + n]])
        )
        found = kept(before, shifted(found, test.count)) if step.count else before
        go, found = tested(found, [*ins[:c], *outs])
        return [go, *outs, *found.flat(kinds)]

    start = from_flat(kinds, initial((test, step)))
    go, found = tested(start, [*cond_consts, *carry])
    fixed, inner = p.cond_jaxpr.in_avals[:c], p.body_jaxpr.in_avals
    moving = (*test.jaxpr.out_avals[:1], *inner[b:], *error_avals(kinds))
    flags = linear_flags(p, c + b + n)
    more = [False] * (len(moving) - 1 - n)
    params = evolve(
        p,
        body_jaxpr=program([*fixed, *inner[:b], *moving], body),
        body_nconsts=c + b,
        cond_jaxpr=program(moving, lambda go, *rest: [go]),
        cond_nconsts=0,
    ).with_linear((*flags[: c + b], False, *flags[c + b :], *more))
    operands = (*cond_consts, *body_consts, go, *carry, *found.flat(kinds))
    outs = while_p.bind(params, *operands)
    return outs[1 : 1 + n], from_flat(kinds, outs[1 + n :])


def checked_cond(p: CondParams, args: Sequence[Array], check: Check) -> Written:
    """A choice between checked branches; of several batch elements the first counts."""
    index, *operands = args
    written = [check(branch) for branch in p.branches]
    kinds = all_kinds(written)
    branches, base = [], 0
    for branch in written:
        branches.append(numbered(branch, base, kinds))
        base += branch.count
    outs = bind_like(p, branches, index, operands, mapped_operands(p))
    count = len(p.out_avals)
    error: Sequence[object] = outs[count:]
    if isinstance(p, CondLanesParams):
        if 0 in p.lanes:
            return outs[:count], NOTHING
        error = first_failure(outs[count], outs[count + 1 :])
    return outs[:count], from_flat(kinds, error)


def numbered(branch: Checked, base: int, kinds: Sequence[Kind]) -> Jaxpr:
    """A checked branch with the numbers and the kinds that all branches share."""

    def body(*ins: Array) -> Sequence[object]:
        outs, found = branch.parted(inlined(branch.jaxpr, ins))
        return [*outs, *shifted(found, base).flat(kinds)]

    return program(branch.jaxpr.in_avals, body)
