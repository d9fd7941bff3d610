"""Law 10: what a rewrite costs, counted in equations and not in seconds."""

from hypothesis import given

import verax
import verax.numpy as vnp
from verax.ir.walk import count_eqns
from verax.ops.table import ROWS
from verax.rules.rows.row import MissingRule
from verax.verify.cases.case import Case, double_precision, is_double
from verax.verify.checking.functions import ENGINE
from verax.verify.random_programs import composable, programs

# What the longest jvp, transpose and batch rules of one equation write, and a little
# for conversions at the borders. A rule beyond these is a mistake, or a reason to
# raise them here. Folds by any computation, and running ones whose steps are not
# linear, differentiate it once for each halving of what they fold, so their cost is
# one of the sizes and is not held to a constant.
FORWARD, BACKWARD, BATCHED, BORDER = 45, 60, 30, 12
FOLDS = ("reduce", "reduce_window", "cumlogsumexp")
ROWS_WITH_RULES = tuple(
    row for row in composable(ROWS, "jvp", "batch", "lower") if row.name not in FOLDS
)


def active(case: Case) -> tuple[bool, ...]:
    return tuple(
        smooth and aval.tangent().dtype == aval.dtype
        for smooth, aval in zip(case.smooth, case.jaxpr.in_avals, strict=True)
    )


@given(programs(ROWS_WITH_RULES))
def test_derivatives_cost_a_constant_per_equation(case: Case) -> None:
    with double_precision(is_double(case.jaxpr)):
        check_derivative_costs(case)


def check_derivative_costs(case: Case) -> None:
    before = count_eqns(case.jaxpr)
    pushed, _ = ENGINE.jvp(case.jaxpr, active(case))
    assert count_eqns(pushed) <= FORWARD * before + BORDER
    forward, tangent, nonzero = ENGINE.linearize(case.jaxpr, active(case))
    saved = len(tangent.invars) - sum(active(case))
    linear = (False,) * saved + (True,) * sum(active(case))
    try:
        pulled, _ = ENGINE.transpose(tangent, linear, (True,) * sum(nonzero))
    except MissingRule:
        return  # A while loop has no reverse mode.
    both = count_eqns(forward) + count_eqns(pulled)
    assert both <= (FORWARD + BACKWARD) * before + BORDER


@given(programs(ROWS_WITH_RULES))
def test_vmap_costs_a_constant_per_equation(case: Case) -> None:
    axes = tuple(0 for _ in case.jaxpr.invars)
    with double_precision(is_double(case.jaxpr)):
        batched, _ = ENGINE.batch(case.jaxpr, 3, axes)
    assert count_eqns(batched) <= BATCHED * count_eqns(case.jaxpr) + BORDER


@given(programs(ROWS_WITH_RULES))
def test_what_is_not_batched_stays(case: Case) -> None:
    axes = (None,) * len(case.jaxpr.invars)
    same, out_axes = ENGINE.batch(case.jaxpr, 3, axes)
    assert same == case.jaxpr
    assert set(out_axes) <= {None}


def test_inputs_are_residuals_themselves() -> None:
    """The product needs both operands later: they are handed on, not computed again."""
    jaxpr = verax.make_jaxpr(lambda x, y: x * y)(vnp.ones(3), vnp.ones(3)).jaxpr
    forward, tangent, _ = ENGINE.linearize(jaxpr, (True, True))
    assert count_eqns(forward) == 1
    assert forward.outvars[1:] == (forward.invars[1], forward.invars[0])
    assert count_eqns(tangent) == 3


def test_gradient_of_a_chain_is_linear_in_its_length() -> None:
    def chain(length: int) -> int:
        def f(x: verax.Array) -> verax.Array:
            for _ in range(length):
                x = vnp.sin(x) * 2.0
            return x

        return count_eqns(verax.make_jaxpr(verax.grad(f))(vnp.asarray(1.0)).jaxpr)

    assert chain(40) - chain(20) == chain(20) - chain(0)
