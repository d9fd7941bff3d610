"""Floor 6: what a rewrite rule gains in digits, and what becomes of derivatives.

One idea: the pattern runs beside a shadow in 200 bits, which says how many digits it
loses and what is exact; the replacement is held to both, and so are the tangents::

    digits_gained(engine, before, after, args)      # by the worst result
"""

from collections.abc import Callable, Iterable, Sequence
from math import log10
from typing import Any, Final

import numpy as np

from verax.ir.avals import ShapedArray, finfo
from verax.ir.dtypes import DType, is_inexact, numpy_dtype
from verax.ir.jaxpr import Jaxpr
from verax.rules.rows.row import NDArray
from verax.transforms.engine.engine import StandardEngine
from verax.transforms.patterns.rewrite_rules import Rewrite
from verax.transforms.precision.arithmetic import Wide
from verax.transforms.precision.measures import (
    LEAST,
    RelativeError,
    roundoff,
    sampled,
    yardstick,
)
from verax.transforms.precision.multiple import InMpmath
from verax.transforms.precision.sites import Cell
from verax.transforms.precision.walking import Walk
from verax.verify.cases.case import Case, Skipped, broken
from verax.verify.laws import Law

SLOPES: Final = 64.0
"""A tangent is the product of a few numbers that are right to a rule's ulps."""
ROOM: Final = 8.0
"""Tangents that are nearer than this to the largest number may overflow on the way."""


def exact_results(
    engine: StandardEngine, jaxpr: Jaxpr, args: Sequence[NDArray]
) -> tuple[InMpmath, list[Cell]]:
    """The results of a program and what they should be, in 200 bits.

    Raises:
        Skipped: there is an operation that mpmath does not know.
    """
    wide = InMpmath(engine)
    cells = Walk(engine, wide).run(jaxpr, args)
    if wide.refused:
        raise Skipped(f"no exact {', '.join(sorted(wide.refused))}")
    return wide, cells


def error_of(wide: InMpmath, value: NDArray, exact: Wide) -> RelativeError:
    """The error of a value against what is exact."""
    known = sampled(wide.widen(np.asarray(value)), 1)
    due = sampled(np.asarray(exact), 1)
    with np.errstate(all="ignore"):
        return yardstick(known, due).error(due)


def digits_gained(
    engine: StandardEngine, before: Jaxpr, after: Jaxpr, args: Sequence[NDArray]
) -> float:
    """The digits that results of `after` have more, of the result that gains least."""
    wide, cells = exact_results(engine, before, args)
    outs = engine.evaluate(after, args)
    gains = []
    for cell, out in zip(cells, outs, strict=True):
        if not is_inexact(out.dtype):
            continue
        now = error_of(wide, out, cell.exact(wide)).mean
        least = max(roundoff(out.dtype), LEAST)
        gains.append(log10(max(cell.error.mean, least) / max(now, least)))
    return min(gains, default=0.0)


def gain_laws(
    rule: Rewrite, replacement_of: Callable[[Jaxpr], Jaxpr]
) -> tuple[Law, Law]:
    """A rule gains the digits that it says, and its derivative is that of the pattern.

    The second law asks for tangents that are not far from the exact ones wherever these
    are finite, so that no branch that is not taken makes NaN of them.
    """

    def gain(engine: StandardEngine, case: Case) -> None:
        after = replacement_of(case.jaxpr)
        digits = digits_gained(engine, case.jaxpr, after, case.values)
        if digits < rule.gain:
            what = f"{rule.name} gains {digits:.1f} digits, not {rule.gain:g}"
            raise broken("gain", case, what, after=after)

    def derivative(engine: StandardEngine, case: Case) -> None:
        check_tangents(engine, rule, case, replacement_of(case.jaxpr))

    return Law("gain", gain), Law("derivative", derivative)


