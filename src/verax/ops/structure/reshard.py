"""Floor 2: `reshard`: the same values, split otherwise by explicit mesh axes.

Its lowering tells the compiler how the values shall lie. Where the type of the result
says nothing, they lie whole on every device of `mesh`, or, without `mesh`, as the
compiler likes: that is how values come to where it decides::

    b:f32[8@x] = reshard[explicit=Explicit(mesh=..., splits=(("x",),))] a
"""

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from types import CodeType
from typing import Any, Final, cast

from attrs import evolve, frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float32
from verax.ir.jaxpr import Params
from verax.ir.meshes import (
    Axes,
    AxisType,
    Explicit,
    MeshType,
    TypeSharding,
    TypeShardings,
    UnreducedKind,
    explicit_of,
    explicit_on,
    manual_only,
    mapped_as,
    mesh_type,
    opened,
    says_nothing,
    terms_along,
    terms_of,
    terms_together,
    with_dim,
)
from verax.ops.structure.casts import as_manual
from verax.rules.families.elementwise import SHAPES
from verax.rules.families.linear import linear, one_linear
from verax.rules.rows.builder import program
from verax.rules.rows.emitter import Emitter, Operand, constrained
from verax.rules.rows.row import (
    Axis,
    Engine,
    Row,
    Sample,
    Traits,
    as_typed,
    is_split,
    no_flops,
)
from verax.rules.rows.type_shardings import mesh_text
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.conversions import ShardingTypeError
from verax.rules.values.state import STATE


@frozen(cache_hash=True, repr=False)
class ReshardParams(Params):
    """The type of the result; or the mesh on which the result is whole.

    Inside `shard_map`, a type may say that a whole value varies: over that mesh.
    """

    explicit: Explicit | None = None
    mesh: MeshType | None = None


def reshard_typing(
    p: ReshardParams, avals: Sequence[ShapedArray]
) -> Sequence[ShapedArray]:
    (x,) = avals
    check_kinds(x.explicit, p.explicit)
    if p.explicit is not None and len(p.explicit.splits) != x.ndim:
        raise TypeError(
            f"reshard splits {len(p.explicit.splits)} dimensions, but {x} has {x.ndim}"
        )
    due = beside_manual(p.explicit, x.explicit)
    if p.mesh is not None and p.explicit is None and due is not None:
        due = evolve(due, mesh=mesh_beside(p.mesh, due.mesh))
    return (x.with_explicit(due),)


def beside_manual(due: Explicit | None, known: Explicit | None) -> Explicit | None:
    """The explicit axes of `due` with those of `shard_map` of `known`.

    Raises:
        ShardingTypeError: they are of different meshes.
    """
    own = None if known is None else manual_only(known)
    if own is None or due is None:
        return own or due
    mesh = mesh_beside(due.mesh, own.mesh)
    rest = terms_along(due.terms, mesh.of_type(AxisType.Explicit))
    terms = terms_together(mesh, rest, own.terms)
    return explicit_on(mesh, due.splits, evolve(terms, open=due.terms.open))


def mesh_beside(mesh: MeshType, own: MeshType) -> MeshType:
    """`mesh` as values know it whose types speak of the axes of `shard_map` of `own`.

    Raises:
        ShardingTypeError: they are different meshes.
    """
    if (mesh.names, mesh.sizes) != (own.names, own.sizes):
        raise ShardingTypeError(
            f"reshard takes a value on {mesh_text(own)} to {mesh_text(mesh)}"
        )
    return mapped_as(mesh, own)


def explicit_only(explicit: Explicit | None) -> Explicit | None:
    """The type without what it says of the axes of `shard_map`."""
    if explicit is None or not (known := explicit.mesh.of_type(AxisType.Manual)):
        return explicit
    rest = [a for a in explicit.mesh.names if a not in known]
    terms = terms_along(explicit.terms, rest)
    return explicit_on(explicit.mesh, explicit.splits, terms)


