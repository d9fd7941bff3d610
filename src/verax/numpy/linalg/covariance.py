"""Floor 6: covariances and correlations.

One idea: a covariance is a product of centred rows, over a count::

    cov(x), cov(x, y, ddof=0), corrcoef(x, rowvar=False)
"""

from typing import Any

from verax.backend.eager.composites import remembered
from verax.ir.dtypes import DType, DTypeLike, is_complex, is_inexact, is_integer
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    chosen_dtype,
    promote_inexact,
)
from verax.numpy.elementwise.arithmetic import clip, multiply, true_divide
from verax.numpy.linalg.products import matmul
from verax.numpy.reducing.reductions import sum
from verax.numpy.reducing.statistics import average
from verax.numpy.shaping.joining import concatenate
from verax.numpy.shaping.rearranging import diagonal
from verax.numpy.shaping.shapes import atleast_2d, expand_dims, squeeze, transpose
from verax.ops.elementwise.complex import complex, conj, imag, real
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.exp_log import sqrt
from verax.rules.values.array import Array


def variables(x: Any, rowvar: bool) -> Array:
    """A matrix with one row per variable.

    Raises:
        ValueError: there are more than two dimensions.
    """
    array = as_array("cov", x)
    if array.ndim > 2:
        raise ValueError(f"cov takes vectors and matrices, not {array.aval}")
    rows = atleast_2d(array)
    assert isinstance(rows, Array)
    # A vector is one variable, however `rowvar` is.
    return rows if rowvar or array.ndim < 2 else transpose(rows)


def observation_weights(
    fweights: ArrayLike | None, aweights: ArrayLike | None, count: int
) -> tuple[Array | None, Array | None]:
    """Both weights together, and those that are not frequencies.

    Raises:
        TypeError: frequencies are not integers.
        ValueError: weights are not a vector with one element per observation.
    """
    parts: list[Array | None] = []
    for name, weights in (("fweights", fweights), ("aweights", aweights)):
        if weights is None:
            parts.append(None)
            continue
        part = as_array("cov", weights)
        if name == "fweights" and not is_integer(part.dtype):
            raise TypeError(f"cov: fweights must be integers, not {part.aval}")
        if part.shape != (count,):
            raise ValueError(
                f"cov: {name} has shape {part.shape}, but there are {count} "
                "observations; pass a vector with one weight for each"
            )
        parts.append(part)
    frequencies, others = parts
    if frequencies is None or others is None:
        return (others if frequencies is None else frequencies), others
    return multiply(frequencies, others), others


@remembered
def cov(
    m: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: ArrayLike | None = None,
    aweights: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """The covariances of the variables in the rows of `m`, and of `y` after them.

    Columns hold the observations; with `rowvar=False` it is the other way round. Sums
    are divided by the count less `ddof`, by default 1, or 0 with `bias`. Observations
    count `fweights` times, and weigh `aweights`.

    Raises:
        ValueError: more than two dimensions, or weights of another size.
    """
    asked = inexact_of("cov", dtype)
    operands = promote_inexact("cov", m, *([] if y is None else [y]))
    if asked is not None:
        operands = [convert(x, asked) for x in operands]
    rows = [variables(x, rowvar) for x in operands]
    x = rows[0] if len(rows) == 1 else concatenate(rows, 0)
    less = (0 if bias else 1) if ddof is None else ddof
    weights, others = observation_weights(fweights, aweights, x.shape[1])
    if others is not None and asked is None:
        x = convert(x, promote_inexact("cov", x, others)[0].dtype)
    center, total = average(x, 1, weights, returned=True)
    center, divisor = convert(center, x.dtype), max(x.shape[1] - less, 0)
    centred = x - expand_dims(center, 1)
    weighted = centred
    if weights is not None:
        weighted = multiply(centred, expand_dims(convert(weights, x.dtype), 0))
        divisor = freedom(total[0], weights, others, less)
    other = transpose(weighted)
    product = matmul(centred, conj(other) if is_complex(x.dtype) else other)
    return squeeze(convert(true_divide(product, divisor), x.dtype))


def inexact_of(name: str, dtype: DTypeLike | None) -> DType | None:
    """The dtype that is asked for.

    Raises:
        ValueError: it holds integers or booleans.
    """
    found = chosen_dtype(name, dtype)
    if found is not None and not is_inexact(found):
        raise ValueError(
            f"{name}: dtype must be a subclass of float or complex, not {found}"
        )
    return found


def freedom(total: Array, weights: Array, others: Array | None, less: int) -> Any:
    """The sum of the weights, less that of `less` typical ones."""
    if not less:
        return total
    if others is None:
        return total - less
    return total - true_divide(multiply(sum(multiply(weights, others)), less), total)


@remembered
def corrcoef(
    x: ArrayLike,
    y: ArrayLike | None = None,
    rowvar: bool = True,
    dtype: DTypeLike | None = None,
) -> Array:
    """The covariances of `cov`, divided by the standard deviations.

    Real and imaginary parts are between -1 and 1; NaN where a variable is constant.
    """
    found = cov(x, y, rowvar, dtype=inexact_of("corrcoef", dtype))
    if not found.ndim:
        return true_divide(found, found)
    variances = diagonal(found)
    deviations = sqrt(real(variances) if is_complex(found.dtype) else variances)
    if is_complex(found.dtype):
        deviations = convert(deviations, found.dtype)
    found = true_divide(found, expand_dims(deviations, 1))
    found = true_divide(found, expand_dims(deviations, 0))
    if is_complex(found.dtype):
        return complex(clip(real(found), -1, 1), clip(imag(found), -1, 1))
    return clip(found, -1, 1)
