"""Floor 2: solves and roots whose derivatives are those of what they solve.

One idea: how a solution is found does not matter to its derivative. Of A x = b it is
dx = A^-1 (db - dA x), another solve; of f(m, x) = 0 it is dx = -(df/dx)^-1 df/dm dm. So
the equations hold the function next to the user's way to solve it::

    x = custom_linear_solve[matvec={ ... } solve={ ... } consts=1 ...] A b
    x = custom_root[f={ ... } solve={ ... } tangent_solve={ ... } consts=1 ...] m x0

Christianson, "Reverse accumulation and implicit functions" (1998).
"""

from collections.abc import Sequence

from attrs import evolve, frozen

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Jaxpr, Params
from verax.ops.calls.subjaxprs import batched_results, forced_batch, inlined, same_types
from verax.ops.elementwise.arith import neg, sub
from verax.ops.structure.shape import at_front
from verax.rules.rows.builder import program
from verax.rules.rows.infer import (
    Mask,
    arrays_of,
    filled,
    for_unknowns,
    instantiated,
    knowns,
    live,
    nonzeros,
)
from verax.rules.rows.row import (
    Axis,
    Engine,
    Known,
    MissingRule,
    Row,
    Rows,
    Tangent,
    Zero,
    as_typed,
)
from verax.rules.rows.traits import Traits, Work
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
        """How many arrays b and x are made of."""
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
        """How many arrays the guess and x are made of."""
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
    found = linear_solve_p.bind(p, *consts, *all_arrays(engine, rhs, avals))
    return outs, with_aux(found[: p.size], p.solve.out_avals)


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
    found = batched_results(engine, jaxpr, size, tuple(axes))
    wanted: Mask = (*[True] * count, *found[count:])
    return forced_batch(engine, jaxpr, size, tuple(axes), wanted)


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
    """Where the results are batched."""
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
    found = inlined(p.tangent_solve, [*consts, *x, *rhs])
    return outs, with_aux([neg(t) for t in found], p.solve.out_avals)


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


linear_solve_p: Row[CustomLinearSolveParams] = Row(
    "custom_linear_solve",
    CustomLinearSolveParams,
    typing=solve_typing,
    evaluate=lambda engine, p, xs: engine.evaluate(p.solve, xs),
    jvp=jvp_solve,
    transpose=transpose_solve,
    batch=batch_solve,
    lower=lambda e, p, xs, outs: e.inline(p.solve, xs),
    compiled=True,
    multiple_results=True,
    sharding=as_typed,
    traits=Traits(Work.BLOCK),
)
custom_root_p: Row[CustomRootParams] = Row(
    "custom_root",
    CustomRootParams,
    typing=solve_typing,
    evaluate=lambda engine, p, xs: engine.evaluate(p.solve, xs),
    jvp=jvp_root,
    batch=batch_root,
    lower=lambda e, p, xs, outs: e.inline(p.solve, xs),
    compiled=True,
    multiple_results=True,
    sharding=as_typed,
)

ROWS: Rows = (linear_solve_p, custom_root_p)
