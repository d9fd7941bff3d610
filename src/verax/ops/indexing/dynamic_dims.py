"""Floor 2: `dynamic_slice` and `dynamic_update_slice` along one dimension.

One idea: the other dimensions start at 0 and are taken whole::

    dynamic_index_in_dim(x, i, axis=1)        # x[:, i:i+1]
"""

from verax.ir.avals import Shape
from verax.ops.indexing.dynamic_slice import dynamic_slice, dynamic_update_slice
from verax.ops.structure.shape import expand_dims, squeeze
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.sizes import as_axis


def placed(
    name: str, shape: Shape, axis: int, start: object
) -> tuple[int, list[object]]:
    """The dimension counted from the front, and starts that are 0 in the others."""
    place = as_axis(name, axis, len(shape))
    starts: list[object] = [0] * len(shape)
    starts[place] = start
    return place, starts


def dynamic_slice_in_dim(
    operand: object,
    start_index: object,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """`slice_size` elements along one dimension from `start_index` on, moved inside.

    Raises:
        ValueError: there is no such dimension.
        TypeError: the window does not fit, or the start is no integer scalar.
    """
    shape = aval_of(operand).shape
    place, starts = placed("dynamic_slice_in_dim", shape, axis, start_index)
    sizes = list(shape)
    sizes[place] = slice_size
    return dynamic_slice(
        operand, starts, sizes, allow_negative_indices=allow_negative_indices
    )


def dynamic_index_in_dim(
    operand: object,
    index: object,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """The element at `index` along one dimension, which stays unless told otherwise.

    Raises:
        ValueError: there is no such dimension.
        TypeError: the dimension is empty, or the index is no integer scalar.
    """
    part = dynamic_slice_in_dim(
        operand, index, 1, axis, allow_negative_indices=allow_negative_indices
    )
    return part if keepdims else squeeze(part, (axis,))


def dynamic_update_slice_in_dim(
    operand: object,
    update: object,
    start_index: object,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """`operand` with `update` in place along one dimension from `start_index` on.

    Raises:
        ValueError: there is no such dimension.
        TypeError: the update does not fit, or the start is no integer scalar.
    """
    shape = aval_of(operand).shape
    _, starts = placed("dynamic_update_slice_in_dim", shape, axis, start_index)
    return dynamic_update_slice(
        operand, update, starts, allow_negative_indices=allow_negative_indices
    )


def dynamic_update_index_in_dim(
    operand: object,
    update: object,
    index: object,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """`operand` with `update` in place of the element at `index` of one dimension.

    The update may lack that dimension.

    Raises:
        ValueError: there is no such dimension.
        TypeError: the update does not fit, or the index is no integer scalar.
    """
    rank = aval_of(operand).ndim
    place = as_axis("dynamic_update_index_in_dim", axis, rank)
    if aval_of(update).ndim != rank:
        update = expand_dims(update, (place,))
    return dynamic_update_slice_in_dim(
        operand, update, index, place, allow_negative_indices=allow_negative_indices
    )
