"""Floor 2: `pcast`: the same values, in a type that says otherwise how devices differ.

Inside `shard_map` a type says along which axes of the mesh values vary between devices
(`V`), are terms of a sum (`U`), or have cotangents that are terms of one (`R`); along
others all devices have the same. A cast changes no value, and its transpose is what
keeps derivatives right: what all have varies from now on, so its cotangents are
different, and must be summed::

    b:f32[8]{V:m} = pcast[axes=(m,) mesh=... to=varying] a

`evened` makes the operands of an operation alike, where a user has not done it.
"""

from collections.abc import Iterable, Sequence
from typing import Final, Literal

from attrs import evolve, frozen

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Params
from verax.ir.meshes import (
    Axes,
    AxisType,
    Explicit,
    MeshType,
    Terms,
    TypeShardings,
    UnreducedKind,
    explicit_on,
    meeting_meshes,
    terms_of,
)
from verax.rules.families.linear import linear
from verax.rules.rows.builder import Builder
from verax.rules.rows.references import operand_aval
from verax.rules.rows.row import Axis, Engine, Known, Row, Tangent, Zero, as_typed
from verax.rules.rows.type_shardings import common_mesh, is_uneven
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.conversions import ShardingTypeError
from verax.rules.values.state import STATE

type State = Literal["varying", "unreduced", "reduced", "invarying"]
"""The state of a value along an axis: how what devices hold makes it."""

STATES: Final[tuple[State, ...]] = ("varying", "unreduced", "reduced")
CASTS: Final = frozenset(
    {
        ("invarying", "varying"),
        ("invarying", "reduced"),
        ("varying", "unreduced"),
        ("reduced", "varying"),
    }
)
"""From which state to which a value can be taken without a change."""


@frozen(cache_hash=True, repr=False)
class CastParams(Params):
    """The axes of `mesh`, those of an enclosing `shard_map`, and the new state."""

    axes: Axes
    mesh: MeshType
    to: str

    @property
    def named_axes(self) -> frozenset[str]:
        return frozenset(self.axes)

    def without_axis(self, name: str) -> "CastParams | None":
        rest = tuple([axis for axis in self.axes if axis != name])
        return evolve(self, axes=rest) if rest else None


def state_along(aval: ShapedArray, axis: str) -> State:
    """The state along an axis of a value of this type."""
    terms = terms_of(aval.explicit)
    if axis in terms.varying:
        return "varying"
    if axis in terms.unreduced:
        return "unreduced"
    return "reduced" if axis in terms.reduced else "invarying"


def common_state(name: str, aval: ShapedArray, axes: Axes) -> State:
    """The state along all of several axes.

    Raises:
        ValueError: there are several.
    """
    states = {state_along(aval, axis) for axis in axes}
    if len(states) > 1:
        raise ValueError(
            f"{name} can only accept axis_name which corresponds to one state of the "
            f"input, but {aval} is "
            + ", ".join([f"{state_along(aval, a)} along {a!r}" for a in axes])
            + ": call it for each of them"
        )
    return states.pop()


def retyped_along(
    aval: ShapedArray, axes: Axes, to: str, mesh: MeshType | None = None
) -> ShapedArray:
    """The type in another state along some axes."""
    explicit = aval.explicit
    known = explicit.mesh if explicit is not None else mesh
    if mesh is not None and explicit is not None:
        known = meeting_meshes(explicit.mesh, mesh)
    assert known is not None, "what varies has a mesh"
    unspoken = TypeShardings.unspoken(known)
    axes = tuple([axis for axis in axes if axis not in unspoken])
    before = terms_of(explicit)
    parts = {
        state: tuple(
            [
                axis
                for axis in known.names
                if (axis in own and axis not in axes) or (axis in axes and state == to)
            ]
        )
        for state, own in (
            ("varying", before.varying),
            ("unreduced", before.unreduced),
            ("reduced", before.reduced),
        )
    }
    terms = Terms(
        parts["unreduced"],
        parts["reduced"],
        before.kind if parts["unreduced"] else UnreducedKind.sum,
        before.open,
        varying=parts["varying"],
    )
    splits = ((),) * aval.ndim if explicit is None else explicit.splits
    return aval.with_explicit(explicit_on(known, splits, terms))


