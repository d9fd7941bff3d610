"""Floor 6: arrays made or reshaped with a say in how they are spread over devices.

Each is the plain operation, whose result is constrained where a sharding is passed::

    full((8, 2), 0.0, sharding=NamedSharding(mesh, P("x")))
"""

from collections.abc import Callable, Sequence

from verax.api.parallel.constraints import with_sharding_constraint
from verax.api.sharding_args import as_place
from verax.api.tracing.structs import ShapeDtypeStruct, struct_aval
from verax.ir.dtypes import DTypeLike
from verax.ir.meshes import says_nothing
from verax.numpy.creation.creation import made
from verax.numpy.creation.filling import as_split
from verax.ops.structure import create, shape as shapes
from verax.ops.structure.reshard import sharded
from verax.rules.values.array import Array


def laid_out(sharding: object, function: Callable[..., Array], *args: object) -> Array:
    """`function(*args)`, split by explicit mesh axes or constrained to a place.

    A new array goes where new arrays go.
    """
    name = function.__name__
    if says_nothing(sharding):
        return made(name, function(*args), None)
    place = as_place(name, sharding)
    if place is not None and place.explicit:
        return sharded(name, place, function, *args)
    out: Array = with_sharding_constraint(function(*args), place)
    return out


def broadcast(
    operand: object, sizes: Sequence[int], *, out_sharding: object = None
) -> Array:
    """`operand` repeated over new leading dimensions of the given sizes.

    The result is constrained to `out_sharding`: a Sharding, or a PartitionSpec of the
    mesh in force (see `with_sharding_constraint`).

    Args:
        operand: an array or scalar.
        sizes: the sizes of the new dimensions.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of shape (*sizes, *operand.shape), of the dtype of `operand`.

    >>> from verax import lax
    >>> lax.broadcast(1.0, (2, 3)).shape
    (2, 3)
    """
    return laid_out(out_sharding, shapes.broadcast, operand, sizes)


def broadcast_in_dim(
    operand: object,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    *,
    out_sharding: object = None,
) -> Array:
    """`operand` stretched to `shape`, its dimension i at `broadcast_dimensions[i]`.

    The result is constrained to `out_sharding`; see `broadcast`.

    Args:
        operand: an array or scalar.
        shape: the shape of the result.
        broadcast_dimensions: the place in `shape` of each dimension of `operand`, in
            increasing order. A dimension of size 1 is repeated, others keep their size.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape`, of the dtype of `operand`.

    Raises:
        TypeError: the dimensions do not increase, or a size is neither 1 nor kept.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.array([1, 2])
    >>> lax.broadcast_in_dim(x, (2, 3), (0,)).tolist()
    [[1, 1, 1], [2, 2, 2]]
    >>> lax.broadcast_in_dim(x, (3, 2), (1,)).tolist()
    [[1, 2], [1, 2], [1, 2]]
    """
    dims = broadcast_dimensions
    return laid_out(out_sharding, shapes.broadcast_in_dim, operand, shape, dims)


def broadcasted_iota(
    dtype: DTypeLike,
    shape: int | Sequence[int],
    dimension: int,
    *,
    out_sharding: object = None,
) -> Array:
    """An array of `shape` whose elements are their index along `dimension`.

    The result is constrained to `out_sharding`; see `broadcast`.

    Args:
        dtype: the dtype of the result, of numbers.
        shape: the shape of the result, with one dimension at least.
        dimension: the dimension along which to count.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape` and `dtype`.

    Raises:
        TypeError: `dtype` holds no numbers.
        ValueError: there is no such dimension.

    >>> from verax import lax
    >>> lax.broadcasted_iota("int32", (2, 3), 1).tolist()
    [[0, 1, 2], [0, 1, 2]]
    """
    return laid_out(out_sharding, create.broadcasted_iota, dtype, shape, dimension)


def iota(dtype: DTypeLike, size: int) -> Array:
    """The numbers 0, 1, ..., `size` - 1.

    Small integers wrap around where `size` exceeds their range.

    Args:
        dtype: the dtype of the result, of numbers.
        size: how many numbers there are.

    Returns:
        A vector of `size` elements of `dtype`.

    Raises:
        TypeError: `dtype` holds no numbers.
        ValueError: `size` is negative.

    >>> from verax import lax
    >>> lax.iota("float32", 3)
    Array([0., 1., 2.], dtype=float32)
    >>> lax.iota("int8", 130)[-1].item()
    -127
    """
    return made("iota", create.iota(dtype, size), None)


