"""Floor 6: collectives whose results have the shapes of their operands.

One idea: inside a function that runs over a named axis (`vmap(axis_name="i")`), each
element sees its own part, and a collective is where it meets the others::

    vmap(lambda x: x / lax.psum(x, "i"), axis_name="i")(xs)
"""

from collections.abc import Sequence
from typing import Any

from verax.api.tracing.apply import as_array
from verax.ir.dtypes import float32, int32, is_inexact, is_integer
from verax.ir.meshes import AxisType, TypeShardings
from verax.lax.named_axes import (
    AxisName,
    IndexGroups,
    axes_of,
    each_leaf,
    meeting,
    mesh_in_force,
    on_varying,
    stacked,
    tracked,
    varied,
)
from verax.ops.elementwise.arith import div
from verax.ops.elementwise.convert import convert
from verax.ops.parallel.parts import rows_at
from verax.ops.reductions.reduce import reduce_max, reduce_min
from verax.ops.structure.casts import cast, check_cast, common_state
from verax.rules.values.array import Array
from verax.rules.values.conversions import shown


def psum[T](
    x: T, axis_name: AxisName, *, axis_index_groups: IndexGroups | None = None
) -> T:
    """The sum over all elements of the axis, leaf by leaf.

    Args:
        x: an array, or a tree of arrays: what this element has. A Python number gives
            that number times the number of elements, as a Python number unless groups
            differ in size.
        axis_name: the name of the axis, or several names for the elements along all of
            these axes together, of which the first is outermost.
        axis_index_groups: lists of the numbers of elements that name each once; None
            for one group of all. The sum is over those of the element's own group.

    Returns:
        A tree like `x`, of its shapes and dtypes; booleans count as int32.

    Raises:
        NameError: there is no such axis in scope.
        ValueError: the groups are not a partition of the elements.

    >>> import verax, verax.numpy as vnp
    >>> f = lambda x: x / verax.lax.psum(x, "i")
    >>> verax.vmap(f, axis_name="i")(vnp.array([1.0, 3.0])).tolist()
    [0.25, 0.75]
    >>> f = lambda x: verax.lax.psum(x, "i", axis_index_groups=[[0, 1], [2]])
    >>> verax.vmap(f, axis_name="i")(vnp.array([1, 3, 5])).tolist()
    [4, 4, 5]
    """
    met = meeting("psum", axis_name, axis_index_groups)
    if isinstance(x, int | float | complex) and met.even:
        scalar: Any = x
        total: T = scalar * met.size
        return total
    return each_leaf(lambda leaf: met.total(summand(leaf, met.names)), x)


def summand(x: Array, names: tuple[str, ...]) -> Array:
    """`x` as `psum` takes it: it varies along the axes, or is a term of the sum."""
    axes = tracked(names)
    if axes and common_state("jax.lax.psum", x.aval, axes) == "unreduced":
        return x
    return varied(x, axes)


def pmean[T](
    x: T, axis_name: AxisName, *, axis_index_groups: IndexGroups | None = None
) -> T:
    """The mean over all elements of the axis, leaf by leaf.

    Args:
        x: an array, or a tree of arrays: what this element has.
        axis_name: the name of the axis, or several names for the elements along all of
            these axes together, of which the first is outermost.
        axis_index_groups: lists of the numbers of elements that name each once; None
            for one group of all. The mean is that over the element's own group.

    Returns:
        A tree like `x`, of its shapes and dtypes; integers and booleans become float32.

    Raises:
        NameError: there is no such axis in scope.
        ValueError: the groups are not a partition of the elements.

    >>> import verax, verax.numpy as vnp
    >>> f = lambda x: x - verax.lax.pmean(x, "i")
    >>> verax.vmap(f, axis_name="i")(vnp.array([1.0, 3.0])).tolist()
    [-1.0, 1.0]
    """
    met = meeting("pmean", axis_name, axis_index_groups)

    def mean(leaf: Array) -> Array:
        numbers = leaf if is_inexact(leaf.dtype) else convert(leaf, float32)
        total, one = met.total(numbers), numbers.dtype.type(1)
        if met.even:
            return div(total, numbers.dtype.type(met.size))
        return div(total, met.total(varied(as_array(one), met.names)))

    return on_varying(mean, x, met.names)


def pmax[T](
    x: T, axis_name: AxisName, *, axis_index_groups: IndexGroups | None = None
) -> T:
    """The largest of all elements of the axis, leaf by leaf and place by place.

    Args:
        x: an array, or a tree of arrays: what this element has.
        axis_name: the name of the axis, or several names for the elements along all of
            these axes together, of which the first is outermost.
        axis_index_groups: lists of the numbers of elements that name each once; None
            for one group of all. Only those of the element's own group count.

    Returns:
        A tree like `x`, of its shapes and dtypes; NaN where an element is NaN.

    Raises:
        NameError: there is no such axis in scope.
        ValueError: the groups are not a partition of the elements.

    >>> import verax, verax.numpy as vnp
    >>> f = lambda x: verax.lax.pmax(x, "i")
    >>> verax.vmap(f, axis_name="i", out_axes=None)(vnp.array([1, 3])).tolist()
    3
    """
    met = meeting("pmax", axis_name, axis_index_groups)
    return each_leaf(
        lambda leaf: reduce_max(met.gathered(leaf, to="invarying"), (0,)), x
    )


