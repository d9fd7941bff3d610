"""Floor 6: arrays from Python values, and arrays of a shape.

One idea: without a trace a new array is NumPy memory at once, and in a trace it is an
equation; values that the caller hands in are constants in both::

    asarray([1.0, 2.0])            # float32, as x64 is off
    zeros((2, 3), dtype=jnp.int8)
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from verax.backend import buffers
from verax.backend.array import ConcreteArray, from_buffer, from_host
from verax.backend.client import Device
from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import (
    DType,
    DTypeLike,
    bool_,
    canonical,
    default_dtype,
    is_complex,
    is_extended,
    is_integer,
    numpy_dtype,
)
from verax.ir.limits import iinfo
from verax.numpy.arguments import (
    ArrayLike,
    ShapeLike,
    as_array,
    as_shape,
    avals_of,
    chosen_dtype,
    common_type,
    constant_of,
    shown,
)
from verax.ops.choose import copy as copy_of
from verax.ops.complex import real
from verax.ops.convert import convert
from verax.ops.joining import concatenate
from verax.ops.shape import BroadcastInDimParams, broadcast_in_dim_p, expand_dims
from verax.rules.array import Array
from verax.rules.axes import unsharded
from verax.rules.builder import Builder
from verax.rules.constants import aval_of
from verax.rules.state import STATE

type Placement = Device | None

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

    Raises:
        TypeError: a value is no number.
        ValueError: the lists are ragged.

    >>> import verax.numpy as jnp
    >>> jnp.array([[1, 2], [3, 4]]).dtype
    dtype('int32')
    """
    unsharded("array", out_sharding)
    check_order("array", order)
    found = as_values("array", object, chosen_dtype("array", dtype))
    if found.ndim < ndmin:
        found = expand_dims(found, tuple(range(ndmin - found.ndim)))
    if copy and found is object:
        found = copy_of(found)
    return placed("array", found, device)


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

    Raises:
        TypeError: a value is no number.
        ValueError: the lists are ragged, or `copy` is False and a copy is needed.
    """
    unsharded("asarray", out_sharding)
    check_order("asarray", order)
    found = as_values("asarray", a, chosen_dtype("asarray", dtype))
    if copy is False and found is not a and not isinstance(a, Array):
        raise ValueError(
            f"asarray: copy=False, but {shown(a)} of type {type(a).__name__} is no "
            "verax array and has to be copied; leave copy at None"
        )
    if copy and found is a:
        found = copy_of(found)
    return placed("asarray", found, device)


def check_order(name: str, order: str | None) -> None:
    """Raise unless `order` is one in which arrays are stored."""
    if order not in (None, "C", "K"):
        raise ValueError(
            f"{name}: order={order!r} is not available, since the memory layout is the "
            "compiler's; use 'C', 'K' or None"
        )


def placed(name: str, x: Array, device: Placement) -> Array:
    """`x` on `device`; tracers stay where their program will run."""
    if device is None or not isinstance(x, ConcreteArray):
        return x
    if not isinstance(device, Device):
        raise TypeError(
            f"{name}: device={shown(device)} is no device; verax.devices() lists them"
        )
    if is_extended(x.dtype):
        return x
    held = buffers.from_numpy(x.numpy(), device, copy=True)
    return from_buffer(held, x.aval, committed=True)


def as_values(name: str, x: Any, dtype: DType | None) -> Array:
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
    if hasattr(x, "__array__") or isinstance(x, memoryview | bytearray):
        return from_numpy(np.asarray(x), dtype)
    raise TypeError(
        f"{name} takes numbers, arrays and nested lists of these, not {shown(x)} of "
        f"type {type(x).__name__}"
    )


def from_scalar(x: Any, dtype: DType | None) -> Array:
    """A Python scalar as an array, weak unless a dtype is given."""
    aval = aval_of(x)
    if dtype is not None:
        aval = ShapedArray((), dtype)
    if isinstance(x, complex) and not is_complex(aval.dtype):
        raise TypeError(f"the complex number {x} does not fit {aval.dtype}")
    if isinstance(x, float) and is_integer(aval.dtype):
        return from_host(np.asarray(int(x), numpy_dtype(aval.dtype)), aval)
    return from_host(constant_of(x, aval.dtype), aval)


def from_numpy(x: Any, dtype: DType | None) -> Array:
    """A copy of NumPy's values, narrowed to 32 bits unless x64 is on."""
    own = canonical(x.dtype, STATE.enable_x64)
    if is_extended(own):
        raise TypeError(f"NumPy holds no values of {own}")
    aval = ShapedArray(x.shape, own)
    with np.errstate(all="ignore"):
        found = from_host(np.array(x, numpy_dtype(own), order="C"), aval)
    return found if dtype is None or dtype == own else convert(found, dtype)


