"""Floor 6: the arguments of NumPy's functions: arrays, dtypes, axes, shapes.

One idea: promotion happens before any equation is written: a Python scalar becomes a
constant of the common dtype, and only arrays of another dtype are converted::

    x, y = promote("add", x, 2)          # y is a constant of x's dtype
    x, y = promote_inexact("sin", x)     # integers become floats
    axes = reduction_axes("sum", -1, 2)  # (1,)
"""

import math
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, TypeGuard, cast

import numpy as np

from verax.backend.arrays.concrete import fresh
from verax.ir.avals import Shape, ShapedArray, SymbolicSize, is_reference
from verax.ir.dtypes import (
    INEXACT_SET,
    INTEGER_SET,
    NARROWED,
    DType,
    DTypeLike,
    NumpyDType,
    as_dtype,
    bool_,
    default_dtype,
    inexact_dtype,
    is_complex,
    is_extended,
    is_float,
    numpy_dtype,
)
from verax.ir.promotion import Typed, TypePromotionError, join, join_all
from verax.ops.elementwise.convert import convert
from verax.ops.structure.shape import (
    BroadcastInDimParams,
    ReshapeParams,
    broadcast_in_dim_p,
    reshape_p,
)
from verax.rules.rows.builder import Builder
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of, scalar_of
from verax.rules.values.conversions import NotAnArray, shown as shown
from verax.rules.values.memo import pure
from verax.rules.values.sizes import (
    ShapeError,
    as_axes,
    as_axis,
    as_sizes,
    is_index,
    kept,
)
from verax.rules.values.state import STATE, asked_dtype, is_python

# -----------------------------------------------------------------------------
# One constant for one NumPy array, however often a trace converts it.
#
# A program knows array constants by identity, so an array that is copied or narrowed at
# every use would become as many constants. A trace remembers what it made of which
# array, and traces inside it ask the same memory::
#
#     as_constant(x, dtype)       # an array; under a trace the same one again


def as_constant(x: np.ndarray | np.generic, dtype: DType) -> Array:
    """A copy of `x` in `dtype`; under a trace, one for all uses of the array.

    An array that has been written to since is copied again.
    """
    builder = STATE.interpreter
    if not isinstance(builder, Builder):
        return copied(x, dtype)
    key = (id(x), dtype)
    entry = builder.converted.get(key)
    if entry is not None and unchanged(x, entry[1]):
        return entry[1]
    made = copied(x, dtype)
    builder.converted[key] = (x, made)
    return made


def copied(x: np.ndarray | np.generic, dtype: DType) -> Array:
    """A copy of `x` in `dtype`."""
    expected = numpy_dtype(dtype)
    if x.dtype == expected:
        values = np.array(x, expected, order="C")
    else:
        with np.errstate(all="ignore"):
            values = np.array(x, expected, order="C")
    return fresh(values, ShapedArray(x.shape, dtype))


def unchanged(x: np.ndarray | np.generic, made: Array) -> bool:
    """Whether `made` still has the values of `x`, to the last bit."""
    values = made.stored()
    with np.errstate(all="ignore"):
        return x.astype(values.dtype).tobytes() == values.tobytes()


type Scalar = bool | int | float | complex
type ArrayLike = Array | np.ndarray | np.generic | Scalar
type Axis = int | Sequence[int] | None
# Dimensions, and axes that an enclosing `vmap` or `shard_map` names.
type NamedAxis = int | Sequence[int | str] | None
type ShapeLike = int | Sequence[int]

# Tuples made once: a union would be made again by every check.
PYTHON_NUMBERS = (bool, int, float, complex)
VALUES = (np.ndarray, np.generic, *PYTHON_NUMBERS)
OPERANDS = (*VALUES, SymbolicSize)


# ---------------------------------------------------------------------- operands


