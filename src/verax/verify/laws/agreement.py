"""Floor 6: comparing what two programs compute, and programs themselves.

One idea: results are first held to a few units in the last place; only where that
fails is it measured how much rounding errors matter there, and allowed for::

    agree("vmap", engine, case, "differs from the loop", got, want, Run(jaxpr, args))
"""

from collections.abc import Sequence
from random import Random

import numpy as np
from attrs import frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import numpy_dtype
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.ir.reports.check import IllTyped, check_jaxpr
from verax.rules.rows.infer import inferred
from verax.rules.rows.row import Axis, NDArray
from verax.transforms.engine.engine import StandardEngine
from verax.verify.cases.case import Case, Skipped, broken, types_text
from verax.verify.cases.tolerance import ULPS, difference, own_errors, sensitivity

SLACK = 16.0
"""How often the measured effect of rounding errors may be exceeded: few runs see less
than the worst, and a sum of n terms may be taken in any order."""


@frozen(repr=False)
class Run(ReprMixin):
    """A program and arguments at which its rounding errors are measured.

    With `reference`, the error that the interpreter itself makes counts, too.
    """

    jaxpr: Jaxpr
    args: tuple[NDArray, ...]
    reference: bool = False


def agree(
    law: str,
    engine: StandardEngine,
    case: Case,
    what: str,
    got: Sequence[NDArray],
    want: Sequence[NDArray],
    run: Run | None = None,
    ulps: float = ULPS,
    *,
    after: Jaxpr | None = None,
) -> None:
    """Raise unless two lists of results agree; `run` gives the outputs of `want`.

    `after` is the program that gave `got`, for the message.

    Raises:
        LawBroken: they do not, with the first difference.
    """
    if len(got) != len(want):
        count = f"{what}: {len(got)} results instead of {len(want)}"
        raise broken(law, case, count, after=after)
    slack: list[NDArray] | None = None
    for i, (x, y) in enumerate(zip(got, want, strict=True)):
        first = difference(x, y, ulps=ulps)
        if first is None:
            continue
        if run is not None and x.shape == y.shape and x.dtype == y.dtype:
            slack = slack or measured(engine, case, run)
            first = difference(x, y, ulps=ulps, slack=SLACK * slack[i])
        if first is not None:
            text = f"{what} (result {i})"
            raise broken(law, case, text, got=x, want=y, first=first, after=after)


def measured(engine: StandardEngine, case: Case, run: Run) -> list[NDArray]:
    """The effect of rounding errors; in the call of one row, jumps are due exactly."""
    single = len(case.jaxpr.eqns) == 1
    spread = sensitivity(engine, run.jaxpr, run.args, jumps=not single)
    if not (single and run.reference):
        return spread
    own = own_errors(engine, run.jaxpr, run.args)
    return [s + e for s, e in zip(spread, own, strict=True)]


def well_formed(law: str, case: Case, what: str, jaxpr: Jaxpr) -> None:
    """Raise unless the type checker accepts a derived program."""
    try:
        check_jaxpr(jaxpr, inferred)
    except IllTyped as error:
        raise broken(law, case, f"{what} is ill-typed: {error}", after=jaxpr) from error


def has_types(
    law: str,
    case: Case,
    what: str,
    avals: Sequence[ShapedArray],
    due: Sequence[ShapedArray],
) -> None:
    """Raise unless the types are those that are due, weakness included."""
    if tuple(avals) != tuple(due):
        raise broken(
            law,
            case,
            f"{what} has other types",
            got=types_text(avals),
            want=types_text(due),
        )


def zeros(aval: ShapedArray) -> NDArray:
    """The NumPy zeros of a type."""
    return np.zeros(aval.shape, numpy_dtype(aval.dtype))


# -----------------------------------------------------------------------------
# The laws of vectorization.
#
# One idea: `vmap` means the loop, so the results of the loop are stacked where the
# batched program says that its batch dimension is::
#
#     vmap(f, axes)(xs)[i] = f(xs[i])         sizes 0, 1, 3; two levels of equal size


SIZES = (3, 1, 0)
INNER = 2
"""The equal size of both levels of nested batches, and the square root of the depth."""

type Axes = tuple[Axis, ...]


def random_axes(random: Random, avals: Sequence[ShapedArray], full: bool) -> Axes:
    """A batch dimension for some operands, for all if `full`; at least for one."""
    out = [
        random.randint(0, aval.ndim) if full or random.random() < 0.6 else None
        for aval in avals
    ]
    if all(axis is None for axis in out):
        i = random.randrange(len(out))
        out[i] = random.randint(0, avals[i].ndim)
    return tuple(out)