def empty(
    shape: int | Sequence[int], dtype: DTypeLike, *, out_sharding: object = None
) -> Array:
    """An array of `shape` with arbitrary elements; zeros, in fact.

    The result is constrained to `out_sharding`; see `broadcast`.

    Args:
        shape: the shape of the result, a size or several.
        dtype: the dtype of the result.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of `shape` and `dtype`.

    >>> from verax import lax
    >>> lax.empty((2, 3), "float32").shape
    (2, 3)
    """
    return laid_out(out_sharding, create.empty, shape, dtype)


def full(
    shape: int | Sequence[int],
    fill_value: object,
    dtype: DTypeLike | None = None,
    *,
    sharding: object = None,
) -> Array:
    """An array of `shape` that holds `fill_value` everywhere.

    The result is constrained to `sharding`; see `broadcast`.

    Args:
        shape: the shape of the result, a size or several.
        fill_value: a scalar.
        dtype: the dtype of the result; by default that of the value.
        sharding: where the result lies, a Sharding or a PartitionSpec of the mesh in
            force; None for where new arrays go.

    Returns:
        An array of `shape`; without `dtype` it is weak if the value is.

    Raises:
        TypeError: the value has dimensions, or does not fit the dtype.

    >>> from verax import lax
    >>> lax.full(3, 1.5).tolist()
    [1.5, 1.5, 1.5]
    """
    return laid_out(sharding, create.full, shape, fill_value, dtype)


def full_like(
    x: object,
    fill_value: object,
    dtype: DTypeLike | None = None,
    shape: int | Sequence[int] | None = None,
    sharding: object = None,
) -> Array:
    """`full` in the shape and dtype of `x`, unless they are given.

    The result is constrained to `sharding`; see `broadcast`.

    Args:
        x: an array or scalar, or a `ShapeDtypeStruct`.
        fill_value: a scalar.
        dtype: the dtype of the result; by default that of `x`.
        shape: the shape of the result; None for that of `x`.
        sharding: where the result lies, a Sharding or a PartitionSpec of the mesh in
            force; None for where `x` is, or where new arrays go.

    Returns:
        An array of that shape and dtype; without `dtype` it is weak if `x` is.

    Raises:
        TypeError: the value has dimensions, or does not fit the dtype.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> lax.full_like(vnp.array([1, 2]), 3.7)
    Array([3, 3], dtype=int32)
    >>> lax.full_like(vnp.array([1, 2]), 3.7, float, shape=(1,))
    Array([3.7], dtype=float32)
    """
    like = struct_aval(x) if isinstance(x, ShapeDtypeStruct) else x
    out = laid_out(sharding, create.full_like, like, fill_value, dtype, shape)
    return as_split(out, x, None) if says_nothing(sharding) else out


def reshape(
    operand: object,
    new_sizes: int | Sequence[int],
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: object = None,
) -> Array:
    """The elements of `operand`, read in the order `dimensions`, in another shape.

    The result is constrained to `out_sharding`; see `broadcast`. Unlike in
    `verax.numpy.reshape`, no size may be -1.

    Args:
        operand: an array or scalar.
        new_sizes: the shape of the result, a size or several.
        dimensions: a permutation of the dimensions of `operand`, in which it is
            transposed first; None for the order that they have.
        out_sharding: how the result is split over an explicit mesh; None leaves it to
            the compiler.

    Returns:
        An array of shape `new_sizes`, of the dtype of `operand`.

    Raises:
        TypeError: the number of elements would change.

    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> x = vnp.array([[1, 2, 3], [4, 5, 6]])
    >>> lax.reshape(x, (3, 2)).tolist()
    [[1, 2], [3, 4], [5, 6]]
    >>> lax.reshape(x, (6,), dimensions=(1, 0)).tolist()
    [1, 4, 2, 5, 3, 6]
    """
    return laid_out(out_sharding, shapes.reshape, operand, new_sizes, dimensions)
