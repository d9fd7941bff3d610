"""`sparsify`: a function of dense arrays as one of sparse arrays.

The function is traced on the types of dense arrays, and its program evaluated on values
some of which are sparse: a table says what each primitive does to these. Equations on
dense values alone are what they were::

    f = sparsify(lambda m, v: 2 * vnp.dot(vnp.log1p(m.T), v))
    f(BCOO.fromdense(mat), vec)

Tables are values: `sparsify(f, rules=RULES | {cos_p: my_rule})` adds to one.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final

from attrs import define, evolve

from verax import numpy as vnp
from verax.api.tracing.apply import as_array, bound_eqn, literal_array
from verax.api.tracing.trace import shared_trace
from verax.api.tracing.wrapping import describe_arguments, wraps
from verax.api.trees.pytrees import tree_flatten
from verax.backend.pytrees import result_tree
from verax.experimental.sparse.base import JAXSparse
from verax.experimental.sparse.bcoo import BCOO
from verax.experimental.sparse.layouts import (
    bcoo_update_layout as bcoo_update_layout,
)
from verax.experimental.sparse.rules import RULES, Rules, broadcast_rule
from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Eqn, Jaxpr
from verax.ir.records import ReprMixin
from verax.ir.walk import interpret
from verax.ops.structure.shape import BroadcastInDimParams
from verax.ops.table import PRIMITIVES
from verax.rules.rows.builder import Tracer
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.conversions import check_callable
from verax.rules.values.state import STATE

SPREAD: Final = PRIMITIVES["broadcast_in_dim"]
NARROW: Final = (PRIMITIVES["mul"], PRIMITIVES["div"])
"""Products and quotients, whose sparse rules broadcast."""
PURPOSE: Final = "sparsify"
WITH_TRACERS: Final = "sparsify, with tracers"


def is_sparse(x: object) -> bool:
    """Whether a value is a sparse array."""
    return isinstance(x, JAXSparse)


class SparseTracerType(type):
    """The class of `SparseTracer`, which knows its instances by their trace."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, Tracer) and instance.builder.purpose == WITH_TRACERS


class SparseTracer(metaclass=SparseTracerType):
    """A function's view of its arguments under `sparsify(f, use_tracer=True)`."""

    __module__ = "verax.experimental.sparse"


def sparsify(
    f: Callable[..., object], use_tracer: bool = False, *, rules: Rules = RULES
) -> Callable[..., Any]:
    """The function on arguments some of which are sparse.

    What would not be sparse any more is refused, except where it is a matter of course:
    the product of a sparse and a dense matrix is dense.

    Args:
        f: a function of arrays, or of trees of them. It sees dense arrays.
        use_tracer: whether arguments are instances of `SparseTracer` in `f`.
        rules: what primitives do to sparse arrays; `rules | {my_p: rule}` adds to them.

    Raises:
        NotImplementedError: a primitive on sparse values has no rule.

    >>> import verax.numpy as vnp
    >>> from verax.experimental import sparse
    >>> mat = sparse.BCOO.fromdense(vnp.array([0.0, 2.0, 0.0, 3.0]))
    >>> sparse.sparsify(lambda x: vnp.square(x).sum() + 1.0)(mat).tolist()
    14.0
    """
    check_callable("sparsify", f)
    purpose = WITH_TRACERS if use_tracer else PURPOSE

    @wraps(f)
    def sparsified(*args: object, **kwargs: object) -> object:
        leaves, tree = tree_flatten((args, kwargs), is_leaf=is_sparse)
        describe = describe_arguments(f, tree)
        avals = [dense_aval(x) for x in leaves]
        traced = shared_trace(f, tree, avals, purpose, describe=describe)
        outs = evaluate(rules, traced.jaxpr, [*traced.captured, *map(as_value, leaves)])
        return result_tree(traced.out_tree, outs)

    return sparsified


def dense_aval(x: object) -> ShapedArray:
    """The type that a value would have if it were dense."""
    if isinstance(x, JAXSparse):
        return ShapedArray(x.shape, x.dtype)
    return aval_of(x)


