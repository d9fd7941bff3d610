"""Floor 3: checks in the jaxprs that an equation holds: calls, loops and choices.

One idea: such an equation is written again with checked jaxprs, whose error comes out
beside the results; a loop carries the error of its first step that has one::

    outs, failure = with_bodies(eqn, args, checked)
"""

from collections.abc import Callable, Sequence

from attrs import define, evolve

from verax.ir.avals import Shape
from verax.ir.jaxpr import Eqn, Jaxpr
from verax.ops.calls.call import CallParams, jit_p
from verax.ops.calls.check import first_failure, unchecked
from verax.ops.calls.subjaxprs import blank, inlined
from verax.ops.custom.jvp import CustomJvpParams
from verax.ops.custom.solve import (
    CustomLinearSolveParams,
    CustomRootParams,
    custom_root_p,
    linear_solve_p,
)
from verax.ops.custom.vjp import CustomVjpParams
from verax.ops.custom.vmap import CustomVmapParams
from verax.rules.programs.host import PASSED, Kind
from verax.rules.rows.bodies import OfWholeValues, Role, Types, flat, thread_of, whole
from verax.rules.rows.builder import program
from verax.rules.values.array import Array
from verax.transforms.checks.errors import (
    NOTHING,
    Checked,
    Failure,
    all_kinds,
    checked_jvp,
    checked_vjp,
    error_avals,
    from_flat,
    kept,
    shifted,
)

type Check = Callable[[Jaxpr], Checked]
type Written = tuple[Sequence[Array], Failure]

CUSTOM = (CustomJvpParams, CustomVjpParams, CustomVmapParams)
SOLVES = (CustomLinearSolveParams, CustomRootParams)


def bodies_of(eqn: Eqn) -> tuple[Jaxpr, ...]:
    """The jaxprs of an equation in which there are checks, in the order of numbers.

    An equation of another kind, whose jaxprs run in any order or not at all, is checked
    as one without any.
    """
    p = eqn.params
    if thread_of(eqn.primitive) is not None:
        return tuple(p.subjaxprs())
    if isinstance(p, CUSTOM):
        return (p.jaxpr,)
    return (p.solve,) if isinstance(p, SOLVES) else ()


def with_bodies(eqn: Eqn, args: Sequence[Array], check: Check) -> Written:
    """An equation that `bodies_of` knows, with checks inside."""
    p, thread = eqn.params, thread_of(eqn.primitive)
    if thread is not None:
        jaxprs = tuple(p.subjaxprs())
        through = Checking(jaxprs, tuple(map(check, jaxprs)))
        return flat(thread(through, p, whole(args))), through.failure
    if isinstance(p, SOLVES):
        return checked_solve(p, args, check)
    assert isinstance(p, CUSTOM), "bodies_of knows the equation"
    body = check(p.jaxpr)
    outs: Sequence[Array]
    if isinstance(p, CustomJvpParams):
        outs = checked_jvp(p, body, args)
    elif isinstance(p, CustomVjpParams):
        outs = checked_vjp(p, body, args)
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


@define(eq=False, repr=False)
class Checking(OfWholeValues):
    """The programs of one equation with their checks, and the error that they end with.

    The state of a call or a branch is its error, with which it does not begin.
    """

    bodies: tuple[Checked, ...]
    failure: Failure = NOTHING

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of values that errors show."""
        return all_kinds(self.bodies)

    def enter(self, role: Role) -> Sequence[object]:
        if role is not Role.STEP:
            return ()
        return [PASSED, *[blank(aval) for aval in error_avals(self.kinds)[1:]]]

    def tells(self, number: int) -> bool:
        return self.bodies[number].count > 0

    def program(
        self,
        number: int,
        role: Role,
        types: Sequence[Types],
        due: Sequence[Types | None],
    ) -> Jaxpr:
        body, kinds = self.bodies[number], self.kinds
        base = sum([other.count for other in self.bodies[:number]])
        avals, own = body.jaxpr.in_avals, len(body.jaxpr.invars)

        def once(*ins: Array) -> tuple[list[Array], Failure]:
            outs, found = body.parted(inlined(body.jaxpr, ins))
            return outs, shifted(found, base)

        def ending(*ins: Array) -> Sequence[object]:
            outs, found = once(*ins)
            return [*outs, *found.flat(kinds)]

        def again(*ins: Array) -> Sequence[object]:
            outs, found = once(*ins[:own])
            if not body.count:
                return outs if role is Role.TEST else [*outs, *ins[own:]]
            return [*outs, *kept(from_flat(kinds, ins[own:]), found).flat(kinds)]

        if role in (Role.CALL, Role.BRANCH):
            return program(avals, ending)
        return program((*avals, *error_avals(kinds)), again)

    def leave(self, role: Role, state: Sequence[Array], lanes: Shape = ()) -> None:
        if 0 in lanes:
            return
        error: Sequence[object] = first_failure(state[0], state[1:]) if lanes else state
        found = from_flat(self.kinds, error)
        self.failure = found if self.failure is NOTHING else kept(self.failure, found)
