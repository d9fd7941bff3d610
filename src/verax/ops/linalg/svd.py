"""Floor 2: singular values and vectors.

One idea: with P = Uᴴ dA V, the diagonal of P moves the values; the Hermitian parts of
P diag(s) and diag(s) P, divided by differences of squares, turn the vectors; what of
dA lies outside the space of the vectors turns them out of it::

    u, s, vh = svd(a, full_matrices=False)

Source: J. Townsend, Differentiating the singular value decomposition, 2016; for complex
matrices, Z.-Q. Wan and S.-X. Zhang, Automatic differentiation for complex valued SVD,
arXiv:1909.02659.
"""

from collections.abc import Sequence
from typing import Literal, overload

import numpy as np
from attrs import evolve, frozen

from verax.ir.avals import ShapedArray, smaller_size
from verax.ir.dtypes import is_complex
from verax.ir.jaxpr import Params
from verax.ops.elementwise.arith import add, div, mul, sub
from verax.ops.linalg.eigen import off_diagonal
from verax.ops.linalg.qr import cut
from verax.ops.linalg.triangular import (
    adjoint,
    along_columns,
    along_rows,
    as_operand,
    diagonal,
    like,
    matmul,
    on_diagonal,
    real_part,
    real_type,
    times_columns,
    times_rows,
)
from verax.rules.families.lapack import (
    host_routine,
    info_type,
    letter,
    matrix_row,
    nan_like,
    or_nan,
    routine,
    solver,
    turned_columns,
)
from verax.rules.families.linear import Pushed, one_pushed
from verax.rules.rows.emitter import Emitter, Operand, flag, i64s
from verax.rules.rows.row import NDArray, Row, Rows, Traits
from verax.rules.values.array import Array
from verax.rules.values.sizes import surely_less

DRIVERS = {
    "DEFAULT": "gesdd",
    "DIVIDE_AND_CONQUER": "gesdd",
    "QR": "gesvd",
    "JACOBI": "gesvdj",
    "POLAR": "gesvdp",
}
# Routines of cuSOLVER that LAPACK lacks.
GPU_DRIVERS = frozenset({"gesvdj", "gesvdp"})
# Up to this size GPUs decompose by Jacobi rotations.
ROTATED = 1024


@frozen(eq=False, repr=False)
class SvdParams(Params):
    """Square or thin factors, whether there are vectors, and the routine."""

    full_matrices: bool
    compute_uv: bool
    driver: str