def operand_aval(name: str, position: int, x: object) -> ShapedArray:
    """The type of argument `position` of the function `name`.

    Raises:
        TypeError: it is neither an array nor a scalar.
    """
    if isinstance(x, Array):
        return x.aval
    if isinstance(x, OPERANDS):
        return aval_of(x)
    if hasattr(x, "__jax_array__"):
        return operand_aval(name, position, x.__jax_array__())
    advice = ""
    if isinstance(x, list | tuple):
        advice = "; convert it with verax.numpy.asarray"
    if is_reference(x):
        advice = "; read what it holds first: ref[...]"
    raise NotAnArray(
        f"{name} takes arrays and scalars, but argument {position} is "
        f"{shown(x)} of type {type(x).__name__}{advice}"
    )


def stands_for(x: object) -> bool:
    """Whether a checked argument, not an Array, only says how it becomes one."""
    return not isinstance(x, OPERANDS)


def operand(x: Any) -> Any:
    """An argument that has been checked, as equations take it: what it stands for."""
    if not isinstance(x, Array) and stands_for(x):
        return operand(x.__jax_array__())
    return x


def array_behind(x: object) -> Any:
    """What an object says that it is as an array; anything else as it is."""
    return x.__jax_array__() if hasattr(x, "__jax_array__") else x


def avals_of(name: str, args: Sequence[object]) -> list[ShapedArray]:
    """The types of the arguments of `name`.

    Raises:
        TypeError: one is neither an array nor a scalar.
    """
    return [
        x.aval if isinstance(x, Array) else operand_aval(name, i, x)
        for i, x in enumerate(args)
    ]


def check_arraylike(name: str, *args: object) -> None:
    """Raise a TypeError that names function and position unless all are arrays."""
    for i, x in enumerate(args):
        if not isinstance(x, Array):
            operand_aval(name, i, x)


def is_scalar(x: object) -> TypeGuard[bool | int | float | complex]:
    """Whether `x` is a Python scalar; NumPy's scalars have a dtype of their own."""
    return isinstance(x, PYTHON_NUMBERS) and not isinstance(x, np.generic)


@pure(1 << 12, typed=True)
def scalar_constant(value: Scalar, dtype: DType) -> np.ndarray:
    """`value` as a read-only constant without dimensions, one object per value."""
    with np.errstate(all="ignore"):
        out = scalar_of(value, ShapedArray((), dtype))
    out.flags.writeable = False
    return out


def constant_of(value: object, dtype: DType) -> Any:
    """A Python scalar, NumPy value or symbolic size as an operand of type `dtype`.

    That is an array if the value of NumPy would be narrowed, since x64 is off.
    """
    out = number_of(value, dtype)
    if STATE.enable_x64 or dtype not in NARROWED or not isinstance(out, np.ndarray):
        return out
    return fresh(out, ShapedArray((), dtype))


def number_beside(x: ArrayLike, value: float) -> Any:
    """A constant in a formula on floats or complex `x`: weak beside a weak scalar only.

    So the result is weak where it is in JAX, whose constants are arrays of NumPy.
    """
    aval = aval_of(x)
    if aval.weak_type and not aval.shape:
        return complex(value) if is_complex(aval.dtype) else value
    return constant_of(value, aval.dtype)


def number_of(value: Any, dtype: DType) -> Any:
    """A Python scalar, NumPy value or symbolic size in `dtype`."""
    kind = type(value)
    # Zeros of either sign are equal as keys, and so are complex numbers with them.
    if kind is int or (kind is float and (value or math.copysign(1.0, value) > 0)):
        return scalar_constant(value, dtype)
    if isinstance(value, SymbolicSize):
        return value.in_dtype(dtype)
    with np.errstate(all="ignore"):
        return scalar_of(value, ShapedArray((), dtype))