def check_kinds(before: Explicit | None, after: Explicit | None) -> None:
    """Raise unless what devices hold can be brought into terms of this kind.

    Raises:
        ValueError: they would be terms of a maximum, which only a reduction makes.
    """
    old, new = terms_of(before), terms_of(after)
    if old.unreduced and new.unreduced and old.kind is not new.kind:
        raise ValueError(
            "The unreduced_kind of input and output sharding passed to `reshard` "
            f"should be the same, but got {old.text()} and {new.text()}"
        )
    if new.kind is not UnreducedKind.sum and set(new.unreduced) - set(old.unreduced):
        raise ValueError(
            "out_sharding passed to `reshard` cannot be more unreduced than the input "
            f"by another kind than `sum`: got {old.text() or 'none'} and {new.text()}"
        )


def mesh_of(aval: ShapedArray) -> MeshType | None:
    """The mesh that a type speaks of."""
    return None if aval.explicit is None else aval.explicit.mesh


def batch_reshard(
    engine: Engine,
    p: ReshardParams,
    size: int,
    args: Sequence[Array],
    axes: Sequence[Axis],
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """The new dimension is split as that of the operand, or as the map says.

    Raises:
        ShardingTypeError: an axis splits another dimension already.
    """
    (x,), (axis,) = args, axes
    assert axis is not None
    added: Axes = ()
    if engine.axis is not None and engine.axis.mesh is not None:
        added = engine.axis.spmd
    if p.explicit is not None:
        if set(p.explicit.axes).intersection(added):
            raise ShardingTypeError(
                f"vmap maps a dimension that {added} splits, but reshard inside of it "
                f"splits by the same axis: {p.explicit.text()}"
            )
        target = evolve(p, explicit=with_dim(p.explicit, axis, added))
    elif added and (mesh := p.mesh or mesh_of(x.aval)) is not None:
        splits = [added if i == axis else () for i in range(x.ndim)]
        target = ReshardParams(explicit_on(mesh, splits))
    else:
        target = p
    return (reshard_p.call(target, x),), (axis,)


def lower_reshard(
    e: Emitter, p: ReshardParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    mesh = p.mesh if p.explicit is None else p.explicit.mesh
    known, due = xs[0].aval.explicit, outs[0].explicit
    if mesh is None and known is not None and known.terms.unreduced:
        whole = outs[0].with_explicit(explicit_on(known.mesh, known.splits))
        return constrained(e, xs, (whole,), known.mesh)  # the compiler takes values
    if due is not None and set(due.terms.unreduced) - set(terms_of(known).unreduced):
        # XLA would take what it does not know for terms.
        splits = due.splits if known is None else known.splits
        first = outs[0].with_explicit(explicit_on(due.mesh, splits))
        xs = constrained(e, xs, (first,), due.mesh)
    return xs if mesh is None else constrained(e, xs, outs, mesh)


def draw_reshard(random: Random) -> Sample[ReshardParams]:
    """One device, which has everything; of split types the text does not read back."""
    mesh = MeshType(("x",), (1,), (AxisType.Explicit,))
    chosen = mesh if random.random() < 0.5 else None
    aval = ShapedArray(random.choice(SHAPES), float32)
    return Sample(ReshardParams(None, chosen), (aval,))


reshard_p: Row[ReshardParams] = linear(
    "reshard",
    ReshardParams,
    typing=reshard_typing,
    evaluate=lambda p, x: x,
    transpose=one_linear(lambda p, ct, x: retyped(ct, x.cotangent().explicit)),
    batch=batch_reshard,
    lower=lower_reshard,
    draw=draw_reshard,
    compiled=True,
    sharding=as_typed,
    traits=Traits(flops=no_flops, makes_nans=False),
)


def retyped(x: Array, explicit: Explicit | None, mesh: MeshType | None = None) -> Array:
    """`x` split as `explicit` says.

    Where that is None, whole on every device of `mesh`, or as the compiler likes. Along
    the axes of an enclosing `shard_map` it varies as before, or as `explicit` says.
    """
    before = aval_of(x).explicit  # zero tangents of integers are NumPy's
    if explicit is not None and before != explicit:
        x = as_manual(x, explicit)
        before = aval_of(x).explicit
    due = explicit_only(explicit)
    if due is None and mesh is not None:
        return reshard_p.call(ReshardParams(None, mesh), x)
    if explicit_only(before) != due:
        return reshard_p.call(ReshardParams(due), x)
    if before is None or explicit is None or before.mesh == explicit.mesh:
        return x
    if mesh_beside(explicit.mesh, before.mesh) == before.mesh:
        return x
    return reshard_p.call(ReshardParams(due, explicit.mesh), x)


def split_by(x: Array, place: TypeSharding) -> Array:
    """`x` split by the explicit axes of a sharding, or whole along them."""
    due = explicit_of(place, x.ndim) if names_axes(place) else None
    return retyped(x, due, mesh_type(place))


def names_axes(place: TypeSharding) -> bool:
    """Whether a sharding names an axis; that of a whole value is for any shape."""
    spec = place.spec
    return any(spec) or bool(spec.unreduced or spec.reduced)


def replaced(x: object, by: Callable[[Array], object]) -> Any:
    """The same with other arrays, also those in tuples, named ones too, and lists."""
    if isinstance(x, Array):
        return by(x)
    if not isinstance(x, tuple | list):
        return x
    make = type(x) if type(x) in (tuple, list) else getattr(x, "_make", None)
    return x if make is None else make([replaced(item, by) for item in x])


def no_explicit_axes(name: str, place: object) -> ValueError:
    """The error of an `out_sharding` over a mesh where the compiler decides."""
    return ValueError(
        f"PartitionSpec passed to {name} cannot contain axis names that are of type "
        f"Auto or Manual, but got {place}: an out_sharding is for AxisType.Explicit "
        "axes (make the mesh with axis_types=(AxisType.Explicit, ...)); along others, "
        "use verax.lax.with_sharding_constraint on the result"
    )


def check_unnamed(name: str, place: TypeSharding) -> None:
    """Raise ValueError if a sharding over a mesh without explicit axes names an axis.

    The sharding of a type names none where the compiler decides.
    """
    if names_axes(place):
        raise no_explicit_axes(name, place)


def sharded(
    name: str,
    out_sharding: object,
    function: Callable[..., Array],
    /,
    *args: object,
    **options: object,
) -> Array:
    """`function` on arguments, its result split as `out_sharding` says.

    In between the compiler decides. Outside of traces it is one program. Where the
    result is unreduced, types decide, and the sums that it needs are not made; it is a
    program then, too, since an array cannot hold that sums are to be left.

    Raises:
        ValueError: the sharding is not over a mesh, or none of its axes is explicit.
        ShardingTypeError: the result is to be unreduced along axes over which the
            function does not sum.
    """
    place = TypeShardings.resolved(name, out_sharding)
    if AxisType.Explicit not in place.mesh.axis_types:
        check_unnamed(name, place)
        return function(*args, **options)
    operands: list[Array] = []
    replaced(args, operands.append)
    typed = bool(place.spec.unreduced) and is_split([x.aval for x in operands])

    def body(*xs: Array) -> Sequence[Array]:
        rest = iter(
            [retyped(x, opened(x.aval.explicit) if typed else None) for x in xs]
        )
        own = replaced(args, lambda _: next(rest))
        array = function(*own, **options)
        if typed:
            check_summed(name, array.aval, place)
        return (split_by(array, place),)

    if not STATE.interpreter.immediate and not typed:
        return body(*operands)[0]
    jaxpr = program([x.aval for x in operands], body, name)
    return cast(Array, TypeShardings.called(name, jaxpr, *operands)[0])


def call_sharded(
    function: Callable[..., Array], arguments: Mapping[str, object], name: str = ""
) -> Array:
    """Calls a function again, its result split as its `out_sharding` says.

    Every function with such a parameter begins with this, on its `locals()`::

        def twice(x, *, out_sharding=None):
            if out_sharding is not None:
                return call_sharded(twice, locals())
            return add(x, x)

    A decorator would add a frame to each call, a tenth of the time of an eager
    operation. `name` is for messages, by default that of the function.

    Raises:
        ValueError, ShardingTypeError: as `sharded`.
    """
    place = arguments["out_sharding"]
    args, options = own_arguments(function, {**arguments, "out_sharding": None})
    if says_nothing(place):
        return function(*args, **options)
    return sharded(name or function.__name__, place, function, *args, **options)


def own_arguments(
    function: Callable[..., object], values: Mapping[str, Any]
) -> tuple[list[object], dict[str, object]]:
    """The values of the parameters of a function: by position, and by name.

    Read off its code, since a program may have hundreds of such calls, and
    `inspect.signature` would take a tenth of the time of tracing one.
    """
    code: CodeType = inspect.unwrap(function).__code__
    count, names = code.co_argcount, code.co_varnames
    last = count + code.co_kwonlyargcount
    rest = iter(names[last:])
    args = [values[name] for name in names[:count]]
    options = {name: values[name] for name in names[count:last]}
    if code.co_flags & inspect.CO_VARARGS:
        args += values[next(rest)]
    if code.co_flags & inspect.CO_VARKEYWORDS:
        options |= values[next(rest)]
    return args, options


UNSTACKED: Final = "unstack operand cannot be sharded on the unstacking axis"
"""What is wrong where the dimension that `unstack` takes apart is split."""


def check_whole(aval: ShapedArray, dims: Iterable[int], why: str) -> None:
    """Raise ShardingTypeError if explicit axes split one of these dimensions.

    `why` begins the message, which goes on with the dimension.
    """
    if aval.explicit is None:
        return
    for i in dims:
        if aval.explicit.splits[i]:
            raise ShardingTypeError(
                f"{why} {i}, but got {aval}; reshard it (verax.sharding.reshard)"
            )


def check_summed(name: str, aval: ShapedArray, place: TypeSharding) -> None:
    """Raise unless a function summed over the axes along which it is to be unreduced.

    Raises:
        ShardingTypeError: it did not.
        ValueError: it combined values otherwise than by the kind that is asked for.
    """
    terms, spec = terms_of(aval.explicit), place.spec
    if terms.unreduced and spec.unreduced_kind is not terms.kind:
        raise ValueError(
            f"`out_sharding` passed to `{name}` must be unreduced of kind "
            f"`{terms.kind.name}`, but got {spec}"
        )
    if not set(spec.unreduced) <= set(terms.unreduced):
        raise ShardingTypeError(
            "out_sharding's unreduced axes should be in operand's specs that were "
            f"{name} over, and of a product unreduced axes should be equal to the "
            f"contracting specs: got {spec} for a result {aval}"
        )


# -----------------------------------------------------------------------------
# `device_put` in programs: the same values, in a memory of the device.
#
# A memory changes no value, so the equation is the identity to every transformation.
# The lowering tells XLA where the values shall lie; on the CPU all memories are one::
#
#     b:f32[8] = device_put[kind=pinned_host] a


DEVICE = "device"


@frozen(cache_hash=True, repr=False)
class MemoryParams(Params):
    """The kind of memory, such as "device" or "pinned_host"."""

    kind: str


def moved(e: Emitter, x: Operand, kind: str) -> Operand:
    """The operation that moves a value from one memory of the device to another."""
    (y,) = e.op(
        "stablehlo.custom_call",
        (x,),
        (x.aval,),
        call_target_name='"annotate_device_placement"',
        backend_config='""',
        has_side_effect="true",
    )
    e.mark(y, (("_xla_buffer_placement", kind),))
    return y


def lower_memory(
    e: Emitter, p: MemoryParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    return xs if e.platform == "cpu" else (moved(e, xs[0], p.kind),)


def draw_memory(random: Random) -> Sample[MemoryParams]:
    """One operand in either memory."""
    kind = random.choice((DEVICE, "pinned_host"))
    aval = ShapedArray(random.choice(SHAPES), float32)
    return Sample(MemoryParams(kind), (aval,))


# Types do not say in which memory values are: a cotangent is wanted on the device.
device_put_p: Row[MemoryParams] = linear(
    "device_put",
    MemoryParams,
    typing=lambda p, avals: tuple(avals),
    evaluate=lambda p, x: x,
    transpose=one_linear(lambda p, ct, x: in_memory(ct, DEVICE)),
    batch=lambda engine, p, size, xs, axes: ((device_put_p.call(p, *xs),), axes),
    lower=lower_memory,
    draw=draw_memory,
    sharding=as_typed,
    traits=Traits(flops=no_flops, makes_nans=False),
)


def in_memory(x: object, kind: str) -> Array:
    """`x` in a memory of this kind."""
    return device_put_p.call(MemoryParams(kind), x)


ROWS = (
    reshard_p,
    device_put_p,
)
