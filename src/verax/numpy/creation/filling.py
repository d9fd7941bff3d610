"""Floor 6: arrays that hold one value.

One idea: without a trace such an array is NumPy memory at once; in a trace it is a
scalar and a broadcast::

    zeros((2, 3)), full(4, 1.5), ones_like(x)
"""

import numpy as np

from verax.api.sharding_args import as_place
from verax.api.tracing.structs import ShapeDtypeStruct, struct_aval
from verax.backend.arrays.concrete import ConcreteArray, at_home, fresh, put
from verax.backend.placement.mesh import Mesh, current_mesh
from verax.backend.placement.sharding import NamedSharding, Sharding
from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    canonical,
    float0,
    is_extended,
)
from verax.numpy.arguments.arguments import (
    ArrayLike,
    ShapeLike,
    array_behind,
    as_shape,
    avals_of,
    chosen_dtype,
    constant_of,
    default_float,
    number_of,
    operand,
    stretching,
)
from verax.numpy.creation.creation import Placement, made, place_of
from verax.ops.elementwise.convert import convert
from verax.ops.structure.create import filling
from verax.ops.structure.reshard import retyped
from verax.ops.structure.shape import (
    BroadcastInDimParams,
    broadcast_in_dim_p,
)
from verax.rules.rows.builder import Builder
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.sizes import is_index
from verax.rules.values.state import STATE


def filled(shape: Shape, value: object, dtype: DType, weak: bool = False) -> Array:
    """A Python or NumPy scalar everywhere."""
    interpreter = STATE.interpreter
    if dtype is float0:
        return np.zeros(shape, float0)  # type: ignore[return-value]  # as all tangents of integers
    if isinstance(interpreter, Builder) or is_extended(dtype):
        params = stretching(0, shape)
        operand = (
            filling(value, dtype, weak)
            if is_extended(dtype)
            else value
            if weak
            else constant_of(value, dtype)
        )
        return broadcast_in_dim_p.call(params, operand)
    if type(value) is int and value == 0:
        return fresh(np.zeros(shape, dtype), ShapedArray(shape, dtype, weak))  # type: ignore[arg-type]  # no keys here
    host = np.full(shape, constant_of(value, dtype))
    return fresh(host, ShapedArray(shape, dtype, weak))


def zeros(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: object = None,
) -> Array:
    """Zeros of the given shape, floats unless `dtype` says otherwise.

    Args:
        shape: a size, or a sequence of them, known while tracing.
        dtype: the dtype of the result; by default float32, or float64 with x64.
        device: a device or sharding to put the result on; None for the default one.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        an array of that shape and dtype.

    Raises:
        TypeError: the shape or the dtype is not one; sizes belong in one tuple.
        ValueError: a size is negative.

    >>> import verax.numpy as vnp
    >>> vnp.zeros((2, 3), dtype=int)
    Array([[0, 0, 0],
           [0, 0, 0]], dtype=int32)
    >>> vnp.zeros(())
    Array(0., dtype=float32)
    """
    return constant_array("zeros", shape, 0, dtype, device, out_sharding)


def ones(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: object = None,
) -> Array:
    """Ones of the given shape, floats unless `dtype` says otherwise.

    Args:
        shape: a size, or a sequence of them, known while tracing.
        dtype: the dtype of the result; by default float32, or float64 with x64.
        device: a device or sharding to put the result on; None for the default one.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        an array of that shape and dtype.

    Raises:
        TypeError: the shape or the dtype is not one; sizes belong in one tuple.
        ValueError: a size is negative.

    >>> import verax.numpy as vnp
    >>> vnp.ones(3)
    Array([1., 1., 1.], dtype=float32)
    >>> vnp.ones((1, 2), dtype=bool)
    Array([[ True,  True]], dtype=bool)
    """
    return constant_array("ones", shape, 1, dtype, device, out_sharding)


def empty(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: object = None,
) -> Array:
    """An array with arbitrary elements; zeros, in fact.

    Arrays are immutable, so there is nothing to fill in afterwards.

    Args:
        shape: a size, or a sequence of them, known while tracing.
        dtype: the dtype of the result; by default float32, or float64 with x64.
        device: a device or sharding to put the result on; None for the default one.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        an array of that shape and dtype.

    Raises:
        TypeError: the shape or the dtype is not one; sizes belong in one tuple.
        ValueError: a size is negative.

    >>> import verax.numpy as vnp
    >>> x = vnp.empty((0, 4))
    >>> x.shape, x.dtype
    ((0, 4), dtype('float32'))
    """
    return constant_array("empty", shape, 0, dtype, device, out_sharding)


