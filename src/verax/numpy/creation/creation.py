"""Floor 6: arrays from Python values, and arrays of a shape.

One idea: without a trace a new array is NumPy memory at once, and in a trace it is an
equation; values that the caller hands in are constants in both::

    asarray([1.0, 2.0])            # float32, as x64 is off
    zeros((2, 3), dtype=jnp.int8)
"""

from collections.abc import Buffer, Sequence
from typing import Any

import numpy as np

from verax.api.sharding_args import check_devices, constrained, over_a_mesh
from verax.api.tracing.structs import ShapeDtypeStruct, struct_aval
from verax.backend.arrays.concrete import ConcreteArray, at_home, fresh, put
from verax.backend.placement.sharding import Sharding, SingleDeviceSharding
from verax.backend.runtime.client import Device, local_devices
from verax.ir.avals import Shape, ShapedArray, iinfo
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    bool_,
    canonical,
    float0,
    is_complex,
    is_extended,
    is_integer,
    numpy_dtype,
)
from verax.ir.meshes import says_nothing
from verax.numpy.arguments.arguments import (
    ArrayLike,
    ShapeLike,
    array_behind,
    as_array,
    as_constant,
    as_shape,
    avals_of,
    chosen_dtype,
    common_type,
    constant_of,
    default_float,
    number_of,
    operand,
    shown,
    stretching,
)
from verax.ops.elementwise.arith import real
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import copy as copy_of
from verax.ops.structure.create import filling
from verax.ops.structure.joining import concatenate
from verax.ops.structure.reshard import check_unnamed, retyped
from verax.ops.structure.shape import (
    BroadcastInDimParams,
    broadcast_in_dim_p,
    expand_dims,
)
from verax.rules.rows.builder import Builder
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.sizes import is_index
from verax.rules.values.state import STATE

type Placement = Device | Sharding | None

PLAIN = frozenset((bool, int, float, complex))


def array(
    object: Any,
    dtype: DTypeLike | None = None,
    *,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: Placement = None,
    out_sharding: object = None,
) -> Array:
    """An array with the values of a number, an array, or nested lists of these.

    Without x64, 64-bit values and dtypes become 32-bit ones; integers of NumPy that are
    too large for that wrap.

    Args:
        object: a number, an array, anything with `__array__` or the buffer protocol, or
            nested lists and tuples of numbers and arrays.
        dtype: the dtype of the result; by default that which the values have together.
        copy: whether an array of verax is copied, too; other values always are.
        order: "K", "C" or None, without effect, since the compiler chooses the memory
            layout.
        ndmin: the least number of dimensions; missing ones are put in front, with size
            1.
        device: a device or sharding to put the result on; None for the default one.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        an array with a dimension for each level of lists before those of the values;
        weakly typed if it is made of one Python number without `dtype`.

    Raises:
        TypeError: a value is not a number.
        ValueError: the lists are ragged or hold None.
        OverflowError: an integer of Python does not fit the dtype.
        NotImplementedError: another `order`.

    >>> import verax.numpy as jnp
    >>> jnp.array([[1, 2], [3, 4]]).dtype
    dtype('int32')
    >>> jnp.array([1.5, 2], ndmin=2)
    Array([[1.5, 2. ]], dtype=float32)
    """
    check_order("array", order)
    out = as_values("array", object, chosen_dtype("array", dtype))
    if out.ndim < ndmin:
        out = expand_dims(out, tuple(range(ndmin - out.ndim)))
    if copy and out is object:
        out = copy_of(out)
    return made("array", out, place_of("array", device, out_sharding, out.ndim))


