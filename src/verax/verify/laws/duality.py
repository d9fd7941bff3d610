"""Floor 6: the laws of transposition, by which reverse mode is held to forward mode.

One idea: a linear map and its transpose agree on one number for random arguments, so
no formula of a derivative is ever repeated here::

    <ct, J v> = <J' ct, v>        <x, y> = Re(sum of x y), without conjugates
"""

from collections.abc import Callable, Sequence

import numpy as np

from verax.ir.dtypes import is_inexact
from verax.ir.jaxpr import Jaxpr
from verax.rules.rows.row import NDArray
from verax.transforms.engine.engine import StandardEngine
from verax.verify.cases.case import Case, Skipped, broken
from verax.verify.cases.nested import DRAWS
from verax.verify.cases.tolerance import sensitivity
from verax.verify.laws.agreement import SLACK, Run, agree, has_types, well_formed
from verax.verify.laws.derivatives import (
    differences,
    directions,
    filled,
    largest,
    need_double,
    need_forward,
    need_transpose,
    rest_of,
    tangent_types,
)

type Product = tuple[float, float]
DUALITY = 1e-9
"""Sums of products in double precision, relative to the sum of their sizes."""


def transpose_is_dual(engine: StandardEngine, case: Case) -> None:
    """`linearize` is `jvp` in two programs, and `<ct, J v> = <J' ct, v>`."""
    need_double(case)
    need_forward(case)
    jaxpr, values = case.jaxpr, case.values
    forward, tangent, mask = engine.linearize(jaxpr, case.active)
    well_formed("linear", case, "the forward program", forward)
    well_formed("linear", case, "the linear program", tangent)
    count = len(jaxpr.outvars)
    outs = engine.evaluate(forward, values)
    plain, saved = engine.evaluate(jaxpr, values), outs[count:]
    what = "linearize changes the result"
    agree("linear", engine, case, what, outs[:count], plain, Run(jaxpr, values))
    vs = directions(case, tangent_types(jaxpr.in_avals, case.active), 3)
    linear = Run(tangent, (*saved, *vs))
    pushed = engine.evaluate(tangent, linear.args)
    program, other = engine.jvp(jaxpr, case.active)
    if mask != other:
        what = "linearize and jvp have other tangents"
        raise broken("linear", case, what, got=mask, want=other)
    joint = Run(rest_of(program, count, mask), (*values, *vs))
    want = engine.evaluate(joint.jaxpr, joint.args)
    agree("linear", engine, case, "linearize differs from jvp", pushed, want, joint)
    need_transpose(tangent)
    hold_dual(engine, case, linear, len(saved), pushed)


def hold_dual(
    engine: StandardEngine,
    case: Case,
    linear: Run,
    known: int,
    pushed: Sequence[NDArray],
) -> None:
    """Transpose the linear program for some cotangents, and compare the products."""
    tangent, saved, vs = linear.jaxpr, linear.args[:known], linear.args[known:]
    random = case.random()
    given = tuple(len(pushed) == 1 or random.random() < 0.7 for _ in pushed)
    mask = (False,) * known + (True,) * len(vs)
    back, live = engine.transpose(tangent, mask, given)
    what = f"the transpose for cotangents of {given}"
    well_formed("linear", case, what, back)
    targets = tangent.in_avals[known:]
    due = tangent_types(targets, live)
    has_types("linear", case, what, back.out_avals, due)
    cts = directions(case, tangent_types(tangent.out_avals, given), 4)
    backward = Run(back, (*saved, *cts))
    pulled = filled(targets, live, engine.evaluate(back, backward.args))
    chosen = [y for y, flag in zip(pushed, given, strict=True) if flag]

    def noise() -> float:
        ends = filled(tangent.out_avals, given, cts)
        marked = [v for v, flag in zip(vs, live, strict=True) if flag]
        return effect(engine, linear, ends) + effect(engine, backward, marked)

    both = product(cts, chosen), product(pulled, vs)
    hold_equal("linear", case, what, *both, noise, back)