def constant_array(
    name: str,
    shape: ShapeLike,
    value: int,
    dtype: DTypeLike | None,
    device: Placement,
    out_sharding: object,
) -> Array:
    """Makes the arrays of `zeros`, `ones` and `empty`.

    Raises:
        TypeError: the shape or the dtype is not one; sizes belong in one tuple.
    """
    try:
        out = chosen_dtype(name, dtype) or default_float()
    except TypeError as error:
        if not (is_index(shape) and is_index(dtype)):
            raise
        call = f"verax.numpy.{name}"
        raise TypeError(
            f"{error}. Did you accidentally write `{call}({shape}, {dtype})` when you "
            f"meant `{call}(({shape}, {dtype}))`?"
        ) from None
    sizes = as_shape(name, shape)
    if out_sharding is not None:
        device = place_of(name, device, out_sharding, len(sizes))
    return made(name, filled(sizes, value, out), device)


def full(
    shape: ShapeLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: object = None,
) -> Array:
    """`fill_value` broadcast to `shape`, in its own dtype unless one is given.

    Args:
        shape: a size, or a sequence of them, known while tracing.
        fill_value: an array or scalar that broadcasts to `shape`.
        dtype: the dtype of the result; by default that of `fill_value`.
        device: a device or sharding to put the result on; None for the default one.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        an array of that shape; weakly typed if `fill_value` is and no dtype is given.

    Raises:
        TypeError: `fill_value` is neither an array nor a scalar.
        ValueError: it does not broadcast to `shape`.

    >>> import verax.numpy as vnp
    >>> vnp.full((2, 3), vnp.array([[1], [2]]))
    Array([[1, 1, 1],
           [2, 2, 2]], dtype=int32)
    >>> vnp.full(2, 7, dtype=vnp.float16)
    Array([7., 7.], dtype=float16)
    """
    (aval,) = avals_of("full", (fill_value,))
    fill_value = operand(fill_value)
    result = chosen_dtype("full", dtype)
    weak = result is None and aval.weak_type
    target = aval.dtype if result is None else result
    sizes = as_shape("full", shape)
    device = place_of("full", device, out_sharding, len(sizes))
    if not isinstance(fill_value, Array | np.ndarray):
        return made("full", filled(sizes, fill_value, target, weak), device)
    value = convert(fill_value, target, weak)
    gap = len(sizes) - value.ndim
    if gap < 0 or any(
        own not in (1, size) for own, size in zip(value.shape, sizes[gap:], strict=True)
    ):
        raise ValueError(
            f"full: a fill_value of shape {value.shape} does not broadcast to shape "
            f"{sizes}"
        )
    dims = tuple(range(gap, len(sizes)))
    stretched = broadcast_in_dim_p.call(BroadcastInDimParams(sizes, dims), value)
    return made("full", stretched, device)


def like(
    name: str, a: object, dtype: DTypeLike | None, shape: ShapeLike | None
) -> tuple[Shape, DType, bool]:
    """Shape, dtype and weakness of an array like `a`, unless they are given.

    Raises:
        TypeError: `a` has no shape and dtype and is not a scalar.
    """
    if isinstance(a, Array):
        own, kind, weak = a.aval.shape, a.aval.dtype, a.aval.weak_type
    elif hasattr(a, "shape") and hasattr(a, "dtype"):
        own, kind = tuple(a.shape), canonical(a.dtype, STATE.enable_x64)
        weak = bool(getattr(a, "weak_type", False))
    else:
        (aval,) = avals_of(name, (a,))
        own, kind, weak = aval.shape, aval.dtype, aval.weak_type
    out = chosen_dtype(name, dtype)
    sizes = own if shape is None else as_shape(name, shape)
    return sizes, out or kind, weak and out is None


def zeros_like(
    a: object,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: object = None,
) -> Array:
    """Zeros in the shape and dtype of `a`, unless they are given.

    Args:
        a: an array or scalar, or anything with a shape and a dtype.
        dtype: the dtype of the result; by default that of `a`.
        shape: the shape of the result; by default that of `a`.
        device: a device or sharding to put the result on; None for where `a` is, or
            the struct says that it is.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        an array of zeros; weakly typed if `a` is and no dtype is given.

    Raises:
        TypeError: `a` has no shape and dtype and is not a scalar.

    >>> import verax.numpy as vnp
    >>> vnp.zeros_like(vnp.array([1 + 2j, 3]))
    Array([0.+0.j, 0.+0.j], dtype=complex64)
    >>> vnp.zeros_like(vnp.arange(6), shape=(1, 2))
    Array([[0, 0]], dtype=int32)
    """
    return constant_like("zeros_like", a, 0, dtype, shape, device, out_sharding)


def ones_like(
    a: object,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: object = None,
) -> Array:
    """Ones in the shape and dtype of `a`, unless they are given.

    Args:
        a: an array or scalar, or anything with a shape and a dtype.
        dtype: the dtype of the result; by default that of `a`.
        shape: the shape of the result; by default that of `a`.
        device: a device or sharding to put the result on; None for where `a` is, or
            the struct says that it is.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        an array of ones; weakly typed if `a` is and no dtype is given.

    Raises:
        TypeError: `a` has no shape and dtype and is not a scalar.

    >>> import verax.numpy as vnp
    >>> vnp.ones_like(vnp.arange(3))
    Array([1, 1, 1], dtype=int32)
    >>> vnp.ones_like(vnp.arange(3), dtype=float)
    Array([1., 1., 1.], dtype=float32)
    """
    return constant_like("ones_like", a, 1, dtype, shape, device, out_sharding)


