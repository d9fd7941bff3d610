"""Floor 6: estimates of a density by normal kernels.

One idea: an estimate is a pytree of its data and matrices, so that it passes through
transformations; points are whitened by a factor of the inverse covariance::

    kde = gaussian_kde(samples)        # one row for each dimension
    kde(points), kde.logpdf(points), kde.resample(key, (100,))
"""

import math
from collections.abc import Callable, Sequence
from typing import Self

from attrs import frozen

from verax import numpy as vnp, random
from verax.api.trees.pytrees import register_pytree_node_class
from verax.ir.dtypes import is_complex
from verax.ir.records import ReprMixin
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    inexact_array,
    inexact_arrays,
)
from verax.rules.values.array import Array
from verax.scipy.linalg import cho_factor, cho_solve
from verax.scipy.special import logsumexp, ndtr

type Bandwidth = str | ArrayLike | Callable[[gaussian_kde], ArrayLike] | None
LOG_2_PI = math.log(2 * math.pi)


def as_matrix(x: Array) -> Array:
    """A vector as one row, a scalar as one element."""
    return vnp.atleast_2d(x)


def real_matrix(name: str, x: ArrayLike) -> Array:
    """A matrix of real floats, from a vector one row.

    Raises:
        TypeError: it is complex.
        ValueError: it has more than two dimensions.
    """
    out = as_matrix(inexact_array(name, x))
    if is_complex(out.dtype):
        raise TypeError(f"{name} takes real numbers, not {out.dtype}")
    if out.ndim != 2:
        raise ValueError(f"{name} takes a vector or a matrix, not {out.aval}")
    return out


def bandwidth(kde: "gaussian_kde", method: Bandwidth) -> ArrayLike:
    """The factor of the covariance's square root.

    Raises:
        ValueError: there is no such method.
    """
    power = -1 / (kde.d + 4)
    if method is None or (isinstance(method, str) and method == "scott"):
        return kde.neff**power
    if isinstance(method, str):
        if method == "silverman":
            return (kde.neff * (kde.d + 2) / 4) ** power
    elif callable(method):
        return method(kde)
    elif vnp.ndim(method) == 0:
        return method
    raise ValueError(
        "gaussian_kde: bw_method must be 'scott', 'silverman', a scalar or a function "
        f"of the estimate, not {method!r}"
    )