def from_nest(name: str, x: Sequence[Any], dtype: DType | None) -> Array:
    """Nested lists: plain numbers by NumPy, anything else leaf by leaf."""
    kinds = set(map(type, x))
    if not kinds <= PLAIN:
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
        raise TypeError(f"{name}: {shown(x)} holds something that is no number")
    if values.dtype.kind == "i" and values.size:
        check_range(name, values, dtype)
    own = canonical(values.dtype, STATE.enable_x64)
    if dtype is None or dtype == own:
        return from_host(values.astype(own, copy=False), ShapedArray(values.shape, own))
    return from_numpy(values, dtype)


def check_range(name: str, values: np.ndarray, dtype: DType | None) -> None:
    """Raise an OverflowError if Python integers do not fit the dtype they go into."""
    own = canonical(values.dtype, STATE.enable_x64) if dtype is None else dtype
    if not is_integer(own):
        return
    limits = iinfo(own)
    low, high = int(values.min()), int(values.max())
    if low < limits.min or high > limits.max:
        raise OverflowError(
            f"{name}: the integers from {low} to {high} do not fit {own}; ask for a "
            'wider dtype, or verax.config.update("enable_x64", True)'
        )


def leaves(x: Any) -> list[Any]:
    """What nested lists hold, in order."""
    if isinstance(x, list | tuple):
        return [leaf for item in x for leaf in leaves(item)]
    return [x]


def leaf_dtype(name: str, flat: Sequence[Any]) -> DType:
    """The dtype that numbers and arrays have together."""
    return common_type(avals_of(name, flat))[0]


def stacked(name: str, x: Any, dtype: DType) -> Array:
    """Nested lists that hold tracers or arrays, joined along new dimensions."""
    if not isinstance(x, list | tuple):
        return as_values(name, x, dtype)
    parts = [stacked(name, item, dtype) for item in x]
    shapes = {part.shape for part in parts}
    if len(shapes) != 1:
        raise ValueError(
            f"{name}: the nested lists are ragged; parts have the shapes "
            f"{', '.join(map(str, sorted(shapes)))}"
        )
    return concatenate([expand_dims(part, (0,)) for part in parts], 0)


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """A copy of `a`."""
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
    """`x` in another dtype; None means float. Complex numbers lose imaginary parts."""
    given = as_array("astype", x)
    target = chosen_dtype("astype", float if dtype is None else dtype)
    assert target is not None
    if is_complex(given.dtype) and not is_complex(target) and target != bool_:
        given = real(given)
    found = convert(given, target)
    return placed("astype", copy_of(found) if copy and found is x else found, device)


# ------------------------------------------------------------------- one value


def filled(shape: Shape, value: Any, dtype: DType, weak: bool = False) -> Array:
    """A Python or NumPy scalar everywhere."""
    interpreter = STATE.interpreter
    if isinstance(interpreter, Builder) or is_extended(dtype):
        params = BroadcastInDimParams(shape, ())
        operand = value if weak else constant_of(value, dtype)
        return broadcast_in_dim_p.call(params, operand)
    if type(value) is int and value == 0:
        return from_host(np.zeros(shape, dtype), ShapedArray(shape, dtype, weak))  # type: ignore[arg-type]  # no keys here
    host = np.full(shape, constant_of(value, dtype))
    return from_host(host, ShapedArray(shape, dtype, weak))


def zeros(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: object = None,
) -> Array:
    """Zeros of the given shape, floats unless `dtype` says otherwise."""
    return constant_array("zeros", shape, 0, dtype, device, out_sharding)


def ones(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: object = None,
) -> Array:
    """Ones of the given shape, floats unless `dtype` says otherwise."""
    return constant_array("ones", shape, 1, dtype, device, out_sharding)


def empty(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: object = None,
) -> Array:
    """An array whose elements have no meaning; zeros, in fact."""
    return constant_array("empty", shape, 0, dtype, device, out_sharding)


