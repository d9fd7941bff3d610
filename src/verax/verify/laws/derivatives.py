"""Floor 6: the laws of forward mode.

One idea: evaluation is the only truth, and a derivative is what differences of it
tend to; where they do not tend to anything, the law says nothing::

    jvp(f, x, v) = (f(x + h v) - f(x - h v)) / 2h        as h goes to zero
"""

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from attrs import evolve, frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import complex128, float64, is_complex, is_inexact, numpy_dtype
from verax.ir.jaxpr import Eqn, Jaxpr, Params
from verax.ir.records import ReprMixin
from verax.ir.walk import interpret, walk
from verax.ops.control.while_ import while_p
from verax.ops.indexing.gather_impl import FILL, GatherParams, evaluate_gather
from verax.ops.indexing.geometry import GatherScatterMode
from verax.ops.indexing.scatter_impl import ScatterParams, reading
from verax.rules.rows.infer import Mask
from verax.rules.rows.row import NDArray
from verax.transforms.engine.engine import (
    StandardEngine,
    evaluate_eqn,
    literal_value,
)
from verax.verify.cases.case import Case, Skipped, broken, reverse_only
from verax.verify.cases.nested import DRAWS
from verax.verify.cases.tolerance import Difference, sensitivity
from verax.verify.laws.agreement import SLACK, Run, agree, has_types, well_formed, zeros

PROMISED = GatherScatterMode.PROMISE_IN_BOUNDS.value
STEP = 1e-4
"""The extrapolated difference errs by STEP^4 (curvature) and eps / STEP (rounding)."""
RELATIVE = 1e-6
NOISE = 1e-10


def tangent_types(avals: Sequence[ShapedArray], mask: Mask) -> list[ShapedArray]:
    """The tangent types of what the mask marks."""
    return [a.tangent() for a, flag in zip(avals, mask, strict=True) if flag]


def directions(case: Case, avals: Sequence[ShapedArray], salt: int) -> list[NDArray]:
    """Random arrays of the types, of size about one; zeros of integer types."""
    random = np.random.default_rng((case.seed, salt))
    out = []
    for aval in avals:
        x = random.uniform(-1, 1, aval.shape)
        if is_complex(aval.dtype):
            x = x + 1j * random.uniform(-1, 1, aval.shape)
        out.append(np.asarray(x).astype(numpy_dtype(aval.dtype)))
    return out


def need_double(case: Case) -> None:
    """Skip programs that do not compute in double precision from end to end."""
    avals = (*case.jaxpr.in_avals, *case.jaxpr.out_avals)
    if not any(case.active):
        raise Skipped("no operand has a tangent")
    if any(is_inexact(a.dtype) and a.dtype not in (float64, complex128) for a in avals):
        raise Skipped("the row does not compute in double precision")
    if case.row is None and any(
        is_inexact(v.aval.dtype) and v.aval.dtype not in (float64, complex128)
        for _, eqn in walk(case.jaxpr)
        for v in eqn.outvars
    ):
        raise Skipped("the program does not compute in double precision inside")


def need_promises(engine: StandardEngine, case: Case) -> None:
    """Skip programs in which an index is out of bounds that is promised not to be.

    What such an access reads is not said, so its derivative in forward mode and its
    transpose may each make something else of it.
    """
    if any([promised(eqn) for _, eqn in walk(case.jaxpr)]):
        looking = Looking(engine.rules, engine.core, engine.axis)
        looking.evaluate(case.jaxpr, case.values)


class Looking(StandardEngine):
    """Evaluates a program and looks at the indices of all equations, nested ones too.

    Raises:
        Skipped: one breaks its promise to be in bounds.
    """

    def evaluate(self, jaxpr: Jaxpr, args: Sequence[NDArray]) -> list[NDArray]:
        def results(eqn: Eqn, operands: list[NDArray]) -> list[NDArray]:
            if promised(eqn) and leaves_bounds(eqn.params, operands):
                raise Skipped("an index breaks its promise to be in bounds")
            return evaluate_eqn(self, eqn, operands)

        return interpret(jaxpr, args, results, literal_value)