def empty_like(
    prototype: object,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Placement = None,
) -> Array:
    """An array like `prototype` with arbitrary elements; zeros, in fact.

    Args:
        prototype: an array or scalar, or anything with a shape and a dtype.
        dtype: the dtype of the result; by default that of `prototype`.
        shape: the shape of the result; by default that of `prototype`.
        device: a device or sharding to put the result on; None for where `prototype`
            is.

    Returns:
        an array of that shape and dtype.

    Raises:
        TypeError: `prototype` has no shape and dtype and is not a scalar.

    >>> import verax.numpy as vnp
    >>> x = vnp.empty_like(vnp.ones((2, 3), dtype=vnp.bfloat16))
    >>> x.shape, x.dtype
    ((2, 3), dtype(bfloat16))
    """
    return constant_like("empty_like", prototype, 0, dtype, shape, device, None)


def full_like(
    a: object,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: object = None,
) -> Array:
    """`fill_value` broadcast to the shape of `a`, in its dtype, unless given.

    The dtype is that of `a`, not of `fill_value`, which is converted.

    Args:
        a: an array or scalar, or anything with a shape and a dtype.
        fill_value: an array or scalar that broadcasts to the shape.
        dtype: the dtype of the result; by default that of `a`.
        shape: the shape of the result; by default that of `a`.
        device: a device or sharding to put the result on; None for where `a` is, or
            the struct says that it is.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        an array of that shape and dtype.

    Raises:
        TypeError: `a` has no shape and dtype and is not a scalar.
        ValueError: `fill_value` does not broadcast to the shape.

    >>> import verax.numpy as vnp
    >>> vnp.full_like(vnp.arange(3), 2.9)
    Array([2, 2, 2], dtype=int32)
    >>> vnp.full_like(vnp.arange(3), 2.9, dtype=float)
    Array([2.9, 2.9, 2.9], dtype=float32)
    """
    name, fill_value = "full_like", array_behind(fill_value)
    (aval,) = avals_of(name, (fill_value,))
    if not aval.shape and not isinstance(fill_value, Array):
        return constant_like(name, a, fill_value, dtype, shape, device, out_sharding)
    sizes, kind, weak = like(name, a, dtype, shape)
    place = place_of(name, device, out_sharding, len(sizes))
    out = full(sizes, fill_value, kind, device=place)
    weak = weak and not aval.shape
    return as_split(convert(out, kind, True) if weak else out, a, place)


def constant_like(
    name: str,
    a: object,
    value: object,
    dtype: DTypeLike | None,
    shape: ShapeLike | None,
    device: Placement,
    out_sharding: object,
) -> Array:
    """Makes an array like `a` that holds one number everywhere."""
    sizes, kind, weak = like(name, a, dtype, shape)
    place = place_of(name, device, out_sharding, len(sizes))
    out = typed_fill(sizes, value, kind, weak)
    if place is not None:
        return made(name, out, place)
    return as_split(out, a, place)


def as_split(x: Array, a: object, place: Placement) -> Array:
    """`x`, which is like `a`, where `a` is, if nothing else is said.

    That is on the devices that an array at hand is committed to, or where new arrays
    go; in a trace, split by the same explicit mesh axes.
    """
    if place is not None:
        return x
    if not isinstance(a, Array | ShapeDtypeStruct):
        return at_home(x)
    alike, explicit = x.shape == a.shape, struct_aval(a).explicit
    if isinstance(a, ShapeDtypeStruct) and isinstance(x, ConcreteArray):
        own = as_place("the sharding of a ShapeDtypeStruct", concrete(a.sharding))
        return put(x, own, committed=True) if own and alike else at_home(x)
    if isinstance(a, ConcreteArray) and isinstance(x, ConcreteArray):
        split = explicit is not None and alike
        fits = alike or (explicit is None and a.sharding.is_fully_replicated)
        if split or (fits and a.committed and not x.weak_type):
            return put(x, a.sharding, committed=True)
        return at_home(x)
    return x if explicit is None or not alike else retyped(x, explicit)


def concrete(place: Sharding | None) -> Sharding | None:
    """A sharding over the mesh in force, if it is over one without devices like it."""
    if not isinstance(place, NamedSharding) or isinstance(place.mesh, Mesh):
        return place
    mesh = current_mesh()
    if mesh is None or mesh.abstract_mesh != place.mesh:
        return None
    return place.update(mesh=mesh)


def typed_fill(sizes: Shape, value: object, dtype: DType, weak: bool) -> Array:
    """`filled`, whose literal is a Python scalar where the result is weak."""
    if not weak:
        return filled(sizes, value, dtype)
    item = number_of(value, dtype).item()
    if aval_of(item).dtype == dtype:
        return filled(sizes, item, dtype, True)
    return convert(filled(sizes, item, dtype), dtype, True)
