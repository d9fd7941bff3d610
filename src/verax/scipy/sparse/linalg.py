"""Floor 6: `verax.scipy.sparse.linalg`: conjugate gradients, BiCGSTAB and GMRES.

One idea: unknowns may be any pytree, but a solver works on their vector; and since each
solver stands in `custom_linear_solve`, derivatives are further solves, not the
derivatives of its steps::

    x, _ = cg(lambda x: laplacian(x) + x, b, tol=1e-8)

Y. Saad, "Iterative Methods for Sparse Linear Systems", 2003.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, overload

import numpy as np

from verax import lax, numpy as vnp
from verax.api.trees.pytrees import tree_leaves, tree_map, tree_structure
from verax.flatten_util import ravel_pytree
from verax.ir.dtypes import is_complex
from verax.numpy import where
from verax.numpy.arguments.arguments import ArrayLike, inexact_array
from verax.rules.values.array import Array
from verax.scipy.linalg import solve_triangular

__all__ = ["bicgstab", "cg", "gmres"]

type Operator = Callable[[Any], Any]
type Vectors = Callable[[Array], Array]


def as_operator(name: str, argument: str, a: Any) -> Operator:
    """A function from a function, a square matrix, or what multiplies by @.

    Raises:
        TypeError: it is neither.
        ValueError: it is not a square matrix.
    """
    if callable(a):
        operator: Operator = a  # what it does is up to the user
        return operator
    if not hasattr(a, "__matmul__"):
        raise TypeError(
            f"{name}: {argument}, the linear operator must be either a function or "
            f"ndarray, a square matrix, not a {type(a).__name__}"
        )
    shape = np.shape(a) if not hasattr(a, "shape") else a.shape
    if len(shape) != 2 or shape[0] != shape[1]:
        raise ValueError(
            f"{name}: {argument} must be a square matrix, not of shape {shape}"
        )
    return lambda x: a @ x


def identity(x: object) -> Any:
    return x


def inner(x: Array, y: Array) -> Array:
    """<x, y> with full precision of products."""
    return vnp.vdot(x, y, precision=lax.Precision.HIGHEST)


def norm(x: Array) -> Array:
    return vnp.sqrt(inner(x, x).real)


def as_scale(factor: Array, x: Array) -> Array:
    """A real factor in the dtype of the vector that it scales."""
    return factor.astype(x.dtype)


def both(x: Array, y: Array) -> Array:
    return x & y


def times(matrix: Array, x: Array) -> Array:
    return vnp.matmul(matrix, x, precision=lax.Precision.HIGHEST)


def as_float(name: str, x: Any) -> Array:
    """An array of floats; integers would cut every step."""
    return inexact_array(name, x)


def checked_start(name: str, b: object, x0: object) -> tuple[object, object]:
    """Right-hand side and start as trees of arrays of the same shapes.

    Raises:
        ValueError: they differ in structure or shapes, or there are no numbers.
    """
    right = tree_map(partial(as_float, name), b)
    start = (
        tree_map(vnp.zeros_like, right)
        if x0 is None
        else tree_map(partial(as_float, name), x0)
    )
    trees = tree_structure(start), tree_structure(right)
    if trees[0] != trees[1]:
        raise ValueError(
            f"{name}: x0 and b must have matching tree structure, not {trees[0]} and "
            f"{trees[1]}"
        )
    shapes = [[x.shape for x in tree_leaves(tree)] for tree in (start, right)]
    if shapes[0] != shapes[1]:
        raise ValueError(
            f"{name}: x0 and b must have matching shapes, not {shapes[0]} and "
            f"{shapes[1]}"
        )
    return right, start


def solved(
    name: str,
    algorithm: Callable[..., Array],
    a: object,
    b: object,
    x0: object,
    m: object,
    **how: object,
) -> object:
    """The solution by an algorithm on vectors, with its derivatives."""
    right, start = checked_start(name, b, x0)
    operator = as_operator(name, "A", a)
    condition = identity if m is None else as_operator(name, "M", m)
    leaves = tree_leaves(right)
    size = sum(x.size for x in leaves)
    if how["maxiter"] is None:
        how["maxiter"] = 10 * size
    start_vector, _ = ravel_pytree(start)

    def solve(matvec: Operator, b: object) -> object:
        flat, unravel = ravel_pytree(b)

        def on_vectors(function: Operator) -> Vectors:
            return lambda v: ravel_pytree(function(unravel(v)))[0].astype(flat.dtype)

        guess = start_vector.astype(flat.dtype)
        array = algorithm(on_vectors(matvec), flat, guess, on_vectors(condition), **how)
        return unravel(array)

    symmetric = name == "cg" and not any(is_complex(x.dtype) for x in leaves)
    return lax.custom_linear_solve(operator, right, solve, solve, symmetric=symmetric)


@overload
def cg(
    A: object,
    b: ArrayLike,
    x0: object = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: object = None,
) -> tuple[Array, None]: ...
@overload
def cg[T](
    A: object,
    b: T,
    x0: object = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: object = None,
) -> tuple[T, None]: ...
def cg(
    A: object,
    b: object,
    x0: object = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: object = None,
) -> tuple[Any, None]:
    """The x with A x = b for Hermitian positive definite A, by conjugate gradients.

    Args:
        A: a square matrix, or a linear function of trees like `b`.
        b: an array or a pytree of arrays.
        x0: where to start, by default zeros.
        tol: the residual may be that much of the norm of `b`,
        atol: or this much.
        maxiter: how many steps at most, by default ten for each number.
        M: an approximate inverse of A, a matrix or a function.

    Returns:
        x and None. Derivatives in `b` and in what A closes over are further solves.

    Raises:
        TypeError: A or M is not an operator, or A returns other types than b has.
        ValueError: matrices are not square, or `x0` is not like `b`.

    >>> x, _ = cg(np.float32([[4, 1], [1, 3]]), np.float32([1, 2]))
    >>> np.round(np.asarray(x), 3).tolist()
    [0.09..., 0.63...]
    """
    how = {"tol": tol, "atol": atol, "maxiter": maxiter}
    return solved("cg", conjugate_gradients, A, b, x0, M, **how), None


def conjugate_gradients(
    a: Vectors, b: Array, x: Array, m: Vectors, *, tol: float, atol: float, maxiter: int
) -> Array:
    """Saad's algorithm 9.1."""
    limit = vnp.maximum(tol * norm(b), atol)

    def unfinished(state: Any) -> Array:
        _, r, _, _, k = state
        return both(norm(r) > limit, k < maxiter)

    def step(state: Any) -> Any:
        x, r, p, gamma, k = state
        ap = a(p)
        alpha = as_scale(gamma / inner(p, ap).real, x)
        x, r = x + alpha * p, r - alpha * ap
        z = m(r)
        following = inner(r, z).real
        return x, r, z + as_scale(following / gamma, p) * p, following, k + 1

    r = b - a(x)
    z = m(r)
    out: Array = lax.while_loop(unfinished, step, (x, r, z, inner(r, z).real, 0))[0]
    return out