def promised(eqn: Eqn) -> bool:
    """Whether an equation promises that its indices are in bounds."""
    return getattr(eqn.params, "mode", None) == PROMISED


def leaves_bounds(p: Params, operands: Sequence[NDArray]) -> bool:
    """Whether a gather or scatter reaches beyond its operand."""
    x, indices, *updates = operands
    if isinstance(p, ScatterParams):
        p = reading(p, x.shape, updates[0].shape)
    assert isinstance(p, GatherParams)
    filling = evolve(p, mode=FILL, fill_value=-1)
    places = evaluate_gather(filling, np.zeros(x.shape, int), indices)
    return bool(np.any(places < 0))


def need_forward(case: Case) -> None:
    """Skip programs that have no forward mode."""
    if reverse_only(case.jaxpr):
        raise Skipped("a custom_vjp rule is for reverse mode only")


def need_transpose(tangent: Jaxpr) -> None:
    """Skip linear programs that no reverse mode goes through."""
    if any(eqn.primitive is while_p for _, eqn in walk(tangent)):
        raise Skipped("a while loop has no reverse mode")


def filled(
    avals: Sequence[ShapedArray], mask: Mask, live: Sequence[NDArray]
) -> list[NDArray]:
    """Tangents of all outputs: those given, and zeros where the mask says none."""
    rest = iter(live)
    return [
        next(rest) if flag else zeros(aval.tangent())
        for aval, flag in zip(avals, mask, strict=True)
    ]


def jvp_is_difference(engine: StandardEngine, case: Case) -> None:
    """Tangents of `jvp` are central differences of `evaluate`, where those exist."""
    need_double(case)
    jaxpr, values = case.jaxpr, case.values
    active = case.active
    need_forward(case)
    program, mask = engine.jvp(jaxpr, active)
    well_formed("jvp", case, "the tangent program", program)
    inputs = [*jaxpr.in_avals, *tangent_types(jaxpr.in_avals, active)]
    outputs = [*jaxpr.out_avals, *tangent_types(jaxpr.out_avals, mask)]
    has_types("jvp", case, "the operands of jvp", program.in_avals, inputs)
    has_types("jvp", case, "the result of jvp", program.out_avals, outputs)
    tangents = directions(case, tangent_types(jaxpr.in_avals, active), 1)
    result = engine.evaluate(program, (*values, *tangents))
    count = len(jaxpr.outvars)
    plain = engine.evaluate(jaxpr, values)
    run = Run(jaxpr, values)
    what = "jvp changes the result"
    agree("jvp", engine, case, what, result[:count], plain, run, after=program)
    pushed = filled(jaxpr.out_avals, mask, result[count:])
    full = filled(jaxpr.in_avals, active, tangents)
    held = compare_differences(engine, case, full, pushed, program)
    if not held:
        raise Skipped("no element has a central difference here")


def compare_differences(
    engine: StandardEngine,
    case: Case,
    tangents: Sequence[NDArray],
    pushed: Sequence[NDArray],
    program: Jaxpr,
) -> int:
    """Hold tangents to differences; how many elements could be held."""
    held = 0
    for i, d in enumerate(differences(engine, case, tangents)):
        aval = case.jaxpr.out_avals[i]
        if not is_inexact(aval.dtype):
            continue
        with np.errstate(all="ignore"):
            wrong = d.exists & ~(np.abs(pushed[i] - d.value) <= d.allowed)
        held += int(np.sum(d.exists))
        if np.any(wrong):
            index = tuple(int(k) for k in np.argwhere(wrong)[0])
            first = Difference(
                index, pushed[i][index], d.value[index], float(d.allowed[index])
            )
            raise broken(
                "jvp",
                case,
                f"the tangent of result {i} is not the central difference "
                f"along {[t.tolist() for t in tangents if t.dtype.names is None]}",
                got=pushed[i],
                want=d.value,
                first=first,
                after=program,
            )
    return held


@frozen(repr=False)
class Slope(ReprMixin):
    """A derivative by differences: its value, its error, and where it exists."""

    value: NDArray
    allowed: NDArray
    exists: NDArray