def as_type(x: Any, aval: ShapedArray, dtype: DType, weak: bool) -> Any:
    """An operand of type `aval` in `dtype`, by an equation only if it is an array.

    Equal dtypes are enough: an operation is weak only where all operands are.
    """
    if isinstance(x, Array):
        return x if aval.dtype == dtype else convert(x, dtype, weak)
    if isinstance(x, SymbolicSize):
        return convert(x, dtype, weak)
    if stands_for(x):
        return as_type(operand(x), aval, dtype, weak)
    if weak:
        return weak_scalar(x, aval, dtype)
    if aval.shape:
        if x.dtype == aval.dtype == dtype:
            return x
        return as_constant(x, dtype)
    return constant_of(x, dtype)


def weak_scalar(x: Scalar, aval: ShapedArray, dtype: DType) -> object:
    """A Python scalar as a weak operand of `dtype`: a scalar of another class."""
    if aval.dtype == dtype and aval.weak_type:
        return x
    if not is_scalar(x):
        return convert(x, dtype, True)
    kind = complex if is_complex(dtype) else float if is_float(dtype) else int
    out = kind(x)  # type: ignore[arg-type]  # promotion never goes down
    return out if aval_of(out).dtype == dtype else convert(out, dtype, True)


def adapting(narrowed: Collection[DType]) -> Mapping[type, frozenset[DType]]:
    """The dtypes of arrays that a Python number adapts to, without those narrowed."""
    floats = INEXACT_SET.difference(narrowed)
    return MappingProxyType(
        {float: floats, int: floats | INTEGER_SET.difference(narrowed)}
    )


ADAPTING: Final = (adapting(NARROWED), adapting(()))


def adapted(x: object, aval: ShapedArray) -> object:
    """A Python number as a constant beside an array of type `aval`.

    None where promotion has to be asked: for other operands, and where the array is
    weak, of a lower kind of number, or of 64 bits from a block in which x64 was on.
    """
    if aval.weak_type:
        return None
    dtypes = ADAPTING[STATE.enable_x64].get(type(x))
    if dtypes is not None and aval.dtype in dtypes:
        return number_of(x, aval.dtype)
    return None


def common_type(avals: Sequence[ShapedArray], name: str = "promotion") -> Typed:
    """The dtype of the operands of a function together, and whether it is weak.

    Raises:
        TypePromotionError: there is no implicit promotion.
    """
    strict = STATE.numpy_dtype_promotion == "strict"
    wide, x64 = STATE.explicit_x64_dtypes == "allow", STATE.enable_x64
    try:
        if len(avals) == 2:
            a, b = avals
            return join(a.dtype, a.weak_type, b.dtype, b.weak_type, x64, strict, wide)
        types = tuple([(a.dtype, a.weak_type) for a in avals])
        return join_all(types, x64, strict, wide)
    except TypePromotionError as error:
        if not any([is_extended(a.dtype) for a in avals]):
            raise
        given = ", ".join([str(a.dtype) for a in avals])
        raise TypePromotionError(
            f"{name} does not accept dtypes {given}: {error}"
        ) from None


def promote(name: str, *args: ArrayLike) -> list[Any]:
    """The arguments in their common dtype, shapes as they are.

    Raises:
        TypeError: an argument is not an array, or there is no common dtype.
    """
    avals = avals_of(name, args)
    dtype, weak = common_type(avals, name)
    return [as_type(x, a, dtype, weak) for x, a in zip(args, avals, strict=True)]


def promote_inexact(name: str, *args: ArrayLike) -> list[Any]:
    """`promote`, with integers and booleans as the floats that stand for them."""
    avals = avals_of(name, args)
    dtype, weak = inexact_type(avals, name)
    return [as_type(x, a, dtype, weak) for x, a in zip(args, avals, strict=True)]


def inexact_type(avals: Sequence[ShapedArray], name: str = "promotion") -> Typed:
    """`common_type` among floats and complex numbers."""
    dtype, weak = common_type(avals, name)
    return inexact_dtype(dtype), weak


def promote_numeric(name: str, *args: ArrayLike) -> list[Any]:
    """`promote`, with booleans as integers."""
    avals = avals_of(name, args)
    dtype, weak = common_type(avals, name)
    if dtype == bool_:
        dtype, weak = default_integer(), False
    return [as_type(x, a, dtype, weak) for x, a in zip(args, avals, strict=True)]