def effect(engine: StandardEngine, run: Run, weights: Sequence[NDArray]) -> float:
    """The effect of rounding errors within a program on its product with weights."""
    spread = sensitivity(engine, run.jaxpr, run.args, jumps=True)
    pairs = zip(spread, weights, strict=True)
    return SLACK * sum(float(np.nansum(s * np.abs(w))) for s, w in pairs)


def hold_equal(
    law: str,
    case: Case,
    what: str,
    left: Product,
    right: Product,
    noise: Callable[[], float],
    after: Jaxpr,
) -> None:
    """Raise unless both products are one number, to rounding errors."""
    if not np.isfinite(left[0]):
        raise Skipped("the derivative is not finite here")
    distance, allowed = abs(left[0] - right[0]), DUALITY * (left[1] + right[1])
    if distance <= allowed or distance <= allowed + noise():
        return
    text = f"<J' ct, v> is not <ct, J v>: {what}"
    raise broken(law, case, text, got=right[0], want=left[0], after=after)


def product(xs: Sequence[NDArray], ys: Sequence[NDArray]) -> Product:
    """The real part of the sum of products, and the sum of their sizes.

    There are no conjugates. A complex number is a pair of real ones here, or maps such
    as `conj` and `real`, which are linear over the reals only, had no transpose.
    """
    with np.errstate(all="ignore"):
        terms = [np.ravel(x * y) for x, y in zip(xs, ys, strict=True)]
        joined = np.concatenate([np.zeros(0), *terms])
        return float(np.sum(joined).real), float(np.sum(np.abs(joined)))


def vjp_is_difference(engine: StandardEngine, case: Case) -> None:
    """Cotangents pulled back meet central differences: `<J' ct, v>` is `<ct, slope>`.

    This looks at reverse mode alone, so it holds rules to their mathematics that say
    nothing else (custom_vjp).
    """
    need_double(case)
    jaxpr, values, active = case.jaxpr, case.values, case.active
    forward, tangent, mask = engine.linearize(jaxpr, active)
    need_transpose(tangent)
    saved = engine.evaluate(forward, values)[len(jaxpr.outvars) :]
    types = tangent_types(jaxpr.in_avals, active)
    known = (False,) * len(saved) + (True,) * len(types)
    back, live = engine.transpose(tangent, known, (True,) * sum(mask))
    well_formed("vjp", case, "the pullback", back)
    cts = directions(case, tangent_types(jaxpr.out_avals, mask), 10)
    pulled = filled(types, live, engine.evaluate(back, (*saved, *cts)))
    vs = directions(case, types, 11)
    ends = filled(jaxpr.out_avals, mask, cts)
    slopes = list(differences(engine, case, filled(jaxpr.in_avals, active, vs)))
    left, allowed = 0.0, 0.0
    for slope, ct, aval in zip(slopes, ends, jaxpr.out_avals, strict=True):
        if not is_inexact(aval.dtype):
            continue
        if not np.all(slope.exists):
            raise Skipped("some element has no central difference here")
        left += float(np.sum(slope.value * ct).real)
        allowed += float(np.sum(np.abs(slope.allowed * ct)))
    right, size = product(pulled, vs)
    if not np.isfinite(right) or abs(left - right) > allowed + 1e-6 * size:
        what = "<J' ct, v> is not <ct, central difference along v>"
        raise broken("vjp", case, what, got=right, want=left, after=back)


