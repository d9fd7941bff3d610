"""Floor 2: matrices made simpler by unitary ones, and tridiagonal systems.

One idea: each form is one LAPACK routine on one matrix; only the tridiagonal system has
a derivative, which is another such system with the same matrix::

    t, z = schur(a)                        # a == z t zᴴ, t upper triangular
    h, taus = hessenberg(a)                # zero under the first subdiagonal
    x = tridiagonal_solve(dl, d, du, b)
"""

from collections.abc import Callable, Sequence
from typing import Literal, overload

import numpy as np
from attrs import frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import int32, is_complex
from verax.ir.jaxpr import NO_PARAMS, NoParams, Params
from verax.ops.elementwise.arith import neg, sub
from verax.ops.linalg.triangular import as_operand, real_type, times_rows
from verax.ops.structure.slicing import pad
from verax.rules.families.lapack import (
    SOLVING,
    VENDORS,
    by_dtype,
    host_routine,
    info_type,
    letter,
    matrix_call,
    matrix_row,
    nan_like,
    or_nan,
    routine,
    solver,
    square,
)
from verax.rules.rows.emitter import Emitter, Operand, flag, i64s
from verax.rules.rows.row import Engine, Known, NDArray, Row, Rows, Tangent, Zero
from verax.rules.values.array import Array
from verax.rules.values.sizes import surely_less


@frozen(eq=False, repr=False)
class SchurParams(Params):
    """Whether the unitary factor is computed."""

    compute_schur_vectors: bool