def promote_dtypes(*args: ArrayLike) -> list[Any]:
    """`promote` for a caller that has checked its arguments."""
    return promote("promote_dtypes", *args)


def promote_dtypes_inexact(*args: ArrayLike) -> list[object]:
    """`promote_inexact` for a caller that has checked its arguments."""
    return promote_inexact("promote_dtypes_inexact", *args)


def promote_args(name: str, *args: ArrayLike) -> list[Any]:
    """The arguments in their common dtype and, except for scalars, common shape."""
    return broadcast_together(name, promote(name, *args))


def promote_args_inexact(name: str, *args: ArrayLike) -> list[Any]:
    """`promote_args` among floats and complex numbers."""
    return broadcast_together(name, promote_inexact(name, *args))


def as_array(name: str, x: ArrayLike, position: int = 0) -> Array:
    """An argument as an array of its own dtype; NumPy's values are copied.

    Raises:
        TypeError: it is neither an array nor a scalar.
    """
    if isinstance(x, Array):
        return x
    aval = operand_aval(name, position, x)
    if stands_for(x):
        return as_array(name, operand(x), position)
    if isinstance(x, SymbolicSize):
        return cast(Array, x.__jax_array__())
    if isinstance(x, np.ndarray) and aval.shape:
        return as_constant(x, aval.dtype)
    return fresh(number_of(x, numpy_dtype(aval.dtype)), aval)


def with_weak_type(x: Array, weak: bool) -> Array:
    """`x` with the weak type `weak`, by an equation only where it has the other."""
    return x if x.weak_type == weak else convert(x, x.dtype, weak)


def inexact_array(name: str, x: ArrayLike) -> Array:
    """One argument as an array of floats or complex numbers."""
    return as_array(name, promote_inexact(name, x)[0])


def inexact_arrays(name: str, *args: ArrayLike) -> list[Array]:
    """`promote_inexact`, scalars as arrays too.

    Args:
        name: the function whose arguments they are, for messages.
        *args: arrays or scalars; their shapes may differ, and stay.

    Returns:
        A list of arrays in the common dtype of all, which for integers is float32, or
        float64 if they have 64 bits.

    Raises:
        TypeError: an argument is not an array, or there is no common dtype.

    >>> import verax.numpy as vnp
    >>> from verax.numpy.arguments.arguments import inexact_arrays
    >>> inexact_arrays("f", vnp.array([1, 2]), vnp.float32(0.5))
    [Array([1., 2.], dtype=float32), Array(0.5, dtype=float32)]
    """
    return [as_array(name, x) for x in promote_inexact(name, *args)]


# ------------------------------------------------------------------------ shapes


def broadcast_shapes_of(name: str, shapes: Sequence[Shape]) -> Shape:
    """The shape to which all `shapes` broadcast, by NumPy's rules.

    Raises:
        ValueError: there is none.
    """
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    return joined_shape(name, tuple(shapes))


def in_order(sizes: Iterable[int]) -> list[int]:
    """Different sizes as messages list them: numbers first, then symbols."""
    known = [size for size in sizes if not isinstance(size, SymbolicSize)]
    return sorted(known) + sorted(set(sizes) - set(known), key=str)


@pure(1 << 12)
def joined_shape(name: str, shapes: tuple[Shape, ...]) -> Shape:
    rank = max(len(shape) for shape in shapes)
    sizes = []
    for i in range(-rank, 0):
        members = {shape[i] for shape in shapes if -i <= len(shape)} - {1}
        if len(members) > 1:
            raise ShapeError(
                f"{name} got incompatible shapes for broadcasting: "
                f"{', '.join(map(str, shapes))}. Dimension {i} has sizes "
                f"{' and '.join(map(str, in_order(members)))}; sizes must be equal or 1"
            )
        sizes.append(members.pop() if members else 1)
    return tuple(sizes)


