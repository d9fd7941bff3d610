"""Floor 6: exponentials of matrices, and their derivatives in a direction.

expm(a), expm_frechet(a, direction)
"""

from verax.api.autodiff.jvp_vjp import jvp
from verax.numpy.arguments.arguments import ArrayLike
from verax.numpy.linalg.decompositions import as_matrices, check_square
from verax.numpy.linalg.products import matmul
from verax.numpy.ranges.grids import eye
from verax.numpy.shaping.shapes import broadcast_to
from verax.ops.elementwise.arith import (
    abs as magnitude,
    add,
    div,
    max as larger,
    mul,
    sub,
)
from verax.ops.elementwise.compare import gt, le
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import exp2, log2
from verax.ops.elementwise.rounding import ceil
from verax.ops.elementwise.select import select
from verax.ops.linalg import lu
from verax.ops.linalg.algebra import like
from verax.ops.reductions.reduce import reduce_max, reduce_sum
from verax.ops.structure.create import full_like
from verax.ops.structure.shape import broadcast_in_dim
from verax.rules.values.array import Array

# Padé's approximation of order 13 is exact to 2^-53 up to this norm (N. Higham, The
# scaling and squaring method for the matrix exponential revisited, 2005, table 2.3).
RADIUS = 5.371920351148152
PADE = (
    64764752532480000.0,
    32382376266240000.0,
    7771770303897600.0,
    1187353796428800.0,
    129060195264000.0,
    10559470521600.0,
    670442572800.0,
    33522128640.0,
    1323241920.0,
    40840800.0,
    960960.0,
    16380.0,
    182.0,
    1.0,
)


def expm(
    A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16
) -> Array:
    """The exponentials of square matrices, by Padé's approximation and squaring.

    NaN where the norm needs more than `max_squarings`.

    Raises:
        ValueError: the matrices are not square.
    """
    (a,) = as_matrices("expm", A)
    check_square("expm", a)
    size = a.ndim - 2
    if not a.size:
        return a
    norm = reduce_max(reduce_sum(magnitude(a), (size,)), (size,))
    # The logarithm of a norm below one is not needed, that of zero does not exist.
    count = ceil(log2(larger(div(norm, RADIUS), full_like(norm, 1))))
    small = div(a, spread(like(exp2(count), a), a))
    found = approximant(small)
    steps = spread(count, a)
    for i in range(max_squarings):
        found = select(gt(steps, float(i)), matmul(found, found), found)
    # No NaN exists unless a result is one: debug_nans looks at every value.
    known = like(convert(le(count, float(max_squarings)), norm.dtype), a)
    return mul(found, spread(div(known, known), a))


def spread(x: Array, a: Array) -> Array:
    """One number for each matrix, at all of its elements."""
    return broadcast_in_dim(x, a.shape, tuple(range(x.ndim)))


def approximant(a: Array) -> Array:
    """Padé's approximation (V - U)⁻¹ (V + U) of exp(a), of order 13."""
    unit = broadcast_to(eye(a.shape[-1], dtype=a.dtype), a.shape)
    a2 = matmul(a, a)
    a4 = matmul(a2, a2)
    a6 = matmul(a4, a2)
    powers = (unit, a2, a4, a6)
    # The coefficients are far apart: relative to the first they fit float32.
    c = [value / PADE[0] for value in PADE]
    odd = add(matmul(a6, combined(c[9::2], powers[1:])), combined(c[1:9:2], powers))
    even = add(matmul(a6, combined(c[8::2], powers[1:])), combined(c[0:8:2], powers))
    u = matmul(a, odd)
    return lu.solve(sub(even, u), add(even, u))


def combined(coefficients: list[float], powers: tuple[Array, ...]) -> Array:
    """The sum of powers, each times its coefficient."""
    terms = [mul(p, full_like(p, c)) for c, p in zip(coefficients, powers, strict=True)]
    total = terms[0]
    for term in terms[1:]:
        total = add(total, term)
    return total


def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True
) -> Array | tuple[Array, Array]:
    """exp(A) and its derivative in the direction E, or the derivative alone.

    There is one method, the derivative of `expm`; `method` changes nothing.

    Raises:
        ValueError: the matrices are not square, or of different shapes.

    >>> import numpy as np
    >>> zero, unit = np.zeros((2, 2), np.float32), np.eye(2, dtype=np.float32)
    >>> expm_frechet(zero, unit, compute_expm=False).tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    a, direction = as_matrices("expm_frechet", A, E)
    check_square("expm_frechet", a)
    if a.shape != direction.shape:
        raise ValueError(
            f"expm_frechet: A and E must have the same shape, not {a.shape} and "
            f"{direction.shape}"
        )
    found, moved = jvp(expm, (a,), (direction,))
    return (found, moved) if compute_expm else moved
