"""Floor 6: arrays taken apart.

One idea: the parts are slices between bounds that are known while tracing::

    split(x, 3), array_split(x, [2, 5]), hsplit(x, 2), unstack(x)
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise

from verax.backend.eager.composites import remembered
from verax.numpy.arguments.arguments import (
    ArrayLike,
    as_array,
    canonical_axis,
    operand_aval,
    shape_of,
)
from verax.ops.structure.joining import (
    split as parts_of,
)
from verax.ops.structure.reshard import UNSTACKED, check_whole
from verax.ops.structure.slicing import slice_in_dim
from verax.rules.values.array import Array
from verax.rules.values.sizes import as_size


def pieces(x: Array, bounds: Sequence[int], axis: int) -> list[Array]:
    """The parts of `x` between consecutive bounds, moved inside and kept in order."""
    n = x.shape[axis]
    inside = [min(max(b + n if b < 0 else b, 0), n) for b in bounds]
    sizes = [stop - start for start, stop in pairwise(inside)]
    if all(size >= 0 for size in sizes):
        return parts_of(x, sizes, axis)
    return [
        slice_in_dim(x, start, max(start, stop), axis=axis)
        for start, stop in pairwise(inside)
    ]


def sections(
    name: str, ary: ArrayLike, where: object, axis: int, even: bool
) -> list[Array]:
    """`ary` split at the indices `where`, or into that many parts."""
    x = as_array(name, ary)
    place = canonical_axis(name, axis, x.ndim)
    n = x.shape[place]
    several = not hasattr(where, "__index__") or shape_of(where)
    if several and isinstance(where, Iterable):
        cuts = [as_size(i) for i in where]
        return pieces(x, [0, *cuts, n], place)
    count = as_size(where)
    if count < 1 or (even and n % count):
        raise ValueError(
            f"{name}: a dimension of size {n} does not divide into {count} equal parts"
        )
    least, more = divmod(n, count)
    bounds = [i * least + min(i, more) for i in range(count + 1)]
    return pieces(x, bounds, place)


@remembered
def split(ary: ArrayLike, indices_or_sections: object, axis: int = 0) -> list[Array]:
    """Parts of equal size along a dimension, or the parts between given indices.

    Args:
        ary: an array.
        indices_or_sections: the number of parts, which divides the size; or a sequence
            of indices, known while tracing, at each of which a new part begins.
            Negative ones count from the end, and those beyond it stand for the end.
        axis: the dimension to work along, 0 by default.

    Returns:
        A list of arrays in the dtype of `ary`: as many as asked for, or one more than
        there are indices.

    Raises:
        ValueError: the size is not a multiple of the number of parts.

    >>> import verax.numpy as vnp
    >>> [part.tolist() for part in vnp.split(vnp.arange(6), 3)]
    [[0, 1], [2, 3], [4, 5]]
    >>> [part.tolist() for part in vnp.split(vnp.arange(6), [2, 2, 9])]
    [[0, 1], [], [2, 3, 4, 5], []]
    """
    return sections("split", ary, indices_or_sections, axis, True)


def array_split(
    ary: ArrayLike, indices_or_sections: object, axis: int = 0
) -> list[Array]:
    """`split`, where the first parts may be one longer.

    Args:
        ary: an array.
        indices_or_sections: the number of parts, whatever the size; or a sequence of
            indices as in `split`.
        axis: the dimension to work along, 0 by default.

    Returns:
        A list of arrays in the dtype of `ary`.

    Raises:
        ValueError: the number of parts is less than 1.

    >>> import verax.numpy as vnp
    >>> [part.tolist() for part in vnp.array_split(vnp.arange(5), 3)]
    [[0, 1], [2, 3], [4]]
    """
    return sections("array_split", ary, indices_or_sections, axis, False)


def vsplit(ary: ArrayLike, indices_or_sections: object) -> list[Array]:
    """`split` along the first dimension.

    Args:
        ary: an array with at least one dimension.
        indices_or_sections: the number of parts, or a sequence of indices, as in
            `split`.

    Returns:
        A list of arrays in the dtype of `ary`.

    Raises:
        ValueError: the size is not a multiple of the number of parts.

    >>> import verax.numpy as vnp
    >>> [part.tolist() for part in vnp.vsplit(vnp.array([[1, 2], [3, 4]]), 2)]
    [[[1, 2]], [[3, 4]]]
    """
    return sections("vsplit", ary, indices_or_sections, 0, True)


def hsplit(ary: ArrayLike, indices_or_sections: object) -> list[Array]:
    """`split` along the second dimension, or the only one.

    Args:
        ary: an array with at least one dimension.
        indices_or_sections: the number of parts, or a sequence of indices, as in
            `split`.

    Returns:
        A list of arrays in the dtype of `ary`.

    Raises:
        ValueError: the size is not a multiple of the number of parts.

    >>> import verax.numpy as vnp
    >>> [part.tolist() for part in vnp.hsplit(vnp.array([[1, 2], [3, 4]]), 2)]
    [[[1], [3]], [[2], [4]]]
    """
    axis = 0 if operand_aval("hsplit", 0, ary).ndim == 1 else 1
    return sections("hsplit", ary, indices_or_sections, axis, True)


def dsplit(ary: ArrayLike, indices_or_sections: object) -> list[Array]:
    """`split` along the third dimension.

    Args:
        ary: an array with at least three dimensions.
        indices_or_sections: the number of parts, or a sequence of indices, as in
            `split`.

    Returns:
        A list of arrays in the dtype of `ary`.

    Raises:
        ValueError: there is no third dimension, or its size is not a multiple of the
            number of parts.

    >>> import verax.numpy as vnp
    >>> [part.shape for part in vnp.dsplit(vnp.zeros((1, 2, 6)), [1, 4])]
    [(1, 2, 1), (1, 2, 3), (1, 2, 2)]
    """
    return sections("dsplit", ary, indices_or_sections, 2, True)


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The parts along a dimension, without it.

    Args:
        x: an array with at least one dimension.
        axis: the dimension to work along, 0 by default.

    Returns:
        A tuple of arrays in the dtype of `x`, as many as the size of that dimension.

    Raises:
        ShardingTypeError: an explicit axis splits that dimension.
        ValueError: `x` has no dimensions.

    >>> import verax.numpy as vnp
    >>> [part.tolist() for part in vnp.unstack(vnp.array([[1, 2], [3, 4]]), axis=1)]
    [[1, 3], [2, 4]]
    """
    array = as_array("unstack", x)
    if not array.ndim:
        raise ValueError("unstack takes an array with at least one dimension")
    place = canonical_axis("unstack", axis, array.ndim)
    check_whole(array.aval, (place,), UNSTACKED)
    before = (slice(None),) * place
    return tuple([array[(*before, i)] for i in range(array.shape[place])])