def ranks_differ(name: str, shapes: Sequence[Shape]) -> None:
    """Warn or raise, as `numpy_rank_promotion` says: shapes of several ranks broadcast.

    Raises:
        ValueError: the option is "raise".
    """
    where = f"for {name} on shapes {' '.join(map(str, shapes))}"
    why = f"operands with shapes {list(shapes)} require rank promotion"
    if STATE.numpy_rank_promotion == "raise":
        raise ValueError(
            f"Operands could not be broadcast together {where}: {why}, and "
            "numpy_rank_promotion is 'raise'; reshape them to one rank"
        )
    warnings.warn(
        f"Following NumPy automatic rank promotion {where}: {why}; "
        'verax.config.update("numpy_rank_promotion", "allow") turns this warning off',
        stacklevel=3,
    )


def shape_of(x: object) -> Shape:
    """The shape of an operand that has been checked."""
    return getattr(x, "shape", ())


def is_single(x: Any) -> bool:
    """Whether an argument is one value, and neither a sequence nor an array of some."""
    return not isinstance(x, Sequence) and not np.ndim(x)


def stretched(x: object, shape: Shape) -> Any:
    """`x` broadcast to `shape`, to which it is known to broadcast."""
    own = shape_of(x)
    if own == shape:
        return x
    return broadcast_in_dim_p.call(stretching(len(own), shape), x)


@pure(1 << 12)
def stretching(rank: int, shape: Shape) -> BroadcastInDimParams:
    """The params that broadcast the last `rank` dimensions of `shape` to it."""
    return BroadcastInDimParams(shape, tuple(range(len(shape) - rank, len(shape))))


def broadcast_together(name: str, args: Sequence[object]) -> list[Any]:
    """Operands in one shape; those without dimensions stay, since rows take them.

    Raises:
        ValueError: they do not broadcast, or `numpy_rank_promotion` forbids it.
    """
    shapes = [shape_of(x) for x in args]
    full = [shape for shape in shapes if shape]
    if not full or all(shape == full[0] for shape in full):
        return list(args)
    if STATE.numpy_rank_promotion != "allow" and len(set(map(len, full))) > 1:
        ranks_differ(name, shapes)
    return stretched_together(name, args)


def stretched_together(name: str, args: Sequence[object]) -> list[Any]:
    """`broadcast_together`, whatever the ranks are.

    Raises:
        ValueError: they do not broadcast.
    """
    shapes = [shape_of(x) for x in args]
    target = broadcast_shapes_of(name, shapes)
    return [stretched(x, target) if s else x for x, s in zip(args, shapes, strict=True)]


def as_shape(name: str, shape: object) -> Shape:
    """A shape from one size or a sequence of sizes.

    Raises:
        TypeError: a size is not an integer.
        ValueError: a size is negative.
    """
    return as_sizes(name, "shape", shape)


# -------------------------------------------------------------------------- axes


def canonical_axis(name: str, axis: int, rank: int) -> int:
    """A dimension between 0 and `rank` - 1, from one that may be negative.

    Raises:
        TypeError: `axis` is not an integer.
        ValueError: there is no such dimension.
    """
    return as_axis(name, axis, rank)


def canonical_axes(name: str, axes: int | Sequence[int | str], rank: int) -> Shape:
    """Distinct dimensions in the order given, from one or several.

    Raises:
        TypeError: one is not an integer.
        ValueError: one does not exist or stands twice.
    """
    if is_index(axes):
        return (as_axis(name, axes, rank),)
    return as_axes(name, axes, rank)


def reduction_axes(name: str, axis: NamedAxis, rank: int) -> Shape:
    """The dimensions over which `name` runs, in order; None means all of them."""
    if axis is None:
        return tuple(range(rank))
    if type(axis) is int and -rank <= axis < rank:
        return (axis % rank,)
    return tuple(sorted(canonical_axes(name, axis, rank)))


