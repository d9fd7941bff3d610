"""Floor 3: an error under way: the number of the check that failed first, and values.

One idea: checks are numbered in the order of the program, so where nothing is repeated
the first failure is the least number; loops keep what they had before::

    error = first_of(error, shifted(found, base))        # one after another
    error = kept(before, after)                          # an earlier step wins
"""

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from attrs import define, evolve, frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import int32, is_extended, is_inexact
from verax.ir.effects import SHOWN
from verax.ir.jaxpr import Eqn, Jaxpr
from verax.ir.records import ReprMixin
from verax.ops.calls.call import CallParams, blank, inlined, jit_p
from verax.ops.calls.callbacks import silenced
from verax.ops.calls.check import first_failure, unchecked
from verax.ops.custom import jvp, vjp
from verax.ops.custom.base import Remade
from verax.ops.custom.jvp import CustomJvpParams
from verax.ops.custom.solve import (
    CustomLinearSolveParams,
    CustomRootParams,
    custom_root_p,
    linear_solve_p,
)
from verax.ops.custom.vjp import CustomVjpParams
from verax.ops.custom.vmap import CustomVmapParams
from verax.ops.elementwise.arith import add, min
from verax.ops.elementwise.compare import eq
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select, stop_gradient
from verax.rules.programs.host import PASSED, Kind, by_kind
from verax.rules.rows.bodies import OfWholeValues, Role, Types, flat, thread_of, whole
from verax.rules.rows.builder import program
from verax.rules.rows.infer import Mask, chosen
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
        out = [self.values.get(kind) or list(map(blank, kind)) for kind in kinds]
        return [self.code, *[x for values in out for x in values]]


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
    """The value in a message, in the types of its kind, and without derivatives."""
    pairs = zip(values, kind, strict=True)
    return [
        x if is_extended(aval.dtype) else stop_gradient(convert(x, aval.dtype))
        for x, aval in pairs
    ]


def stopped(x: Array) -> Array:
    """The value without a derivative; random keys have none."""
    return x if is_extended(x.aval.dtype) else stop_gradient(x)


def shifted(failure: Failure, base: int) -> Failure:
    """The error with its numbers counted from `base`."""
    if not base or failure.code is PASSED:
        return failure
    code = select(eq(failure.code, PASSED), PASSED, add(failure.code, np.int32(base)))
    return Failure(code, failure.values)


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


# -----------------------------------------------------------------------------
# Checks in functions with derivatives of the user's own.
#
# Such a function stays one, with the error as more results, so that whoever
# differentiates still asks the user's rule; the error then comes from the function,
# which is computed beside the rule::
#
#     outs = checked_jvp(eqn.params, body, args)       # results, then the error


@frozen(cache_hash=True, repr=False)
class CheckedJvp(Remade, ReprMixin):
    """A rule for a function that also returns its error, which has no tangent.

    `error` is the program of the error alone, for `count` results of the function.
    """

    rule: jvp.JvpRule
    error: Jaxpr
    count: int

    def pushed(self, nonzero: Mask) -> tuple[Jaxpr, Mask]:
        """See `JvpRule.pushed`."""
        jaxpr, mask = self.rule.pushed(nonzero)
        none = (False,) * len(self.error.outvars)
        return beside(unchecked(jaxpr), self.error, self.count), (*mask, *none)


@frozen(cache_hash=True, repr=False)
class CheckedVjp(Remade, ReprMixin):
    """Rules for a function that also returns its error, whose cotangents are dropped.

    `error` is the program of the error alone, for `count` results of the function.
    """

    rule: vjp.VjpRule
    error: Jaxpr
    count: int

    def forward(self, nonzero: Mask) -> Jaxpr:
        """See `VjpRule.forward`."""
        first = unchecked(self.rule.forward(nonzero))
        return beside(first, self.error, self.count)

    def backward(self, nonzero: Mask, given: Mask) -> tuple[Jaxpr, Mask]:
        """See `VjpRule.backward`."""
        jaxpr, mask = self.rule.backward(nonzero, given[: self.count])
        extra = chosen(given[self.count :], self.error.out_avals)
        if not extra:
            return unchecked(jaxpr), mask
        back, count = unchecked(jaxpr), len(jaxpr.invars)
        types = (*back.in_avals, *[aval.tangent() for aval in extra])
        return program(types, lambda *xs: inlined(back, xs[:count])), mask