def schur_results(p: SchurParams, xs: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    (a,) = xs
    square("schur", a)
    return (a, a) if p.compute_schur_vectors else (a,)


def evaluate_schur(p: SchurParams, a: NDArray) -> Sequence[NDArray]:
    if not a.size:
        return (a, a)[: 1 + p.compute_schur_vectors]
    gees = host_routine("gees", a.dtype)
    out = gees(lambda *x: None, a, compute_v=p.compute_schur_vectors)
    outs = (out[0], out[-3])[: 1 + p.compute_schur_vectors]
    return [nan_like(x) for x in outs] if out[-1] else outs


def lower_schur(
    e: Emitter, p: SchurParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    (a,) = xs
    stack = a.aval.shape[:-2]
    values = a.aval.with_shape(a.aval.shape[:-1])
    parts = (values,) if is_complex(a.aval.dtype) else (values, values)
    out = routine(
        e,
        "?gees",
        xs,
        (a.aval, a.aval, *parts, ShapedArray(stack, int32), info_type(stack)),
        {0: 0},
        mode=letter("NV"[p.compute_schur_vectors]),
        sort=letter("N"),
    )
    return or_nan(e, out[-1], out[: 1 + p.compute_schur_vectors])


schur_p: Row[SchurParams] = matrix_row(
    "schur",
    SchurParams,
    results=schur_results,
    evaluate=evaluate_schur,
    lower_on={"cpu": lower_schur},
    multiple_results=True,
)


def hessenberg_results(p: NoParams, xs: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    (a,) = xs
    return a, a.with_shape((reflections("hessenberg", a),))


def reflections(name: str, a: ShapedArray) -> int:
    """The number of reflections a reduction takes: one fewer than there are rows.

    Raises:
        ValueError: the matrix is not square, or empty.
    """
    size = square(name, a)
    if size == 0:
        raise ValueError(f"{name} takes matrices with at least one row, not {a}")
    return size - 1


def evaluate_hessenberg(p: NoParams, a: NDArray) -> Sequence[NDArray]:
    packed, taus, info = host_routine("gehrd", a.dtype)(a)
    return (nan_like(packed), nan_like(taus)) if info else (packed, taus)


def lower_hessenberg(
    e: Emitter, p: NoParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    *stack, size, _ = xs[0].aval.shape
    packed, taus, info = routine(
        e,
        "?gehrd",
        xs,
        (*outs, info_type(tuple(stack))),
        {0: 0},
        low="1 : i32",
        high=f"{size} : i32",
    )
    return or_nan(e, info, (packed, taus))


hessenberg_p: Row[NoParams] = matrix_row(
    "hessenberg",
    NoParams,
    results=hessenberg_results,
    evaluate=evaluate_hessenberg,
    lower_on={"cpu": lower_hessenberg},
    multiple_results=True,
)


@frozen(eq=False, repr=False)
class TridiagonalParams(Params):
    """The triangle that is read."""

    lower: bool


def tridiagonal_results(
    p: TridiagonalParams, xs: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    (a,) = xs
    count = reflections("tridiagonal", a)
    own = real_type(a)
    return (
        a,
        own.with_shape((count + 1,)),
        own.with_shape((count,)),
        a.with_shape((count,)),
    )


def evaluate_tridiagonal(p: TridiagonalParams, a: NDArray) -> Sequence[NDArray]:
    name = by_dtype(a.dtype, "sytrd", "hetrd")
    *outs, info = host_routine(name, a.dtype)(a, lower=p.lower)
    return [nan_like(x) for x in outs] if info else outs


def lower_tridiagonal(
    e: Emitter,
    p: TridiagonalParams,
    xs: Sequence[Operand],
    outs: Sequence[ShapedArray],
) -> Sequence[Operand]:
    types = *outs, info_type(outs[0].shape[:-2])
    if e.platform == "cpu":
        *out, info = routine(
            e,
            by_dtype(xs[0].aval.dtype, "?sytrd", "?hetrd"),
            xs,
            types,
            {0: 0},
            uplo=letter("L" if p.lower else "U"),
        )
    else:
        *out, info = solver(e, "sytrd", xs, types, lower=flag(p.lower))
    return or_nan(e, info, out)


tridiagonal_p: Row[TridiagonalParams] = matrix_row(
    "tridiagonal",
    TridiagonalParams,
    results=tridiagonal_results,
    evaluate=evaluate_tridiagonal,
    lower_on=dict.fromkeys(SOLVING, lower_tridiagonal),
    multiple_results=True,
)


@frozen(eq=False, repr=False)
class TridiagonalSolveParams(Params):
    """Whether pivots that are nearly zero are moved, so that the result is finite."""

    perturb_singular: bool = False


def system_results(
    p: TridiagonalSolveParams, xs: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    dl, d, du, b = xs
    if not dl.shape == d.shape == du.shape == b.shape[:1]:
        raise ValueError(
            "tridiagonal_solve takes three diagonals of the length of the right-hand "
            f"sides, not {dl}, {d} and {du} for {b}"
        )
    return (b,)


def evaluate_system(
    p: TridiagonalSolveParams, dl: NDArray, d: NDArray, du: NDArray, b: NDArray
) -> Sequence[NDArray]:
    if not b.size:
        return (b,)
    if p.perturb_singular:
        return (perturbed_solution(*eliminated(dl, d, du, b)),)
    if len(d) == 1:
        return (b / d if d[0] else nan_like(b),)
    *_, x, info = host_routine("gtsv", d.dtype)(dl[1:], d, du[:-1], b)
    return (nan_like(x) if info else x,)


def eliminated(
    dl: NDArray, d: NDArray, du: NDArray, b: NDArray
) -> tuple[NDArray, NDArray]:
    """The three diagonals of U, as rows, and the right-hand sides, with P L U = T."""
    n = len(d)
    upper = np.stack([d, du, np.zeros_like(d)], axis=1)
    upper[-1, 1] = 0
    x = b.copy()
    for i in range(n - 1):
        top = upper[i].copy()
        below = np.array([dl[i + 1], upper[i + 1, 0], upper[i + 1, 1]])
        if abs(below[0]) > abs(top[0]):
            top, below = below, top
            x[[i, i + 1]] = x[[i + 1, i]]
        factor = below[0] / top[0] if top[0] else below[0]
        upper[i] = top
        upper[i + 1, :2] = below[1:] - factor * top[1:]
        x[i + 1] -= factor * x[i]
    return upper, x


def perturbed_solution(upper: NDArray, x: NDArray) -> NDArray:
    """X with U X = `x`, where a pivot that would overflow is moved away from zero.

    It is moved by eps max |U|, twice as far each time, as LAPACK's lagts does.
    """
    limits = np.finfo(x.dtype)
    by = max(limits.eps * np.abs(upper).max(), limits.tiny)
    out = np.zeros((len(x) + 2, *x.shape[1:]), x.dtype)
    for i in reversed(range(len(x))):
        pivot, over, far = upper[i]
        side = x[i] - over * out[i + 1] - far * out[i + 2]
        size = np.abs(side).max() / limits.max
        move = by if pivot.real >= 0 else -by
        while abs(pivot) <= size or not pivot:
            pivot += move
            move *= 2
        out[i] = side / pivot
    return out[:-2]


def lower_system(
    e: Emitter,
    p: TridiagonalSolveParams,
    xs: Sequence[Operand],
    outs: Sequence[ShapedArray],
) -> Sequence[Operand]:
    if p.perturb_singular:
        return matrix_call(e, "tridiagonal_solve_perturbed_ffi", xs, outs, {}, {})
    *_, x, info = routine(
        e,
        "?gtsv",
        xs,
        (*(v.aval for v in xs), info_type(outs[0].shape[:-2])),
        {i: i for i in range(4)},
    )
    return or_nan(e, info, (x,))


def edged(
    e: Emitter, x: Operand, axis: int, before: int, after: int, value: float = 0.0
) -> Operand:
    """`x` with so many values more, or fewer if negative, at both ends of an axis."""
    low, high, inner = ([0] * x.aval.ndim for _ in range(3))
    low[axis], high[axis] = before, after
    shape = list(x.aval.shape)
    shape[axis] += before + after
    return e.op(
        "stablehlo.pad",
        (x, e.constant(value, x.aval.with_shape(()))),
        (x.aval.with_shape(shape),),
        (),
        edge_padding_low=i64s(low),
        edge_padding_high=i64s(high),
        interior_padding=i64s(inner),
    )[0]


def lower_system_on_gpu(
    e: Emitter,
    p: TridiagonalSolveParams,
    xs: Sequence[Operand],
    outs: Sequence[ShapedArray],
) -> Sequence[Operand]:
    """By cuSPARSE or hipSPARSE, which report no failure.

    They want zeros outside the matrix and three rows or more: rows of the identity
    are added where there may be fewer.
    """
    vendor = VENDORS[e.platform]
    if p.perturb_singular:
        target = f"{vendor}_tridiagonal_solve_perturbed"
        return matrix_call(e, target, xs, outs, {}, {})
    dl, d, du, b = xs
    size, axis = d.aval.shape[-1], d.aval.ndim - 1
    more = 0 if surely_less(2, size) else 2
    system = (
        edged(e, edged(e, dl, axis, -1, 0), axis, 1, more),
        edged(e, d, axis, 0, more, 1.0) if more else d,
        edged(e, edged(e, du, axis, 0, -1), axis, 0, 1 + more),
        edged(e, b, axis, 0, more) if more else b,
    )
    target = f"{vendor}sparse_gtsv2_ffi"
    (x,) = matrix_call(e, target, system, (system[3].aval,), {3: 0}, {})
    return (edged(e, x, axis, 0, -more) if more else x,)


def shifted(x: Array, by: int) -> Array:
    """The vectors moved by one place, zero where nothing comes from."""
    lead = ((0, 0, 0),) * (x.ndim - 1)
    return pad(x, 0.0, (*lead, (by, -by, 0)))


def jvp_system(
    engine: Engine,
    p: TridiagonalSolveParams,
    primals: Sequence[Array],
    tangents: Sequence[Tangent],
) -> tuple[Sequence[Array], Sequence[Tangent]]:
    """One more solve, with dB - dT X."""
    dl, d, du, _ = primals
    x = tridiagonal_solve_p.call(p, *primals)
    side = tangents[3]
    for offset, t in zip((1, 0, -1), tangents[:3], strict=True):
        if isinstance(t, Zero):
            continue
        part_of = times_rows(t, shifted_rows(x, offset))
        side = neg(part_of) if isinstance(side, Zero) else sub(side, part_of)
    if isinstance(side, Zero):
        return (x,), (Zero(x.aval.tangent()),)
    return (x,), (tridiagonal_solve_p.call(p, dl, d, du, side),)


def shifted_rows(x: Array, by: int) -> Array:
    """The rows of each matrix moved down, zero where nothing comes from."""
    if not by:
        return x
    lead = ((0, 0, 0),) * (x.ndim - 2)
    return pad(x, 0.0, (*lead, (by, -by, 0), (0, 0, 0)))


def transpose_system(
    engine: Engine,
    p: TridiagonalSolveParams,
    cts: Sequence[Tangent],
    args: Sequence[Known],
) -> Sequence[Tangent | None]:
    (ct,), (dl, d, du, _) = cts, args
    assert isinstance(ct, Array)  # the only result
    assert isinstance(dl, Array)
    assert isinstance(du, Array)
    under, over = shifted(du, 1), shifted(dl, -1)
    return None, None, None, tridiagonal_solve_p.call(p, under, d, over, ct)


tridiagonal_solve_p: Row[TridiagonalSolveParams] = matrix_row(
    "tridiagonal_solve",
    TridiagonalSolveParams,
    results=system_results,
    evaluate=evaluate_system,
    ranks=(1, 1, 1, 2),
    jvp=jvp_system,
    transpose=transpose_system,
    lower_on={"cpu": lower_system, "gpu": lower_system_on_gpu},
)


@overload
def schur(
    x: object,
    *,
    compute_schur_vectors: Literal[True] = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., object] | None = None,
) -> tuple[Array, Array]: ...
@overload
def schur(
    x: object,
    *,
    compute_schur_vectors: Literal[False],
    sort_eig_vals: bool = False,
    select_callable: Callable[..., object] | None = None,
) -> tuple[Array]: ...
@overload
def schur(
    x: object,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., object] | None = None,
) -> tuple[Array] | tuple[Array, Array]: ...
def schur(
    x: object,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Callable[..., object] | None = None,
) -> tuple[Array, ...]:
    """T and unitary Z with A = Z T Zᴴ; T alone without `compute_schur_vectors`.

    T is upper triangular; for real matrices, blocks of two stand for pairs of complex
    eigenvalues. NaN where LAPACK fails.

    Args:
        x: matrices of shape (..., n, n), of floats or complex numbers.
        compute_schur_vectors: whether to return Z.
        sort_eig_vals: only False: eigenvalues come in LAPACK's order.
        select_callable: only None, since nothing is sorted.

    Returns:
        A tuple of T, or of T and Z, of the shape and dtype of `x`.

    Raises:
        TypeError: LAPACK does not have the dtype.
        ValueError: the matrices are not square, or sorting is requested.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> turn = vnp.array([[0.0, 1.0], [-1.0, 0.0]])
    >>> t, z = lax.linalg.schur(turn)
    >>> t  # a block, since the eigenvalues are i and -i
    Array([[ 0.,  1.],
           [-1.,  0.]], dtype=float32)
    """
    if sort_eig_vals or select_callable is not None:
        raise ValueError("schur: eigenvalues cannot be sorted; leave the arguments out")
    return schur_p.bind(SchurParams(compute_schur_vectors), as_operand(x))


def hessenberg(a: object) -> tuple[Array, Array]:
    """Hessenberg form, with reflections packed below it, and their scales.

    A = Q H Qᴴ, where H is zero below the first subdiagonal; Q is the product of the
    reflections, as in LAPACK's `gehrd`.

    Args:
        a: matrices of shape (..., n, n), of floats or complex numbers.

    Returns:
        H with the reflections below its subdiagonal, of the shape of `a`; and the
        scales (..., n - 1).

    Raises:
        TypeError: LAPACK does not have the dtype.
        ValueError: the matrices are not square, or empty.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> a = vnp.array([[1.0, 2.0, 3.0], [0.0, 4.0, 5.0], [4.0, 6.0, 7.0]])
    >>> packed, taus = lax.linalg.hessenberg(a)
    >>> vnp.triu(packed, -1).round(3)
    Array([[ 1., -3., -2.],
           [-4.,  7.,  6.],
           [ 0.,  5.,  4.]], dtype=float32)
    """
    packed, taus = hessenberg_p.bind(NO_PARAMS, as_operand(a))
    return packed, taus


def tridiagonal(a: object, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """A Hermitian matrix made tridiagonal: reflections, diagonals, and scales.

    Args:
        a: Hermitian matrices of shape (..., n, n), of floats or complex numbers.
        lower: whether the lower triangle is read, not the upper one.

    Returns:
        The packed reflections (..., n, n), of the dtype of `a`, the real diagonal
        (..., n), the real elements beside it (..., n - 1), and the scales (..., n - 1).

    Raises:
        TypeError: LAPACK does not have the dtype.
        ValueError: the matrices are not square, or empty.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> a = vnp.array([[1.0, 0.0, 2.0], [0.0, 3.0, 4.0], [2.0, 4.0, 5.0]])
    >>> packed, d, e, taus = lax.linalg.tridiagonal(a)
    >>> d.round(3), e.round(3)
    (Array([1., 5., 3.], dtype=float32), Array([-2.,  4.], dtype=float32))
    """
    packed, d, e, taus = tridiagonal_p.bind(TridiagonalParams(lower), as_operand(a))
    return packed, d, e, taus


def tridiagonal_solve(
    dl: object, d: object, du: object, b: object, *, perturb_singular: bool = False
) -> Array:
    """The X with T X = B for tridiagonal T.

    NaN where T is singular, unless `perturb_singular`.

    Args:
        dl: the diagonal below the main one, of shape (..., n); its first element is not
            used.
        d: the main diagonal, of shape (..., n).
        du: the diagonal above, of shape (..., n); its last element is not used.
        b: right sides of shape (..., n, k), of the dtype of the diagonals.
        perturb_singular: whether tiny pivots are moved by about eps times the greatest
            one, so that X is finite, as inverse iteration needs it.

    Returns:
        X, of the shape and dtype of `b`.

    Raises:
        TypeError: the dtypes differ, or LAPACK does not have them.
        ValueError: the shapes do not fit.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> d, ones = vnp.array([1.0, 2.0, 2.0]), vnp.ones(3)
    >>> lax.linalg.tridiagonal_solve(ones, d, ones, vnp.array([[3.0], [8.0], [8.0]]))
    Array([[1.],
           [2.],
           [3.]], dtype=float32)
    """
    given = [as_operand(v) for v in (dl, d, du, b)]
    p = TridiagonalSolveParams(bool(perturb_singular))
    return tridiagonal_solve_p.call(p, *given)


ROWS: Rows = (
    schur_p,
    hessenberg_p,
    tridiagonal_p,
    tridiagonal_solve_p,
)