def cast_typing(p: CastParams, avals: Sequence[ShapedArray]) -> Sequence[ShapedArray]:
    """Along some axes it may be so already: a map can make more values vary."""
    (x,) = avals
    due = to_change(p, x)
    if not due:
        return (x,)
    check_cast("pcast", x, due, p.to)
    return (retyped_along(x, due, p.to, p.mesh),)


def to_change(p: CastParams, x: ShapedArray) -> Axes:
    """The axes along which an operand is not in the new state already."""
    return tuple([axis for axis in p.axes if state_along(x, axis) != p.to])


def check_cast(name: str, x: ShapedArray, axes: Axes, to: str) -> None:
    """Raise ValueError unless a value can be taken to a state without a change."""
    before = common_state(name, x, axes)
    if (before, to) not in CASTS:
        advice = {
            "varying": "it is that already",
            "unreduced": "take the sum (psum), or a share of it (psum_scatter)",
            "reduced": "take it to 'varying' first",
            "invarying": "take it to 'varying' first",
        }[before]
        raise ValueError(
            f"Unsupported pcast from={before!r} to={to!r} along {', '.join(axes)}: "
            f"the operand is {x}; {advice}"
        )


def transpose_cast(
    engine: Engine, p: CastParams, cts: Sequence[Tangent], args: Sequence[Known]
) -> Sequence[Tangent | None]:
    """The cotangent in the state that is dual to that of the operand."""
    (ct,), operand = cts, args[0].aval
    if isinstance(ct, Zero):
        return (Zero(operand.cotangent()),)
    due = to_change(p, operand)
    if not due:
        return (ct,)
    before = common_state("pcast", operand, due)
    if before == "invarying":
        sizes = tuple([p.mesh.size((axis,)) for axis in due])
        return (engine.core.sum_over(ct, due, sizes),)
    dual = "reduced" if before == "unreduced" else "unreduced"
    return (cast(ct, due, p.mesh, dual if before != "varying" else "varying"),)


