"""Series, as `verax.experimental.jet` makes them, go through every differentiable row.

It is a law of one's own, tried on the calls that rows draw, as those of the kit are.
"""

from collections.abc import Sequence

import numpy as np
import pytest

from verax.experimental.jet import DERIVED, TAYLOR
from verax.extend import PRIMITIVES, Parts, Propagation
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import is_float
from verax.ir.jaxpr import Jaxpr
from verax.ops.calls.call import inlined
from verax.rules.rows.builder import program
from verax.rules.rows.row import NDArray
from verax.rules.values.array import Array
from verax.transforms.engine.engine import StandardEngine
from verax.verify import Skipped, check_primitive
from verax.verify.cases.case import Case, broken
from verax.verify.laws import Law

ROWS = [n for n, row in PRIMITIVES.items() if row.jvp is not None and row.draw]


def along(jaxpr: Jaxpr, active: tuple[bool, ...], xs: Sequence[Array]) -> list[Parts]:
    """The inputs of a program as series of order 2 along a line."""
    ways = iter(xs[len(jaxpr.invars) :])
    pairs = zip(xs[: len(jaxpr.invars)], active, strict=True)
    return [(x, next(ways), None) if flag else (x,) for x, flag in pairs]


def filled(xs: Sequence[Array | None], like: Sequence[Array]) -> list[Array]:
    return [y * 0 if x is None else x for x, y in zip(xs, like, strict=True)]


def by_series(table: Propagation, jaxpr: Jaxpr, active: tuple[bool, ...]) -> Jaxpr:
    """(inputs, direction) to the slope and the curvature, by a series."""

    def body(*xs: Array) -> list[Array]:
        outs = table(jaxpr, along(jaxpr, active, xs))
        values = [y[0] for y in outs if y[0] is not None]
        first = filled([y[1] if len(y) > 1 else None for y in outs], values)
        second = filled([y[2] if len(y) > 2 else None for y in outs], values)
        return [*first, *[2 * y for y in second]]

    return program(both(jaxpr, active), body)


def by_jvps(engine: StandardEngine, jaxpr: Jaxpr, active: tuple[bool, ...]) -> Jaxpr:
    """The same by a jvp of a jvp."""
    slope, mask = engine.jvp(jaxpr, active)
    again, live = engine.jvp(slope, (*active, *[False] * sum(active)))
    size = len(jaxpr.outvars)

    def body(*xs: Array) -> list[Array]:
        outs = inlined(again, [*xs, *xs[len(jaxpr.invars) :]])
        values, rest = outs[:size], iter(outs[size : len(live)])
        first = filled([next(rest) if flag else None for flag in mask], values)
        ends = iter(outs[len(live) :])
        pushed = [next(ends) if flag else None for flag in live][size:]
        more = iter(pushed)
        second = filled([next(more) if flag else None for flag in mask], values)
        return [*first, *second]

    return program(both(jaxpr, active), body)


def both(jaxpr: Jaxpr, active: tuple[bool, ...]) -> list[ShapedArray]:
    avals = zip(jaxpr.in_avals, active, strict=True)
    return [*jaxpr.in_avals, *[a for a, flag in avals if flag]]


def second_order(engine: StandardEngine, case: Case) -> None:
    """Two coefficients along a line are the slope and half of the curvature."""
    jaxpr, active = case.jaxpr, case.active
    moving = [a for a, flag in zip(jaxpr.in_avals, active, strict=True) if flag]
    if not moving or not all(is_float(a.dtype) for a in moving):
        raise Skipped("this is no function of real numbers")
    random = case.random()
    args: list[NDArray] = [*case.values]
    for x, flag in zip(case.values, active, strict=True):
        if flag:
            way = [random.uniform(-1, 1) for _ in range(x.size)]
            args.append(np.asarray(way, x.dtype).reshape(x.shape))
    want = engine.evaluate(by_jvps(engine, jaxpr, active), args)
    if not all(np.all(np.isfinite(y)) for y in want):
        raise Skipped("a derivative is not finite here")
    for table in (TAYLOR, DERIVED):
        actual = engine.evaluate(by_series(table, jaxpr, active), args)
        for got, due in zip(actual, want, strict=True):
            size = np.max(np.abs(due), initial=1e-3)
            if not np.allclose(got, due, rtol=1e-7, atol=1e-7 * size):
                raise broken("taylor", case, "another derivative", got=got, want=due)


TAYLOR_LAW = Law("taylor", second_order, wide=True, columns=("jvp",))


@pytest.mark.parametrize("name", ROWS)
def test_series_are_nested_jvps(name: str) -> None:
    check_primitive(name, laws=[TAYLOR_LAW], cases=3, seed=1).raise_if_broken()
