"""Floor 6: bodies of control flow as jaxprs, and what is said when types differ.

One idea: a body is traced once on types; what it closes over, arrays and tracers of
outer traces, become operands of the equation::

    body = trace_body(f, tree, avals, "scan")
    body.jaxpr, body.consts, body.out_tree
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from attrs import evolve, frozen

from verax.api.tracing.apply import as_array, as_typed_array, is_tracing
from verax.api.tracing.argument_names import describe_arguments, name_and_line
from verax.api.tracing.trace import Traced, shared_trace
from verax.api.trees.mismatch import first_difference
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef
from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Jaxpr
from verax.ir.promotion import TypePromotionError, result_type
from verax.ir.records import ReprMixin
from verax.ops.calls.subjaxprs import inlined
from verax.ops.elementwise.convert import convert
from verax.ops.structure.casts import cast_advice, fits_within, varying_too
from verax.ops.structure.reshard import retyped
from verax.rules.rows.builder import Staged, program
from verax.rules.rows.references import operand_aval
from verax.rules.values.array import Array
from verax.rules.values.constants import typed_scalar
from verax.rules.values.state import STATE

PACKAGE: Final = __name__.partition(".")[0]
LEAF: Final = type("array", (), {})()
"""Stands for a leaf where structures are compared; messages show its class."""


@frozen(eq=False, repr=False)
class Body(ReprMixin):
    """A traced function: its jaxpr takes `consts`, then the leaves of the arguments."""

    jaxpr: Jaxpr
    consts: tuple[object, ...]
    out_tree: PyTreeDef
    traced: Traced

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        return self.jaxpr.out_avals


def trace_body(
    fun: Callable[..., Any],
    tree: PyTreeDef,
    avals: Sequence[ShapedArray],
    purpose: str,
    called: object = None,
    owner: object = None,
) -> Body:
    """Trace `fun(*args, **kwargs)`; messages name `called`, the user's function.

    For `owner` see `shared_trace`.
    """
    describe = describe_arguments(called or fun, tree)
    traced = shared_trace(fun, tree, avals, purpose, owner=owner, describe=describe)
    opened = traced.opened
    return Body(opened.jaxpr, opened.captured, opened.out_tree, traced)


def with_common_consts(
    bodies: Sequence[Body],
) -> tuple[tuple[Jaxpr, ...], list[object]]:
    """The jaxprs of several bodies on all their constants, each of them once."""
    places: dict[object, int] = {}
    consts: list[object] = []
    for body in bodies:
        for x in body.consts:
            if places.setdefault(identity(x), len(consts)) == len(consts):
                consts.append(x)
    if len(bodies) == 1:
        return (bodies[0].jaxpr,), consts
    types = [operand_aval(x) for x in consts]
    return tuple([on_consts(body, places, types) for body in bodies]), consts


def on_consts(
    body: Body, places: dict[object, int], types: Sequence[ShapedArray]
) -> Jaxpr:
    """The jaxpr of a body on the constants of all."""
    order = [places[identity(x)] for x in body.consts]
    if order == list(range(len(types))):
        return body.jaxpr
    own = body.jaxpr.in_avals[len(order) :]

    def whole(*xs: Array) -> Sequence[object]:
        return inlined(body.jaxpr, [*[xs[i] for i in order], *xs[len(types) :]])

    return program((*types, *own), whole)


def identity(x: object) -> object:
    """What tells constants apart."""
    return (id(x.builder), x.atom) if isinstance(x, Staged) else id(x)


def with_out_types(body: Body, avals: Sequence[ShapedArray]) -> Body:
    """The body with its first results converted to these types."""
    found = body.out_avals
    if found[: len(avals)] == tuple(avals):
        return body

    def whole(*xs: Array) -> Sequence[object]:
        outs = inlined(body.jaxpr, xs)
        return [*typed_as(outs, avals), *outs[len(avals) :]]

    return evolve(body, jaxpr=program(body.jaxpr.in_avals, whole))


def with_carry_types(body: Body, avals: Sequence[ShapedArray]) -> Body:
    """The body with the carry, going in and coming out, converted to these types.

    A carry that starts as a weak value and comes back as a strong one of its dtype
    is weak in the body, as the user traced it, and strong between the steps.
    """
    start, stop = len(body.consts), len(body.consts) + len(avals)
    ins = body.jaxpr.in_avals
    inside, types = ins[start:stop], (*ins[:start], *avals, *ins[stop:])
    if types == tuple(ins):
        return with_out_types(body, avals)

    def whole(*xs: Array) -> Sequence[object]:
        carry = typed_as(xs[start:stop], inside)
        outs = inlined(body.jaxpr, (*xs[:start], *carry, *xs[stop:]))
        return [*typed_as(outs, avals), *outs[len(avals) :]]

    return evolve(body, jaxpr=program(types, whole))


def typed_as(xs: Sequence[Array], avals: Sequence[ShapedArray]) -> list[Array]:
    """The first of `xs` in these types, which may vary along more axes."""
    return [
        x
        if x.aval is aval
        else retyped(convert(x, aval.dtype, aval.weak_type), aval.explicit)
        for x, aval in zip(xs, avals, strict=False)
    ]


def as_operand(x: object, aval: ShapedArray) -> object:
    """A leaf in the type that was settled for it."""
    if operand_aval(x) is aval:
        return x
    if aval.explicit is not None:
        same = convert(as_array(x), aval.dtype, aval.weak_type)
        return retyped(same, aval.explicit)
    if isinstance(x, Array) or aval.shape:
        return convert(x, aval.dtype, aval.weak_type)
    if not is_tracing():
        return as_typed_array(x, aval)
    return typed_scalar(x, aval)


def promoted(given: ShapedArray, found: ShapedArray) -> ShapedArray:
    """The type of a carry that begins as `given` and comes back as `found`.

    Only a weak type gives way.
    """
    if not given.weak_type or given.shape != found.shape or given is found:
        return given
    try:
        dtype, _ = result_type(given, found, x64=STATE.enable_x64)
    except TypePromotionError:
        return given
    return given.with_dtype(dtype)


def settled(
    fun: Callable[..., Any],
    avals: Sequence[ShapedArray],
    traced: Callable[[Sequence[ShapedArray]], Body],
) -> tuple[list[ShapedArray], Body]:
    """Carry types that the body gives back: weak ones are promoted until it does.

    Inside `shard_map`, the carry of a loop of the library's own varies as the body
    makes it; users say so themselves (`pcast`). The body is traced again where a dtype
    changes, or along which axes a value varies; see `with_carry_types`.
    """
    current, own = list(avals), is_own(fun)
    while True:
        body = traced(current)
        found = body.out_avals[: len(current)]
        if len(found) != len(current):
            return current, body
        after = [promoted(a, b) for a, b in zip(current, found, strict=True)]
        if own:
            after = [varying_too(a, b.vma) for a, b in zip(after, found, strict=True)]
        if all(
            a.dtype == b.dtype and a.explicit == b.explicit
            for a, b in zip(after, current, strict=True)
        ):
            return after, body
        current = after


def is_own(fun: object) -> bool:
    """Whether a body is the library's own, and stands for none of a user's."""
    while (inner := getattr(fun, "func", None)) is not None:
        fun = inner
    module: str = getattr(fun, "__module__", None) or ""
    return module.partition(".")[0] == PACKAGE


def check_carry(
    name: str,
    fun: object,
    in_tree: PyTreeDef,
    avals: Sequence[ShapedArray],
    out_tree: PyTreeDef,
    found: Sequence[ShapedArray],
) -> None:
    """Raise TypeError with each place where the carry comes out as something else."""
    who = name_and_line(fun)
    if in_tree != out_tree:
        place, difference = mismatch(in_tree, out_tree, "carry")
        raise TypeError(
            f"{name}: {who} must return a carry of the same structure as it takes, "
            f"but at {place}: {difference}. It takes {in_tree} and returns {out_tree}"
        )
    places = [f"carry{place}" for place in paths(in_tree)]
    lines = [
        f"  {place} is {a} going in and {b} coming out"
        for place, a, b in zip(places, avals, found, strict=True)
        if not fits_within(b.strong(), a.strong())
    ]
    if lines:
        cases = zip(
            avals, found, [f"the initial carry value, {x}" for x in places], strict=True
        )
        raise TypeError(
            f"{name}: {who} must return a carry of the same types as it takes:\n"
            + "\n".join(lines)
            + (
                cast_advice(cases)
                or "\nConvert the initial value or the returned value (astype)"
            )
        )


def mismatch(expected: PyTreeDef, actual: PyTreeDef, root: str) -> tuple[str, str]:
    """The first place where two structures differ, and how."""
    left = expected.unflatten([LEAF] * expected.num_leaves)
    right = actual.unflatten([LEAF] * actual.num_leaves)
    if found := first_difference(left, right, root, None):
        return found
    if found := first_difference(right, left, root, None):  # a container for a leaf
        place, difference = found
        kind, _, _ = difference.removeprefix("expected ").partition(",")
        return place, f"expected array, got {kind}"
    return root, "the structures differ"


def paths(tree: PyTreeDef) -> Iterator[str]:
    """The key paths of the leaves as strings."""
    filled = tree.unflatten(range(tree.num_leaves))
    for path, _ in pytrees.flatten_with_path(filled)[0]:
        yield "".join(map(str, path))


def is_sequential(name: str, vmap_method: str) -> bool:
    """Whether vmap goes through one element after another; "masked" is the default."""
    if vmap_method in ("masked", "sequential"):
        return vmap_method == "sequential"
    raise ValueError(
        f"{name}: vmap_method must be 'masked' or 'sequential', not {vmap_method!r}"
    )
