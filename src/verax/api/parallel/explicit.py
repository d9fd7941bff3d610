"""Floor 5: explicit mesh axes, which the types of values speak of.

Along them a program says itself how its values are split; within `auto_axes` the
compiler decides, as along axes that are not explicit::

    reshard(x, P("x", None))
    auto_axes(lambda x: x @ x.T, out_sharding=P("x", None))(x)
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from verax.api.jit.decorator import jit
from verax.api.sharding_args import is_place, over_a_mesh, place_entries
from verax.api.tracing.apply import as_array, is_tracing
from verax.api.tracing.wrapping import wraps
from verax.backend import pytrees
from verax.backend.placement.mesh import Mesh, PartitionSpec, current_mesh
from verax.backend.placement.mesh_context import concrete_mesh, typed_axes
from verax.backend.placement.sharding import NamedSharding
from verax.ir.meshes import (
    AxisType,
    Explicit,
    MeshType,
    Terms,
    as_names,
    explicit_on,
    says_nothing,
)
from verax.ops.structure.reshard import no_explicit_axes, retyped, split_by
from verax.rules.values.array import Array
from verax.rules.values.conversions import check_callable


def reshard(xs: Any, out_shardings: Any) -> Any:
    """The tree with its arrays split by explicit mesh axes as `out_shardings` says.

    That is a prefix tree of `PartitionSpec`s of the mesh in force, or of
    `NamedSharding`s.

    Raises:
        TypeError: a leaf is not an array, or a sharding is none.
        ValueError: a spec has no mesh, the mesh has no explicit axes, or they cannot
            split an array evenly.

    >>> import verax, verax.numpy as vnp
    >>> from verax.sharding import AxisType, PartitionSpec as P
    >>> with verax.set_mesh(verax.make_mesh((1,), ("x",), (AxisType.Explicit,))):
    ...     verax.typeof(reshard(vnp.ones((2, 3)), P("x")))
    f32[2@x,3]
    """
    leaves, tree = pytrees.flatten(xs)
    entries = place_entries("reshard out_shardings", out_shardings, xs)
    found = []
    for leaf, entry in zip(leaves, entries, strict=True):
        x, place = as_array(leaf), explicit_place("reshard", entry)
        place.check(x.shape, f"reshard: an array {x.aval}")
        found.append(split_by(x, place) if place.explicit else retyped(x, None))
    return tree.unflatten(found)


def explicit_place(what: str, entry: object) -> NamedSharding:
    """A sharding that names explicit axes only.

    Raises:
        ValueError: it names another.
    """
    place = over_a_mesh(what, entry)
    named = {name for split in place.splits for name in split or ()}
    if not named <= set(place.mesh.explicit_axes):
        raise no_explicit_axes(what, place)
    return place


def auto_axes(
    f: Callable[..., Any] | None = None,
    /,
    *,
    axes: str | Sequence[str] | None = None,
    out_sharding: Any = None,
) -> Any:
    """`f`, within which the compiler decides along `axes`, by default all of them.

    `out_sharding` is a prefix tree of the result, of what explicit axes split each;
    the function that is returned takes it as an argument, too.

    Raises:
        TypeError: nothing says how the result is split.
        ValueError: it names axes, and there is no mesh.

    >>> import verax, verax.numpy as vnp
    >>> from verax.sharding import AxisType, PartitionSpec as P
    >>> with verax.set_mesh(verax.make_mesh((1,), ("x",), (AxisType.Explicit,))):
    ...     verax.typeof(auto_axes(vnp.sin, out_sharding=P("x"))(vnp.ones(2)))
    f32[2@x]
    """
    return retyping("auto_axes", auto_axes, AxisType.Auto, f, axes, out_sharding)


def explicit_axes(
    f: Callable[..., Any] | None = None,
    /,
    *,
    axes: str | Sequence[str] | None = None,
    in_sharding: Any = None,
) -> Any:
    """`f`, within which the types of values say how `axes` split them.

    `in_sharding` is a prefix tree of the arguments, of how they are split there; the
    function that is returned takes it as an argument, too.

    Raises:
        TypeError: nothing says how the arguments are split.
        ValueError: it names axes, and there is no mesh.
    """
    return retyping(
        "explicit_axes", explicit_axes, AxisType.Explicit, f, axes, in_sharding
    )


def retyping(
    name: str,
    decorator: Callable[..., Any],
    kind: AxisType,
    f: Callable[..., Any] | None,
    axes: str | Sequence[str] | None,
    sharding: Any,
) -> Any:
    """`auto_axes` and `explicit_axes`, which differ in what they give a sharding of."""
    keyword = "out_sharding" if kind is AxisType.Auto else "in_sharding"
    if f is None:
        return partial(decorator, axes=axes, **{keyword: sharding})
    check_callable(name, f)
    inside = within_auto if kind is AxisType.Auto else within_explicit
    function = f

    @wraps(f)
    def changed(*args: Any, **kwargs: Any) -> Any:
        places = kwargs.pop(keyword, sharding)
        mesh = mesh_in_force((args, kwargs), places)
        if mesh is None:
            check_unnamed(name, places)
            return function(*args, **kwargs)
        names = mesh.axis_names if axes is None else as_names(axes)
        if all([mesh.axis_types[mesh.axis_names.index(a)] is kind for a in names]):
            return function(*args, **kwargs)
        if says_nothing(places):
            raise TypeError(
                f"{name} needs {keyword}: a PartitionSpec for each "
                f"{'result' if kind is AxisType.Auto else 'argument'}"
            )
        check_not_manual(name, mesh, names)
        inner = mesh.update_axis_types(dict.fromkeys(names, kind))

        def body(*args: Any, **kwargs: Any) -> Any:
            return inside(function, mesh, inner, places, args, kwargs)

        return body(*args, **kwargs) if is_tracing() else jit(body)(*args, **kwargs)

    return changed


def check_not_manual(name: str, mesh: Mesh, names: Sequence[str]) -> None:
    """Raise NotImplementedError if an axis is one that `shard_map` maps."""
    manual = [a for a in names if a in mesh.manual_axes]
    if manual:
        raise NotImplementedError(
            f"{name} cannot change the axis {manual[0]!r}, which shard_map maps: along "
            "it the function itself says how values are split"
        )


def check_unnamed(name: str, places: Any) -> None:
    """Raise ValueError if specs name axes, of which there are none without a mesh."""
    for spec in pytrees.flatten(places, is_place)[0]:
        if isinstance(spec, PartitionSpec) and any(spec):
            raise ValueError(
                f"Context mesh cannot be empty: {name} got {spec}, which needs a mesh; "
                "call it within `with verax.set_mesh(mesh):`"
            )


def mesh_in_force(args: Any, places: Any) -> Mesh | None:
    """The mesh around a call, or that of its arguments, or of the shardings passed."""
    around = current_mesh()
    if around is not None:
        return around
    for x in (*pytrees.flatten(args)[0], *pytrees.flatten(places)[0]):
        place = x if isinstance(x, NamedSharding) else getattr(x, "sharding", None)
        if isinstance(place, NamedSharding) and place.mesh.axis_names:
            return concrete_mesh(place.mesh)  # type: ignore[arg-type]  # one of both
    return None


def within_auto(
    f: Callable[..., Any],
    mesh: Mesh,
    inner: Mesh,
    places: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """`f` on arguments along whose axes the compiler decides; the results split."""
    leaves, tree = pytrees.flatten((args, kwargs))
    args, kwargs = tree.unflatten([seen_from(leaf, inner) for leaf in leaves])
    with typed_axes(inner):
        result = f(*args, **kwargs)
    outs, out_tree = pytrees.flatten(result)
    with typed_axes(mesh):
        entries = place_entries("out_sharding", places, result)
        found = [
            split_by(as_array(x), explicit_place("out_sharding", entry))
            for x, entry in zip(outs, entries, strict=True)
        ]
    return out_tree.unflatten(found)


def within_explicit(
    f: Callable[..., Any],
    mesh: Mesh,
    inner: Mesh,
    places: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """`f` on arguments that are split as `places` says; the results without that."""
    leaves, tree = pytrees.flatten((args, kwargs))
    with typed_axes(inner):
        entries = place_entries("in_sharding", places, args)
        entries += [None] * (len(leaves) - len(entries))
        given = [
            x if says_nothing(entry) else split_by(as_array(x), over_a_mesh("", entry))
            for x, entry in zip(leaves, entries, strict=True)
        ]
        args, kwargs = tree.unflatten(given)
        result = f(*args, **kwargs)
    outs, out_tree = pytrees.flatten(result)
    return out_tree.unflatten([seen_from(x, mesh) for x in outs])


def seen_from(x: Any, mesh: Mesh) -> Any:
    """A value as code sees it in which the axes of `mesh` have their types."""
    if not isinstance(x, Array) or x.aval.explicit is None:
        return x
    return retyped(x, explicit_under(x.aval.explicit, mesh))


def explicit_under(explicit: Explicit, mesh: Mesh) -> Explicit | None:
    """What a type says under a mesh some of whose axes are not explicit."""
    known = set(mesh.explicit_axes)
    splits = [tuple([a for a in axes if a in known]) for axes in explicit.splits]
    kind = MeshType(mesh.axis_names, mesh.axis_sizes, mesh.axis_types)
    terms = explicit.terms
    if not known.issuperset(terms.axes):
        terms = Terms(
            tuple([a for a in terms.unreduced if a in known]),
            tuple([a for a in terms.reduced if a in known]),
            terms.kind,
        )
    return explicit_on(kind, splits, terms)