@overload
def bicgstab(
    A: object,
    b: ArrayLike,
    x0: object = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: object = None,
) -> tuple[Array, None]: ...
@overload
def bicgstab[T](
    A: object,
    b: T,
    x0: object = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: object = None,
) -> tuple[T, None]: ...
def bicgstab(
    A: object,
    b: object,
    x0: object = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    maxiter: int | None = None,
    M: object = None,
) -> tuple[object, None]:
    """The x with A x = b for any regular A, by stabilised biconjugate gradients.

    Args:
        A: a square matrix, or a linear function of trees like `b`.
        b: an array or a pytree of arrays.
        x0: where to start, by default zeros.
        tol: the residual may be that much of the norm of `b`,
        atol: or this much.
        maxiter: how many steps at most, by default ten for each number.
        M: an approximate inverse of A, a matrix or a function.

    Returns:
        x and None. Derivatives in `b` and in what A closes over are further solves.

    Raises:
        TypeError: A or M is not an operator, or A returns other types than b has.
        ValueError: matrices are not square, or `x0` is not like `b`.

    >>> x, _ = bicgstab(np.float32([[4, 1], [0, 2]]), np.float32([5, 2]))
    >>> np.round(np.asarray(x), 3).tolist()
    [1.0, 1.0]
    """
    how = {"tol": tol, "atol": atol, "maxiter": maxiter}
    return solved("bicgstab", biconjugate_gradients, A, b, x0, M, **how), None


def biconjugate_gradients(
    a: Vectors, b: Array, x: Array, m: Vectors, *, tol: float, atol: float, maxiter: int
) -> Array:
    """Saad's algorithm 7.7, preconditioned from the right; stops at a breakdown."""
    limit = vnp.maximum(tol * norm(b), atol)
    shadow = b - a(x)

    def unfinished(state: Any) -> Array:
        _, r, _, _, k, broken = state
        return both(norm(r) > limit, (k < maxiter) & ~broken)

    def step(state: Any) -> Any:
        x, r, p, rho, k, _ = state
        smooth_p = m(p)
        ap = a(smooth_p)
        alpha = rho / inner(shadow, ap)
        s = r - alpha * ap
        half = norm(s) <= limit
        smooth_s = m(s)
        t = a(smooth_s)
        # Where half a step has solved the system, t is rounding noise or zero.
        omega = where(half, 0.0, inner(t, s) / where(half, 1.0, inner(t, t)))
        x = x + alpha * smooth_p + omega * smooth_s
        r = s - omega * t
        following = inner(shadow, r)
        beta = following / rho * where(half, 0.0, alpha / where(half, 1.0, omega))
        broken = (following == 0) | (omega == 0)
        return x, r, r + beta * (p - omega * ap), following, k + 1, broken

    start = (x, shadow, shadow, inner(shadow, shadow), 0, False)
    out: Array = lax.while_loop(unfinished, step, start)[0]
    return out


