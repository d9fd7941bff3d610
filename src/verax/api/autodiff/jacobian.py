"""Floor 5: Jacobians and Hessians.

One idea: a Jacobian is the derivative on a basis of all tangents, or of all
cotangents, at once: the linear program, vectorized::

    jacfwd(lambda x: x * x)(x)
"""

from collections.abc import Callable, Sequence
from typing import Any

from verax.api.arguments.call_keys import numbers as positions
from verax.api.autodiff.grad import JACOBIAN, Argnums, check_inputs, choose, is_single
from verax.api.autodiff.jvp_vjp import linearize, pulled_from
from verax.api.tracing.wrapping import function_name, wraps
from verax.backend import pytrees
from verax.ir.dtypes import is_complex, is_float
from verax.ops.elementwise import arith, compare, convert
from verax.ops.structure import create, shape
from verax.ops.structure.casts import varying
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.conversions import check_callable


def jacfwd[**P](
    fun: Callable[P, object],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, Any]:
    """A function that returns the Jacobian of `fun`, column by column (forward mode).

    For each pair of output and input leaf there is an array of shape
    `output.shape + input.shape`.

    >>> import verax, verax.numpy as vnp
    >>> verax.jacfwd(lambda x: x * x)(vnp.array([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    check_callable("jacfwd", fun)
    numbers = positions("argnums", argnums)

    @wraps(fun, JACOBIAN.replace("{argnums}", str(argnums)))
    def jacobian(*args: object, **kwargs: object) -> object:
        rest, chosen = choose(fun, args, kwargs, numbers)
        check_inputs("jacfwd", fun, rest.numbers, chosen, holomorphic, False)
        outcome = linearize(rest, *chosen, has_aux=has_aux)
        leaves, tree = pytrees.flatten(chosen)
        push = outcome[1]
        stacked, size = basis(leaves)
        trees = [
            tree.unflatten(split_axis(leaf, leaves, -1, first=False))
            for leaf in push.func.columns(*push.args, stacked, size)
        ]
        single = is_single(argnums)
        out = push.func.at.out_tree.unflatten([t[0] if single else t for t in trees])
        return (out, outcome[2]) if has_aux else out

    return jacobian


def jacrev[**P](
    fun: Callable[P, object],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
    allow_int: bool = False,
) -> Callable[P, Any]:
    """A function that returns the Jacobian of `fun`, row by row (reverse mode).

    >>> import verax, verax.numpy as vnp
    >>> verax.jacrev(lambda x: x * x)(vnp.array([1.0, 2.0])).tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    check_callable("jacrev", fun)
    numbers = positions("argnums", argnums)

    @wraps(fun, JACOBIAN.replace("{argnums}", str(argnums)))
    def jacobian(*args: object, **kwargs: object) -> object:
        rest, chosen = choose(fun, args, kwargs, numbers)
        check_inputs("jacrev", fun, rest.numbers, chosen, holomorphic, allow_int)
        value, pull, aux = pulled_from(rest, chosen, has_aux)
        out_leaves, out_tree = pytrees.flatten(value)
        check_jacobian_output(fun, out_leaves, holomorphic)
        in_leaves, in_tree = pytrees.flatten(pull.rows(*basis(out_leaves)))
        per_input = [split_axis(leaf, out_leaves, 0, first=True) for leaf in in_leaves]
        trees = [in_tree.unflatten(parts) for parts in zip(*per_input, strict=True)]
        single = is_single(argnums)
        out = out_tree.unflatten([t[0] if single else t for t in trees])
        return (out, aux) if has_aux else out

    return jacobian


def hessian[**P](
    fun: Callable[P, object],
    argnums: Argnums = 0,
    has_aux: bool = False,
    holomorphic: bool = False,
) -> Callable[P, Any]:
    """A function that returns the Hessian of `fun`: forward over reverse mode.

    >>> import verax, verax.numpy as vnp
    >>> verax.hessian(lambda x: (x ** 3).sum())(vnp.array([1.0, 2.0])).tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    return jacfwd(
        jacrev(fun, argnums, has_aux=has_aux, holomorphic=holomorphic),
        argnums,
        has_aux=has_aux,
        holomorphic=holomorphic,
    )


def check_jacobian_output(
    fun: object, leaves: Sequence[object], holomorphic: bool
) -> None:
    for leaf in leaves:
        dtype = aval_of(leaf).dtype
        if not (is_complex(dtype) if holomorphic else is_float(dtype)):
            raise TypeError(
                f"jacrev takes a function with {'complex' if holomorphic else 'float'} "
                f"outputs, but {function_name(fun)} returned {dtype.name}"
            )


def basis(leaves: Sequence[object]) -> tuple[list[Array], int]:
    """The standard basis of all leaves together, stacked by leaf, and its size.

    It varies along the axes of an enclosing `shard_map` along which the leaf does.
    """
    avals = [aval_of(leaf) for leaf in leaves]
    total = sum(aval.size for aval in avals)
    vectors, offset = [], 0
    for aval in avals:
        sizes = (total, aval.size)
        place = create.broadcasted_iota("int32", sizes, 0)
        own = arith.add(create.broadcasted_iota("int32", sizes, 1), offset)
        due = aval.tangent()
        eye = convert.convert(compare.eq(place, own), due.dtype, due.weak_type)
        if due.explicit is not None:
            eye = varying(eye, due.vma, due.explicit.mesh)
        vectors.append(shape.reshape(eye, (total, *aval.shape)))
        offset += aval.size
    return vectors, total


def split_axis(
    x: Array, leaves: Sequence[object], axis: int, *, first: bool
) -> list[Array]:
    """Cut one dimension into the sizes of the leaves, each in its own shape."""
    parts, offset = [], 0
    place = axis % x.ndim
    for leaf in leaves:
        aval = aval_of(leaf)
        part = x[(slice(None),) * place + (slice(offset, offset + aval.size),)]
        offset += aval.size
        rest = tuple(s for i, s in enumerate(x.shape) if i != place)
        target = (*aval.shape, *rest) if first else (*rest, *aval.shape)
        parts.append(shape.reshape(part, target))
    return parts