def check_tangents(
    engine: StandardEngine, rule: Rewrite, case: Case, after: Jaxpr
) -> None:
    """The tangents of a replacement are those that exact arithmetic gives the pattern.

    So are its cotangents, which are asked for the sum of all tangents.

    Raises:
        LawBroken: they are not.
    """
    if any(is_small(x) for x in case.values):
        raise Skipped("operands without all of their digits")
    moving = tuple([is_inexact(a.dtype) for a in case.jaxpr.in_avals])
    old, known = engine.jvp(case.jaxpr, moving)
    new, same = engine.jvp(after, moving)
    if known != same or not any(known):
        raise Skipped("results without a tangent")
    ones = [
        np.ones_like(x) for x, flag in zip(case.values, moving, strict=True) if flag
    ]
    args = [*case.values, *ones]
    wide, cells = exact_results(engine, old, args)
    count = len(case.jaxpr.outvars)
    dues = [np.asarray(c.exact(wide)).astype(np.float64) for c in cells[count:]]
    sizes = [float(np.abs(due).max(initial=0)) for due in dues]
    outs = engine.evaluate(new, args)[count:]
    if not all(s < largest(x.dtype) for s, x in zip(sizes, outs, strict=True)):
        return
    for out, due, size in zip(outs, dues, sizes, strict=True):
        off = float(np.abs(out.astype(np.float64) - due).max(initial=0))
        if not off <= allowed(rule, out.dtype, size):
            what = f"the tangent of {rule.name} is not that of its pattern"
            raise broken("derivative", case, what, got=out, want=due, after=after)
    given = cotangents(engine, after, moving, case.values, outs)
    total = float(sum([due.sum() for due in dues]))
    got = float(sum([x.astype(np.float64).sum() for x in given]))
    size = sum([float(np.abs(x.astype(np.float64)).sum()) for x in given], sum(sizes))
    if given and not abs(got - total) <= allowed(rule, given[0].dtype, size):
        what = f"cotangents of {rule.name} are not those of its pattern"
        raise broken("derivative", case, what, got=got, want=total, after=after)


def is_small(x: NDArray) -> bool:
    """Whether there are denormal numbers."""
    if not is_inexact(x.dtype):
        return False
    sizes = np.abs(x)
    return bool(((sizes > 0) & (sizes < finfo(x.dtype).smallest_normal)).any())


def largest(dtype: DType) -> float:
    """The largest size of tangents that are looked at."""
    return float(finfo(dtype).max) / ROOM


def allowed(rule: Rewrite, dtype: DType, size: float) -> float:
    """How far a tangent of some size may be from what is exact."""
    return SLOPES * max(rule.ulps, 1) * 2 * roundoff(dtype) * max(size, 1.0)


def cotangents(
    engine: StandardEngine,
    jaxpr: Jaxpr,
    moving: Sequence[bool],
    values: Sequence[NDArray],
    like: Sequence[NDArray],
) -> list[NDArray]:
    """What ones for the results give the operands; none where there is no way back.

    The tangents of the results are `like` some arrays.
    """
    forward, tangent, _ = engine.linearize(jaxpr, tuple(moving))
    kept = engine.evaluate(forward, values)[len(jaxpr.outvars) :]
    linear = [False] * len(kept) + [True] * (len(tangent.invars) - len(kept))
    ones = (True,) * len(tangent.outvars)
    try:
        backward, _ = engine.transpose(tangent, tuple(linear), ones)
    except (TypeError, NotImplementedError, ValueError):
        return []
    return engine.evaluate(backward, [*kept, *[np.ones_like(x) for x in like]])


def weak_cases(
    rule: Rewrite, pattern_of: Callable[[Sequence[ShapedArray], float | None], object]
) -> list[Case]:
    """Cases of the operands for which a rule says that its pattern loses digits.

    `pattern_of` makes the pattern on some types, with a scalar as a literal, or None.
    """
    return [
        case
        for avals in rule.samples()[:1]
        for operands in rule.weak
        for case in cases_of(avals, operands, pattern_of)
    ]


def cases_of(
    avals: Sequence[ShapedArray],
    operands: Sequence[object],
    pattern_of: Callable[[Sequence[ShapedArray], float | None], Any],
) -> Iterable[Case]:
    """The cases of some operands: scalars are inputs, or else literals."""
    if len(avals) != len(operands):
        raise ValueError(
            f"weak has {len(operands)} operands for {len(avals)} variables"
        )
    values = [
        np.resize(np.asarray(x, np.float64), a.shape).astype(numpy_dtype(a.dtype))
        for x, a in zip(operands, avals, strict=True)
    ]
    scalars = [
        float(np.asarray(x))
        for x, a in zip(operands, avals, strict=True)
        if not a.shape
    ]
    for scalar in (None, *scalars[-1:]):
        jaxpr = pattern_of(avals, scalar)
        if jaxpr is None:
            continue
        own = [x for x in values if scalar is None or x.shape]
        yield Case(jaxpr, tuple([x[None] for x in own]), 0)
        return
