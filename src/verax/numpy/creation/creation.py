"""Floor 6: arrays from Python values, and arrays of a shape.

One idea: without a trace a new array is NumPy memory at once, and in a trace it is an
equation; values that the caller hands in are constants in both::

    asarray([1.0, 2.0])            # float32, as x64 is off
    zeros((2, 3), dtype=jnp.int8)
"""

import warnings
from collections.abc import Buffer, Sequence
from typing import Any

import numpy as np

from verax.api.sharding_args import at_place, check_devices, over_a_mesh
from verax.backend.arrays.concrete import ConcreteArray, at_home, fresh, put
from verax.backend.placement.sharding import Sharding, SingleDeviceSharding
from verax.backend.runtime.client import Device, local_devices
from verax.ir.avals import ShapedArray, iinfo
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    bool_,
    canonical,
    is_complex,
    is_extended,
    is_integer,
    numpy_dtype,
)
from verax.ir.meshes import says_nothing
from verax.numpy.arguments.arguments import (
    ArrayLike,
    array_behind,
    as_array,
    as_constant,
    avals_of,
    chosen_dtype,
    common_type,
    number_of,
    shown,
)
from verax.ops.elementwise.arith import real
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import copy as copy_of
from verax.ops.structure.joining import concatenate
from verax.ops.structure.reshard import check_unnamed
from verax.ops.structure.shape import (
    expand_dims,
)
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of, refuse_masked
from verax.rules.values.state import LIBRARY, STATE

type Placement = Device | Sharding | None

PLAIN = frozenset((bool, int, float, complex))


def array(
    object: object,
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
    a: object,
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
        return at_place(x, place)
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


def from_numpy(x: np.ndarray | np.generic, dtype: DType | None) -> Array:
    """A copy of NumPy's values, in 32 bits unless x64 is on or `dtype` has more."""
    refuse_masked(x)
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
            raise ValueError(f"None is not a valid value for jnp.{name}: {shown(x)}")
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


def leaves(x: object) -> list[object]:
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
    complex numbers lose their imaginary parts on their way to real ones, which is
    deprecated.

    Args:
        x: an array or scalar.
        dtype: the dtype of the result; None means the default float.
        copy: whether `x` is copied if it has the dtype already.
        device: a device or sharding to put the result on; None leaves it where `x` is.

    Returns:
        an array in the shape of `x`; `x` itself if it has the dtype and is not copied.

    Warns:
        DeprecationWarning: `x` is complex and `dtype` is of real numbers.

    >>> import verax.numpy as vnp
    >>> vnp.astype(vnp.array([1.7, -1.7, vnp.nan]), vnp.int32)
    Array([ 1, -1,  0], dtype=int32)
    """
    given = as_array("astype", x)
    target = chosen_dtype("astype", float if dtype is None else dtype)
    assert target is not None
    if is_complex(given.dtype) and not is_complex(target) and target != bool_:
        warnings.warn(
            f"Casting from complex to real dtypes, as {given.dtype} to {target}, "
            "discards imaginary parts and will be an error; take x.real or abs(x)",
            DeprecationWarning,
            stacklevel=2,
            skip_file_prefixes=(LIBRARY,),
        )
        given = real(given)
    out = convert(given, target)
    return placed("astype", copy_of(out) if copy and out is x else out, device)
