"""Floor 6: products of vectors as `linalg` has them, stricter than at the top.

As in the array API, vectors of other sizes are errors, where `jnp.cross` adds a zero
component and `jnp.outer` flattens::

    jnp.linalg.cross(jnp.ones(3), jnp.arange(3.0))
"""

from verax.numpy.arguments.arguments import ArrayLike, as_array, canonical_axis
from verax.numpy.linalg import outer_products
from verax.rules.values.array import Array


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The vector product of vectors of 3 components along `axis`.

    Args:
        x1: an array with 3 elements along `axis`.
        x2: an array with 3 elements along `axis`; the other dimensions broadcast.
        axis: the dimension of the vectors in both and in the result, by default the
            last.

    Returns:
        an array with 3 elements along `axis`, in the common dtype of both.

    Raises:
        ValueError: there are other numbers of components.

    >>> import verax.numpy as jnp
    >>> jnp.linalg.cross(jnp.array([1, 0, 0]), jnp.array([0, 1, 0])).tolist()
    [0, 0, 1]
    """
    x, y = as_array("linalg.cross", x1), as_array("linalg.cross", x2, 1)
    sizes = [z.shape[canonical_axis("linalg.cross", axis, z.ndim)] for z in (x, y)]
    if sizes != [3, 3]:
        raise ValueError(
            f"linalg.cross takes vectors of 3 components along axis {axis}, not of "
            f"{sizes[0]} and {sizes[1]}; verax.numpy.cross takes those of 2, too"
        )
    return outer_products.cross(x, y, axis=axis)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The product of each element of a vector with each of another.

    Args:
        x1: a vector.
        x2: a vector.

    Returns:
        an array of shape (`x1.size`, `x2.size`) in the common dtype of both.

    Raises:
        ValueError: an argument is not a vector.

    >>> import verax.numpy as jnp
    >>> jnp.linalg.outer(jnp.array([1, 2]), jnp.array([3, 4])).tolist()
    [[3, 4], [6, 8]]
    """
    x, y = as_array("linalg.outer", x1), as_array("linalg.outer", x2, 1)
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(
            f"linalg.outer takes two vectors, not shapes {x.shape} and {y.shape}; "
            "verax.numpy.outer ravels its arguments"
        )
    return outer_products.outer(x, y)