def differences(
    engine: StandardEngine, case: Case, tangents: Sequence[NDArray]
) -> Iterator[Slope]:
    """The central differences of every output along the tangents.

    Differences with two steps tell whether there is a derivative: if they disagree,
    a kink or a jump is near. That looks at `evaluate` only, never at the rule.
    """
    centre = engine.evaluate(case.jaxpr, case.values)
    wide = slope(engine, case, tangents, STEP)
    near = slope(engine, case, tangents, STEP / 2)
    for y, a, b in zip(centre, wide, near, strict=True):
        if not is_inexact(y.dtype):
            yield Slope(y, y, np.zeros(y.shape, bool))
            continue
        with np.errstate(all="ignore"):
            value = (4 * b - a) / 3
            error = np.abs(a - b)
            top = largest(np.abs(value))
            allowed = RELATIVE * (np.abs(value) + top) + 10 * error
            allowed += NOISE * largest(np.abs(y))
            exists = error <= 1e-4 * (np.abs(value) + top + largest(np.abs(y)))
        yield Slope(value, allowed, exists & np.isfinite(value) & np.isfinite(y))


def jvp_is_between_slopes(engine: StandardEngine, case: Case) -> None:
    """Where a function has a kink, its tangent lies between the slopes of both sides.

    At ties, zeros and other special points a derivative may be a convention, but not
    any number: the slopes to the left and to the right along the tangent bound it. All
    elements of an operand move alike (where three tie that move apart, the slopes say
    less), and half of the time all operands do, so that ties stay ties.
    """
    need_double(case)
    if case.row is None or case.row in DRAWS:
        raise Skipped("conventions at kinks do not compose")
    jaxpr, values, active = case.jaxpr, case.values, case.active
    program, mask = engine.jvp(jaxpr, active)
    types = tangent_types(jaxpr.in_avals, active)
    speeds = (1.0, 1.0 if case.seed % 2 or len(types) > 2 else -0.5)
    tangents = [
        np.full(aval.shape, speeds[i % 2], numpy_dtype(aval.dtype))
        for i, aval in enumerate(types)
    ]
    result = engine.evaluate(program, (*values, *tangents))
    pushed = filled(jaxpr.out_avals, mask, result[len(jaxpr.outvars) :])
    full = filled(jaxpr.in_avals, active, tangents)
    left, right = (one_sided(engine, case, full, sign) for sign in (-1, 1))
    held = 0
    for i, (a, b, t) in enumerate(zip(left, right, pushed, strict=True)):
        aval = jaxpr.out_avals[i]
        if not is_inexact(aval.dtype) or is_complex(aval.dtype):
            continue
        allowed = np.maximum(a.allowed, b.allowed)
        low, high = np.minimum(a.value, b.value), np.maximum(a.value, b.value)
        exists = a.exists & b.exists
        with np.errstate(all="ignore"):
            wrong = exists & ~((t >= low - allowed) & (t <= high + allowed))
        held += int(np.sum(exists))
        if np.any(wrong):
            index = tuple(int(k) for k in np.argwhere(wrong)[0])
            slopes = f"a slope from {low[index]} to {high[index]}"
            first = Difference(index, t[index], slopes, float(allowed[index]))
            what = (
                f"the tangent of result {i} is not between the slopes of both sides "
                f"along {[x.tolist() for x in full if x.dtype.names is None]}"
            )
            sides = f"{low.tolist()} to {high.tolist()}"
            raise broken(
                "special", case, what, got=t, want=sides, first=first, after=program
            )
    if not held:
        raise Skipped("no element has slopes on both sides here")


def one_sided(
    engine: StandardEngine, case: Case, tangents: Sequence[NDArray], sign: int
) -> Iterator[Slope]:
    """The slopes of every output on one side, extrapolated from two steps.

    Where large operands cancel, what is left of them is the rounding of differences.
    """
    centre = engine.evaluate(case.jaxpr, case.values)
    rounding = NOISE * sum(
        largest(np.abs(x))
        for x, t in zip(case.values, tangents, strict=True)
        if t.dtype.names is None
    )
    ends = [
        engine.evaluate(
            case.jaxpr,
            [
                x if t.dtype.names is not None else np.asarray(x + sign * step * t)
                for x, t in zip(case.values, tangents, strict=True)
            ],
        )
        for step in (STEP, STEP / 2)
    ]
    for y, far, near in zip(centre, *ends, strict=True):
        if not is_inexact(y.dtype):
            yield Slope(y, y, np.zeros(y.shape, bool))
            continue
        with np.errstate(all="ignore"):
            a, b = sign * (far - y) / STEP, sign * (near - y) / (STEP / 2)
            value, error = 2 * b - a, np.abs(a - b)
            size = np.abs(value) + largest(np.abs(y))
            allowed = RELATIVE * size + 0.1 * error + rounding
            exists = error <= 1e-3 * size
        yield Slope(value, allowed, exists & np.isfinite(value) & np.isfinite(y))


