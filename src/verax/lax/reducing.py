"""Floor 6: `reduce` and `reduce_window` by a Python function of two elements.

One idea: trace the function once on scalars; what it turns out to be decides the row:
a sum, a product, an extreme, or a fold by any jaxpr::

    reduce(x, 0.0, lax.add, (0,))                     # reduce_sum
    reduce((x, i), (-inf, 0), first_largest, (1,))    # the largest, and where
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, overload

import numpy as np

from verax.api.tracing.apply import ENGINE
from verax.api.tracing.trace import trace
from verax.api.tracing.wrapping import function_name
from verax.backend import pytrees
from verax.backend.arrays.concrete import ConcreteArray
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import DType, is_bool, numpy_dtype
from verax.ir.jaxpr import NO_PARAMS, Jaxpr, Primitive
from verax.ops.calls.call import CallParams
from verax.ops.elementwise import arith, bits
from verax.ops.elementwise.convert import convert
from verax.ops.reductions import reduce as reductions
from verax.ops.structure.shape import broadcast_in_dim
from verax.ops.windows.general_reduce import FoldParams, reduce_p
from verax.ops.windows.geometry import (
    WindowParams,
    as_pads,
    dilated,
    window_counts,
)
from verax.ops.windows.reduce_window import (
    FoldWindowParams,
    reduce_window_max_p,
    reduce_window_min_p,
    reduce_window_p,
    reduce_window_sum_p,
)
from verax.rules.families.reducer import (
    ReduceParams,
    Scalar,
    highest,
    lowest,
    reduce_params,
)
from verax.rules.rows.builder import Tracer
from verax.rules.rows.row import Row
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.conversions import (
    HostArray,
)
from verax.rules.values.operands import adopt
from verax.rules.values.sizes import (
    ShapeError,
    as_axes,
    as_integers,
    unsharded,
)
from verax.transforms.passes.cse import fold

READABLE = 1 << 30
type Identity = Callable[[DType], Scalar]
MONOIDS: Mapping[Primitive, tuple[Row[ReduceParams], Identity]] = MappingProxyType(
    {
        arith.add_p: (reductions.reduce_sum_p, lambda dtype: 0),
        arith.mul_p: (reductions.reduce_prod_p, lambda dtype: 1),
        arith.max_p: (reductions.reduce_max_p, lowest),
        arith.min_p: (reductions.reduce_min_p, highest),
        bits.and_p: (reductions.reduce_and_p, reductions.ones),
        bits.or_p: (reductions.reduce_or_p, lambda dtype: 0),
        bits.xor_p: (reductions.reduce_xor_p, lambda dtype: 0),
    }
)
WINDOWS: Mapping[Primitive, Row[WindowParams]] = MappingProxyType(
    {
        arith.add_p: reduce_window_sum_p,
        arith.max_p: reduce_window_max_p,
        arith.min_p: reduce_window_min_p,
    }
)


def folded(
    name: str, operands: object, init_values: object, computation: Callable[..., object]
) -> tuple[list[Array], list[Array], Jaxpr, Any]:
    """Arrays, initial values, the computation as a jaxpr, and the structure of all."""
    arrays, tree = pytrees.flatten(operands)
    inits, init_tree = pytrees.flatten(init_values)
    if tree != init_tree or not arrays:
        raise ShapeError(
            f"{name}: Operands must have the same tree structure as init_values, one "
            f"for each array, but their structures are {tree} and {init_tree}"
        )
    shapes = [aval_of(x).shape for x in inits]
    if any(shapes):
        raise ShapeError(
            f"{name} found non-scalar initial value: {name} expected init_values to be "
            f"scalars but init_values have shapes {shapes}."
        )
    avals = [aval_of(x) for x in arrays]
    scalars = [ShapedArray((), aval.dtype) for aval in avals]
    one = tree.unflatten(range(len(arrays)))
    _, in_tree = pytrees.flatten(((one, one), {}))
    traced = trace(computation, in_tree, [*scalars, *scalars], name)
    if traced.captured:
        raise TypeError(
            f"{name}: {function_name(computation)} uses a traced value of an outer "
            "function; a computation may use only its two arguments and constants"
        )
    if traced.out_tree != tree:
        raise ShapeError(
            f"{name} output must have the same tree structure as the operands: "
            f"{function_name(computation)} returns {traced.out_tree}, not {tree}"
        )
    jaxpr = traced.jaxpr
    if jaxpr.used_consts:
        # A compiled fold takes scalars alone, so elements of arrays are read here.
        jaxpr = fold(ENGINE, jaxpr, READABLE)
    operation = monoid_of(jaxpr)
    inits = [initial(x, aval, operation) for x, aval in zip(inits, avals, strict=True)]
    return arrays, inits, jaxpr, tree


def initial(x: object, aval: ShapedArray, operation: Primitive | None) -> Any:
    """An initial value for arrays of type `aval`.

    The neutral element of another dtype stands for that of the array's: 0.0 for 0, and
    -inf for the least integer.

    >>> int(initial(-np.inf, ShapedArray((2,), np.dtype("int8")), arith.max_p))
    -128
    """
    if operation and operation in MONOIDS and not isinstance(x, Tracer):
        identity, own = MONOIDS[operation][1], aval_of(x).dtype
        if own != aval.dtype and is_identity(x, identity(own), own):
            return np.asarray(identity(aval.dtype), numpy_dtype(aval.dtype))
    return adopt(x, aval)


def monoid_of(jaxpr: Jaxpr) -> Primitive | None:
    """The binary operation that a computation is, if it is one of two scalars."""
    if len(jaxpr.eqns) != 1 or len(jaxpr.invars) != 2:
        return None
    (eqn,) = jaxpr.eqns
    if tuple(eqn.outvars) != tuple(jaxpr.outvars) or set(eqn.invars) != set(
        jaxpr.invars
    ):
        return None
    if isinstance(eqn.params, CallParams):
        return monoid_of(eqn.params.jaxpr)
    return eqn.primitive


def is_identity(x: object, identity: Scalar, dtype: DType) -> bool:
    """Whether an initial value is known now, and is the neutral element."""
    if isinstance(x, Tracer):
        return False
    value = x.numpy() if isinstance(x, ConcreteArray) else np.asarray(x)
    return value.shape == () and bool(
        value.astype(numpy_dtype(dtype)) == np.asarray(identity, numpy_dtype(dtype))
    )


def after(operation: Primitive, y: Array, init: object, identity: Identity) -> Array:
    """A reduction from the neutral element, with the initial value put before it."""
    if is_identity(init, identity(y.dtype), y.dtype):
        return convert(y, y.dtype, y.weak_type and aval_of(init).weak_type)
    assert isinstance(operation, Row)
    return operation.call(NO_PARAMS, broadcast_in_dim(init, y.shape, ()), y)


@overload
def reduce(
    operands: Array | HostArray,
    init_values: Array | HostArray,
    computation: Callable[[Any, Any], object],
    dimensions: Sequence[int],
    out_sharding: object = None,
) -> Array: ...
@overload
def reduce[T](
    operands: T,
    init_values: object,
    computation: Callable[[Any, Any], object],
    dimensions: Sequence[int],
    out_sharding: object = None,
) -> T: ...
def reduce(
    operands: object,
    init_values: object,
    computation: Callable[[Any, Any], object],
    dimensions: Sequence[int],
    out_sharding: object = None,
) -> Any:
    """Arrays of the same shape, folded by `computation` over `dimensions`.

    Args:
        operands: an array, or a tree of arrays of the same shape.
        init_values: a tree of scalars like `operands`, of their dtypes. They are
            neutral for `computation`: how often they take part is up to XLA.
        computation: an associative function of two trees of scalars to one.
        dimensions: the dimensions to reduce, negative ones from the end.
        out_sharding: only None.

    Returns:
        A tree like `operands`, of the same dtypes, without these dimensions.

    Raises:
        TypeError: structures, shapes or dtypes do not match, or `computation` uses a
            value that is being traced.
        ValueError: a dimension does not exist or is named twice, or `out_sharding` says
            something.

    >>> import numpy as np
    >>> from verax import lax
    >>> x = np.array([[1.0, 2.0], [3.0, 4.0]], np.float32)
    >>> lax.reduce(x, 0.0, lax.add, (0,))
    Array([4., 6.], dtype=float32)
    """
    unsharded("reduce", out_sharding)
    arrays, inits, jaxpr, tree = folded("reduce", operands, init_values, computation)
    rank = aval_of(arrays[0]).ndim
    dims = tuple(sorted(as_axes("reduce", dimensions, rank, "'axes' of the reduction")))
    operation = monoid_of(jaxpr)
    if operation is not None and operation in MONOIDS:
        row, identity = MONOIDS[operation]
        y = row.call(reduce_params(dims), arrays[0])
        return tree.unflatten([after(operation, y, inits[0], identity)])
    if not dims:
        return operands
    return tree.unflatten(reduce_p.bind(FoldParams(jaxpr, dims), *arrays, *inits))


def window_params(
    shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None,
    padding: str | Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None,
    window_dilation: Sequence[int] | None,
) -> WindowParams:
    """The params of windows, defaults filled in and padding as numbers."""
    name, rank = "reduce_window", len(shape)
    given = {
        "window_dimensions": window_dimensions,
        "window_strides": window_strides,
        "base_dilation": base_dilation,
        "window_dilation": window_dilation,
    }
    result = {
        argument: (1,) * rank if values is None else as_integers(name, argument, values)
        for argument, values in given.items()
    }
    for argument, values in result.items():
        if len(values) != rank or any(value < 1 for value in values):
            raise ShapeError(
                f"{name}: {argument} must have every element be positive, one "
                f"for each of the {rank} dimensions, not {values}"
            )
    windows, strides, base, spread = result.values()
    wide = tuple(map(dilated, windows, spread))
    pads = as_pads(name, padding, tuple(shape), wide, strides)
    return WindowParams(windows, strides, pads, base, spread)


@overload
def reduce_window(
    operand: Array | HostArray,
    init_value: object,
    computation: Callable[[Any, Any], object],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Array: ...
@overload
def reduce_window[T](
    operand: T,
    init_value: object,
    computation: Callable[[Any, Any], object],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> T: ...
def reduce_window(
    operand: object,
    init_value: object,
    computation: Callable[[Any, Any], object],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """`reduce` over windows that move over the arrays, as pooling layers do.

    The derivative of an extreme goes to the first of equal elements.

    Args:
        operand: an array, or a tree of arrays of the same shape.
        init_value: a tree of scalars like `operand`, of their dtypes, neutral for
            `computation`. Padding, and the holes of dilated arrays, hold it.
        computation: an associative function of two trees of scalars to one.
        window_dimensions: the sizes of windows, one for each dimension.
        window_strides: the steps in which windows move; None for 1.
        padding: "SAME", "SAME_LOWER", "VALID", the default, or a pair (low, high) for
            each dimension. Names count the elements of an array that is not dilated.
        base_dilation: the distances between neighbours of the arrays; None for 1.
        window_dilation: the distances between neighbours in a window; None for 1.

    Returns:
        A tree like `operand`, of the same dtypes, with one element for each place of
        the window; see `reduce_window_shape_tuple`.

    Raises:
        TypeError: structures, shapes or dtypes do not match.
        ValueError: a parameter is out of range.

    >>> import numpy as np
    >>> from verax import lax
    >>> x = np.array([1.0, 5.0, 2.0, 4.0], np.float32)
    >>> lax.reduce_window(x, -np.inf, lax.max, (2,), (2,))
    Array([5., 4.], dtype=float32)
    """
    arrays, inits, jaxpr, tree = folded(
        "reduce_window", operand, init_value, computation
    )
    aval = aval_of(arrays[0])
    params = window_params(
        aval.shape,
        window_dimensions,
        window_strides,
        padding,
        base_dilation,
        window_dilation,
    )
    operation = monoid_of(jaxpr)
    if operation is not None and operation in WINDOWS and not is_bool(aval.dtype):
        row, identity = WINDOWS[operation], MONOIDS[operation][1]
        y = row.call(params, arrays[0])
        return tree.unflatten([after(operation, y, inits[0], identity)])
    fold = FoldWindowParams(*params.geometry(aval.shape)[1:], jaxpr)
    return tree.unflatten(reduce_window_p.bind(fold, *arrays, *inits))


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """The shape of what `reduce_window` makes of an array of that shape.

    Args:
        operand_shape: the shape of the array.
        window_dimensions: the sizes of windows, one for each dimension.
        window_strides: the steps in which windows move.
        padding: a pair (low, high) for each dimension, or a name as in `reduce_window`.
        base_dilation: the distances between neighbours of the array; None for 1.
        window_dilation: the distances between neighbours in a window; None for 1.

    Returns:
        A shape with as many dimensions.

    Raises:
        ValueError: a parameter is out of range.

    >>> from verax import lax
    >>> lax.reduce_window_shape_tuple((5,), (3,), (2,), ((1, 1),))
    (3,)
    """
    params = window_params(
        operand_shape,
        window_dimensions,
        window_strides,
        padding,
        base_dilation,
        window_dilation,
    )
    return window_counts(params.geometry(tuple(operand_shape)))
