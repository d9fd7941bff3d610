"""Derivatives with respect to sparse arrays.

The derivative with respect to a sparse array is that with respect to what it stores: a
sparse array with the same indices::

    grad(lambda mat: (mat @ v).sum())(mat)
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from verax import numpy as vnp
from verax.api.autodiff import grad as dense_grad, jacobian as dense_jacobian
from verax.api.tracing.wrapping import wraps
from verax.api.trees.pytrees import register_pytree_node_class, tree_map
from verax.experimental.sparse.base import JAXSparse
from verax.experimental.sparse.bcoo import BCOO
from verax.rules.values.array import Array

type Argnums = int | Sequence[int]


@register_pytree_node_class
class Stored(NamedTuple):
    """The stored part of a sparse argument, and the number of the argument."""

    data: Array
    number: int

    def tree_flatten(self) -> tuple[tuple[Array], int]:
        return (self.data,), self.number

    @classmethod
    def tree_unflatten(cls, number: int, children: Sequence[Array]) -> "Stored":
        return cls(children[0], number)


def is_stored(x: object) -> bool:
    return isinstance(x, Stored)


def is_sparse(x: object) -> bool:
    return isinstance(x, JAXSparse)


class Split(NamedTuple):
    """Arguments without the indices of sparse arrays, and these arrays."""

    args: tuple[object, ...]
    mats: list[JAXSparse]


def split(args: tuple[object, ...]) -> Split:
    """Arguments in which what is stored stands for sparse arrays."""
    mats: list[JAXSparse] = []

    def stored(x: object) -> Any:
        if not isinstance(x, JAXSparse):
            return x
        mats.append(x)
        return Stored(x.data, len(mats) - 1)

    return Split(tree_map(stored, args, is_leaf=is_sparse), mats)


def rebuilt(mats: Sequence[JAXSparse], tree: object) -> Any:
    """The tree with sparse arrays again."""

    def whole(x: object) -> Any:
        return spread(mats[x.number], x.data) if isinstance(x, Stored) else x

    return tree_map(whole, tree, is_leaf=is_stored)


def spread(mat: JAXSparse, data: Array) -> JAXSparse:
    """A sparse array with other data, which may have more dimensions in front.

    Raises:
        NotImplementedError: it has, and the format has no batch dimensions.
    """
    extra = data.ndim - mat.data.ndim
    if not extra:
        return mat.with_data(data)
    if not isinstance(mat, BCOO):
        raise NotImplementedError(
            f"the Jacobian with respect to a {type(mat).__name__} array, which has no "
            "batch dimensions; use BCOO"
        )
    return BCOO(
        (data, vnp.expand_dims(mat.indices, tuple(range(extra)))),
        shape=(*data.shape[:extra], *mat.shape),
        indices_sorted=mat.indices_sorted,
        unique_indices=mat.unique_indices,
    )


def aware(
    derivative: Callable[..., Any],
    fun: Callable[..., object],
    options: dict[str, object],
) -> Callable[..., Any]:
    """A derivative for arguments some of which are sparse."""

    @wraps(fun)
    def derived(*args: object, **kwargs: object) -> object:
        parts = split(args)

        def on_stored(*stored: object, **kwargs: object) -> object:
            return fun(*rebuilt(parts.mats, stored), **kwargs)

        out = derivative(on_stored, **options)(*parts.args, **kwargs)
        return rebuilt(parts.mats, out)

    return derived


def value_and_grad(
    fun: Callable[..., object],
    argnums: Argnums = 0,
    has_aux: bool = False,
    **kwargs: object,
) -> Callable[..., tuple[Any, Any]]:
    """As `verax.value_and_grad`, with a sparse gradient for a sparse argument.

    >>> import verax.numpy as vnp
    >>> from verax.experimental import sparse
    >>> mat, v = sparse.eye(3), vnp.array([1.0, 2.0, 3.0])
    >>> value, slope = sparse.value_and_grad(lambda m: (m @ v).sum())(mat)
    >>> float(value), slope, slope.data.tolist()
    (6.0, BCOO(float32[3, 3], nse=3), [1.0, 2.0, 3.0])
    """
    options = {"argnums": argnums, "has_aux": has_aux, **kwargs}
    return aware(dense_grad.value_and_grad, fun, options)


def grad(
    fun: Callable[..., object],
    argnums: Argnums = 0,
    has_aux: bool = False,
    **kwargs: object,
) -> Callable[..., Any]:
    """As `verax.grad`, with a sparse gradient for a sparse argument."""
    options = {"argnums": argnums, "has_aux": has_aux, **kwargs}
    return aware(dense_grad.grad, fun, options)


def jacfwd(
    fun: Callable[..., object],
    argnums: Argnums = 0,
    has_aux: bool = False,
    **kwargs: object,
) -> Callable[..., Any]:
    """As `verax.jacfwd`; the Jacobian of a sparse argument is sparse, with the
    dimensions of the output as batch dimensions.
    """
    options = {"argnums": argnums, "has_aux": has_aux, **kwargs}
    return aware(dense_jacobian.jacfwd, fun, options)


def jacrev(
    fun: Callable[..., object],
    argnums: Argnums = 0,
    has_aux: bool = False,
    **kwargs: object,
) -> Callable[..., Any]:
    """As `verax.jacrev`; the Jacobian of a sparse argument is sparse, with the
    dimensions of the output as batch dimensions.
    """
    options = {"argnums": argnums, "has_aux": has_aux, **kwargs}
    return aware(dense_jacobian.jacrev, fun, options)


jacobian = jacrev