def named_apart(axis: NamedAxis) -> tuple[NamedAxis, tuple[str, ...]]:
    """The dimensions over which a reduction runs, and the named axes.

    >>> named_apart((0, "i", 1)), named_apart(None)
    (((0, 1), ('i',)), (None, ()))
    """
    if axis is None or isinstance(axis, int):
        return axis, ()
    if isinstance(axis, str):
        return (), (axis,)
    if not isinstance(axis, tuple | list):
        return axis, ()
    dimensions = tuple([i for i in axis if not isinstance(i, str)])
    return dimensions, tuple([i for i in axis if isinstance(i, str)])


def keep_dims(x: Array, shape: Shape, axes: Iterable[int]) -> Array:
    """A reduction's result with its dimensions back, as 1; `shape` is the operand's."""
    return reshape_p.call(with_ones(shape, tuple(axes)), x)


def spread(x: Array, shape: Shape, axes: Iterable[int]) -> Array:
    """A reduction's result in the shape of its operand, the same along `axes`."""
    return broadcast_in_dim_p.call(spreading(shape, tuple(axes)), x)


@pure(1 << 12)
def spreading(shape: Shape, axes: Shape) -> BroadcastInDimParams:
    """The params that broadcast to `shape` what lacks the dimensions `axes`."""
    return BroadcastInDimParams(shape, kept(len(shape), axes))


@pure(1 << 12)
def with_ones(shape: Shape, axes: Shape) -> ReshapeParams:
    """The params that make `shape` again, with size 1 at `axes`."""
    return ReshapeParams(tuple([1 if i in axes else s for i, s in enumerate(shape)]))


# ------------------------------------------------------------------------ dtypes


INTEGERS = tuple(default_dtype("integer", x64) for x64 in (False, True))
FLOATS = tuple(default_dtype("floating", x64) for x64 in (False, True))


def default_integer() -> NumpyDType:
    """The dtype of a Python int, and of what counts or indexes."""
    return INTEGERS[STATE.enable_x64]


def default_float() -> NumpyDType:
    """The dtype of a Python float."""
    return FLOATS[STATE.enable_x64]


def chosen_dtype(name: str, dtype: DTypeLike | None) -> DType | None:
    """The dtype that a caller asks of `name`; a warning if it is narrowed to 32 bits.

    Raises:
        TypeError: it is not a dtype of arrays.
        ValueError: it is narrowed, and `explicit_x64_dtypes` is "error".
    """
    if dtype is None:
        return None
    if isinstance(dtype, Array | np.ndarray):
        raise ValueError(
            f"{name}: Passing an array as a dtype argument is no longer supported, "
            "since an array is not a dtype; pass dtype=x.dtype"
        )
    out = asked_dtype(dtype)
    if STATE.enable_x64 or is_python(dtype) or is_extended(out):
        return out
    asked = as_dtype(dtype)
    if asked != out:
        if STATE.explicit_x64_dtypes == "error":
            raise ValueError(
                f"{name}: Explicitly requested dtype {asked}, but 64-bit types are "
                "off; "
                'turn them on with verax.config.update("enable_x64", True)'
            )
        warnings.warn(
            f"{name}: Explicitly requested dtype {asked}, but 64-bit types are off, so "
            f"the result is {out}; turn them on with verax.config.update("
            '"enable_x64", True)',
            stacklevel=3,
        )
    return out


def no_out(name: str, out: object) -> None:
    """Raise unless `out` is None: arrays are immutable.

    Raises:
        NotImplementedError: an output array was given.
    """
    if out is not None:
        raise NotImplementedError(
            f"{name}: out={shown(out)} cannot be written to, since arrays are "
            "immutable; use the result"
        )


def refuse_out_and_where(name: str, out: object, where: object) -> None:
    """Raise since ufuncs, as in JAX, take neither but None.

    Raises:
        NotImplementedError: always.
    """
    no_out(name, out)
    raise NotImplementedError(
        f"{name}: where={shown(where)} is not supported; use verax.numpy.where on the "
        "result"
    )