def cotangent_types(engine: StandardEngine, case: Case) -> None:
    """A cotangent has the type of its input's tangent, in the dtypes of the row."""
    jaxpr = case.jaxpr
    active = case.active
    if not any(active):
        raise Skipped("no operand has a tangent")
    random = case.random()
    chosen = tuple(flag and random.random() < 0.7 for flag in active)
    _, tangent, mask = engine.linearize(jaxpr, chosen)
    need_transpose(tangent)
    well_formed("cotangents", case, f"the linear program in {chosen}", tangent)
    due = tangent_types(jaxpr.in_avals, chosen)
    has_types(
        "cotangents",
        case,
        "the linear program",
        tangent.out_avals,
        tangent_types(jaxpr.out_avals, mask),
    )
    saved = len(tangent.in_avals) - len(due)
    linear = (False,) * saved + (True,) * len(due)
    back, live = engine.transpose(tangent, linear, (True,) * len(tangent.outvars))
    well_formed("cotangents", case, f"the transposed program in {chosen}", back)
    has_types(
        "cotangents",
        case,
        f"the cotangents of {chosen}",
        back.out_avals,
        tangent_types(due, live),
    )


def transpose_is_adjoint(engine: StandardEngine, case: Case) -> None:
    """The transpose of a program in operands in which it is linear is its adjoint.

    Whether it is linear in them is found out by evaluating, not by asking the rule.
    """
    need_double(case)
    if case.row is None or case.row in DRAWS:
        raise Skipped("a program may be linear although its equations are not")
    jaxpr, random = case.jaxpr, case.random()
    places = [i for i, flag in enumerate(case.active) if flag]
    if random.random() < 0.6:
        places = [random.choice(places)]
    linear = tuple([i in places for i in range(len(jaxpr.invars))])
    types = [jaxpr.in_avals[i] for i in places]
    v, w = directions(case, types, 5), directions(case, types, 6)
    said = len(places) == 1 and case.row.transpose is not None
    if not said and any(t.size == 0 for t in types):
        raise Skipped("every map of nothing is linear, also that of a product")
    image = linear_image(engine, case, places, v, w)
    mask = tuple([is_inexact(a.dtype) for a in jaxpr.out_avals])
    if not any(mask):
        raise Skipped("no result has a cotangent")
    back, live = engine.transpose(jaxpr, linear, mask)
    well_formed("adjoint", case, f"the transpose in {places}", back)
    has_types(
        "adjoint",
        case,
        f"the transpose in {places}",
        back.out_avals,
        [t for t, flag in zip(types, live, strict=True) if flag],
    )
    known = [x for x, flag in zip(case.values, linear, strict=True) if not flag]
    cts = directions(case, tangent_types(jaxpr.out_avals, mask), 7)
    pulled = filled(types, live, engine.evaluate(back, (*known, *cts)))
    image = [y for y, flag in zip(image, mask, strict=True) if flag]
    what = f"the transpose in operands {places}"
    both = product(cts, image), product(pulled, v)
    hold_equal("adjoint", case, what, *both, lambda: 0.0, back)


def linear_image(
    engine: StandardEngine,
    case: Case,
    places: Sequence[int],
    v: Sequence[NDArray],
    w: Sequence[NDArray],
) -> list[NDArray]:
    """The values at `v` in the given places, if the program is linear in them."""

    def at(xs: Sequence[NDArray]) -> list[NDArray]:
        values = list(case.values)
        for i, x in zip(places, xs, strict=True):
            values[i] = x
        return engine.evaluate(case.jaxpr, values)

    image, other = at(v), at(w)
    if all(y.size == 0 for y in image):
        raise Skipped("every map to nothing is linear, also a product")
    for i in range(len(places)) if len(places) > 1 else ():
        alone = at([x if i == j else 0 * x for j, x in enumerate(v)])
        if not any(np.any(y) for y in alone):
            raise Skipped("without one of its factors, a product is linear by chance")
    total = at([2 * x - 3 * y for x, y in zip(v, w, strict=True)])
    for a, b, c in zip(image, other, total, strict=True):
        if not is_inexact(a.dtype):
            continue
        with np.errstate(all="ignore"):
            error = np.abs(2 * a - 3 * b - c)
            size = np.abs(a) + np.abs(b) + np.abs(c)
        if not np.all(error <= 1e-9 * (largest(size) + 1e-300)):
            raise Skipped("the row is not linear in these operands")
    return image
