"""Floor 2: solves and roots whose derivatives are those of what they solve.

One idea: how a solution is found does not matter to its derivative. Of A x = b it is
dx = A^-1 (db - dA x), another solve; of f(m, x) = 0 it is dx = -(df/dx)^-1 df/dm dm. So
the equations hold the function next to the user's way to solve it::

    x = custom_linear_solve[matvec={ ... } solve={ ... } consts=1 ...] A b
    x = custom_root[f={ ... } solve={ ... } tangent_solve={ ... } consts=1 ...] m x0

Christianson, "Reverse accumulation and implicit functions" (1998).
"""

from collections.abc import Sequence
from random import Random

from attrs import evolve, frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import complex64, float32, float64
from verax.ir.effects import Effect
from verax.ir.jaxpr import Jaxpr, Params
from verax.ops.calls.call import (
    NamedCall,
    batched_results,
    forced_batch,
    inlined,
    same_types,
)
from verax.ops.calls.callbacks import silenced
from verax.ops.custom.base import custom_row, known_residuals, with_captured
from verax.ops.elementwise.arith import mul, neg, sub
from verax.ops.elementwise.trig import sin
from verax.ops.structure.shape import at_front
from verax.rules.families.elementwise import SHAPES
from verax.rules.programs.batched import batch_to, or_summed, somewhere
from verax.rules.rows.builder import program
from verax.rules.rows.infer import (
    Mask,
    arrays_of,
    dense,
    filled,
    for_unknowns,
    instantiated,
    knowns,
    live,
    nonzeros,
)
from verax.rules.rows.row import (
    NO_TRAITS,
    Axis,
    BatchRule,
    Engine,
    JvpRule,
    Known,
    MissingRule,
    Row,
    Rows,
    Sample,
    Tangent,
    Traits,
    TransposeRule,
    Work,
    Zero,
    as_typed,
)
from verax.rules.values.array import Array


@frozen(eq=False, repr=False)
class CustomLinearSolveParams(Params):
    """A x = b: the functions x to A x, b to x, and c to the y with A' y = c.

    All take the same `consts` first operands before their own. What a solve gives
    beyond x is not differentiated.
    """

    consts: int
    matvec: Jaxpr
    solve: Jaxpr
    transpose_solve: Jaxpr | None
    symmetric: bool

    @property
    def size(self) -> int:
        """The number of arrays b and x are made of."""
        return len(self.matvec.outvars)


@frozen(eq=False, repr=False)
class CustomRootParams(Params):
    """f(x) = 0: the function, from a guess to x, and from (x, y) to z with f'(x) z = y.

    All take the same `consts` first operands before their own. What `solve` gives
    beyond x is not differentiated.
    """

    consts: int
    f: Jaxpr
    solve: Jaxpr
    tangent_solve: Jaxpr

    @property
    def size(self) -> int:
        """The number of arrays the guess and x are made of."""
        return len(self.f.outvars)


