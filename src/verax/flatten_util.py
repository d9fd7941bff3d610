"""Pytrees as vectors: `verax.flatten_util` (floor 6).

One idea: optimisers and solvers work on vectors, programs on pytrees; a vector and a
function back translate between them::

    flat, unravel = ravel_pytree(params)
    unravel(flat - 0.1 * gradient)
"""

from collections.abc import Callable
from itertools import accumulate
from typing import Any

from attrs import frozen

from verax.api.trees.pytrees import tree_flatten, tree_unflatten
from verax.backend.pytrees import PyTreeDef
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import DType, float32, is_complex
from verax.ir.records import ReprMixin
from verax.numpy.arguments.arguments import as_array, promote
from verax.numpy.creation.filling import zeros
from verax.numpy.elementwise.float_parts import real
from verax.numpy.shaping.joining import concatenate
from verax.ops.elementwise.convert import convert
from verax.rules.values.array import Array


def ravel_pytree(pytree: object) -> tuple[Array, Callable[[Array], Any]]:
    """All leaves of a pytree of arrays and scalars as one vector, and the way back.

    The vector has the dtype to which all leaves promote; without leaves it is an empty
    float32 vector. The function takes vectors of the same length, and gives each leaf
    its shape and dtype; if all leaves have the same dtype, it takes any dtype and keeps
    it.

    Raises:
        TypeError: a leaf is not an array; or the function gets another dtype than the
            vector's and the leaves differ in dtype.
        ValueError: the function gets another shape.

    >>> import verax
    >>> flat, unravel = ravel_pytree({"a": 1.0, "b": [2.0, 3.0]})
    >>> flat.tolist(), verax.tree.map(float, unravel(flat * 2))
    ([1.0, 2.0, 3.0], {'a': 2.0, 'b': [4.0, 6.0]})
    """
    leaves, tree = tree_flatten(pytree)
    arrays = [as_array("ravel_pytree", x, i) for i, x in enumerate(leaves)]
    parts = [x.reshape(-1) for x in promote("ravel_pytree", *arrays)] if arrays else []
    flat = concatenate(parts) if parts else zeros(0, float32)
    avals = tuple(x.aval for x in arrays)
    mixed = len({aval.dtype for aval in avals}) > 1
    return flat, Unravel(tree, avals, flat.dtype if mixed else None)


@frozen(repr=False)
class Unravel(ReprMixin):
    """From a vector to its pytree; equal ones do the same, so one may be static."""

    tree: PyTreeDef
    avals: tuple[ShapedArray, ...]
    dtype: DType | None

    def __call__(self, vector: Array) -> Any:
        array = as_array("unravel", vector)
        ends = list(accumulate((aval.size for aval in self.avals), initial=0))
        if array.shape != (ends[-1],):
            raise ValueError(
                f"the function returned by ravel_pytree takes a vector of {ends[-1]} "
                f"elements, not an array of shape {array.shape}"
            )
        if self.dtype is not None and array.dtype != self.dtype:
            raise TypeError(
                "the function returned by ravel_pytree was called with dtype "
                f"{array.dtype}, but expected dtype {self.dtype}, to which the leaves "
                "promote"
            )
        leaves = [
            self.restored(array[start:end].reshape(aval.shape), aval)
            for start, end, aval in zip(ends, ends[1:], self.avals, strict=False)
        ]
        return tree_unflatten(self.tree, leaves)

    def restored(self, x: Array, aval: ShapedArray) -> Array:
        """A piece in the dtype of its leaf; what is not in a real leaf was zero."""
        if self.dtype is None:
            return x
        if is_complex(x.dtype) and not is_complex(aval.dtype):
            x = real(x)
        return convert(x, aval.dtype)