def with_axis(aval: ShapedArray, axis: Axis, size: int) -> ShapedArray:
    """The type with a dimension more, or the type itself."""
    if axis is None:
        return aval
    return aval.with_shape((*aval.shape[:axis], size, *aval.shape[axis:]))


def gathered(
    stacks: Sequence[NDArray], axes: Axes, members: Sequence[int]
) -> list[NDArray]:
    """Batched operands with these members of the stacks; member 0 where unbatched."""
    return [
        x[0] if axis is None else np.moveaxis(x[list(members)], 0, axis)
        for x, axis in zip(stacks, axes, strict=True)
    ]


def one_call(case: Case, axes: Axes, member: int) -> tuple[NDArray, ...]:
    """The operands of one step of the loop."""
    return tuple(
        [
            x[0] if axis is None else x[member]
            for x, axis in zip(case.stacks, axes, strict=True)
        ]
    )


def member_of(x: NDArray, axis: Axis, member: int) -> NDArray:
    return x if axis is None else np.take(x, member, axis)


def batched(
    law: str, engine: StandardEngine, case: Case, jaxpr: Jaxpr, size: int, axes: Axes
) -> tuple[Jaxpr, Axes]:
    """The batched program, with its types checked."""
    program, out_axes = engine.batch(jaxpr, size, axes)
    what = f"vmap of size {size} in {axes}, out {out_axes}"
    well_formed(law, case, what, program)
    due = [with_axis(a, x, size) for a, x in zip(jaxpr.in_avals, axes, strict=True)]
    has_types(law, case, f"the operands of {what}", program.in_avals, due)
    due = [
        with_axis(a, x, size) for a, x in zip(jaxpr.out_avals, out_axes, strict=True)
    ]
    has_types(law, case, what, program.out_avals, due)
    return program, out_axes


def vmap_is_loop(engine: StandardEngine, case: Case) -> None:
    """`vmap` is the stack of the loop, for any axes, mixes, and sizes 3, 1 and 0."""
    jaxpr, random = case.jaxpr, case.random()
    if not jaxpr.invars:
        raise Skipped("there is no operand to batch")
    size = random.choice(SIZES)
    axes = random_axes(random, jaxpr.in_avals, random.random() < 0.4)
    program, out_axes = batched("vmap", engine, case, jaxpr, size, axes)
    args = gathered(case.stacks, axes, range(size))
    outs = engine.evaluate(program, args)
    for member in range(size):
        operands = one_call(case, axes, member)
        want = engine.evaluate(jaxpr, operands)
        got = [member_of(x, a, member) for x, a in zip(outs, out_axes, strict=True)]
        what = f"element {member} of vmap of size {size} in {axes}, out {out_axes}"
        run = Run(jaxpr, operands)
        agree("vmap", engine, case, what, got, want, run, after=program)


def vmap_of_vmap(engine: StandardEngine, case: Case) -> None:
    """Two levels of one size do not get mixed up: they are the double loop."""
    jaxpr, random = case.jaxpr, case.random()
    if not jaxpr.invars:
        raise Skipped("there is no operand to batch")
    inner = random_axes(random, jaxpr.in_avals, False)
    once, once_out = batched("vmap twice", engine, case, jaxpr, INNER, inner)
    outer = random_axes(random, once.in_avals, False)
    twice, twice_out = batched("vmap twice", engine, case, once, INNER, outer)
    args = [square(x, a, b) for x, a, b in zip(case.stacks, inner, outer, strict=True)]
    outs = engine.evaluate(twice, args)
    for i, j in [(0, 0), (0, 1), (1, 0), (1, 1)]:
        operands = tuple(
            [
                x[chosen(a, b, i, j)]
                for x, a, b in zip(case.stacks, inner, outer, strict=True)
            ]
        )
        want = engine.evaluate(jaxpr, operands)
        got = [
            member_of(member_of(x, b, i), a, j)
            for x, a, b in zip(outs, once_out, twice_out, strict=True)
        ]
        what = f"element ({i}, {j}) of vmap in {outer} of vmap in {inner}"
        run = Run(jaxpr, operands)
        agree("vmap twice", engine, case, what, got, want, run, after=twice)


def chosen(inner: Axis, outer: Axis, i: int, j: int) -> int:
    """The member of the stack for step (i, j) of the double loop."""
    return INNER * (i if outer is not None else 0) + (j if inner is not None else 0)


def square(x: NDArray, inner: Axis, outer: Axis) -> NDArray:
    """The operand of both levels: outer step i and inner step j have member 2 i + j."""
    rows = []
    for i in range(INNER if outer is not None else 1):
        members = [chosen(inner, outer, i, j) for j in range(INNER)]
        rows.append(
            x[members[0]] if inner is None else np.moveaxis(x[members], 0, inner)
        )
    return rows[0] if outer is None else np.stack(rows, outer)