def solve_typing(
    p: CustomLinearSolveParams | CustomRootParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    if not same_types(avals, p.solve.in_avals):
        raise TypeError(f"solve takes {p.solve.in_avals}, not {tuple(avals)}")
    return p.solve.out_avals


def in_consts(
    engine: Engine,
    jaxpr: Jaxpr,
    consts: Sequence[Array],
    tangents: Sequence[Tangent],
    point: Sequence[Array],
) -> list[Tangent]:
    """The tangents of `jaxpr` on constants that move, at a point that does not."""
    nonzero = (*nonzeros(tangents), *[False] * len(point))
    pushed, mask = engine.jvp(jaxpr, nonzero)
    outs = inlined(pushed, [*consts, *point, *live(tangents)])
    return filled(mask, outs[len(mask) :], jaxpr.out_avals)


def with_aux(
    moved: Sequence[Tangent], avals: Sequence[ShapedArray]
) -> Sequence[Tangent]:
    """Tangents of a solution and of what else a solve gives, which has none."""
    return [*moved, *[Zero(aval.tangent()) for aval in avals[len(moved) :]]]


def jvp_solve(
    engine: Engine,
    p: CustomLinearSolveParams,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """dx = A^-1 (db - dA x)."""
    consts, count = primals[: p.consts], p.consts
    outs = linear_solve_p.bind(p, *primals)
    avals = p.matvec.out_avals
    moved = in_consts(engine, p.matvec, consts, tangents[:count], outs[: p.size])
    rhs = [
        minus(engine, t, u, aval)
        for t, u, aval in zip(tangents[count:], moved, avals, strict=True)
    ]
    if all(isinstance(t, Zero) for t in rhs):
        return outs, with_aux([Zero(a.tangent()) for a in avals], p.solve.out_avals)
    out = linear_solve_p.bind(p, *consts, *all_arrays(engine, rhs, avals))
    return outs, with_aux(out[: p.size], p.solve.out_avals)


def all_arrays(
    engine: Engine, tangents: Sequence[Tangent], avals: Sequence[ShapedArray]
) -> list[Array]:
    """The tangents of `avals` as arrays, those that are zero, too."""
    return arrays_of(engine, [True] * len(avals), tangents, avals)


def minus(engine: Engine, x: Tangent, y: Tangent, aval: ShapedArray) -> Tangent:
    """x - y in the tangent type of `aval`."""
    if isinstance(y, Zero):
        return x
    right = instantiated(engine, y, aval)
    return (
        neg(right) if isinstance(x, Zero) else sub(instantiated(engine, x, aval), right)
    )


def transposed(engine: Engine, p: CustomLinearSolveParams) -> CustomLinearSolveParams:
    """The solve of the transposed system."""
    if p.transpose_solve is None:
        raise MissingRule(
            "reverse-mode differentiation goes through custom_linear_solve only with "
            "transpose_solve, which solves the transposed system; pass it, or "
            "symmetric=True if the matrix is symmetric"
        )
    back = evolve(p, solve=p.transpose_solve, transpose_solve=p.solve)
    if p.symmetric:
        return back
    linear = (*[False] * p.consts, *[True] * p.size)
    jaxpr, mask = engine.transpose(p.matvec, linear, (True,) * p.size)
    avals = p.matvec.in_avals[p.consts :]

    def vecmat(*xs: Array) -> Sequence[object]:
        return all_arrays(engine, filled(mask, inlined(jaxpr, xs), avals), avals)

    return evolve(back, matvec=program(jaxpr.in_avals, vecmat))


def transpose_solve(
    engine: Engine,
    p: CustomLinearSolveParams,
    cts: Sequence[Tangent],
    args: Sequence[Known],
) -> Sequence[Tangent | None]:
    """A' ct_b = ct_x."""
    consts = knowns(args[: p.consts])
    if len(consts) < p.consts:
        raise TypeError("custom_linear_solve is linear in b only, not in its matrix")
    avals = p.matvec.out_avals
    given = all_arrays(engine, cts[: p.size], avals)
    pulled = linear_solve_p.bind(transposed(engine, p), *consts, *given)
    return [*[None] * p.consts, *for_unknowns(args[p.consts :], pulled[: p.size])]


def all_at_front(
    engine: Engine, jaxpr: Jaxpr, size: int, axes: Sequence[Axis], count: int
) -> Jaxpr:
    """`jaxpr` over all elements, with its first `count` results batched in front."""
    result = batched_results(engine, jaxpr, size, tuple(axes))
    expected: Mask = (*[True] * count, *result[count:])
    return forced_batch(engine, jaxpr, size, tuple(axes), expected)


def batch_solve(
    engine: Engine,
    p: CustomLinearSolveParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """One solve of all systems; b and x are batched in front."""
    given = (*axes[: p.consts], *[0] * p.size)

    def batched(jaxpr: Jaxpr) -> Jaxpr:
        return all_at_front(engine, jaxpr, size, given, p.size)

    back = None if p.transpose_solve is None else batched(p.transpose_solve)
    params = evolve(
        p, matvec=batched(p.matvec), solve=batched(p.solve), transpose_solve=back
    )
    moved = stacked(args, axes, p.consts, size)
    return linear_solve_p.bind(params, *moved), out_axes(engine, p, size, given)


def stacked(
    args: Sequence[Array], axes: Sequence[Axis], consts: int, size: int
) -> list[Array]:
    """The operands with the batch in front of all but the constants."""
    own = zip(args[consts:], axes[consts:], strict=True)
    return [*args[:consts], *[at_front(x, axis, size) for x, axis in own]]


def out_axes(
    engine: Engine,
    p: CustomLinearSolveParams | CustomRootParams,
    size: int,
    given: Sequence[Axis],
) -> list[Axis]:
    """The axes along which the results are batched."""
    aux = batched_results(engine, p.solve, size, tuple(given))[p.size :]
    return [*[0] * p.size, *[0 if flag else None for flag in aux]]


def jvp_root(
    engine: Engine,
    p: CustomRootParams,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """dx = -(df/dx)^-1 df/dm dm; the guess has no part in it."""
    consts, count = primals[: p.consts], p.consts
    outs = custom_root_p.bind(p, *primals)
    x, avals = outs[: p.size], p.f.out_avals
    moved = in_consts(engine, p.f, consts, tangents[:count], x)
    if all(isinstance(t, Zero) for t in moved):
        zeros = [Zero(a.tangent()) for a in p.solve.out_avals]
        return outs, zeros
    rhs = all_arrays(engine, moved, avals)
    out = inlined(p.tangent_solve, [*consts, *x, *rhs])
    return outs, with_aux([neg(t) for t in out], p.solve.out_avals)


def batch_root(
    engine: Engine,
    p: CustomRootParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """One root of all systems; guess and solution are batched in front."""
    fixed, front = axes[: p.consts], [0] * p.size
    given = (*fixed, *front)
    params = evolve(
        p,
        f=all_at_front(engine, p.f, size, given, p.size),
        solve=all_at_front(engine, p.solve, size, given, p.size),
        tangent_solve=all_at_front(
            engine, p.tangent_solve, size, (*given, *front), p.size
        ),
    )
    moved = stacked(args, axes, p.consts, size)
    return custom_root_p.bind(params, *moved), out_axes(engine, p, size, given)


def solve_row[P: CustomLinearSolveParams | CustomRootParams](
    name: str,
    kind: type[P],
    *,
    jvp: JvpRule[P],
    batch: BatchRule[P],
    transpose: TransposeRule[P] | None = None,
    traits: Traits = NO_TRAITS,
) -> Row[P]:
    """The row of a solver: its values are those of the program `solve`."""
    return Row(
        name,
        kind,
        typing=solve_typing,
        evaluate=lambda engine, p, xs: engine.evaluate(p.solve, xs),
        jvp=jvp,
        transpose=transpose,
        batch=batch,
        lower=lambda e, p, xs, outs: e.inline(p.solve, xs),
        compiled=True,
        multiple_results=True,
        sharding=as_typed,
        traits=traits,
    )


linear_solve_p = solve_row(
    "custom_linear_solve",
    CustomLinearSolveParams,
    jvp=jvp_solve,
    transpose=transpose_solve,
    batch=batch_solve,
    traits=Traits(Work.BLOCK),
)
custom_root_p = solve_row(
    "custom_root", CustomRootParams, jvp=jvp_root, batch=batch_root
)


# -----------------------------------------------------------------------------
# `linear_call`: a linear function with a transpose of the user's own.
#
# The equation holds two jaxprs, and its transpose is the same equation with the
# two exchanged::
#
#     c = linear_call[name=f residuals=1 jaxpr={ ... } transposed={ ... }] r x


@frozen(eq=False, repr=False)
class LinearCallParams(NamedCall):
    """A function of residuals and linear operands, and its transpose in the latter."""

    name: str
    residuals: int
    jaxpr: Jaxpr
    transposed: Jaxpr

    @property
    def effects(self) -> frozenset[Effect]:
        """Those of the function: its transpose runs elsewhere."""
        return self.jaxpr.effects


def jvp_linear(
    engine: Engine,
    p: LinearCallParams,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """In the linear operands itself; in residuals the derivative of the function."""
    count, own = p.residuals, tangents[p.residuals :]
    outs = linear_call_p.bind(p, *primals)
    pushed: Sequence[Tangent] = [Zero(a.tangent()) for a in p.jaxpr.out_avals]
    if any(nonzeros(own)):
        silent = evolve(p, jaxpr=silenced(p.jaxpr))
        moving = [dense(engine, t) for t in own]
        pushed = linear_call_p.bind(silent, *primals[:count], *moving)
    return outs, with_captured(engine, p, count, primals, tangents, pushed)


def transpose_linear(
    engine: Engine, p: LinearCallParams, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    """The user's transpose."""
    residuals = known_residuals(p.name, args[: p.residuals])
    back = LinearCallParams(p.name, p.residuals, p.transposed, p.jaxpr)
    avals, own = p.transposed.in_avals[p.residuals :], args[p.residuals :]
    given = [
        engine.core.zeros(aval)
        if isinstance(ct, Zero)
        else engine.core.convert(ct, aval.dtype, aval.weak_type)
        for ct, aval in zip(cts, avals, strict=True)
    ]
    pulled = linear_call_p.bind(back, *residuals, *given)
    return [*[None] * p.residuals, *for_unknowns(own, pulled)]


def batch_linear(
    engine: Engine,
    p: LinearCallParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """Both functions batched; cotangents of what is not batched are summed."""
    out_axes = somewhere(engine.batch(p.jaxpr, size, tuple(axes))[1])
    jaxpr = batch_to(engine, p.jaxpr, size, axes, out_axes)
    saved, own = tuple(axes[: p.residuals]), axes[p.residuals :]
    back = batch_to(engine, p.transposed, size, (*saved, *out_axes), or_summed(own))
    params = evolve(p, jaxpr=jaxpr, transposed=back)
    return linear_call_p.bind(params, *args), out_axes


def draw_linear(random: Random) -> Sample[LinearCallParams]:
    """A call of sin(r) x, whose transpose is the same function."""
    dtype = random.choice((float32, float64, complex64))
    aval = ShapedArray(random.choice(SHAPES), dtype)
    jaxpr = program((aval, aval), lambda r, x: (mul(sin(r), x),))
    return Sample(LinearCallParams("f", 1, jaxpr, jaxpr), (aval, aval))


linear_call_p = custom_row(
    "linear_call",
    LinearCallParams,
    jvp=jvp_linear,
    transpose=transpose_linear,
    batch=batch_linear,
    draw=draw_linear,
)


ROWS: Rows = (
    linear_solve_p,
    custom_root_p,
    linear_call_p,
)
