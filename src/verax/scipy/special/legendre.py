"""Floor 6: associated Legendre functions of all orders and degrees up to some.

One idea: the functions whose degree is their order are powers of √(1 - x²), and each
degree follows for all orders at once from the two below it (DLMF 14.10.3)::

    lpmn_values(3, 3, vnp.linspace(-1, 1, 5), is_normalized=True)[order, degree]
"""

import math
import operator
from collections.abc import Callable

import numpy as np

from verax import lax, numpy as vnp
from verax.api.autodiff.jvp_vjp import jvp
from verax.ir.dtypes import is_float
from verax.numpy import where
from verax.numpy.arguments.arguments import ArrayLike, as_array
from verax.rules.values.array import Array


def lpmn_values(m: int, n: int, z: ArrayLike, is_normalized: bool) -> Array:
    """The associated Legendre functions P_l^k(z) of orders k and degrees l.

    They have the phase (-1)^k of Condon and Shortley, as in SciPy. The derivative of
    order 1 is infinite at the ends of [-1, 1]; the gradient leaves that part out.

    Args:
        m: the last order.
        n: the last degree, which must be `m`.
        z: a vector of floats in [-1, 1].
        is_normalized: whether the functions have the norms of the spherical harmonics:
            √((2l + 1) (l - k)! / 4π (l + k)!) times as large.

    Returns:
        An array of shape (m + 1, n + 1, len(z)) in the dtype of `z`; functions whose
        order is above their degree are zero.

    Raises:
        NotImplementedError: `m` and `n` differ.
        TypeError: `z` holds no floats.
        ValueError: `z` is no vector, or `m` is negative.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> special.lpmn_values(2, 2, vnp.array([0.5]), False)[..., 0].round(3)
    Array([[ 1.   ,  0.5  , -0.125],
           [ 0.   , -0.866, -1.299],
           [ 0.   ,  0.   ,  2.25 ]], dtype=float32)
    """
    return legendre("lpmn_values", m, n, z, is_normalized, finite_root)


def lpmn(m: int, n: int, z: ArrayLike) -> tuple[Array, Array]:
    """The associated Legendre functions as `lpmn_values` gives them, and their slopes.

    Args:
        m: the last order.
        n: the last degree, which must be `m`.
        z: a vector of floats in [-1, 1].

    Returns:
        Two arrays of shape (m + 1, n + 1, len(z)): the functions without norms, and
        their derivatives by `z`.

    Raises:
        NotImplementedError: `m` and `n` differ.
        TypeError: `z` holds no floats.
        ValueError: `z` is no vector, or `m` is negative.

    >>> import verax.numpy as vnp
    >>> from verax.scipy import special
    >>> values, slopes = special.lpmn(1, 1, vnp.array([0.0, 0.6]))
    >>> slopes[0].tolist()
    [[0.0, 0.0], [1.0, 1.0]]
    """
    x = as_array("lpmn", z, 2)
    one = (vnp.ones_like(x),)
    values, slopes = jvp(
        lambda x: legendre("lpmn", m, n, x, False, vnp.sqrt), (x,), one
    )
    return values, slopes


def finite_root(square: Array) -> Array:
    """The root, with slope 0 at 0: a zero cotangent times infinity would be NaN."""
    return where(square > 0, vnp.sqrt(where(square > 0, square, 1.0)), 0.0)


def legendre(
    name: str,
    m: int,
    n: int,
    z: ArrayLike,
    is_normalized: bool,
    rooted: Callable[[Array], Array],
) -> Array:
    """The functions of all orders and degrees, checked; see `lpmn_values`."""
    last = operator.index(m)
    if last != operator.index(n):
        raise NotImplementedError(f"{name}: m and n must be equal, not {m} and {n}")
    x = as_array(name, z, 2)
    if x.ndim != 1 or last < 0:
        raise ValueError(
            f"{name} takes a vector and an order of at least 0, not {x.aval} and {m}"
        )
    if not is_float(x.dtype):
        raise TypeError(f"{name} takes floats, not {x.aval}")
    first, ahead, behind = (
        vnp.asarray(part, dtype=x.dtype) for part in factors(last, is_normalized)
    )
    # Whole powers of 1 - x² keep their derivatives at ±1, where the root has none.
    square = (1 - x) * (1 + x)
    orders = vnp.arange(last + 1)[:, None]
    root = where(orders % 2 == 1, rooted(square), 1.0)
    diagonal = first[:, None] * square ** (orders // 2) * root

    def upward(
        carry: tuple[Array, Array], at: tuple[Array, Array, Array]
    ) -> tuple[tuple[Array, Array], Array]:
        below, lower = carry
        degree, a, b = at
        grown = a[:, None] * x * below - b[:, None] * lower
        value = where(orders == degree, diagonal, where(orders < degree, grown, 0.0))
        return (value, below), value

    nothing = vnp.zeros_like(diagonal)
    rows: Array
    degrees = vnp.arange(last + 1)
    _, rows = lax.scan(upward, (nothing, nothing), (degrees, ahead, behind))
    return rows.swapaxes(0, 1)


def factors(
    last: int, is_normalized: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The factors of the diagonal and, by degree and order, of the recurrence.

    P_l^k = ahead x P_(l-1)^k - behind P_(l-2)^k.
    """
    degree, order = np.mgrid[: last + 1, : last + 1].astype(float)
    inside = order < degree
    k = np.arange(1, last + 1)
    if not is_normalized:
        gap = np.where(inside, degree - order, 1)
        first = np.cumprod([1.0, *(1.0 - 2 * k)])
        ahead, behind = (2 * degree - 1) / gap, (degree + order - 1) / gap
    else:
        gap = np.where(inside, degree**2 - order**2, 1)
        ahead = np.sqrt(np.maximum(4 * degree**2 - 1, 0) / gap)
        under = np.maximum((degree - 1) ** 2 - order**2, 0)
        over = np.where(degree > 1, 4 * (degree - 1) ** 2 - 1, 1)
        behind = ahead * np.sqrt(under / over)
        first = np.cumprod(
            [math.sqrt(0.25 / math.pi), *-np.sqrt((2 * k + 1) / (2 * k))]
        )
    return first, np.where(inside, ahead, 0), np.where(inside, behind, 0)
