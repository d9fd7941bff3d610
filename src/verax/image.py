"""Floor 6: `verax.image`: resizing images.

One idea: resampling along a dimension is a product with a matrix of weights, whose
columns are a kernel around each output pixel, moved to the input's scale::

    resize(image, (224, 224, 3), "bilinear")
    scale_and_translate(image, shape, (0, 1), scale, translation, "cubic")

C. Duchon, "Lanczos filtering in one and two dimensions", 1979; R. Keys, "Cubic
convolution interpolation for digital image processing", 1981.
"""

import enum
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from verax import lax, numpy as vnp
from verax.ir.dtypes import float32
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    as_shape,
    canonical_axes,
    inexact_array,
    inexact_arrays,
)
from verax.rules.values.array import Array
from verax.rules.values.sizes import without

__all__ = ["ResizeMethod", "resize", "scale_and_translate"]

# A sum of weights below this counts as zero.
NO_WEIGHT: Final = 1000.0 * float(np.finfo(np.float32).eps)


class ResizeMethod(enum.Enum):
    """Methods of interpolation between pixels; functions take the names as well.

    >>> ResizeMethod.from_string("bilinear")
    <ResizeMethod.LINEAR: 1>
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> "ResizeMethod":
        """The method of this name.

        Raises:
            ValueError: there is none.
        """
        if s not in NAMES:
            raise ValueError(
                f"there is no resize method {s!r}; the methods are {[*NAMES]}"
            )
        return NAMES[s]


NAMES: Final = {
    "nearest": ResizeMethod.NEAREST,
    "linear": ResizeMethod.LINEAR,
    "bilinear": ResizeMethod.LINEAR,
    "trilinear": ResizeMethod.LINEAR,
    "triangle": ResizeMethod.LINEAR,
    "lanczos3": ResizeMethod.LANCZOS3,
    "lanczos5": ResizeMethod.LANCZOS5,
    "cubic": ResizeMethod.CUBIC,
    "bicubic": ResizeMethod.CUBIC,
    "tricubic": ResizeMethod.CUBIC,
    "cubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "bicubic-pytorch": ResizeMethod.CUBIC_PYTORCH,
    "area": ResizeMethod.AREA,
}


# ------------------------------------------------------------------- kernels, x >= 0


def triangle(x: Array) -> Array:
    out: Array = vnp.maximum(0.0, 1 - x)
    return out


def lanczos(radius: float) -> Callable[[Array], Array]:
    """A sinc, in the window of a wider sinc."""

    def kernel(x: Array) -> Array:
        out: Array = vnp.where(x > radius, 0.0, vnp.sinc(x) * vnp.sinc(x / radius))
        return out

    return kernel


def cubic(a: float) -> Callable[[Array], Array]:
    """The cubic spline with slope a at 1."""

    def kernel(x: Array) -> Array:
        near = ((a + 2) * x - (a + 3)) * x * x + 1
        far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a
        out: Array = vnp.where(x >= 2, 0.0, vnp.where(x >= 1, far, near))
        return out

    return kernel


KERNELS: Final[dict[ResizeMethod, Callable[[Array], Array]]] = {
    ResizeMethod.LINEAR: triangle,
    ResizeMethod.LANCZOS3: lanczos(3.0),
    ResizeMethod.LANCZOS5: lanczos(5.0),
    ResizeMethod.CUBIC: cubic(-0.5),
    ResizeMethod.CUBIC_PYTORCH: cubic(-0.75),
}
# How far that kernel reaches, which is also how far edges are continued.
REACH: Final = 2


# --------------------------------------------------------------------------- weights


def weights_of(
    m: int,
    n: int,
    scale: Array,
    translation: Array,
    method: ResizeMethod,
    antialias: bool,
) -> Array:
    """The weights, of shape (m, n), of m input pixels in n output pixels."""
    dtype = scale.dtype
    inverse = 1 / scale
    outputs = vnp.arange(n, dtype=dtype)[None, :]
    inputs = vnp.arange(m, dtype=dtype)[:, None]
    shift = translation * inverse
    middle = (outputs + 0.5) * inverse - shift - 0.5
    if method is ResizeMethod.AREA:
        left = outputs * inverse - shift
        ends = vnp.minimum(left + inverse, inputs + 1)
        weights = vnp.maximum(0.0, ends - vnp.maximum(left, inputs))
    elif method is ResizeMethod.CUBIC_PYTORCH:
        weights = continued(m, middle, KERNELS[method])
    else:
        # Where the image shrinks, the kernel grows to meet all pixels.
        wide = vnp.maximum(inverse, 1.0) if antialias else 1.0
        weights = KERNELS[method](abs(middle - inputs) / wide)
    total = weights.sum(0, keepdims=True)
    some = abs(total) > NO_WEIGHT
    shares = vnp.where(some, weights / vnp.where(total != 0, total, 1.0), 0.0)
    if method is not ResizeMethod.CUBIC_PYTORCH:
        inside = (middle >= -0.5) & (middle <= m - 0.5)
        shares = vnp.where(inside, shares, 0.0)
    assert isinstance(shares, Array)
    return shares


def continued(m: int, middle: Array, kernel: Callable[[Array], Array]) -> Array:
    """Weights of pixels when those at the edges stand for all beyond them."""
    inputs = vnp.arange(-REACH, m + REACH, dtype=middle.dtype)[:, None]
    weights = kernel(abs(middle - inputs))
    if m == 1:
        return weights.sum(0, keepdims=True)
    first, last = weights[: REACH + 1], weights[m + REACH - 1 :]
    rows = (first.sum(0, keepdims=True), weights[REACH + 1 : m + REACH - 1])
    return vnp.concatenate([*rows, last.sum(0, keepdims=True)])


def as_method(name: str, method: str | ResizeMethod, antialias: bool) -> ResizeMethod:
    """The method; with antialiasing there is one cubic kernel.

    Raises:
        TypeError: it is not a method.
        ValueError: there is none of this name.
    """
    out = ResizeMethod.from_string(method) if isinstance(method, str) else method
    if not isinstance(out, ResizeMethod):
        raise TypeError(
            f"{name}: method must be a name or a ResizeMethod, not {method!r}"
        )
    if out is ResizeMethod.CUBIC_PYTORCH and antialias:
        return ResizeMethod.CUBIC
    return out


def as_image(
    name: str, image: ArrayLike, shape: Sequence[int]
) -> tuple[Array, tuple[int, ...]]:
    """An image and the shape of the result.

    Raises:
        ValueError: they have other numbers of dimensions.
    """
    x, target = as_array(name, image), as_shape(name, shape)
    if len(target) != x.ndim:
        raise ValueError(
            f"{name} takes a shape with the dimensions of the image, not {target} for "
            f"{x.aval}"
        )
    return x, target


def resampled(
    x: Array,
    shape: tuple[int, ...],
    axes: Sequence[int],
    scale: Sequence[Array],
    translation: Sequence[Array],
    method: ResizeMethod,
    antialias: bool,
    precision: object,
) -> Array:
    """One product with a matrix for each dimension."""
    for axis, factor, move in zip(axes, scale, translation, strict=True):
        weights = weights_of(
            x.shape[axis], shape[axis], factor, move, method, antialias
        ).astype(x.dtype)
        last = axis == x.ndim - 1
        # With the weights first, what follows the dimension is moved in one piece.
        operands, contracted = (x, weights), ((axis,), (0,))
        if not last:
            operands, contracted = operands[::-1], contracted[::-1]
        product = vnp.tensordot(*operands, axes=contracted, precision=precision)
        x = vnp.moveaxis(product, -1 if last else 0, axis)
    return x


def scale_and_translate(
    image: ArrayLike,
    shape: Sequence[int],
    spatial_dims: Sequence[int],
    scale: ArrayLike,
    translation: ArrayLike,
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: object = lax.Precision.HIGHEST,
) -> Array:
    """An image in other coordinates: a point x moves to x * scale + translation.

    Args:
        image: an array; integers are taken as floats.
        shape: the shape of the result.
        spatial_dims: the dimensions that change.
        scale: a factor for each of them; may be traced, and is differentiable.
        translation: an offset for each of them, in pixels of the result.
        method: all but "nearest".
        antialias: let kernels grow where the image shrinks.
        precision: of the products, see `verax.lax.Precision`.

    Returns:
        The image; pixels from outside it are zero.

    Raises:
        ValueError: there is no such method, or shapes do not fit.

    >>> line = vnp.array([1.0, 2.0, 3.0, 4.0])
    >>> one, two = vnp.array([1.0]), vnp.array([2.0])
    >>> scale_and_translate(line, (4,), (0,), one, two, "linear").tolist()
    [0.0, 0.0, 1.0, 2.0]
    """
    name = "scale_and_translate"
    x, target = as_image(name, image, shape)
    chosen = as_method(name, method, antialias)
    if chosen is ResizeMethod.NEAREST:
        raise ValueError(
            f"{name} does not support the method nearest; use resize, or another method"
        )
    x = inexact_array(name, x)
    axes = canonical_axes(name, tuple(spatial_dims), x.ndim)
    factors, moves = inexact_arrays(name, scale, translation)
    if factors.shape != (len(axes),) or moves.shape != (len(axes),):
        raise ValueError(
            f"{name} takes scale and translation for each of {len(axes)} dimensions, "
            f"not {factors.aval} and {moves.aval}"
        )
    if without(x.shape, axes) != without(target, axes):
        raise ValueError(
            f"{name}: {target} differs from {x.aval} in dimensions other than {axes}"
        )
    first, second = ([v[i] for i in range(len(axes))] for v in (factors, moves))
    return resampled(x, target, axes, first, second, chosen, antialias, precision)


def resize(
    image: ArrayLike,
    shape: Sequence[int],
    method: str | ResizeMethod,
    antialias: bool = True,
    precision: object = lax.Precision.HIGHEST,
) -> Array:
    """An image resampled to another shape.

    Args:
        image: an array; integers are taken as floats, except by "nearest".
        shape: the shape of the result, with as many dimensions.
        method: "nearest", "linear", "cubic", "lanczos3", "lanczos5", "area" (the mean
            of what a pixel covers), "cubic-pytorch" (the spline of PyTorch and OpenCV,
            edges continued; with antialiasing the same as "cubic"), or a
            `ResizeMethod`.
        antialias: let kernels grow where the image shrinks.
        precision: that of products, see `verax.lax.Precision`.

    Returns:
        An array of shape `shape`, of the dtype of `image`, or for integers of the
        default float, except by "nearest".

    Raises:
        TypeError: the method is neither a string nor a `ResizeMethod`.
        ValueError: there is no such method, the shapes do not fit, or an empty
            dimension would have to grow.

    >>> resize(vnp.array([1.0, 3.0]), (4,), "linear").tolist()
    [1.0, 1.5, 2.5, 3.0]
    """
    x, target = as_image("resize", image, shape)
    chosen = as_method("resize", method, antialias)
    axes = [i for i in range(x.ndim) if x.shape[i] != target[i]]
    if any(x.shape[i] == 0 for i in axes):
        raise ValueError(f"resize: there are no pixels to resize in {x.aval}")
    if chosen is ResizeMethod.NEAREST:
        for i in axes:
            m, n = x.shape[i], target[i]
            x = vnp.take(x, (2 * np.arange(n) + 1) * m // (2 * max(n, 1)), axis=i)
        return x
    x = inexact_array("resize", x)
    dtype = x.real.dtype
    wide = dtype if vnp.finfo(dtype).bits >= 32 else float32
    scale = [vnp.array(max(target[i], 1) / x.shape[i], wide) for i in axes]
    none = [vnp.zeros((), wide)] * len(axes)
    return resampled(x, target, axes, scale, none, chosen, antialias, precision)