@register_pytree_node_class
@frozen(eq=False, init=False, repr=False)
class gaussian_kde(ReprMixin):
    """The density of which a data set is a sample, as a sum of normal kernels.

    Args:
        dataset: n numbers, or a matrix of shape (d, n).
        bw_method: the width of kernels relative to the data's: "scott", "silverman", a
            scalar, or a function of the estimate.
        weights: n weights of the data, equal by default.

    Raises:
        TypeError: the data are complex.
        ValueError: there are fewer than two numbers, or the weights do not fit.

    >>> import verax.numpy as vnp
    >>> kde = gaussian_kde(vnp.array([-1.0, 0.0, 1.0]))
    >>> round(float(kde(0.0)[0]), 3)
    0.318
    >>> round(float(kde.integrate_box_1d(-9.0, 9.0)), 3)
    1.0
    """

    __module__ = "verax.scipy.stats"

    neff: Array
    dataset: Array
    weights: Array
    covariance: Array
    inv_cov: Array

    def __init__(
        self,
        dataset: ArrayLike,
        bw_method: Bandwidth = None,
        weights: ArrayLike | None = None,
    ) -> None:
        data = real_matrix("gaussian_kde", dataset)
        if data.size < 2:
            raise ValueError("gaussian_kde needs a dataset of at least two numbers")
        data, shares = weighted(data, weights)
        neff = 1 / (shares * shares).sum()
        covariance = as_matrix(vnp.cov(data, bias=False, aweights=shares))
        fields = (neff, data, shares, covariance, vnp.linalg.inv(covariance))
        self.__attrs_init__(*fields)
        square = vnp.square(as_array("gaussian_kde", bandwidth(self, bw_method)))
        scaled = (covariance * square, fields[4] / square)
        self.__attrs_init__(*fields[:3], *scaled)

    def tree_flatten(self) -> tuple[tuple[Array, ...], None]:
        """The arrays of the estimate."""
        parts = (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov)
        return parts, None

    @classmethod
    def tree_unflatten(cls, aux: None, parts: Sequence[Array]) -> Self:
        """An estimate of given arrays."""
        out = cls.__new__(cls)
        out.__attrs_init__(*parts)
        return out

    @property
    def d(self) -> int:
        """The number of dimensions."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """The number of data."""
        return self.dataset.shape[1]

    def evaluate(self, points: ArrayLike) -> Array:
        """The density at points of shape (d, m): m numbers."""
        logs, whole = self.kernels(points)
        return (vnp.exp(logs) * self.weights[None]).sum(-1) * vnp.exp(whole)

    __call__ = evaluate

    def pdf(self, x: ArrayLike) -> Array:
        """The density at points of shape (d, m): m numbers."""
        return self.evaluate(x)

    def logpdf(self, x: ArrayLike) -> Array:
        """The logarithm of the density, also where that is too small for a float."""
        logs, whole = self.kernels(x)
        return logsumexp(logs, axis=-1, b=self.weights[None]) + whole

    def kernels(self, points: ArrayLike) -> tuple[Array, Array]:
        """Exponents of shape (m, n), and the logarithm of their common factor.

        Raises:
            ValueError: the points have another number of dimensions.
        """
        x = real_matrix("gaussian_kde.evaluate", points)
        if x.shape[0] != self.d and x.shape == (1, self.d):
            x = x.T
        if x.shape[0] != self.d:
            raise ValueError(
                f"points of shape {x.shape} do not match a density in {self.d} "
                "dimensions"
            )
        factor = vnp.linalg.cholesky(self.inv_cov)
        ours, theirs = self.dataset.T @ factor, x.T @ factor
        gaps = theirs[:, None, :] - ours[None, :, :]
        whole = vnp.log(vnp.diagonal(factor)).sum() - 0.5 * self.d * LOG_2_PI
        return -0.5 * (gaps * gaps).sum(-1), whole

    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Array:
        """The integral of the density times a normal density.

        Raises:
            ValueError: mean or covariance have another number of dimensions.
        """
        centre = vnp.ravel(as_array("integrate_gaussian", mean))
        spread = as_matrix(as_array("integrate_gaussian", cov, 1))
        if centre.shape != (self.d,) or spread.shape != (self.d, self.d):
            raise ValueError(
                f"a density in {self.d} dimensions takes a mean and a covariance of "
                f"that size, not of shapes {centre.shape} and {spread.shape}"
            )
        return self.overlap(centre[:, None], self.covariance + spread)[0]

    def overlap(self, means: Array, covariance: Array) -> Array:
        """Normal densities around the data, summed with their weights, at `means`."""
        factor, lower = cho_factor(covariance, lower=True)
        gaps = self.dataset[:, :, None] - means[:, None, :]
        flat = vnp.reshape(gaps, (self.d, -1))
        squares = (flat * cho_solve((factor, lower), flat)).sum(0)
        scale = vnp.log(vnp.diagonal(factor)).sum() + 0.5 * self.d * LOG_2_PI
        values = vnp.reshape(vnp.exp(-0.5 * squares - scale), gaps.shape[1:])
        return self.weights @ values

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """The integral between two numbers, of a density in one dimension.

        Raises:
            ValueError: there are more dimensions, or the limits are not scalars.
        """
        if self.d != 1 or vnp.ndim(low) or vnp.ndim(high):
            raise ValueError(
                "integrate_box_1d takes two scalars, and only a density in one "
                "dimension"
            )
        sigma, data = vnp.sqrt(self.covariance[0, 0]), self.dataset[0]
        ends = [ndtr((end - data) / sigma) for end in (high, low)]
        return (self.weights * (ends[0] - ends[1])).sum()

    def integrate_kde(self, other: "gaussian_kde") -> Array:
        """The integral of the product with another estimate.

        Raises:
            ValueError: it has another number of dimensions.
        """
        if other.d != self.d:
            raise ValueError(
                f"densities in {self.d} and {other.d} dimensions cannot be multiplied"
            )
        array = self.overlap(other.dataset, self.covariance + other.covariance)
        return (array * other.weights).sum()

    def resample(self, key: ArrayLike, shape: tuple[int, ...] = ()) -> Array:
        """Samples of shape (d, *shape) from the density."""
        which, noise = random.split(key)
        index = random.choice(which, self.n, shape=shape, p=self.weights)
        zero = vnp.zeros(self.d, self.covariance.dtype)
        drawn = random.multivariate_normal(
            noise, zero, self.covariance, shape=shape, dtype=self.dataset.dtype
        )
        return self.dataset[:, index] + vnp.moveaxis(drawn, -1, 0)


def weighted(data: Array, weights: ArrayLike | None) -> tuple[Array, Array]:
    """Data and weights of the same dtype; the weights add up to 1.

    Raises:
        ValueError: there is another number of weights.
    """
    n = data.shape[1]
    if weights is None:
        return data, vnp.full(n, 1 / n, data.dtype)
    out, shares = inexact_arrays("gaussian_kde", data, weights)
    if shares.shape != (n,):
        raise ValueError(
            f"gaussian_kde: weights must have shape ({n},), not {shares.shape}"
        )
    return out, shares / shares.sum()
