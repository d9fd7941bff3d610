"""A transformation writes the same program wherever it writes.

Within a trace `jvp`, `vmap` and `vjp` write into the trace; while somebody observes the
trace they make a program, which is then applied; on values they compute as they go. The
first two must be equal as jaxprs, and the third must give what these evaluate to.

Reverse mode is the exception: on its way into a trace, or on values, it goes through
linear steps, each transposed once, and adds up the contributions of one equation before
those of others. So its programs agree in values, and not in the order of additions.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given

import verax
from property_tests.test_programs import FULL, TINY, few
from verax.api.tracing.apply import apply, as_typed_array
from verax.api.tracing.trace import trace
from verax.backend import pytrees
from verax.explorer.recording import Recording
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float0, is_extended, is_inexact
from verax.ir.jaxpr import Jaxpr
from verax.ops.special.erf_gamma import NoDerivative
from verax.rules.rows.row import NDArray
from verax.verify.cases.case import Case, LawBroken, Skipped, double_precision
from verax.verify.checking.functions import COMPILED, ENGINE
from verax.verify.laws.agreement import Run, agree, well_formed
from verax.verify.laws.derivatives import (
    directions,
    need_forward,
    need_transpose,
    tangent_types,
)
from verax.verify.laws.invariance import compiled_is_evaluate
from verax.verify.random_programs import programs

type Function = Callable[..., Sequence[Any]]


def function_of(jaxpr: Jaxpr) -> Function:
    """The program as a function of arrays."""
    return lambda *xs: tuple(apply(jaxpr, xs))


def program_of(fun: Function, avals: Sequence[ShapedArray]) -> Jaxpr:
    """The program of a function of arrays."""
    _, tree = pytrees.flatten((tuple(avals), {}))
    return trace(fun, tree, avals, "a law").jaxpr


def observed_program(fun: Function, avals: Sequence[ShapedArray]) -> Jaxpr:
    """The program of a function while somebody observes its trace."""
    with Recording().watching():
        return program_of(fun, avals)


def of_active(case: Case, xs: Sequence[Any]) -> tuple[Function, list[Any]]:
    """The program as a function of its active inputs at `xs`, and these."""
    active = case.active

    def fun(*live: Any) -> Sequence[Any]:
        rest = iter(live)
        given = [next(rest) if flag else x for x, flag in zip(xs, active, strict=True)]
        return tuple(apply(case.jaxpr, given))

    return fun, [x for x, flag in zip(xs, active, strict=True) if flag]


def pushed(case: Case) -> tuple[Function, list[ShapedArray], list[NDArray]]:
    """`jvp` of the program, as a function of primals and of tangents of active ones."""
    types = tangent_types(case.jaxpr.in_avals, case.active)
    count = len(case.active)

    def both(*xs: Any) -> Sequence[Any]:
        outs, moved = verax.jvp(*of_active(case, xs[:count]), [*xs[count:]])
        return [*outs, *[t for t in moved if t.dtype != float0]]

    values = [*case.values, *directions(case, types, 3)]
    return both, [*case.jaxpr.in_avals, *types], values


def mapped(case: Case) -> tuple[Function, list[ShapedArray], list[NDArray]]:
    """`vmap` of the program over some of its inputs, at least one."""
    jaxpr, random = case.jaxpr, Random(case.seed)
    axes = [random.choice((0, None)) for _ in jaxpr.in_avals]
    axes[random.randrange(len(axes))] = 0
    size = case.depth
    avals = [
        aval if axis is None else aval.with_shape((size, *aval.shape))
        for aval, axis in zip(jaxpr.in_avals, axes, strict=True)
    ]
    values = [
        stack[0] if axis is None else stack[:size]
        for stack, axis in zip(case.stacks, axes, strict=True)
    ]
    return verax.vmap(function_of(jaxpr), tuple(axes)), avals, values


def pulled(case: Case) -> tuple[Function, list[ShapedArray], list[NDArray]]:
    """`vjp` of the program, as a function of primals and of cotangents."""
    outs = case.jaxpr.out_avals
    types = [aval.cotangent() for aval in outs if is_inexact(aval.dtype)]
    count = len(case.active)

    def both(*xs: Any) -> Sequence[Any]:
        fun, live = of_active(case, xs[:count])
        values, pull = verax.vjp(fun, *live)
        rest = iter(xs[count:])
        cts = tuple(
            next(rest) if is_inexact(aval.dtype) else np.zeros(aval.shape, float0)
            for aval in outs
        )
        return [*values, *pull(cts)]

    values = [*case.values, *directions(case, types, 5)]
    return both, [*case.jaxpr.in_avals, *types], values


def hold(
    case: Case,
    made: tuple[Function, list[ShapedArray], list[NDArray]],
    *,
    equal: bool = True,
) -> None:
    """The law: what is written, what is made, and what is computed are the same."""
    fun, avals, values = made

    def computed(_: Jaxpr, args: Sequence[NDArray]) -> list[NDArray]:
        return [np.asarray(x) for x in fun(*map(as_typed_array, args, avals))]

    written, observed = program_of(fun, avals), observed_program(fun, avals)
    well_formed("writers", case, "the program written into a trace", written)
    if equal:
        assert written == observed, f"{written}\n{observed}"
    run = Run(written, tuple(values))
    expected = ENGINE.evaluate(written, values)
    again = ENGINE.evaluate(observed, values)
    agree("writers", ENGINE, case, "the program made", again, expected, run)
    if not any(is_extended(aval.dtype) for aval in written.out_avals):
        stacks = tuple(x[None] for x in values)
        derived = Case(written, stacks, case.seed)
        try:
            compiled_is_evaluate(computed)(ENGINE, derived)
        except LawBroken:
            # Bodies are compiled, which may round by more than the law allows; then the
            # whole program, compiled, does so too.
            with pytest.raises(LawBroken):
                COMPILED(ENGINE, derived)


@few
@given(programs(FULL, most=TINY, wide=True))
def test_jvp_writes_one_program(case: Case) -> None:
    with double_precision(), suppress(Skipped, NoDerivative):
        need_forward(case)
        hold(case, pushed(case))


@few
@given(programs(FULL, depth=3, most=TINY))
def test_vmap_writes_one_program(case: Case) -> None:
    if case.jaxpr.in_avals:
        with double_precision(), suppress(Skipped, NoDerivative):
            hold(case, mapped(case))


@few
@given(programs(FULL, most=TINY, wide=True))
def test_vjp_agrees_with_the_program_that_it_stands_for(case: Case) -> None:
    with double_precision(), suppress(Skipped, NoDerivative):
        need_transpose(case.jaxpr)
        hold(case, pulled(case), equal=False)