def svd_results(p: SvdParams, xs: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    (a,) = xs
    m, n = a.shape
    k = smaller_size(m, n)
    values = real_type(a).with_shape((k,))
    if not p.compute_uv:
        return (values,)
    left, right = factor_shapes(p, m, n)
    return values, a.with_shape(left), a.with_shape(right)


def factor_shapes(
    p: SvdParams, m: int, n: int
) -> tuple[tuple[int, int], tuple[int, int]]:
    k = smaller_size(m, n)
    return ((m, m), (n, n)) if p.full_matrices else ((m, k), (k, n))


def check_driver(p: SvdParams) -> None:
    """Raise if LAPACK does not have the routine."""
    if p.driver in GPU_DRIVERS:
        raise NotImplementedError(
            "svd: the algorithms JACOBI and POLAR are those of GPUs; on CPU there are "
            "DEFAULT, DIVIDE_AND_CONQUER and QR"
        )


def evaluate_svd(p: SvdParams, a: NDArray) -> Sequence[NDArray]:
    m, n = a.shape
    if not a.size:
        none = np.zeros((0,), a.real.dtype)
        left, right = (np.eye(*s, dtype=a.dtype) for s in factor_shapes(p, m, n))
        return (none, left, right) if p.compute_uv else (none,)
    check_driver(p)
    driver = host_routine(p.driver, a.dtype)
    u, s, vh, info = driver(a, compute_uv=p.compute_uv, full_matrices=p.full_matrices)
    outs = (s, u, vh) if p.compute_uv else (s,)
    return [nan_like(x) for x in outs] if info else outs


def lower_svd(
    e: Emitter, p: SvdParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    check_driver(p)
    (a,) = xs
    *stack, m, n = a.aval.shape
    left, right = factor_shapes(p, m, n)
    mode = "N" if not p.compute_uv else "A" if p.full_matrices else "S"
    _, s, u, vh, info = routine(
        e,
        f"?{p.driver}",
        xs,
        (
            a.aval,
            outs[0],
            a.aval.with_shape((*stack, *left)),
            a.aval.with_shape((*stack, *right)),
            info_type(tuple(stack)),
        ),
        {0: 0},
        mode=letter(mode),
    )
    return or_nan(e, info, (s, u, vh) if p.compute_uv else (s,))


def lower_svd_on_gpu(
    e: Emitter, p: SvdParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """As asked; by default by Jacobi rotations if the matrix is small, else by QR."""
    m, n = xs[0].aval.shape[-2:]
    name = p.driver
    if name == DRIVERS["DEFAULT"]:
        name = DRIVERS["JACOBI"] if max(m, n) <= ROTATED else DRIVERS["QR"]
    if name in GPU_DRIVERS:
        *parts, info = rotated(e, p, name, xs[0], outs[0])
    else:
        *parts, info = gesvd(e, p, xs[0], outs[0])
    return or_nan(e, info, parts if p.compute_uv else parts[:1])


def rotated(
    e: Emitter, p: SvdParams, name: str, a: Operand, values: ShapedArray
) -> tuple[Operand, ...]:
    """Values, both factors and what went wrong, by Jacobi rotations or polar factors.

    The factors are there also if nobody wants them, the second is V and not its
    adjoint, and only matrices beyond 32 x 32 have thin ones.
    """
    *stack, m, n = a.aval.shape
    k, thin = smaller_size(m, n), not p.full_matrices and m > 32 and n > 32
    types = (
        *(a.aval, values),
        a.aval.with_shape((*stack, m, k if thin else m)),
        a.aval.with_shape((*stack, n, k if thin else n)),
        info_type(tuple(stack)),
    )
    square, vectors = flag(not thin), flag(p.compute_uv)
    _, s, u, v, info = solver(
        e, name, (a,), types, full_matrices=square, compute_uv=vectors
    )
    if not p.compute_uv:
        return s, u, v, info
    order = (*range(len(stack)), len(stack) + 1, len(stack))
    turned = v.aval.with_shape((*stack, v.aval.shape[-1], n))
    (vh,) = e.op("stablehlo.transpose", (v,), (turned,), permutation=i64s(order))
    if is_complex(a.aval.dtype):
        (vh,) = e.op("chlo.conj", (vh,), (turned,))
    left, right = factor_shapes(p, m, n)
    return s, cut(e, u, left), cut(e, vh, right), info


def gesvd(
    e: Emitter, p: SvdParams, a: Operand, values: ShapedArray
) -> tuple[Operand, ...]:
    """Values, both factors and what went wrong, by QR, which takes tall matrices.

    Wide ones it takes stored by rows, as their transposes.
    """
    *stack, m, n = a.aval.shape
    wide = m < n
    u = vh = a.aval.with_shape(())
    if p.compute_uv:
        u, vh = [a.aval.with_shape((*stack, *x)) for x in factor_shapes(p, m, n)]
    _, s, first, second, info = solver(
        e,
        "gesvd",
        (a,),
        (a.aval, values, *((vh, u) if wide else (u, vh)), info_type(tuple(stack))),
        columns=not wide,
        full_matrices=flag(p.full_matrices),
        compute_uv=flag(p.compute_uv),
        transposed=flag(wide),
    )
    return (s, second, first, info) if wide else (s, first, second, info)


def jvp_svd(p: SvdParams, a: Array, t: Array) -> Pushed:
    if p.compute_uv and p.full_matrices and a.shape[-1] != a.shape[-2]:
        raise ValueError(
            "svd with full_matrices=True has no derivative for nonsquare matrices, "
            "since some vectors are arbitrary; use full_matrices=False"
        )
    thin = evolve(p, full_matrices=False, compute_uv=True)
    s, u, vh = svd_p.bind(thin, a)
    v = adjoint(vh)
    inner = matmul(adjoint(u), matmul(t, v))
    ds = real_part(diagonal(inner))
    if not p.compute_uv:
        return (s,), (ds,)
    du, dv = vector_tangents(s, u, v, t, inner)
    return (s, u, vh), (ds, du, adjoint(dv))


def vector_tangents(
    s: Array, u: Array, v: Array, t: Array, inner: Array
) -> tuple[Array, Array]:
    """The tangents of left and right singular vectors."""
    columns_s = along_rows(like(s, inner), inner)
    rows_s = along_columns(like(s, inner), inner)
    gaps = off_diagonal(mul(sub(columns_s, rows_s), add(columns_s, rows_s)))
    right, left = times_columns(inner, s), times_rows(s, inner)
    turn_u = mul(gaps, add(right, adjoint(right)))
    turn_v = mul(gaps, add(left, adjoint(left)))
    if is_complex(inner.dtype):
        middle = on_diagonal(inner)
        phase = sub(middle, like(real_part(middle), middle))
        turn_u = add(turn_u, div(phase, columns_s))
    du, dv = matmul(u, turn_u), matmul(v, turn_v)
    m, n = t.shape[-2:]
    if not surely_less(m, n + 1):
        du = add(du, outside(u, matmul(t, v), s))
    if not surely_less(n, m + 1):
        dv = add(dv, outside(v, matmul(adjoint(t), u), s))
    return du, dv


def outside(basis: Array, moved: Array, s: Array) -> Array:
    """The part of `moved` outside the space of `basis`, over the singular values."""
    rest = sub(moved, matmul(basis, matmul(adjoint(basis), moved)))
    return div(rest, along_rows(like(s, rest), rest))


def turned_vectors(
    p: SvdParams, outs: Sequence[np.ndarray], exact: Sequence[np.ndarray]
) -> Sequence[np.ndarray]:
    """Exact singular vectors with the phases of the given ones.

    Vectors without a singular value are any basis of what is left: the given one.
    """
    if not p.compute_uv:
        return exact
    (s, u, vh), count = exact, exact[0].shape[-1]
    phases = turned_columns(outs[1][..., :count], u[..., :count])
    left, right = outs[1].astype(u.dtype), outs[2].astype(vh.dtype)
    left[..., :count] = u[..., :count] * phases[..., None, :]
    right[..., :count, :] = vh[..., :count, :] * np.conj(phases)[..., None]
    return s, left, right


svd_p: Row[SvdParams] = matrix_row(
    "svd",
    SvdParams,
    results=svd_results,
    evaluate=evaluate_svd,
    jvp=one_pushed(jvp_svd),
    lower_on={"cpu": lower_svd, "gpu": lower_svd_on_gpu},
    traits=Traits(turned=turned_vectors),
    multiple_results=True,
)


@overload
def svd(
    x: object,
    *,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: object = None,
) -> tuple[Array, Array, Array]: ...
@overload
def svd(
    x: object,
    *,
    full_matrices: bool = True,
    compute_uv: Literal[False],
    subset_by_index: tuple[int, int] | None = None,
    algorithm: object = None,
) -> Array: ...
@overload
def svd(
    x: object,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: object = None,
) -> Array | tuple[Array, Array, Array]: ...
def svd(
    x: object,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: object = None,
) -> Array | tuple[Array, Array, Array]:
    """U, s and Vᴴ with U diag(s) Vᴴ = A; or s alone, without `compute_uv`.

    NaN where the routine fails.

    Args:
        x: matrices of shape (..., m, n), of floats or complex numbers.
        full_matrices: whether U and Vᴴ are square; if not, they have the shapes
            (..., m, k) and (..., k, n) with k = min(m, n).
        compute_uv: whether to return U and Vᴴ.
        subset_by_index: None or (0, k), for all values; parts are not available.
        algorithm: a `SvdAlgorithm` or its name: "DEFAULT", "DIVIDE_AND_CONQUER" (the
            same), "QR", and on GPUs "JACOBI" and "POLAR". None for "DEFAULT".

    Returns:
        U and Vᴴ, of the dtype of `x`, and between them s (..., k), which is real and in
        descending order.

    Raises:
        TypeError: LAPACK does not have the dtype.
        ValueError: there is no such algorithm, or a part of the values is requested.
        NotImplementedError: the algorithm is one of GPUs and the device is a CPU.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.array([[3.0, 0.0, 0.0], [0.0, 4.0, 0.0]])
    >>> u, s, vh = lax.linalg.svd(x)
    >>> s, u.shape, vh.shape
    (Array([4., 3.], dtype=float32), (2, 2), (3, 3))
    """
    a = as_operand(x)
    if subset_by_index is not None and subset_by_index != (0, min(a.shape[-2:])):
        raise ValueError(
            f"svd: subset_by_index={subset_by_index} is not available on CPU and GPU; "
            "slice the results"
        )
    name = "DEFAULT" if algorithm is None else str(algorithm).split(".")[-1]
    if name not in DRIVERS:
        raise ValueError(
            f"svd: algorithm must be one of {', '.join(DRIVERS)}, not {algorithm}"
        )
    outs = svd_p.bind(SvdParams(full_matrices, compute_uv, DRIVERS[name]), a)
    if not compute_uv:
        return outs[0]
    s, u, vh = outs
    return u, s, vh


ROWS: Rows = (svd_p,)
