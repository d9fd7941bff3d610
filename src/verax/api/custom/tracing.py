"""Floor 5: tracing functions and rules of the user's own, and fitting their results.

One idea: what a rule and its function capture from traces around them becomes the first
operands of one equation, so their jaxprs are brought to common first inputs. A rule
that asks for symbolic zeros sees which tangents are zero, and may return such zeros::

    body, avals = trace_body(f, sort_arguments(f, (), args, {}))
    if isinstance(t, SymbolicZero): ...
"""

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from attrs import frozen

from verax.api.custom.arguments import SortedArguments, describe_type, leaf_type
from verax.api.tracing.apply import ENGINE
from verax.api.tracing.argument_names import describe_arguments, function_name
from verax.api.tracing.trace import Opened, leaf_avals, trace
from verax.backend import pytrees
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import DType, float0, is_inexact
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.ops.structure.create import zeros
from verax.rules.programs.batched import on_inputs
from verax.rules.rows.builder import Staged
from verax.rules.rows.references import operand_aval
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.typed import described


@frozen(repr=False)
class SymbolicZero(ReprMixin):
    """A tangent or cotangent that is known to be zero, of the given type."""

    __module__ = "verax.custom_derivatives"

    aval: ShapedArray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> DType:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return self.aval.ndim


@frozen(eq=False, repr=False)
class CustomVJPPrimal(ReprMixin):
    """An argument of a forward rule with symbolic zeros: is it differentiated?"""

    __module__ = "verax.custom_derivatives"

    value: Any
    perturbed: bool


def zero_from_primal(val: Any, symbolic_zeros: bool = False) -> Any:
    """Zeros in the tangent types of the leaves of `val`, symbolic ones on request.

    >>> import verax
    >>> verax.custom_derivatives.zero_from_primal([2.0, 3])
    [Array(0., dtype=float32, weak_type=True), array((b'',), dtype=[('float0', 'V')])]
    """
    leaves, tree = pytrees.flatten(val)
    zeros_of = [instantiate(aval_of(x).tangent(), symbolic_zeros) for x in leaves]
    return tree.unflatten(zeros_of)


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """The values of the `CustomVJPPrimal`s that are the leaves of `tree`.

    Raises:
        TypeError: a leaf is something else.
    """
    leaves, structure = pytrees.flatten(tree)
    for leaf in leaves:
        if not isinstance(leaf, CustomVJPPrimal):
            raise TypeError(
                "custom_vjp_primal_tree_values takes a tree of CustomVJPPrimals, as "
                f"forward rules with symbolic_zeros=True get it, not {described(leaf)}"
            )
    return structure.unflatten([leaf.value for leaf in leaves])


def instantiate(aval: ShapedArray, symbolic: bool) -> Any:
    """A zero tangent as a rule gets it: symbolic if it asked for that."""
    if symbolic:
        return SymbolicZero(aval)
    if aval.dtype == float0:
        return np.zeros(aval.shape, float0)
    return zeros(aval)


def trace_body(
    fun: Callable[..., Any], given: SortedArguments
) -> tuple[Opened, tuple[ShapedArray, ...]]:
    """The function traced in its differentiable arguments."""

    def flat(*others: Any) -> Any:
        return fun(*given.positions.merge(given.held, others))

    flat.__name__ = function_name(fun)
    dummy = given.tree.unflatten(given.leaves)
    leaves, tree = pytrees.flatten((dummy, {}))
    describe = describe_arguments(fun, tree, given.positions.held)
    avals = leaf_avals(leaves, describe)
    traced = trace(
        flat,
        tree,
        avals,
        f"the function {flat.__name__}",
        describe=describe,
        values=leaves,
    )
    return traced.opened, tuple(avals)


def in_type(x: Any, aval: ShapedArray, what: str, name: str) -> Array:
    """A result of a rule as the function's own result; weakness may differ.

    Raises:
        TypeError: shape or dtype differ.
    """
    given = leaf_type(x)
    if given is aval:
        return cast(Array, x)
    if given.shape != aval.shape or not fits(given, aval):
        raise TypeError(
            f"{what} is {describe_type(given)}, but {name} returns "
            f"{describe_type(aval)}"
        )
    return ENGINE.core.convert(x, aval.dtype, aval.weak_type)


def fits(given: ShapedArray, aval: ShapedArray) -> bool:
    """Whether a dtype is the one that is due, or a weak one of the same kind."""
    return given.dtype == aval.dtype or (
        given.weak_type and is_inexact(aval.dtype) and given.dtype.kind != "c"
    )


def identity(x: object) -> object:
    """What tells captured arrays and tracers apart."""
    return (id(x.builder), x.atom) if isinstance(x, Staged) else id(x)


def union(*groups: Sequence[object]) -> tuple[Any, ...]:
    """What was captured, each array and each tracer once."""
    return tuple({identity(x): x for group in groups for x in group}.values())


def with_captured(
    jaxpr: Jaxpr, inner: Sequence[object], captured: Sequence[object]
) -> Jaxpr:
    """A jaxpr whose first inputs stand for `inner`, with inputs for all `captured`."""
    numbers = {identity(x): i for i, x in enumerate(captured)}
    avals = [*map(operand_aval, captured), *jaxpr.in_avals[len(inner) :]]
    places = [numbers[identity(x)] for x in inner]
    places += range(len(captured), len(avals))
    return on_inputs(jaxpr, avals, places, ENGINE.core)


def after_captured(jaxpr: Jaxpr, captured: Sequence[ShapedArray]) -> Jaxpr:
    """`jaxpr` behind further first inputs, which it ignores."""
    count = len(captured)
    avals = [*captured, *jaxpr.in_avals]
    places = range(count, len(avals))
    return on_inputs(jaxpr, avals, list(places), ENGINE.core)
