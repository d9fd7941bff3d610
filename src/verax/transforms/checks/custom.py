"""Floor 3: checks in functions with derivatives of the user's own.

One idea: such a function stays one, with the error as more results, so that whoever
differentiates still asks the user's rule; the error then comes from the function, which
is computed beside the rule::

    outs = checked_jvp(eqn.params, body, args)       # results, then the error
"""

from collections.abc import Sequence

from attrs import evolve, frozen

from verax.ir.dtypes import is_inexact
from verax.ir.effects import SHOWN
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.ops.calls.callbacks import silenced
from verax.ops.calls.check import unchecked
from verax.ops.calls.subjaxprs import inlined
from verax.ops.custom import jvp, vjp
from verax.ops.custom.base import Remade
from verax.ops.elementwise.select import stop_gradient
from verax.rules.programs.failures import PASSED
from verax.rules.rows.builder import program
from verax.rules.rows.masks import Mask, chosen
from verax.rules.values.array import Array
from verax.transforms.checks.errors import Checked, Failure


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
        found = inlined(error, [stop_gradient(x) for x in xs[:taken]])
        return [*outs[:count], *found, *outs[count:]]

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