def pmin[T](
    x: T, axis_name: AxisName, *, axis_index_groups: IndexGroups | None = None
) -> T:
    """The smallest of all elements of the axis, leaf by leaf and place by place.

    Args:
        x: an array, or a tree of arrays: what this element has.
        axis_name: the name of the axis, or several names for the elements along all of
            these axes together, of which the first is outermost.
        axis_index_groups: lists of the numbers of elements that name each once; None
            for one group of all. Only those of the element's own group count.

    Returns:
        A tree like `x`, of its shapes and dtypes; NaN where an element is NaN.

    Raises:
        NameError: there is no such axis in scope.
        ValueError: the groups are not a partition of the elements.

    >>> import verax, verax.numpy as vnp
    >>> f = lambda x: verax.lax.pmin(x, "i", axis_index_groups=[[0, 2], [1]])
    >>> verax.vmap(f, axis_name="i")(vnp.array([1, 2, 3])).tolist()
    [1, 2, 1]
    """
    met = meeting("pmin", axis_name, axis_index_groups)
    return each_leaf(
        lambda leaf: reduce_min(met.gathered(leaf, to="invarying"), (0,)), x
    )


def pbroadcast[T](x: T, axis_name: AxisName, source: object) -> T:
    """Gives all elements what element `source` of the axis has, leaf by leaf.

    Args:
        x: an array, or a tree of arrays: what this element has.
        axis_name: the name of the axis, or several names for the elements along all of
            these axes together, of which the first is outermost.
        source: the number of an element, an integer or an integer scalar; negative ones
            do not count from the end.

    Returns:
        A tree like `x`, of its shapes and dtypes; zeros where there is no such element.

    Raises:
        NameError: there is no such axis in scope.
        TypeError: `source` is not an integer.

    >>> import verax, verax.numpy as vnp
    >>> f = lambda x: verax.lax.pbroadcast(x, "i", 1)
    >>> verax.vmap(f, axis_name="i")(vnp.array([1, 3, 5])).tolist()
    [3, 3, 3]
    """
    names, sizes = axes_of("pbroadcast", axis_name)
    place = as_array(source)
    if place.shape or not is_integer(place.dtype):
        raise TypeError(
            f"pbroadcast takes the number of an element as source, not {place.aval}"
        )
    place = convert(place, int32)
    return each_leaf(lambda leaf: rows_at(stacked(leaf, names, sizes), place), x)


def pcast[T](x: T, axis_name: AxisName, *, to: str) -> T:
    """`x`, leaf by leaf, in a type that says otherwise how devices differ along axes.

    Inside `shard_map` a type says of each axis of the mesh whether values vary along it
    (`typeof(x).vma`), are terms of a sum ("unreduced"), have cotangents that are terms
    of one ("reduced"), or are the same on all devices. A cast changes no value, and its
    transpose changes cotangents as it must: that of what all devices have alike is the
    sum of theirs. Where types do not say it (under `vmap`, or with `check_vma=False`),
    it is `x` itself.

    Args:
        x: an array, or a tree of arrays.
        axis_name: the name of the axis, or several names as a tuple.
        to: what the type says afterwards, "varying", "unreduced" or "reduced".

    Returns:
        A tree like `x`, with the same values.

    Raises:
        NameError: there is no such axis in scope.
        TypeError: the names are a set.
        ValueError: `to` is not "varying", "unreduced" or "reduced", or no cast leads
            there: what varies is not the same for all, for example.

    >>> import numpy as np, verax
    >>> from verax.sharding import PartitionSpec as P
    >>> mesh = verax.make_mesh((1,), ("i",))
    >>> def f(x):
    ...     return x + verax.lax.pcast(1.0, "i", to="varying")
    >>> verax.shard_map(f, mesh=mesh, in_specs=P("i"), out_specs=P("i"))(np.ones(2))
    Array([2., 2.], dtype=float32)
    """
    if isinstance(axis_name, set | frozenset):
        raise TypeError(
            f"axis_name of pcast must be a tuple or a str. Got {shown(axis_name)}"
        )
    given = (axis_name,) if isinstance(axis_name, str) else axis_name
    unspoken = TypeShardings.unspoken(mesh_in_force())
    if unspoken and isinstance(given, tuple) and {*given} <= {*unspoken}:
        return x
    names, _ = axes_of("pcast", axis_name)
    check_state("pcast", to, ("varying", "unreduced", "reduced"))
    axes = tracked(names)
    if to != "varying" and not {*axes, *mesh_in_force().of_type(AxisType.Manual)}:
        raise ValueError(
            f'pcast takes to="varying" here, not {shown(to)}: only inside shard_map do '
            "types say how values differ along axes"
        )

    def change(leaf: Array) -> Array:
        if not axes:
            return leaf
        common_state("jax.lax.pcast", leaf.aval, axes)
        check_cast("jax.lax.pcast", leaf.aval, axes, to)
        return cast(leaf, axes, mesh_in_force(), to)

    return each_leaf(change, x)


def pvary[T](x: T, axis_name: AxisName) -> T:
    """`x` as a value that varies along the axes, all leaves: see `pcast`.

    Args:
        x: an array, or a tree of arrays.
        axis_name: the name of the axis, or several names as a tuple.

    Returns:
        A tree like `x`, with the same values.

    Raises:
        NameError: there is no such axis in scope.
        ValueError: a leaf varies along one of them already.

    >>> import verax, verax.numpy as vnp
    >>> verax.vmap(lambda x: verax.lax.pvary(x, "i"), axis_name="i")(vnp.ones(2))
    Array([1., 1.], dtype=float32)
    """
    return pcast(x, axis_name, to="varying")


def check_state(what: str, to: str, allowed: Sequence[str]) -> None:
    """Raise ValueError unless results of a collective may have a state."""
    if to not in allowed:
        choices = ", ".join(map(repr, allowed))
        raise ValueError(
            f"Got unexpected `to` value for {what}: {shown(to)}. Allowed `to` values "
            f"are: {choices}"
        )
