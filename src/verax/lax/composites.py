"""Floor 6: `lax.composite`: a function as an operation that compilers know by name.

One idea: what a compiler may replace is said beside what it means::

    composite(lambda x, k: lax.top_k(x, k), "my.top_k")(x, k=2)
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from verax.api.tracing.apply import as_array, is_tracing
from verax.api.tracing.trace import leaf_avals, trace
from verax.api.tracing.wrapping import describe_arguments, wraps
from verax.backend import pytrees
from verax.backend.pytrees import result_tree
from verax.ir.dtypes import ExtendedDType, as_dtype
from verax.ops.custom.composite import CompositeParams, composite_p
from verax.rules.rows.builder import Tracer
from verax.rules.rows.emitter import ArrayAttribute, Attribute
from verax.rules.rows.leaks import UnexpectedTracerError
from verax.rules.values.array import Array
from verax.rules.values.conversions import check_callable, shown


def composite(
    decomposition: Callable[..., object], name: str, version: int = 0
) -> Callable[..., Any]:
    """`decomposition` as an operation of its own, which a compiler may know by name.

    It is lowered to `stablehlo.composite`: a compiler that has better code for it puts
    that in, any other compiles the decomposition. What is made of it by derivatives and
    by `vmap` is made of the decomposition.

    Args:
        decomposition: the function that the operation computes.
        name: the name of the operation, such as "my.softmax".
        version: an integer, for when the operation of that name has changed.

    Returns:
        A function that takes trees of arrays by position, and by name attributes of the
        operation, which are static: numbers, strings, dtypes, NumPy arrays and tuples
        of them. One that is None is given to `decomposition` alone.

    Raises:
        TypeError: the name is not a string; in a call, an attribute is none of these.
        ValueError: the name is empty, or the version is not an integer.
        UnexpectedTracerError: in a call, an attribute is a traced array, or
            `decomposition` uses one that is no argument of it.

    >>> import verax
    >>> import verax.numpy as vnp
    >>> from verax import lax
    >>> top = lax.composite(lambda x, *, k: lax.top_k(x, k)[0], "my.top_k")
    >>> top(vnp.array([2.0, 5.0, 3.0]), k=2)
    Array([5., 3.], dtype=float32)
    >>> text = verax.jit(lambda x: top(x, k=2)).lower(vnp.ones(3)).as_text()
    >>> 'stablehlo.composite "my.top_k"' in text
    True
    """
    check_callable("composite", decomposition)
    if not isinstance(name, str):
        raise TypeError(f"composite: name must be a string, not {shown(name)}")
    if not name or not isinstance(version, int):
        raise ValueError(
            f"composite takes a name and a version, not {shown(name)} and {version!r}"
        )

    @wraps(decomposition)
    def operation(*args: object, **attributes: object) -> Any:
        told = as_attributes(name, attributes)
        body = partial(decomposition, **attributes)
        leaves, tree = pytrees.flatten((args, {}))
        if not is_tracing():
            ins, _ = result_tree(tree, [as_array(leaf) for leaf in leaves])
            return body(*ins)
        describe = describe_arguments(decomposition, tree)
        avals = leaf_avals(leaves, describe)
        opened = trace(body, tree, avals, "composite", describe=describe).opened
        if any([isinstance(x, Tracer) for x in opened.captured]):
            raise UnexpectedTracerError(
                f"Found a JAX Tracer as a constant in the decomposition for the "
                f"composite op '{name}'. An operation depends on its arguments alone: "
                "pass the array to it"
            )
        params = CompositeParams(name, opened.jaxpr, version, told)
        outs = composite_p.bind(params, *opened.captured, *leaves)
        return result_tree(opened.out_tree, outs)

    operation.__name__ = operation.__qualname__ = name
    return operation


def as_attributes(
    name: str, attributes: Mapping[str, object]
) -> tuple[tuple[str, Attribute], ...]:
    """What the compiler is told of an operation, by name; None is left out."""
    return tuple(
        [
            (key, as_attribute(f"{key} of {name}", x))
            for key, x in sorted(attributes.items())
            if x is not None
        ]
    )


def as_attribute(what: str, x: object) -> Attribute:
    """One of them.

    Raises:
        TypeError: it is nothing that a compiler can be told.
        UnexpectedTracerError: it is traced.
    """
    if isinstance(x, bool | int | float | str | np.generic | np.dtype | ExtendedDType):
        return x
    if isinstance(x, np.ndarray):
        as_dtype(x.dtype)
        return ArrayAttribute.of(x)
    if isinstance(x, tuple | list):
        return tuple([as_attribute(what, entry) for entry in x])
    if isinstance(x, Array):
        raise UnexpectedTracerError(
            f"attribute {what} is {shown(x)}, but attributes are static. Note: If you "
            "are passing jax arrays as attributes, use numpy arrays instead."
        )
    raise TypeError(
        f"attribute {what} must be a number, a string, a dtype, a NumPy array or a "
        f"tuple of them, not {shown(x)}"
    )