def batch_cast(
    engine: Engine,
    p: CastParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    return (pcast_p.call(p, *args),), axes


pcast_p: Row[CastParams] = linear(
    "pcast",
    CastParams,
    typing=cast_typing,
    evaluate=lambda p, x: x,
    transpose=transpose_cast,
    batch=batch_cast,
    lower=lambda e, p, xs, outs: xs,
    draw=None,
    sharding=as_typed,
)


def cast(x: Array, axes: Axes, mesh: MeshType, to: str = "varying") -> Array:
    """`x` in another state along axes of an enclosing `shard_map`."""
    return pcast_p.call(CastParams(axes, mesh, to), x) if axes else x


def varying_too(aval: ShapedArray, axes: Iterable[str]) -> ShapedArray:
    """The type of the same value once it varies along all of the axes."""
    due = tuple([a for a in axes if state_along(aval, a) in ("invarying", "reduced")])
    if not due:
        return aval
    return retyped_along(aval, due, "varying", TypeShardings.in_force())


def fits_within(given: ShapedArray, due: ShapedArray) -> bool:
    """Whether a value of one type has the other once it varies along more axes."""
    if given.explicit == due.explicit:
        return given is due
    extra = due.vma - given.vma
    return (
        not given.vma - due.vma
        and retyped_along(
            given,
            tuple(extra),
            "varying",
            None if due.explicit is None else due.explicit.mesh,
        )
        is due
    )


def cast_advice(
    cases: Iterable[tuple[ShapedArray, ShapedArray, str]],
) -> str:
    """Advice on values of one type that are to vary along more axes.

    Each case is what there is, what is due, and which value to cast. Without any, it is
    empty.
    """
    lines = []
    for given, due, where in cases:
        if missing := due.vma - given.vma:
            axes = tuple(sorted(missing))
            lines.append(
                f"applying `jax.lax.pcast(..., {axes}, to='varying')` to {where}"
            )
    if not lines:
        return ""
    if len(lines) == 1:
        return f"\nThis might be fixed by {lines[0]}."
    return "\nThis might be fixed by:\n" + "\n".join([f"  * {x};" for x in lines])


def check_derivative(name: str, given: ShapedArray, due: ShapedArray) -> None:
    """Raise unless a tangent or cotangent varies along no more axes than its primal.

    Raises:
        ValueError: it does.
    """
    if extra := tuple(sorted(given.vma - due.vma)):
        raise ValueError(
            f"the tangent or cotangent for {name} is {given}, inconsistent with its "
            f"primal value, whose tangent type is {due}.\nThis might be fixed by "
            f"applying `jax.lax.pcast(..., {extra}, to='varying')` to the primal value "
            "passed, or by combining the tangents first (verax.lax.psum)"
        )


def evened(builder: Builder, args: Sequence[object]) -> list[object]:
    """The operands of an operation, so that they vary along the same axes.

    Along axes along which none varies, but one is reduced, all are.

    Raises:
        ShardingTypeError: one is a term of a sum along an axis along which others vary.
        ValueError: the option `auto_pcast` is off.
    """
    avals = [operand_aval(x) for x in args]
    if not STATE.auto_pcast:
        raise ValueError(
            "an operation requires varying manual axes to match, but got "
            f"{' and '.join(map(str, avals))} while auto_pcast is off: cast what "
            "varies along fewer axes, with verax.lax.pcast"
        )
    mesh = common_mesh(avals)
    assert mesh is not None, "operands that differ in this have a mesh"
    varying, reduced = (
        frozenset(
            [axis for aval in avals for axis in getattr(terms_of(aval.explicit), kind)]
        )
        for kind in ("varying", "reduced")
    )
    result = []
    for x, aval in zip(args, avals, strict=True):
        for axes, to in ((varying, "varying"), (reduced - varying, "reduced")):
            for before in ("invarying", "reduced"):
                due = tuple(
                    [
                        axis
                        for axis in mesh.names
                        if axis in axes
                        and state_along(aval, axis) == before
                        and before != to
                    ]
                )
                if due:
                    (x,) = builder.bind(pcast_p, CastParams(due, mesh, to), (x,))
        result.append(x)
    types = [operand_aval(x) for x in result]
    if is_uneven(types):
        raise ShardingTypeError(
            f"an operation cannot take {' and '.join(map(str, avals))}: along an axis "
            "where one is unreduced no other can vary. Make the sum first (psum), or "
            "say that the others are terms, too (pcast)"
        )
    return result


def as_manual(x: Array, due: Explicit) -> Array:
    """`x` in the states that a type names along axes of an enclosing `shard_map`.

    Raises:
        ShardingTypeError: only a sum could bring it there.
    """
    aval, mesh = aval_of(x), due.mesh
    manual = mesh.of_type(AxisType.Manual)
    steps: dict[tuple[str, ...], list[str]] = {}
    for after in STATES:
        for axis in getattr(due.terms, after):
            before = state_along(aval, axis)
            if axis in manual and before != after:
                steps.setdefault(route(aval, axis, before, after), []).append(axis)
    for path, axes in steps.items():
        for to in path:
            x = cast(x, tuple(axes), mesh, to)
    return x


def route(aval: ShapedArray, axis: str, before: str, after: str) -> tuple[str, ...]:
    """The states through which a value goes from one to another."""
    if (before, after) in CASTS:
        return (after,)
    if after == "unreduced" and before in ("invarying", "reduced"):
        return ("varying", "unreduced")
    raise ShardingTypeError(
        f"{aval} is {before} along {axis!r}, an axis of shard_map, where what is "
        f"{after} is needed: combine what the devices have first (psum, pmean)"
    )


def varying(x: Array, axes: Iterable[str], mesh: MeshType) -> Array:
    """`x`, so that it varies along all of the axes."""
    for before in ("invarying", "reduced"):
        due = [a for a in mesh.names if a in axes and state_along(x.aval, a) == before]
        x = cast(x, tuple(due), mesh)
    return x


def together(xs: Sequence[Array]) -> list[Array]:
    """The same values, each of which varies along all axes along which one does."""
    mesh = common_mesh([x.aval for x in xs])
    axes = {axis for x in xs for axis in x.aval.vma}
    if mesh is None or not axes:
        return list(xs)
    return [varying(x, axes, mesh) for x in xs]


ROWS = (pcast_p,)