@overload
def gmres(
    A: object,
    b: ArrayLike,
    x0: object = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: object = None,
    solve_method: str = "batched",
) -> tuple[Array, Array]: ...
@overload
def gmres[T](
    A: object,
    b: T,
    x0: object = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: object = None,
    solve_method: str = "batched",
) -> tuple[T, Array]: ...
def gmres(
    A: object,
    b: object,
    x0: object = None,
    *,
    tol: float = 1e-5,
    atol: float = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: object = None,
    solve_method: str = "batched",
) -> tuple[object, Array]:
    """The x with A x = b for any regular A, by minimal residuals.

    Args:
        A: a square matrix, or a linear function of trees like `b`.
        b: an array or a pytree of arrays.
        x0: where to start, by default zeros.
        tol: the residual may be that much of the norm of `b`,
        atol: or this much.
        restart: the dimension of the space in which residuals are minimised.
        maxiter: how many such spaces at most, by default ten for each number.
        M: an approximate inverse of A, a matrix or a function.
        solve_method: "batched" fills each space, "incremental" stops within one when
            the residual is small enough.

    Returns:
        x, and 0, or -1 if x is not finite.

    Raises:
        TypeError: A or M is not an operator, or A returns other types than b has.
        ValueError: matrices are not square, `x0` is not like `b`, or there is no such
            method.

    >>> x, info = gmres(np.float32([[4, 1], [0, 2]]), np.float32([5, 2]))
    >>> np.round(np.asarray(x), 3).tolist(), int(info)
    ([1.0, 1.0], 0)
    """
    if solve_method not in ("batched", "incremental"):
        raise ValueError(
            "gmres: solve_method must be 'batched' or 'incremental', not "
            f"{solve_method!r}"
        )
    how = {"tol": tol, "atol": atol, "maxiter": maxiter, "restart": restart}
    x = solved(
        "gmres", minimal_residuals, A, b, x0, M, **how, stops=solve_method != "batched"
    )
    finite = vnp.isfinite(ravel_pytree(x)[0]).all()
    return x, where(finite, 0, -1)


def minimal_residuals(
    a: Vectors,
    b: Array,
    x: Array,
    m: Vectors,
    *,
    tol: float,
    atol: float,
    maxiter: int,
    restart: int,
    stops: bool,
) -> Array:
    """Saad's algorithm 9.4, restarted."""
    size = max(1, min(restart, b.size))
    length = norm(b)
    limit = vnp.maximum(tol * length, atol)
    # Within a space the residual is that of the preconditioned system.
    ratio = vnp.minimum(1.0, limit / where(length == 0, 1.0, length))
    inside = norm(m(b)) * ratio if stops else None

    def unfinished(state: Any) -> Array:
        _, r, k = state
        return both(norm(r) > limit, k < maxiter)

    def step(state: Any) -> Any:
        x, r, k = state
        x = x + in_space(a, m, m(r), size, inside)
        return x, b - a(x), k + 1

    x, r, _ = lax.while_loop(unfinished, step, (x, b - a(x), 0))
    return where(vnp.isnan(norm(r)), np.nan, x)


def in_space(a: Vectors, m: Vectors, r: Array, size: int, limit: Array | None) -> Array:
    """The step of least residual in the space of r, Ar, A²r, ...

    The norm of the residual after k steps is that of r over that of the vector w with
    w₀ = 1 and wᴴ H = 0, which grows by one element with each column of H.
    """
    length = norm(r)
    eps = float(vnp.finfo(r.dtype).eps)
    unit = r / where(length == 0, 1.0, length)
    basis = vnp.zeros((r.size, size + 1), r.dtype).at[:, 0].set(unit)
    # Columns of steps that are not made are those of the unit matrix.
    start = vnp.eye(size + 1, size, dtype=r.dtype)
    null = vnp.zeros(size + 1, r.dtype).at[0].set(1)

    def unfinished(state: Any) -> Array:
        _, _, null, k, more = state
        out = both(k < size, more)
        return out if limit is None else out & (length > limit * norm(null))

    def step(state: Any) -> Any:
        basis, h, null, k, _ = state
        v = m(a(lax.dynamic_index_in_dim(basis, k, 1, keepdims=False)))
        before = norm(v)
        # Twice is enough (L. Giraud, J. Langou, M. Rozložník, 2005).
        first = times(vnp.conj(basis.T), v)
        v = v - times(basis, first)
        second = times(vnp.conj(basis.T), v)
        v = v - times(basis, second)
        after = norm(v)
        more = after > eps * before
        safe = where(more, after, 1.0)
        basis = basis.at[:, k + 1].set(where(more, v / safe, 0.0))
        column = (first + second).at[k + 1].set(where(more, after, 0.0).astype(v.dtype))
        null = null.at[k + 1].set(-vnp.conj(inner(null, column)) / safe)
        return basis, h.at[:, k].set(column), null, k + 1, more

    state = (basis, start, null, 0, length > 0)
    basis, h, _, _, _ = lax.while_loop(unfinished, step, state)
    q, upper = vnp.linalg.qr(h)
    y = solve_triangular(upper, vnp.conj(q[0]) * length)
    return times(basis[:, :size], y)
