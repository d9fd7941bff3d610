"""Floor 5: the arguments of functions with rules of the user's own.

One idea: keyword arguments become positional once, then an argument is either
differentiable (its leaves are operands) or held (a value of the rule itself)::

    split = sort_arguments(f, positions, args, kwargs)
    split.leaves, split.tree, split.held
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, cast

import numpy as np
from attrs import frozen

from verax.api.tracing.apply import ENGINE
from verax.api.tracing.trace import Opened, leaf_avals, trace
from verax.api.tracing.wrapping import describe_arguments, function_name
from verax.api.trees.mismatch import first_difference
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import DType, float0, is_complex, is_float, is_inexact
from verax.ir.jaxpr import Jaxpr
from verax.ir.memos import holds
from verax.ir.records import ReprMixin
from verax.ops.structure.create import zeros
from verax.rules.programs.batched import on_inputs
from verax.rules.rows.builder import Scope, Staged, Tracer
from verax.rules.rows.references import operand_aval
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.conversions import described, shown
from verax.rules.values.reference import Ref

PLACED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.POSITIONAL_ONLY)


class Held:
    """A value as a part of a key: by type and value, or by identity if not hashable."""

    __slots__ = ("hashed", "key", "value")

    def __init__(self, value: object) -> None:
        self.value = value
        try:
            self.hashed = hash((type(value), value))
            self.key: tuple[object, object] = (type(value), value)
        except TypeError:
            self.hashed = id(value)
            self.key = (type(value), id(value))
        if isinstance(value, Tracer):
            self.key = (Tracer, id(value))

    @property
    def transient(self) -> bool:
        """Whether a memo must not keep the value alive."""
        return holds(self.value)

    def __hash__(self) -> int:
        return self.hashed

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Held) and self.key == other.key


class HasValue(Protocol):
    """An argument that may be anything, as a part of a key."""

    @property
    def value(self) -> Any: ...


@frozen(repr=False)
class Positions(ReprMixin):
    """The places of the held arguments of a function, and how to call it."""

    held: tuple[int, ...]

    def merge(self, held: Sequence[HasValue], others: Sequence[object]) -> list[object]:
        """All arguments in order."""
        rest = iter(others)
        values = {i: x.value for i, x in zip(self.held, held, strict=True)}
        count = len(held) + len(others)
        return [values[i] if i in values else next(rest) for i in range(count)]


@frozen(eq=False, repr=False)
class SortedArguments(ReprMixin):
    """The arguments of one call: `tree` is the tuple of the differentiable ones."""

    leaves: list[object]
    tree: PyTreeDef
    positions: Positions
    held: tuple[Held, ...]

    @property
    def held_tracers(self) -> bool:
        """Whether a held argument is, or contains, a tracer."""
        return any(
            isinstance(leaf, Tracer)
            for held in self.held
            for leaf in pytrees.flatten(held.value)[0]
        )


def signature_of(fun: Callable[..., object]) -> inspect.Signature | None:
    """The signature of a function; None if it does not say what it takes."""
    try:
        return inspect.signature(fun)
    except (TypeError, ValueError):
        return None


def positional(
    fun: Callable[..., object],
    signature: inspect.Signature | None,
    args: Sequence[object],
    kwargs: dict[str, Any],
    what: str,
) -> tuple[object, ...]:
    """All arguments by position, with the defaults that the signature has.

    A keyword-only argument that is not passed keeps its default in the function.

    Raises:
        TypeError: they do not fit the signature, or one has no position.
    """
    if signature is None:
        if kwargs:
            raise TypeError(
                f"{function_name(fun)} has no signature, so its arguments must be "
                f"passed by position, not as {sorted(kwargs)}"
            )
        return tuple(args)
    if not kwargs and all_by_position(signature, len(args)):
        return tuple(args)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        raise TypeError(
            f"The input arguments to the {what} function {function_name(fun)} do not "
            f"fit its signature {signature}:\n{error}"
        ) from None
    bound.apply_defaults()
    unplaced = sorted(kwargs.keys() & bound.kwargs.keys())
    if unplaced:
        raise TypeError(
            f"The input arguments to the {what} function {function_name(fun)} do not "
            "fit its rules, which take arguments by position:\nThe following keyword "
            f"arguments could not be resolved to positions: {', '.join(unplaced)}"
        )
    return bound.args


def all_by_position(signature: inspect.Signature, count: int) -> bool:
    """Whether so many arguments by position are all that the function takes.

    Python's own answer, `bind`, takes as long as tracing a short function.
    """
    parameters = signature.parameters
    return len(parameters) == count and all(
        [p.kind in PLACED for p in parameters.values()]
    )


def held_positions(
    fun: Callable[..., object],
    numbers: int | Sequence[int],
    names: str | Sequence[str],
    argument: str = "nondiff_argnums",
) -> tuple[int, ...]:
    """The positions that `nondiff_argnums` and `nondiff_argnames` name.

    `argument` is what the first is called in messages.

    Raises:
        ValueError: there is no such argument.
    """
    out = [numbers] if isinstance(numbers, int) else list(numbers)
    expected = [names] if isinstance(names, str) else list(names)
    if expected:
        parameters = list(inspect.signature(fun).parameters)
        for name in expected:
            if name not in parameters:
                raise ValueError(
                    f"nondiff_argnames names {name!r}, which {function_name(fun)} does "
                    f"not have; its parameters are {parameters}"
                )
            out.append(parameters.index(name))
    for number in out:
        if not isinstance(number, int) or number < 0:
            raise ValueError(
                f"{argument} must hold non-negative integers, not {shown(number)}"
            )
    return tuple(sorted(set(out)))


def sort_arguments(
    fun: Callable[..., object],
    signature: inspect.Signature | None,
    held: tuple[int, ...],
    args: Sequence[object],
    kwargs: dict[str, Any],
    what: str,
    argument: str = "nondiff_argnums",
) -> SortedArguments:
    """Tell the differentiable arguments of a call from the held ones.

    `signature` is that of `fun`: to find it takes longer than to trace. `what` says in
    messages which kind of function it is, `argument` who chose the held ones.
    """
    given = positional(fun, signature, args, kwargs, what)
    if held and held[-1] >= len(given):
        raise ValueError(
            f"{argument} names argument {held[-1]}, but {function_name(fun)} "
            f"was called with {len(given)} arguments"
        )
    others = tuple(x for i, x in enumerate(given) if i not in held)
    leaves, tree = pytrees.flatten(others)
    return SortedArguments(
        leaves, tree, Positions(held), tuple([Held(given[i]) for i in held])
    )


def reads_tracers(fun: object) -> bool:
    """Whether a function closes over tracers or references, as far as it shows."""
    for cell in getattr(fun, "__closure__", None) or ():
        try:
            content = cell.cell_contents
        except ValueError:
            continue
        try:
            leaves = pytrees.flatten(content)[0]
        except (TypeError, ValueError):
            continue
        if any(isinstance(leaf, Tracer | Ref) for leaf in leaves):
            return True
    names = getattr(getattr(fun, "__code__", None), "co_names", ())
    around: Mapping[str, object] = getattr(fun, "__globals__", {})
    return any([isinstance(around.get(name), Ref) for name in names])


class Purpose(str):
    """The purpose for which a user's rule is traced, as messages say it."""

    __slots__ = ()


