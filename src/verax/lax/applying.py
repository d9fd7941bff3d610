"""Floor 6: a function of some elements of an array, equality, small names of `lax`.

One idea: an index that comes twice is read again after it was written, in a loop over
indices::

    scatter_apply(x, indices, f, numbers)
"""

from collections.abc import Callable, Sequence
from enum import IntEnum
from math import prod

import numpy as np

from verax.api.host.debugging import debug_callback
from verax.backend import pytrees
from verax.ir.dtypes import numpy_dtype
from verax.ir.jaxpr import NO_PARAMS
from verax.lax.looping import fori_loop
from verax.numpy.arguments.arguments import ArrayLike, as_array, default_integer
from verax.ops.calls.callbacks import SINK, dce_sink_p
from verax.ops.elementwise import compare
from verax.ops.elementwise.bits import bitwise_not
from verax.ops.elementwise.compare import key_pair
from verax.ops.elementwise.select import copy_p
from verax.ops.indexing.dynamic_slice import dynamic_index_in_dim
from verax.ops.indexing.gather import gather
from verax.ops.indexing.geometry import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from verax.ops.indexing.scatter import scatter
from verax.ops.random.keys import same_keys
from verax.ops.structure.create import broadcasted_iota
from verax.ops.structure.joining import concatenate
from verax.ops.structure.shape import reshape
from verax.rules.values.array import Array
from verax.rules.values.sizes import as_size, size_as


class FftType(IntEnum):
    """The kinds of Fourier transform that `lax.fft` takes."""

    __module__ = "verax.lax"

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[[Array], Array],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """`operand` with windows replaced by the elementwise `func` of them.

    An index that comes twice has it applied twice.

    Args:
        operand: an array.
        scatter_indices: integer index vectors, in the last dimension.
        func: a function of one window; it returns an array of the same shape and dtype.
        dimension_numbers: what each dimension is, as for `scatter`.
        update_shape: the shape that the updates of `scatter` would have; only its sizes
            in the window dimensions count.
        indices_are_sorted: ignored.
        unique_indices: ignored.
        mode: what happens to windows that are not wholly inside: "drop" or "fill", the
            default, leave them out, "clip" moves them inside.

    Returns:
        An array of the shape and dtype of `operand`.

    >>> import numpy as np
    >>> from verax import lax
    >>> numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> x = np.array([1.0, 2.0, 3.0])
    >>> where = np.array([[0], [0], [2]])
    >>> y = lax.scatter_apply(x, where, lambda v: 2 * v, numbers, update_shape=(3,))
    >>> y.tolist()
    [4.0, 2.0, 6.0]
    """
    x, places = (as_array("scatter_apply", v) for v in (operand, scatter_indices))
    windows = tuple(update_shape[i] for i in dimension_numbers.update_window_dims)
    batching = tuple(dimension_numbers.operand_batching_dims)
    inserted = tuple(sorted((*dimension_numbers.inserted_window_dims, *batching)))
    rest = iter(windows)
    sizes = [1 if i in inserted else next(rest) for i in range(x.ndim)]
    dims = tuple(range(len(windows)))
    targets = (*dimension_numbers.scatter_dims_to_operand_dims, *batching)
    reading = GatherDimensionNumbers(dims, tuple(inserted), tuple(targets))
    writing = ScatterDimensionNumbers(dims, tuple(inserted), tuple(targets))
    # A batching dimension is an index that counts along a dimension of the indices.
    counts = [
        broadcasted_iota(places.dtype, (*places.shape[:-1], 1), i)
        for i in dimension_numbers.scatter_indices_batching_dims
    ]
    places = concatenate([places, *counts], places.ndim - 1)
    rows = reshape(places, (prod(places.shape[:-1]), places.shape[-1]))

    def step(i: object, carry: Array) -> Array:
        own = dynamic_index_in_dim(rows, i, 0, False)
        part = gather(carry, own, reading, sizes, mode="clip")
        return scatter(carry, own, func(part), writing, mode=mode)

    out: Array = fori_loop(0, rows.shape[0], step, x)
    return out


def eq(x: object, y: object) -> Array:
    """x = y, on operands of the same dtype and of the same shape or scalar.

    Args:
        x: an array or scalar, of numbers, booleans or typed keys.
        y: an array or scalar of the same dtype; one without dimensions broadcasts.

    Returns:
        Booleans of the shape of the operands; NaN equals nothing.

    Raises:
        TypeError: dtypes or shapes differ.

    >>> from verax import lax, random
    >>> bool(lax.eq(random.key(0), random.key(0)))
    True
    """
    if (pair := key_pair(x, y)) is not None:
        return same_keys(*pair)
    return compare.eq(x, y)


def ne(x: object, y: object) -> Array:
    """x ≠ y, on operands of the same dtype and of the same shape or scalar.

    Args:
        x: an array or scalar, of numbers, booleans or typed keys.
        y: an array or scalar of the same dtype; one without dimensions broadcasts.

    Returns:
        Booleans of the shape of the operands; NaN differs from everything.

    Raises:
        TypeError: dtypes or shapes differ.

    >>> import numpy as np
    >>> from verax import lax
    >>> x = np.array([1.0, np.nan])
    >>> lax.ne(x, x)
    Array([False,  True], dtype=bool)
    """
    if (pair := key_pair(x, y)) is not None:
        return bitwise_not(same_keys(*pair))
    return compare.ne(x, y)


def shape_as_value(shape: Sequence[int]) -> Array:
    """A shape as an array of integers.

    Args:
        shape: the sizes of the dimensions, which may be symbolic.

    Returns:
        A vector of the default integer dtype, int32 without x64.

    >>> from verax import lax
    >>> lax.shape_as_value((2, 3)).tolist()
    [2, 3]
    """
    dtype = default_integer()
    sizes = [size_as(as_size(n), dtype) for n in shape]
    if any([isinstance(n, Array) for n in sizes]):
        return concatenate([reshape(n, (1,)) for n in sizes], 0)
    return as_array("shape_as_value", np.asarray(sizes, numpy_dtype(dtype)))


def stage(x: object, /) -> Array:
    """`x` as an array of the current trace, or as an array where there is none.

    Args:
        x: an array or scalar.

    Returns:
        A copy of the shape and dtype of `x`, weak if `x` is.

    >>> import verax
    >>> from verax import lax
    >>> verax.make_jaxpr(lambda: lax.stage(1.0) + lax.stage(2.0))().eqns[-1].primitive
    add
    >>> lax.stage(1.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return copy_p.call(NO_PARAMS, x)


def dce_sink(val: object, *, prevent_mlir_dce: bool = False) -> None:
    """Keep the leaves of a tree in the program, although nothing uses them.

    Equations that they need are not removed as dead.

    Args:
        val: an array, or a tree of arrays.
        prevent_mlir_dce: whether the compiler may not remove them either; the values
            then go to the host. By default it may.

    Returns:
        Nothing.

    >>> from verax import lax, make_jaxpr
    >>> len(make_jaxpr(lambda x: lax.dce_sink(x + 1))(1.0).eqns)
    2
    """
    leaves, _ = pytrees.flatten(val)
    for leaf in leaves:
        x = as_array("dce_sink", leaf)
        if prevent_mlir_dce:
            debug_callback(received, x)
        else:
            dce_sink_p.bind(SINK, x)


def received(x: np.ndarray) -> None:
    """The host takes a value, and does nothing with it."""