def asarray(
    a: Any,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Placement = None,
    out_sharding: object = None,
) -> Array:
    """`a` as an array; itself if it is one of the right dtype.

    Without x64, 64-bit values and dtypes become 32-bit ones.

    Args:
        a: a number, an array, anything with `__array__` or the buffer protocol, or
            nested lists and tuples of numbers and arrays.
        dtype: the dtype of the result; by default that which the values have together.
        order: "K", "C" or None, without effect, since the compiler chooses the memory
            layout.
        copy: True to copy an array of verax, too; None and False return it as it is.
            False also refuses to move memory of the host to another device.
        device: a device or sharding to put the result on; None leaves an array where it
            is, and puts other values on the default one.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        an array with the shape and values of `a`.

    Raises:
        TypeError: a value is not a number.
        ValueError: the lists are ragged, or `copy` is False and the memory of a NumPy
            array or another buffer would have to go to a device other than the CPU.
        NotImplementedError: another `order`.

    >>> import verax.numpy as vnp
    >>> x = vnp.asarray([1, 2.5])
    >>> x, vnp.asarray(x) is x, vnp.asarray(x, dtype=vnp.int32) is x
    (Array([1. , 2.5], dtype=float32), True, False)
    """
    check_order("asarray", order)
    out = as_values("asarray", a, chosen_dtype("asarray", dtype))
    device = place_of("asarray", device, out_sharding, out.ndim)
    if copy is False and not isinstance(a, Array) and isinstance(a, Buffer):
        check_shared(device)
    if copy and out is a:
        out = copy_of(out)
    return out if out is a and device is None else made("asarray", out, device)


def check_order(name: str, order: str | None) -> None:
    """Raise unless `order` is one in which arrays are stored."""
    if order not in (None, "C", "K"):
        raise NotImplementedError(
            f"{name}: order={order!r} is not available, since the compiler chooses "
            "the memory layout; use 'C', 'K' or None"
        )


def place_of(
    name: str, device: Placement, out_sharding: object, ndim: int
) -> Placement:
    """The place of a new array: on `device`, or split by explicit mesh axes.

    The spec of the latter has an entry for each of the `ndim` dimensions, as in a type.

    Raises:
        ValueError: both say it, or no axis of the sharding is explicit.
    """
    if says_nothing(out_sharding):
        return device
    if device is not None:
        raise ValueError(f"{name} takes device or out_sharding, not both")
    place = over_a_mesh(name, out_sharding)
    if not place.explicit:
        check_unnamed(name, place)
        return None
    return place.update(spec=place.spec.padded(ndim))


def made(name: str, x: Array, device: Placement) -> Array:
    """A new array on `device`, or else where new arrays go."""
    if device is None:
        return at_home(x) if STATE.mesh else x
    return placed(name, x, device)


def placed(name: str, x: Array, device: Placement) -> Array:
    """`x` on `device`.

    Tracers stay on the devices of their program; a sharding is a constraint for them.
    """
    if device is None:
        return x
    if not isinstance(device, Device | Sharding):
        raise TypeError(
            f"{name}: device={shown(device)} is neither a device nor a Sharding; "
            "verax.devices() lists the devices"
        )
    place = SingleDeviceSharding(device) if isinstance(device, Device) else device
    check_devices(f"{name} device", place)
    if not isinstance(x, ConcreteArray):
        out: Array
        (out,) = constrained([x], (place,))
        return out
    return put(x, place, committed=True)


def check_shared(device: Placement) -> None:
    """Raise unless memory of the host can be used where the array goes.

    Raises:
        ValueError: the array goes to another device than the CPU.
    """
    goal = STATE.default_device if device is None else device
    places = getattr(goal, "device_set", None) or {goal or local_devices()[0]}
    platforms = {getattr(place, "platform", "cpu") for place in places}
    if platforms != {"cpu"}:
        raise ValueError(
            "asarray: copy=False, but memory of the host must be copied to "
            f"{', '.join(sorted(platforms))}; leave copy at None"
        )


def as_values(name: str, x: object, dtype: DType | None) -> Array:
    """Any nest of numbers and arrays as an array, in `dtype` if that is given."""
    if isinstance(x, Array):
        return x if dtype is None else convert(x, dtype)
    if type(x) in PLAIN:
        return from_scalar(x, dtype)
    if isinstance(x, np.ndarray | np.generic):
        return from_numpy(x, dtype)
    if isinstance(x, list | tuple):
        return from_nest(name, x, dtype)
    if isinstance(x, bool | int | float | complex):
        return from_scalar(x, dtype)
    if isinstance(x, range):
        return from_nest(name, list(x), dtype)
    if hasattr(x, "__jax_array__"):
        return as_values(name, x.__jax_array__(), dtype)
    if hasattr(x, "__array__") or hasattr(x, "__array_interface__"):
        return from_numpy(np.asarray(x), dtype)
    if isinstance(x, Buffer):
        return from_numpy(np.asarray(memoryview(x)), dtype)
    kind = ValueError if x is None else TypeError
    raise kind(
        f"{name} takes numbers, arrays and nested lists of them, not {shown(x)} of "
        f"type {type(x).__name__}"
    )