def constant_array(
    name: str,
    shape: ShapeLike,
    value: int,
    dtype: DTypeLike | None,
    device: Placement,
    out_sharding: object,
) -> Array:
    """What `zeros`, `ones` and `empty` share."""
    if out_sharding is not None:
        unsharded(name, out_sharding)
    found = chosen_dtype(name, dtype) or default_dtype("floating", STATE.enable_x64)
    return placed(name, filled(as_shape(name, shape), value, found), device)


def full(
    shape: ShapeLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: object = None,
) -> Array:
    """`fill_value` broadcast to `shape`, in its own dtype unless one is given.

    Raises:
        TypeError: `fill_value` is no array and no scalar.
        ValueError: it does not broadcast to `shape`.
    """
    unsharded("full", out_sharding)
    (aval,) = avals_of("full", (fill_value,))
    found = chosen_dtype("full", dtype)
    weak = found is None and aval.weak_type
    target = aval.dtype if found is None else found
    sizes = as_shape("full", shape)
    if not isinstance(fill_value, Array | np.ndarray):
        return placed("full", filled(sizes, fill_value, target, weak), device)
    value = convert(fill_value, target, weak)
    gap = len(sizes) - value.ndim
    if gap < 0 or any(
        own not in (1, size) for own, size in zip(value.shape, sizes[gap:], strict=True)
    ):
        raise ValueError(
            f"full: a fill value of shape {value.shape} does not broadcast to {sizes}"
        )
    dims = tuple(range(gap, len(sizes)))
    stretched = broadcast_in_dim_p.call(BroadcastInDimParams(sizes, dims), value)
    return placed("full", stretched, device)


def like(
    name: str, a: Any, dtype: DTypeLike | None, shape: ShapeLike | None
) -> tuple[Shape, DType, bool]:
    """Shape, dtype and weakness of an array like `a`, unless they are given.

    Raises:
        TypeError: `a` has no shape and dtype and is no scalar.
    """
    if isinstance(a, Array):
        own, kind, weak = a.aval.shape, a.aval.dtype, a.aval.weak_type
    elif hasattr(a, "shape") and hasattr(a, "dtype"):
        own, kind = tuple(a.shape), canonical(a.dtype, STATE.enable_x64)
        weak = bool(getattr(a, "weak_type", False))
    else:
        (aval,) = avals_of(name, (a,))
        own, kind, weak = aval.shape, aval.dtype, aval.weak_type
    found = chosen_dtype(name, dtype)
    sizes = own if shape is None else as_shape(name, shape)
    return sizes, found or kind, weak and found is None


def zeros_like(
    a: Any,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: object = None,
) -> Array:
    """Zeros in the shape and dtype of `a`, unless they are given."""
    unsharded("zeros_like", out_sharding)
    sizes, kind, weak = like("zeros_like", a, dtype, shape)
    return placed("zeros_like", typed_fill(sizes, 0, kind, weak), device)


def ones_like(
    a: Any,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: object = None,
) -> Array:
    """Ones in the shape and dtype of `a`, unless they are given."""
    unsharded("ones_like", out_sharding)
    sizes, kind, weak = like("ones_like", a, dtype, shape)
    return placed("ones_like", typed_fill(sizes, 1, kind, weak), device)


def empty_like(
    prototype: Any,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Placement = None,
) -> Array:
    """An array like `prototype` whose elements have no meaning; zeros, in fact."""
    sizes, kind, weak = like("empty_like", prototype, dtype, shape)
    return placed("empty_like", typed_fill(sizes, 0, kind, weak), device)


def full_like(
    a: Any,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Placement = None,
    out_sharding: object = None,
) -> Array:
    """`fill_value` broadcast to the shape of `a`, in its dtype, unless given."""
    unsharded("full_like", out_sharding)
    sizes, kind, weak = like("full_like", a, dtype, shape)
    (aval,) = avals_of("full_like", (fill_value,))
    if not aval.shape and not isinstance(fill_value, Array):
        return placed("full_like", typed_fill(sizes, fill_value, kind, weak), device)
    return full(sizes, fill_value, kind, device=device)


def typed_fill(sizes: Shape, value: Any, dtype: DType, weak: bool) -> Array:
    """`filled`, whose literal is a Python scalar where the result is weak."""
    if not weak:
        return filled(sizes, value, dtype)
    item = constant_of(value, dtype).item()
    if aval_of(item).dtype == dtype:
        return filled(sizes, item, dtype, True)
    return convert(filled(sizes, item, dtype), dtype, True)