def largest(x: NDArray) -> float:
    """The largest finite element, or zero."""
    finite = x[np.isfinite(x)]
    return float(finite.max()) if finite.size else 0.0


def slope(
    engine: StandardEngine, case: Case, tangents: Sequence[NDArray], step: float
) -> list[NDArray]:
    sides = []
    for sign in (1, -1):
        moved = [
            x if t.dtype.names is not None else np.asarray(x + sign * step * t)
            for x, t in zip(case.values, tangents, strict=True)
        ]
        sides.append(engine.evaluate(case.jaxpr, moved))
    with np.errstate(all="ignore"):
        return [
            (p - m) / (2 * step) if is_inexact(p.dtype) else p
            for p, m in zip(*sides, strict=True)
        ]


def mask_is_honest(engine: StandardEngine, case: Case) -> None:
    """A tangent left out is zero: `jvp` with fewer tangents is `jvp` with zeros."""
    jaxpr, values, active = case.jaxpr, case.values, case.active
    if not any(active):
        raise Skipped("no operand has a tangent")
    random = case.random()
    need_forward(case)
    chosen = tuple(flag and random.random() < 0.5 for flag in active)
    full, full_mask = engine.jvp(jaxpr, active)
    part, part_mask = engine.jvp(jaxpr, chosen)
    what = f"jvp in {chosen}"
    well_formed("mask", case, what, part)
    if any(p and not f for p, f in zip(part_mask, full_mask, strict=True)):
        raise broken("mask", case, f"{what} has tangents that jvp in all lacks")
    if not any(chosen) and any(part_mask):
        raise broken("mask", case, "jvp without tangents gives tangents")
    tangents = directions(case, tangent_types(jaxpr.in_avals, chosen), 2)
    every = filled(jaxpr.in_avals, chosen, tangents)
    some = [t for t, flag in zip(every, active, strict=True) if flag]
    run = Run(rest_of(full, len(jaxpr.outvars), full_mask), (*values, *some))
    want = engine.evaluate(run.jaxpr, run.args)
    result = engine.evaluate(part, (*values, *tangents))[len(jaxpr.outvars) :]
    got = filled(jaxpr.out_avals, part_mask, result)
    # Where a zero meets an infinity, leaving it out is the better answer.
    live = [
        np.where(np.isfinite(y), x, y)
        for x, y in zip(
            [x for x, flag in zip(got, full_mask, strict=True) if flag],
            want,
            strict=True,
        )
    ]
    agree("mask", engine, case, f"{what} is not jvp with zeros", live, want, run)


def rest_of(jaxpr: Jaxpr, count: int, mask: Mask) -> Jaxpr:
    """The tangent outputs of a tangent program."""
    return Jaxpr((), jaxpr.invars, jaxpr.eqns, jaxpr.outvars[count:])


# -----------------------------------------------------------------------------
# The laws of transposition, by which reverse mode is held to forward mode.
#
# A linear map and its transpose agree on one number for random arguments, so
# no formula of a derivative is ever repeated here::
#
#     <ct, J v> = <J' ct, v>        <x, y> = Re(sum of x y), without conjugates


type Product = tuple[float, float]
DUALITY = 1e-9
"""Sums of products in double precision, relative to the sum of their sizes."""


def transpose_is_dual(engine: StandardEngine, case: Case) -> None:
    """`linearize` is `jvp` in two programs, and `<ct, J v> = <J' ct, v>`."""
    need_double(case)
    need_promises(engine, case)
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
    need_promises(engine, case)
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
    need_promises(engine, case)
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