def from_scalar(x: object, dtype: DType | None) -> Array:
    """A Python scalar as an array, weak unless a dtype is given."""
    aval = aval_of(x)
    if dtype is not None:
        aval = ShapedArray((), dtype)
    if isinstance(x, complex) and not is_complex(aval.dtype):
        raise TypeError(f"the complex number {x} does not fit {aval.dtype}")
    if isinstance(x, float) and is_integer(aval.dtype):
        return fresh(np.asarray(int(x), numpy_dtype(aval.dtype)), aval)
    return fresh(number_of(x, aval.dtype), aval)


def from_numpy(x: Any, dtype: DType | None) -> Array:
    """A copy of NumPy's values, in 32 bits unless x64 is on or `dtype` has more."""
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        raise ValueError(
            "a masked array of NumPy cannot become an array: its mask would be lost; "
            "use x.filled() first"
        )
    wide = dtype is not None and canonical(dtype, False) != dtype
    own = canonical(x.dtype, STATE.enable_x64 or wide)
    if is_extended(own):
        raise TypeError(f"a NumPy array cannot hold values of {own}")
    out = as_constant(x, own)
    return out if dtype is None or dtype == own else convert(out, dtype)


def from_nest(name: str, x: Sequence[object], dtype: DType | None) -> Array:
    """Nested lists: plain numbers by NumPy, anything else leaf by leaf."""
    kinds = set(map(type, x))
    if not kinds <= PLAIN:
        x = unwrapped(x)
        flat = leaves(x)
        if any(isinstance(leaf, Array) for leaf in flat):
            return stacked(name, x, dtype or leaf_dtype(name, flat))
        if any(isinstance(leaf, np.ndarray | np.generic) for leaf in flat):
            dtype = dtype or leaf_dtype(name, flat)
    try:
        values = np.array(x)
    except ValueError as error:
        raise ValueError(f"{name}: the nested lists are ragged: {error}") from error
    if values.dtype.kind == "O":
        if any(leaf is None for leaf in leaves(x)):
            raise ValueError(f"{name}: {shown(x)} holds None, which is not a value")
        if all(isinstance(leaf, int | float) for leaf in leaves(x)):
            raise OverflowError(
                f"Python int too large: {name} takes integers of at most 64 bits, not "
                f"{shown(x)}"
            )
        raise TypeError(f"{name}: {shown(x)} contains something that is not a number")
    if values.dtype.kind == "i" and values.size:
        check_range(name, values, dtype)
    check_complex(name, values, dtype)
    own = canonical(values.dtype, STATE.enable_x64)
    if dtype is None or dtype == own:
        return fresh(
            values.astype(numpy_dtype(own), copy=False), ShapedArray(values.shape, own)
        )
    return from_numpy(values, dtype)


def check_complex(name: str, values: np.ndarray, dtype: DType | None) -> None:
    """Raise a TypeError if complex numbers would lose a part; bool has both."""
    if dtype is None or is_complex(dtype) or dtype == bool_:
        return
    if is_complex(values.dtype):
        raise TypeError(
            f"{name}: complex numbers do not fit {dtype}; take their real parts"
        )


def check_range(name: str, values: np.ndarray, dtype: DType | None) -> None:
    """Raise an OverflowError if Python integers do not fit the dtype they go into."""
    own = canonical(values.dtype, STATE.enable_x64) if dtype is None else dtype
    if not is_integer(own):
        return
    limits = iinfo(own)
    low, high = int(values.min()), int(values.max())
    if low < limits.min or high > limits.max:
        raise OverflowError(
            f"{name}: the integers from {low} to {high} do not fit {own}; pass a "
            'wider dtype, or verax.config.update("enable_x64", True)'
        )


def leaves(x: Any) -> list[Any]:
    """The items of nested lists, in order."""
    if isinstance(x, list | tuple):
        return [leaf for item in x for leaf in leaves(item)]
    return [x]


