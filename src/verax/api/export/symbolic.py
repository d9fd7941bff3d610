"""Floor 5: shapes with symbolic dimensions, as users write them.

Traced on such a shape, a program is one for all sizes; `export` makes one file of it::

    specs = symbolic_args_specs((x,), "b, ...")      # (ShapeDtypeStruct((b, 3), ...),)
    export(jit(f))(*specs).call(x)
"""

from collections.abc import Sequence
from typing import Any

from verax.api.tracing.structs import ShapeDtypeStruct
from verax.api.trees.mismatch import first_difference
from verax.api.trees.pytrees import broadcast_prefix
from verax.backend import pytrees
from verax.ops.symbols.expression import Bounds, SymbolicDim
from verax.ops.symbols.parse import SymbolicScope, best_bounds, parsed_shape
from verax.rules.values.constants import aval_of
from verax.rules.values.sizes import as_size


def chosen_scope(
    constraints: Sequence[str], scope: SymbolicScope | None
) -> SymbolicScope:
    """The given scope, or else a new one with `constraints`.

    Raises:
        ValueError: both are given.
    """
    if scope is None:
        return SymbolicScope(constraints)
    if constraints:
        raise ValueError(
            "Cannot use both `scope` and `constraints`: a scope does not change after "
            "it is made; give SymbolicScope the constraints"
        )
    return scope


def symbolic_shape(
    shape_spec: str | None,
    *,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> tuple[Any, ...]:
    """The shape that a string describes: integers and symbolic dimensions.

    Dimensions stand between commas: integers, variables, `+ - *` and `^`, and
    `floordiv(x, y)`, `mod(x, y)`, `max(x, y)` and `min(x, y)`. Variables are sizes of 1
    or more. `_` is one dimension of the shape `like`, and `...` (or None) all that are
    left. `constraints` are what may be assumed, such as `"a >= 2*b"`, `"b <= 8"` or
    `"mod(b, 4) == 0"`. Only dimensions of one `scope`, or of one call, may meet.

    Raises:
        ValueError: the string is not a shape, does not fit `like`, or the constraints
            contradict each other.

    >>> b, c = symbolic_shape("b, 2*c + 1")
    >>> b * c, (c - 1) // 2
    (2*b*c + b, c)
    """
    scope = chosen_scope(constraints, scope)
    spec = "..." if shape_spec is None else shape_spec
    if not isinstance(spec, str):
        raise ValueError(
            f"polymorphic shape spec should be None or a string, not {shape_spec!r}"
        )
    return parsed_shape(spec, scope, like)


def symbolic_args_specs(
    args: object,
    shapes_specs: object,
    constraints: Sequence[str] = (),
    scope: SymbolicScope | None = None,
) -> Any:
    """The arguments as types, with shapes from strings; a pytree like `args`.

    `shapes_specs` is a prefix of the pytree `args`: None for the shapes as they are, or
    a string as in `symbolic_shape`, whose placeholders take the argument's sizes.

    Raises:
        ValueError: a string is not a shape or does not fit its argument; the pytrees do
            not fit.

    >>> import numpy as np
    >>> symbolic_args_specs((np.ones((2, 3)), np.ones(3)), ("b, _", None))[0].shape
    (b, 3)
    """
    leaves, tree = pytrees.flatten(args)
    if isinstance(args, tuple) and isinstance(shapes_specs, list):
        shapes_specs = tuple(shapes_specs)
    result = first_difference(shapes_specs, args, "shapes_specs", lambda x: x is None)
    if result is not None:
        raise ValueError(
            "pytree structure error: different types or lengths of shapes_specs and "
            f"args at {result}"
        )
    specs = broadcast_prefix(shapes_specs, args, lambda x: x is None)
    scope = chosen_scope(constraints, scope)
    structs = []
    for leaf, spec in zip(leaves, specs, strict=True):
        like = leaf if hasattr(leaf, "shape") and hasattr(leaf, "dtype") else None
        like = aval_of(leaf) if like is None else like
        shape = symbolic_shape(spec, like=like.shape, scope=scope)
        structs.append(ShapeDtypeStruct(shape, like.dtype))
    return tree.unflatten(structs)


def is_symbolic_dim(p: object) -> bool:
    """Whether a size is a symbolic dimension.

    >>> b, = symbolic_shape("b")
    >>> is_symbolic_dim(b + 1), is_symbolic_dim(b - b), is_symbolic_dim(3)
    (True, False, False)
    """
    return isinstance(p, SymbolicDim)


def symbolic_dim_bounds(dimension: object) -> Bounds:
    """The least and the greatest value of a size, as far as they can be proved.

    Raises:
        TypeError: it is not a size.

    >>> b, = symbolic_shape("b", constraints=["b <= 8"])
    >>> symbolic_dim_bounds(2 * b - 1)
    (1, 15)
    """
    return best_bounds(as_size(dimension))