def beside(rule: Jaxpr, error: Jaxpr, count: int) -> Jaxpr:
    """The program of a rule, with the error after the first `count` results."""
    taken = len(error.invars)

    def body(*xs: Array) -> Sequence[Array]:
        outs = inlined(rule, xs)
        out = inlined(error, [stopped(x) for x in xs[:taken]])
        return [*outs[:count], *out, *outs[count:]]

    return program(rule.in_avals, body)


def error_alone(body: Checked, count: int) -> Jaxpr:
    """The error of a function, computed a second time; none if it does I/O."""
    jaxpr = body.jaxpr
    if jaxpr.effects <= SHOWN:
        return silenced(evolve(jaxpr, outvars=jaxpr.outvars[count:]))
    empty = Failure(PASSED, {})
    return program(jaxpr.in_avals, lambda *xs: empty.flat(body.kinds))


def checked_jvp(
    p: jvp.CustomJvpParams, body: Checked, args: Sequence[Array]
) -> Sequence[Array]:
    """A `custom_jvp` function and its error."""
    count = len(p.jaxpr.outvars)
    rule = CheckedJvp(p.rule, error_alone(body, count), count)
    params = evolve(p, jaxpr=body.jaxpr, rule=jvp.settled(rule, p.rule))
    return jvp.custom_jvp_call_p.bind(params, *args)


def checked_vjp(
    p: vjp.CustomVjpParams, body: Checked, args: Sequence[Array]
) -> Sequence[Array]:
    """A `custom_vjp` function and its error."""
    count = len(p.jaxpr.outvars)
    active = tuple([is_inexact(aval.dtype) for aval in body.jaxpr.out_avals])
    rule = CheckedVjp(p.rule, error_alone(body, count), count)
    params = evolve(p, jaxpr=body.jaxpr, rule=vjp.settled(rule, p.rule, active))
    return vjp.custom_vjp_call_p.bind(params, *args)


# -----------------------------------------------------------------------------
# Checks in the jaxprs that an equation holds: calls, loops and choices.
#
# Such an equation is written again with checked jaxprs, whose error comes out
# beside the results; a loop carries the error of its first step that has one::
#
#     outs, failure = with_bodies(eqn, args, checked)


type CheckBody = Callable[[Jaxpr], Checked]
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


def with_bodies(eqn: Eqn, args: Sequence[Array], check: CheckBody) -> Written:
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
    p: CustomLinearSolveParams | CustomRootParams,
    args: Sequence[Array],
    check: CheckBody,
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
            outs, failure = body.parted(inlined(body.jaxpr, ins))
            return outs, shifted(failure, base)

        def ending(*ins: Array) -> Sequence[object]:
            outs, out = once(*ins)
            return [*outs, *out.flat(kinds)]

        def again(*ins: Array) -> Sequence[object]:
            outs, out = once(*ins[:own])
            if not body.count:
                return outs if role is Role.TEST else [*outs, *ins[own:]]
            return [*outs, *kept(from_flat(kinds, ins[own:]), out).flat(kinds)]

        if role in (Role.CALL, Role.BRANCH):
            return program(avals, ending)
        return program((*avals, *error_avals(kinds)), again)

    def leave(self, role: Role, state: Sequence[Array], lanes: Shape = ()) -> None:
        if 0 in lanes:
            return
        error: Sequence[object] = first_failure(state[0], state[1:]) if lanes else state
        result = from_flat(self.kinds, error)
        self.failure = result if self.failure is NOTHING else kept(self.failure, result)