def unwrapped(x: object) -> Any:
    """Nested lists with arrays instead of objects that say how to become one."""
    if isinstance(x, list | tuple):
        return [unwrapped(item) for item in x]
    return array_behind(x)


def leaf_dtype(name: str, flat: Sequence[object]) -> DType:
    """The dtype that numbers and arrays have together."""
    return common_type(avals_of(name, flat))[0]


def stacked(name: str, x: object, dtype: DType) -> Array:
    """Nested lists that hold tracers or arrays, joined along new dimensions."""
    if not isinstance(x, list | tuple):
        return as_values(name, x, dtype)
    parts = [stacked(name, item, dtype) for item in x]
    shapes = {part.shape for part in parts}
    if len(shapes) != 1:
        raise ValueError(
            f"{name}: the nested lists are ragged; their parts have shapes "
            f"{', '.join(map(str, sorted(shapes)))}"
        )
    return concatenate([expand_dims(part, (0,)) for part in parts], 0)


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """A copy of `a`, in memory of its own.

    Args:
        a: an array or scalar.
        order: "K", "C" or None, without effect, since the compiler chooses the memory
            layout.

    Returns:
        an array with the shape, dtype and values of `a`.

    Raises:
        NotImplementedError: another `order`.

    >>> import verax.numpy as vnp
    >>> x = vnp.arange(3)
    >>> y = vnp.copy(x)
    >>> x.delete()
    >>> y
    Array([0, 1, 2], dtype=int32)
    """
    check_order("copy", order)
    return copy_of(as_array("copy", a))


def astype(
    x: ArrayLike,
    dtype: DTypeLike | None,
    /,
    *,
    copy: bool = False,
    device: Placement = None,
) -> Array:
    """`x` in another dtype.

    Floats are cut off towards zero on their way to integers, where NaN becomes 0, and
    complex numbers lose their imaginary parts on their way to real ones.

    Args:
        x: an array or scalar.
        dtype: the dtype of the result; None means the default float.
        copy: whether `x` is copied if it has the dtype already.
        device: a device or sharding to put the result on; None leaves it where `x` is.

    Returns:
        an array in the shape of `x`; `x` itself if it has the dtype and is not copied.

    >>> import verax.numpy as vnp
    >>> vnp.astype(vnp.array([1.7, -1.7, vnp.nan]), vnp.int32)
    Array([ 1, -1,  0], dtype=int32)
    >>> vnp.astype(vnp.array([1 + 2j, 3j]), vnp.float32)
    Array([1., 0.], dtype=float32)
    """
    given = as_array("astype", x)
    target = chosen_dtype("astype", float if dtype is None else dtype)
    assert target is not None
    if is_complex(given.dtype) and not is_complex(target) and target != bool_:
        given = real(given)
    out = convert(given, target)
    return placed("astype", copy_of(out) if copy and out is x else out, device)


# -----------------------------------------------------------------------------
# Arrays that hold one value.
#
# Without a trace such an array is NumPy memory at once; in a trace it is a
# scalar and a broadcast::
#
#     zeros((2, 3)), full(4, 1.5), ones_like(x)


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
        device: a device or sharding to put the result on; None for where `a` is.
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
        device: a device or sharding to put the result on; None for where `a` is.
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
        device: a device or sharding to put the result on; None for where `a` is.
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
        return at_home(x)
    if isinstance(a, ConcreteArray) and isinstance(x, ConcreteArray):
        split = explicit is not None and alike
        fits = alike or (explicit is None and a.sharding.is_fully_replicated)
        if split or (fits and a.committed and not x.weak_type):
            return put(x, a.sharding, committed=True)
        return at_home(x)
    return x if explicit is None or not alike else retyped(x, explicit)


def typed_fill(sizes: Shape, value: object, dtype: DType, weak: bool) -> Array:
    """`filled`, whose literal is a Python scalar where the result is weak."""
    if not weak:
        return filled(sizes, value, dtype)
    item = number_of(value, dtype).item()
    if aval_of(item).dtype == dtype:
        return filled(sizes, item, dtype, True)
    return convert(filled(sizes, item, dtype), dtype, True)