def as_value(x: object) -> object:
    """A sparse array as it is, anything else as an array."""
    return x if isinstance(x, JAXSparse) else as_array(x)


@define(eq=False, repr=False)
class Spread(ReprMixin):
    """A value that is broadcast where somebody reads it.

    A product with a sparse array reads a few elements of what is broadcast, and need
    not make it.
    """

    source: JAXSparse | Array
    params: BroadcastInDimParams
    made: object = None

    def whole(self, rules: Rules) -> Any:
        """The value as it is, which is made once."""
        if self.made is None and isinstance(self.source, JAXSparse):
            [self.made] = broadcast_rule(
                partial(evaluate, rules), self.params, self.source
            )
        elif self.made is None:
            [self.made] = STATE.interpreter.bind(SPREAD, self.params, [self.source])
        return self.made

    def narrow(self) -> Any:
        """The value with sizes of 1 where it is the same for all elements."""
        shape = [1] * len(self.params.shape)
        for size, d in zip(
            self.source.shape, self.params.broadcast_dimensions, strict=True
        ):
            shape[d] = size
        params = evolve(self.params, shape=tuple(shape))
        return Spread(self.source, params).whole(RULES)


def evaluate(rules: Rules, jaxpr: Jaxpr, values: Sequence[object]) -> list[object]:
    """The outputs of a program on values that are arrays or sparse arrays."""

    def whole(x: object) -> Any:
        return x.whole(rules) if isinstance(x, Spread) else x

    def results(eqn: Eqn, operands: list[object]) -> Sequence[object]:
        params = eqn.params
        if eqn.primitive is SPREAD and isinstance(params, BroadcastInDimParams):
            return [Spread(whole(operands[0]), params)]
        ins = narrowed(operands) if eqn.primitive in NARROW else None
        ins = ins or list(map(whole, operands))
        if not any(map(is_sparse, ins)):
            return bound_eqn(eqn, ins)
        outs: Sequence[object] = rules.rule(eqn.primitive)(
            partial(evaluate, rules), eqn.params, *ins
        )
        return outs

    return list(map(whole, interpret(jaxpr, values, results, literal_array)))


def narrowed(values: Sequence[object]) -> list[object] | None:
    """Operands that need not have their full sizes, if any is sparse."""
    sources = [x.source if isinstance(x, Spread) else x for x in values]
    if not any([isinstance(x, JAXSparse) for x in sources]):
        return None
    return [x.narrow() if isinstance(x, Spread) else x for x in values]


OPERATIONS: Final = {
    name: sparsify(getattr(vnp, name))
    for name in (
        "abs",
        "add",
        "matmul",
        "multiply",
        "negative",
        "positive",
        "subtract",
        "sum",
        "true_divide",
    )
}


def operate(name: str, *operands: object) -> object:
    """An operator of Python on operands of which one is sparse."""
    if not all([is_operand_or_sparse(x) for x in operands]):
        return NotImplemented
    return OPERATIONS[name](*operands)


def is_operand_or_sparse(x: object) -> bool:
    """Whether an operator takes a value."""
    return isinstance(x, JAXSparse) or (
        not isinstance(x, list | tuple | dict | str | None)
    )


def power(x: BCOO, exponent: object) -> Any:
    """The power of a sparse array; integers of Python are exponents of the program."""
    return sparsify(lambda base: base**exponent)(x)


def item(x: JAXSparse, index: object) -> Any:
    """A part of a sparse array."""
    return sparsify(lambda mat: mat[index])(x)


def total(x: BCOO, *args: object, **kwargs: object) -> Any:
    """The sum over axes."""
    return sparsify(lambda mat: mat.sum(*args, **kwargs))(x)


def reshape(x: BCOO, *args: object, **kwargs: object) -> Any:
    """The array in another shape."""
    return sparsify(lambda mat: mat.reshape(*args, **kwargs))(x)


def rows(x: BCOO) -> list[BCOO | Array]:
    """The parts along the first dimension.

    Raises:
        TypeError: there is none.
    """
    if not x.ndim:
        raise TypeError("iteration over a sparse array without dimensions")
    return [item(x, i) for i in range(x.shape[0])]
