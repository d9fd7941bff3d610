"""Floor 5: vmap: a function of one element as a function of a stack of them.

One idea: trace with the batch dimensions taken off, rewrite, put the output dimensions
where the user wants them::

    vmap(f, in_axes=(0, None), out_axes=1)(xs, y)
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from verax.api.tracing.apply import ENGINE, rewritten
from verax.api.tracing.reference_checks import check_parts
from verax.api.tracing.references import OnValues, on_values
from verax.api.tracing.trace import Traced, leaf_avals, trace
from verax.api.tracing.wrapping import (
    Describe,
    describe_arguments,
    function_name,
    leaf_paths,
    wraps,
)
from verax.api.trees.hitypes import MappingSpec, axes_by_specs, has_specs
from verax.api.trees.pytrees import prefix_leaves
from verax.backend import pytrees
from verax.backend.pytrees import PyTreeDef, SequenceKey, result_tree
from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Jaxpr
from verax.ir.meshes import TypeShardings, axes_text
from verax.ops.structure import shape
from verax.ops.structure.reshard import retyped
from verax.rules.rows.row import Axis, BatchAxis, is_split
from verax.rules.rows.type_shardings import common_mesh
from verax.rules.values.array import Array
from verax.rules.values.constants import PYTHON_SCALARS, is_operand
from verax.rules.values.conversions import check_callable, described, shown
from verax.rules.values.state import STATE, UNCHANGED, changing
from verax.transforms.engine.engine import StandardEngine, over_axis
from verax.transforms.engine.templates import element
from verax.transforms.engine.vmap import batch, batch_into, stack_type, stacked

MAPPED: Final = (
    "Vectorized version of {fun}. Takes similar arguments as {fun}, with additional "
    "dimensions over which {fun} is mapped."
)


def vmap[**P, R](
    fun: Callable[P, R],
    in_axes: int | Sequence[object] | MappingSpec | None = 0,
    out_axes: object = 0,
    axis_name: object | None = None,
    axis_size: int | None = None,
    spmd_axis_name: object | None = None,
    sum_match: bool = False,
) -> Callable[P, R]:
    """`fun` mapped over a dimension of its arguments, all elements at once.

    `in_axes` says for each positional argument, or each leaf of it as a prefix tree,
    which dimension runs over the batch elements; None means the same for all. Keyword
    arguments run over dimension 0. `out_axes` does the same for outputs; None is for an
    output that is the same for all elements; with `sum_match`, one that differs is
    added up over them instead of refused. A Python number that is not mapped stays
    one in `fun`. `axis_name` lets collectives in `fun` reach the other elements;
    `spmd_axis_name` says which mesh axes split the mapped dimension where `fun`
    constrains shardings. `axis_size` is needed if no argument is mapped.

    Raises:
        TypeError: axes are not integers or None, or do not match the arguments.
        ValueError: sizes disagree, an axis is out of range, or none is mapped; the
            message says which argument has which size.

    >>> import verax, verax.numpy as vnp
    >>> verax.vmap(lambda x, y: x + y, in_axes=(0, None))(vnp.arange(3), 10).tolist()
    [10, 11, 12]
    """
    check_callable("vmap", fun)
    if isinstance(in_axes, list):
        in_axes = tuple(in_axes)
    specs = check_all_axes(in_axes, out_axes)
    name = as_axis_name(axis_name)
    engine = engine_for(name, as_spmd_names(spmd_axis_name))

    @wraps(fun, MAPPED)
    def vmapped(*args: object, **kwargs: object) -> Any:
        check_count(fun, in_axes, len(args), sorted(kwargs))
        starts = by_specs(in_axes, args, axis_size) if specs else in_axes
        leaves, tree = pytrees.flatten((args, kwargs))
        describe = describe_arguments(fun, tree)
        given, held, leaves = axes_of(starts, args, kwargs, leaves)
        avals = leaf_avals(leaves, describe)
        axes = axes_from_front(avals, given, describe)
        check_parts("vmap", (args, kwargs), leaves, [axis is None for axis in axes])
        call = (args, kwargs)
        size = mapped_size(fun, avals, axes, axis_size, describe, call)
        with axis_scope([] if name is None else [(name, size)]):
            traced = trace_element(fun, tree, leaves, avals, axes, held, describe)
        tree = traced.out_tree
        ends = to_specs(out_axes, tree, size) if specs else out_axes
        expected = wanted_axes(ends, tree)
        mapping = engine_of(avals, axes, engine)
        how = (axes, size, expected, mapping, sum_match)
        if traced.refs:
            outs = stateful(on_values(traced, leaves, describe), *how)
        else:
            outs = plain(traced, leaves, *how)
        return result_tree(traced.out_tree, outs)

    return vmapped


def check_all_axes(in_axes: object, out_axes: object) -> bool:
    """Raise for wrong axes; whether there are specs among them, which are for types."""
    if has_specs((in_axes, out_axes)):
        return True
    check_entries(in_axes)
    check_axes("in_axes", in_axes)
    check_axes("out_axes", out_axes)
    return False


def by_specs(in_axes: object, args: object, size: int | None) -> object:
    """Axes for the arrays of all arguments."""
    return axes_by_specs("in_axes", in_axes, args, size, True)


def to_specs(out_axes: object, tree: PyTreeDef, size: int) -> object:
    """Axes for the arrays of all outputs."""
    outs = tree.unflatten(range(tree.num_leaves))
    return axes_by_specs("out_axes", out_axes, outs, size, False)


def plain(
    traced: Traced,
    leaves: Sequence[object],
    axes: Sequence[Axis],
    size: int,
    expected: Sequence[Axis],
    engine: StandardEngine,
    sum_match: bool,
) -> list[Array]:
    """The outputs over `size` elements, batched at the axes `expected`."""
    places = (*[None] * len(traced.captured), *axes)
    args = [*traced.captured, *leaves]
    return apply_batched(traced.jaxpr, args, places, size, expected, engine, sum_match)


def stateful(
    pure: OnValues,
    axes: Sequence[Axis],
    size: int,
    expected: Sequence[Axis],
    engine: StandardEngine,
    sum_match: bool,
) -> list[Array]:
    """The outputs of a function that reads and writes references.

    A reference is mapped as an array would be, and holds afterwards what each element
    has written into its part of it.

    Raises:
        ValueError: an element writes what is its own into a reference for all.
    """
    places = (*[None] * len(pure.captured), *axes)
    args = [*pure.captured, *pure.leaves]
    state = [places[i] for i in pure.written]
    outs, result = rewritten(
        "vmap",
        pure.jaxpr,
        args,
        lambda: stacked(engine, pure.jaxpr, size, places),
        lambda writer, values: batch_into(
            engine, writer, pure.jaxpr, size, places, values
        ),
        lambda program: batch(engine, program, size, places),
    )
    count = len(expected)
    for ref, axis, got in zip(pure.refs, state, result[count:], strict=True):
        if axis is None and got is not None:
            raise ValueError(
                "vmap: the function writes a value for each element to an unbatched "
                f"array reference, {ref!r}, of which there is one for all; pass it as "
                "an argument that in_axes maps"
            )
    moved = [
        move(engine, x, a, b, size, sum_match)
        for x, a, b in zip(outs, result, (*expected, *state), strict=True)
    ]
    pure.write(moved[count:])
    return moved[:count]


def axes_of(
    in_axes: object,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    leaves: list[object],
) -> tuple[list[Axis], dict[int, object], list[object]]:
    """The axis of each leaf, which the function gets as they are, and the leaves.

    In these a boolean stands for what is not an array, since nobody asks for its type.
    """
    if type(in_axes) is int and not kwargs:  # what nearly every call has
        return [in_axes] * len(leaves), {}, leaves
    given = flat_axes("in_axes", in_axes, args)
    given += [0] * (len(leaves) - len(given))  # keyword arguments
    held = unmapped(leaves, given)
    typed = [
        False if i in held and not is_operand(x) else x for i, x in enumerate(leaves)
    ]
    return given, held, typed


ENTRIES: Final = (
    "vmap in_axes must be an int, None, or a tuple of entries corresponding to the "
    "positional arguments passed to the function"
)


def check_count(
    fun: object, in_axes: object, count: int, names: Sequence[str] = ()
) -> None:
    """Raise ValueError unless there is an entry for each positional argument."""
    if isinstance(in_axes, tuple) and len(in_axes) != count:
        note = ""
        if names:
            note = (
                f" Note that the function was called with keyword arguments {names}, "
                "which the entries of a tuple in_axes never correspond to: keyword "
                "arguments are always mapped along their leading axis (axis 0)"
            )
        raise ValueError(
            f"{ENTRIES}, but got len(in_axes)={len(in_axes)}, len(args)={count}."
            f"{note or f' That was a call of {function_name(fun)}'}"
        )


def engine_for(name: str | None, spmd: tuple[str, ...]) -> StandardEngine:
    """The engine that knows what is said of the mapped dimension."""
    unspoken = TypeShardings.unspoken(TypeShardings.in_force()) if spmd else ()
    spmd = tuple([axis for axis in spmd if axis not in unspoken])
    if name is None and not spmd:
        return ENGINE
    return over_axis(ENGINE, BatchAxis(name, spmd))


def engine_of(
    avals: Sequence[ShapedArray], axes: Sequence[Axis], engine: StandardEngine
) -> StandardEngine:
    """The engine that knows which explicit axes split the mapped dimensions.

    Raises:
        ValueError: different axes split them, or others than `spmd_axis_name` says.
    """
    if not is_split(avals):
        return engine
    out = []
    for aval, axis in zip(avals, axes, strict=True):
        if axis is not None:
            explicit = aval.explicit
            out.append(() if explicit is None else explicit.splits[axis])
    if any([split != out[0] for split in out]):
        shown_axes = ", ".join(map(axes_text, out))
        raise ValueError(
            "Mapped away dimension of inputs passed to vmap should be sharded the "
            f"same. Got inconsistent axis specs: {shown_axes}; reshard an argument "
            "with verax.sharding.reshard"
        )
    known = engine.axis or BatchAxis(None)
    if not out or not out[0]:
        return engine
    if known.spmd and known.spmd != out[0]:
        raise ValueError(
            "Only one of spmd_axis_name or arrays sharded on explicit axes can be "
            f"passed to vmap, but got spmd_axis_name={known.spmd} and mapped "
            f"dimensions that {axes_text(out[0])} splits"
        )
    return over_axis(ENGINE, BatchAxis(known.name, out[0], common_mesh(avals)))


def as_axis_name(name: object) -> str | None:
    """The name of an axis; any other hashable object stands by its string.

    Raises:
        TypeError: it does not hash.
    """
    if name is None or isinstance(name, str):
        return name
    hash(name)
    return str(name)


def as_spmd_names(names: object) -> tuple[str, ...]:
    """The mesh axes that split the mapped dimension.

    Raises:
        TypeError: they are not names.
    """
    out = (names,) if isinstance(names, str) else names if names is not None else ()
    if not isinstance(out, tuple) or not all(isinstance(n, str) for n in out):
        raise TypeError(
            "vmap takes the name of a mesh axis as spmd_axis_name, or a tuple of "
            f"names, not {shown(names)}"
        )
    return out


def axis_scope(axes: Sequence[tuple[str, int]]) -> AbstractContextManager[None]:
    """Named axes, with their sizes, within the block; inner ones hide outer ones."""
    if not axes:
        return UNCHANGED
    hidden = {name for name, _ in axes}
    tracked = tuple([name for name in STATE.tracked if name not in hidden])
    return changing({"axes": (*STATE.axes, *axes), "tracked": tracked})


def mesh_axis_scope(
    axes: Sequence[tuple[str, int]], tracked: tuple[str, ...]
) -> AbstractContextManager[None]:
    """The named axes of a `shard_map`, and those along which types say what varies."""
    names = tuple([name for name, _ in axes])
    outer = tuple([name for name in STATE.tracked if name not in names])
    return changing({"axes": (*STATE.axes, *axes), "tracked": (*outer, *tracked)})


def apply_batched(
    jaxpr: Jaxpr,
    args: Sequence[object],
    axes: tuple[Axis, ...],
    size: int,
    expected: Sequence[Axis],
    engine: StandardEngine = ENGINE,
    sum_match: bool = False,
) -> list[Array]:
    """The outputs of `jaxpr` over `size` elements, batched at the axes `expected`."""
    outs, out_places = rewritten(
        "vmap",
        jaxpr,
        args,
        lambda: stacked(engine, jaxpr, size, axes),
        lambda writer, values: batch_into(engine, writer, jaxpr, size, axes, values),
        lambda program: batch(engine, program, size, axes),
    )
    return [
        move(engine, x, a, b, size, sum_match)
        for x, a, b in zip(outs, out_places, expected, strict=True)
    ]


def check_entries(in_axes: object) -> None:
    """Raise TypeError unless there is one axis for all or a tuple of entries."""
    if not isinstance(in_axes, int | tuple | None):
        raise TypeError(
            f"{ENTRIES}, but got {shown(in_axes)}. For one argument that is a "
            "container write in_axes=(axes,)"
        )


def check_axes(name: str, axes: object) -> None:
    """Raise TypeError unless the leaves of an axis tree are integers or None."""
    for leaf in pytrees.flatten(axes)[0]:
        if type(leaf) is not int:
            raise TypeError(
                f"vmap {name} must be an int, None, or a nested container of those, "
                f"but it contains {described(leaf)}"
            )


def flat_axes(name: str, axes: object, tree: object, by: str = "vmap") -> list[Axis]:
    """One axis per leaf of `tree`, from a prefix tree in which None is a leaf."""
    return prefix_leaves(f"{by} {name}", axes, tree, lambda x: x is None)


def wanted_axes(out_axes: object, tree: PyTreeDef) -> list[Axis]:
    """One axis per output."""
    count = tree.num_leaves
    if type(out_axes) is int:
        return [out_axes] * count
    return flat_axes("out_axes", out_axes, tree.unflatten(range(count)))


def axes_from_front(
    avals: Sequence[ShapedArray],
    axes: Sequence[Axis],
    describe: Describe,
    by: str = "vmap",
) -> list[Axis]:
    """The axes counted from the front.

    Raises:
        ValueError: an axis is out of range.
    """
    places: list[Axis] = []
    for i, (aval, axis) in enumerate(zip(avals, axes, strict=True)):
        if axis is not None and not -aval.ndim <= axis < aval.ndim:
            raise ValueError(
                f"{by} was requested to map its argument along axis {axis}, which "
                f"implies that its rank should be at least {max(axis + 1, -axis)}, but "
                f"is only {aval.ndim} (its shape is {aval.shape}): in_axes says so of "
                f"{describe()[i]}"
            )
        places.append(None if axis is None else axis % aval.ndim)
    return places


BY_KEYWORD: Final = SequenceKey(1)
"""The place of keyword arguments in those of a call."""


def mapped_size(
    fun: object,
    avals: Sequence[ShapedArray],
    axes: Sequence[Axis],
    axis_size: int | None,
    describe: Describe,
    call: tuple[object, dict[str, object]],
) -> int:
    """The common size of the mapped dimensions.

    Raises:
        ValueError: sizes disagree, or there is none.
    """
    sizes = [
        (i, aval.shape[axis], axis)
        for i, (aval, axis) in enumerate(zip(avals, axes, strict=True))
        if axis is not None
    ]
    members = {size for _, size, _ in sizes}
    if axis_size is not None:
        members.add(axis_size)
    if len(members) == 1:
        return members.pop()
    if not members:
        if not avals:
            args, kwargs = call
            raise ValueError(
                "vmap wrapped function must be passed at least one argument containing "
                "an array or axis_size must be specified, got empty "
                f"*args={args} and **kwargs={kwargs} for {function_name(fun)}"
            )
        raise ValueError(
            "vmap must have at least one non-None value in in_axes, or axis_size: "
            f"the call of {function_name(fun)} has no mapped argument"
        )
    paths = leaf_paths(pytrees.flatten(call)[1])
    names = [
        f"kwargs{''.join(map(str, path[1:]))}" if path[0] == BY_KEYWORD else name
        for path, name in zip(paths, describe(), strict=True)
    ]
    raise ValueError(size_story(fun, sizes, axis_size, avals, names))


def size_story(
    fun: object,
    sizes: Sequence[tuple[int, int, int]],
    axis_size: int | None,
    avals: Sequence[ShapedArray],
    names: Sequence[str],
) -> str:
    """The sizes and the arguments that have them, the most common size first."""
    who = function_name(fun)
    result: dict[int, list[str]] = {}
    for i, size, axis in sizes:
        name = names[i].removesuffix(f" of {who}")
        kind = avals[i].str_short()
        result.setdefault(size, []).append(f"axis {axis} of {name} of type {kind}")
    lines = []
    if axis_size is not None:
        lines.append(f"  * the `axis_size` argument was {axis_size};")
    most = max(map(len, result.values()))
    for size in sorted(result, key=lambda size: -len(result[size])):
        places = result[size]
        if len(places) == 1:
            lines.append(f"  * one axis had size {size}: {places[0]};")
        else:
            many = "most" if len(places) == most else "some"
            lines.append(
                f"  * {many} axes ({len(places)} of them) had size {size}, e.g. "
                f"{places[0]};"
            )
    return "\n".join(
        [
            "vmap got inconsistent sizes for array axes to be mapped:",
            *lines,
            f"The axes of {who} that in_axes names must have the same size",
        ]
    )


def trace_element(
    fun: Callable[..., object],
    tree: PyTreeDef,
    leaves: Sequence[object],
    avals: Sequence[ShapedArray],
    axes: Sequence[Axis],
    held: dict[int, object],
    describe: Describe,
) -> Traced:
    """`fun` traced for one element; what is not mapped keeps its value."""
    return trace(
        fun,
        tree,
        [element(aval, axis) for aval, axis in zip(avals, axes, strict=True)],
        "vmap",
        describe=describe,
        values=without_mapped(leaves, axes),
        held=held,
    )


def unmapped(leaves: Sequence[object], axes: Sequence[Axis]) -> dict[int, object]:
    """The outputs that are the same for all elements and no arrays, by their places.

    Python numbers are, and whatever else a function may take.
    """
    return {
        i: leaf
        for i, (leaf, axis) in enumerate(zip(leaves, axes, strict=True))
        if axis is None and (type(leaf) in PYTHON_SCALARS or not is_operand(leaf))
    }


def without_mapped(leaves: Sequence[object], axes: Sequence[Axis]) -> list[object]:
    """The leaves, with None for those of which each element gets a part."""
    return [
        leaf if axis is None else None for leaf, axis in zip(leaves, axes, strict=True)
    ]


def move(
    engine: StandardEngine,
    x: Array,
    source: Axis,
    target: Axis,
    size: int,
    sum_match: bool = False,
) -> Array:
    """The batch dimension of an output where the user wants it.

    With `sum_match` it is summed over where it is wanted nowhere.

    Raises:
        ValueError: it is wanted nowhere but exists, or is out of range.
    """
    if target is None:
        if source is not None and sum_match:
            return x.sum(source)
        if source is not None:
            name = None if engine.axis is None else engine.axis.name
            shown_name = f" (axis_name={name})" if isinstance(name, str) else ""
            raise ValueError(
                f"vmap has mapped output{shown_name} but out_axes is None: at vmap "
                "out_axes, give the output an axis, since it differs between batch "
                "elements"
            )
        return x
    rank = x.ndim + (source is None)
    if not -rank <= target < rank:
        raise ValueError(
            f"vmap out_axes: axis {target} is out of bounds for an output with {rank} "
            "dimensions"
        )
    place = target % rank
    if source is None:
        dims = tuple(i for i in range(rank) if i != place)
        full = (*x.shape[:place], size, *x.shape[place:])
        due = stack_type(engine, x.aval, size, place)
        return retyped(shape.broadcast_in_dim(x, full, dims), due.explicit)
    if source == place:
        return x
    order = [i for i in range(rank) if i != source]
    order.insert(place, source)
    return shape.transpose(x, order)