def deep_within(builder: Scope | None, limit: int, *purposes: str) -> bool:
    """Whether `limit` traces for one of these purposes are under way.

    A rule that calls its own function would otherwise be traced without an end.
    """
    depth = 0
    while builder is not None:
        depth += builder.purpose in purposes
        builder = builder.outer
    return depth >= limit


def orders_around(builder: Scope | None) -> int:
    """The number of derivatives being traced inside each other.

    Those within a rule do not count: it may differentiate itself, without an end.
    """
    orders = 0
    while builder is not None:
        orders = 0 if isinstance(builder.purpose, Purpose) else orders
        orders += builder.differentiates
        builder = builder.outer
    return orders


def rules_under_way(builder: Scope | None) -> int:
    """The number of rules that are being traced, one inside the other."""
    depth = 0
    while builder is not None:
        depth += isinstance(builder.purpose, Purpose)
        builder = builder.outer
    return depth


def matching_leaves(
    rule: str,
    what: str,
    tree: PyTreeDef,
    like: str,
    result: object,
    name: str | None = None,
) -> list[object]:
    """The leaves of `result`, which must have the structure `tree`; `name` is its name.

    Raises:
        TypeError: it has another; the message shows where.
    """
    leaves, given = pytrees.flatten(result)
    if given == tree:
        return leaves
    expected = tree.unflatten([0] * tree.num_leaves)
    difference = first_difference(expected, result, name or what, None)
    place = f": at {difference}" if difference else ""
    raise TypeError(
        f"{rule} must produce {what} with the structure {tree}, as {like} has it, but "
        f"produced {given}{place}"
    )


def describe_type(aval: ShapedArray) -> str:
    """A dtype and a shape, as messages show them."""
    return f"{aval.dtype.name}{list(aval.shape)}"


def leaf_type(x: object) -> ShapedArray:
    """The type of a leaf that may be a NumPy array of float0."""
    if getattr(x, "dtype", None) == float0:
        return ShapedArray(np.shape(cast(Any, x)), float0)
    return aval_of(x)


# -----------------------------------------------------------------------------
# Tracing functions and rules of the user's own, and fitting their results.
#
# What a rule and its function capture from traces around them becomes the first
# operands of one equation, so their jaxprs are brought to common first inputs. A rule
# that asks for symbolic zeros sees which tangents are zero, and may return such zeros::
#
#     body, avals = trace_body(f, sort_arguments(f, (), args, {}))
#     if isinstance(t, SymbolicZero): ...


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


def zero_from_primal(val: object, symbolic_zeros: bool = False) -> Any:
    """Zeros in the tangent types of the leaves of `val`, symbolic ones on request.

    >>> import verax
    >>> verax.custom_derivatives.zero_from_primal([2.0, 3])
    [Array(0., dtype=float32, weak_type=True), array((b'',), dtype=[('float0', 'V')])]
    """
    leaves, tree = pytrees.flatten(val)
    zeros_of = [instantiate(aval_of(x).tangent(), symbolic_zeros) for x in leaves]
    return tree.unflatten(zeros_of)


def custom_vjp_primal_tree_values(tree: object) -> Any:
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
    fun: Callable[..., object], given: SortedArguments
) -> tuple[Opened, tuple[ShapedArray, ...]]:
    """The function traced in its differentiable arguments."""

    def flat(*others: object) -> Any:
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


def in_type(x: object, aval: ShapedArray, what: str, name: str) -> Array:
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


def rounds_to(given: ShapedArray, aval: ShapedArray) -> bool:
    """Whether a dtype is the one that is due, or differs by its width alone."""
    both = given.dtype, aval.dtype
    return fits(given, aval) or all(map(is_float, both)) or all(map(is_complex, both))


def identity(x: object) -> object:
    """The identity by which captured arrays and tracers are told apart."""
    return (id(x.builder), x.atom) if isinstance(x, Staged) else id(x)


def union[T](*groups: Sequence[T]) -> tuple[T, ...]:
    """Each captured array and each captured tracer once."""
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
