"""Floor 1: how explicit axes split the results of an operation.

A row says which dimensions of its operands and results go together; what splits one
then splits the other. A result that could be split in several ways is an error::

    connected(avals, [("i", "k"), ("k", "j")], [("i", "j")])    # a product of matrices
"""

from collections.abc import Callable, Hashable, Iterable, Sequence
from types import MappingProxyType
from typing import Final

from attrs import evolve

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import is_inexact
from verax.ir.meshes import (
    NO_TERMS,
    Axes,
    AxisType,
    MeshType,
    Splits,
    Terms,
    UnreducedKind,
    axes_text,
    explicit_on,
    meeting_meshes,
    terms_of,
    varying_axes,
)
from verax.rules.rows.row import ShardingRule, TermRule
from verax.rules.values.conversions import ShardingTypeError, UnsummedError

type Labels = Sequence[Hashable | None]
"""Labels of dimensions that go together; None for one that stays whole."""


def common_mesh(avals: Iterable[ShapedArray]) -> MeshType | None:
    """The mesh of all types that explicit axes split.

    Raises:
        ValueError: there are several.
    """
    out = None
    for aval in avals:
        if aval.explicit is None:
            continue
        mesh = aval.explicit.mesh
        both = mesh if out is None else meeting_meshes(out, mesh)
        if out is not None and both is None:
            raise ValueError(
                f"Mesh for all inputs should be equal. Got one mesh: {mesh_text(out)}"
                f" and another mesh: {mesh_text(mesh)}. Move one with "
                "verax.sharding.reshard"
            )
        out = both
    return out


def is_uneven(avals: Sequence[ShapedArray]) -> bool:
    """Whether values differ along axes of `shard_map` as others do not.

    They vary along them, or are reduced. What is a term of a sum is told apart later.
    """
    first, *others = [terms_of(aval.explicit) for aval in avals]
    if any([terms.varying != first.varying for terms in others]):
        return True
    if all([terms.reduced == first.reduced for terms in others]):
        return False
    mesh = common_mesh(avals)
    manual = () if mesh is None else mesh.of_type(AxisType.Manual)
    for axis in manual:
        # A factor of a term is reduced where the term is not: see `product_terms`.
        known = [terms for terms in (first, *others) if axis not in terms.unreduced]
        if len({axis in terms.reduced for terms in known}) > 1:
            return True
    return False


def check_variation(given: ShapedArray, due: ShapedArray) -> None:
    """Raise unless a derivative varies only along the axes that its value does.

    Raises:
        ShardingTypeError: a rule has made it differ between devices along another.
    """
    extra = set(varying_axes(given.explicit)).difference(varying_axes(due.explicit))
    if extra:
        raise ShardingTypeError(
            f"the rule of a derivative gives {given} where {due} is due: it varies "
            f"along the mesh axis {min(extra)!r}, along which the value is the same on "
            "all devices; combine it first (psum)"
        )


def varies_only(avals: Iterable[ShapedArray]) -> bool:
    """Whether types say no more than along which axes values vary."""
    return not any(
        [
            any(a.explicit.splits) or a.explicit.terms.sums
            for a in avals
            if a.explicit is not None
        ]
    )


def varying_like(
    avals: Sequence[ShapedArray], outs: Iterable[ShapedArray]
) -> tuple[ShapedArray, ...]:
    """Types of results that vary along the axes along which the operands do."""
    mesh, varying = common_mesh(avals), varying_axes(avals[0].explicit)
    terms = Terms(varying=varying)
    return tuple(
        [out.with_explicit(explicit_on(mesh, ((),) * out.ndim, terms)) for out in outs]
    )


def has_terms(avals: Iterable[ShapedArray]) -> bool:
    """Whether one of the types has terms."""
    return any([bool(terms_of(aval.explicit)) for aval in avals])


def terms_by[P](rule: TermRule[P] | None, p: P, avals: Sequence[ShapedArray]) -> Terms:
    """The terms of results by the rule of a row; open if an operand is.

    The operands vary along the same axes, and so do the results.
    """
    out = (rule or whole_terms)(p, avals)
    varying = varying_axes(avals[0].explicit)
    if any(map(is_open, avals)):
        return evolve(out, open=True, varying=varying)
    return evolve(out, varying=varying) if varying else out


def is_open(aval: ShapedArray) -> bool:
    """Whether sums over what splits a value are left to be made."""
    return terms_of(aval.explicit).open


def summed_terms(
    p: object,
    avals: Sequence[ShapedArray],
    axes: Sequence[int],
    kind: UnreducedKind,
) -> Terms:
    """The terms of a reduction of one operand over dimensions `axes`.

    Raises:
        ShardingTypeError: it has terms of another kind.
    """
    (x,) = avals
    linear = kind is UnreducedKind.sum
    before = (linear_terms if linear else whole_terms)(p, avals)
    if x.explicit is None or not is_open(x):
        return before
    own = [axis for i in axes for axis in x.explicit.splits[i]]
    unreduced = [a for a in x.explicit.mesh.names if a in (*own, *before.unreduced)]
    return Terms(tuple(unreduced), before.reduced, kind)


def is_unreduced(aval: ShapedArray) -> bool:
    """Whether devices hold terms of a value."""
    return aval.explicit is not None and bool(aval.explicit.terms.unreduced)


def reduced_terms(avals: Sequence[ShapedArray]) -> Axes:
    """The axes along which operands are reduced, and the result with them.

    Raises:
        ShardingTypeError: they differ, or one splits another operand.
    """
    members = {
        aval.explicit.terms.reduced for aval in avals if aval.explicit is not None
    }
    members -= {()}
    if len(members) > 1:
        raise ShardingTypeError(
            "All inputs should be reduced across the same mesh axes, but got "
            f"{', '.join(map(str, avals))}; reshard them (verax.sharding.reshard)"
        )
    for axis in (axes := next(iter(members), ())):
        for aval in avals:
            if aval.explicit is not None and any(
                [axis in own for own in aval.explicit.splits]
            ):
                raise ShardingTypeError(
                    "Inputs cannot be sharded/varying on the same axes that another "
                    f"input is reduced on, but got {', '.join(map(str, avals))}. "
                    "Reshard the input that is reduced to be split by "
                    f"{axis!r} with verax.sharding.reshard"
                )
    return axes


def whole_terms(p: object, avals: Sequence[ShapedArray]) -> Terms:
    """The column of rows that are not linear: their operands must be summed.

    Raises:
        ShardingTypeError: one is not.
    """
    if any(map(is_unreduced, avals)):
        raise UnsummedError(
            f"the operands cannot be unreduced, but got {', '.join(map(str, avals))}: "
            "their sum over the mesh axes must be made first, by "
            "verax.sharding.reshard"
        )
    return Terms((), reduced_terms(avals))


NAMED: Final = "<operation>"
"""Stands in messages for the name of the operation, which `infer` knows."""
DOING: Final = MappingProxyType({"slice": "slicing"})


def linear_terms(
    p: object, avals: Sequence[ShapedArray], first: int = 0, count: int | None = None
) -> Terms:
    """The column of rows that are linear in `count` operands together, or in all.

    These start at the operand `first`. What is done to terms is done to their sum.

    Raises:
        ShardingTypeError: not all of them are unreduced along the same axes.
    """
    stop = len(avals) if count is None else first + count
    own, rest = avals[first:stop], (*avals[:first], *avals[stop:])
    axes = {terms_of(aval.explicit).unreduced for aval in own}
    if axes == {()}:
        return whole_terms(p, avals)
    check_sums(own)
    if len(axes) > 1:
        flags = [is_unreduced(aval) for aval in own]
        who, other = ("lhs", "rhs") if flags[0] else ("rhs", "lhs")
        why = "" if all(flags) else f": {who} is unreduced while {other} is not"
        raise ShardingTypeError(
            f"lhs and rhs to `{NAMED}` must be unreduced along the same mesh axes, but "
            f"got {' and '.join(map(str, own))}{why}. Reshard one with "
            "verax.sharding.reshard"
        )
    whole_terms(p, rest)
    return Terms(axes.pop(), reduced_terms(own))


def check_sums(avals: Iterable[ShapedArray]) -> None:
    """Raise ShardingTypeError for terms that are not those of sums."""
    for aval in avals:
        if terms_of(aval.explicit).kind is not UnreducedKind.sum:
            raise ShardingTypeError(
                f"{aval} is still to be reduced by another kind than `sum`: reshard it "
                "first, with verax.sharding.reshard"
            )


def product_terms(p: object, avals: Sequence[ShapedArray]) -> Terms:
    """The column of products: one factor may have terms, which the other multiplies.

    Raises:
        ShardingTypeError: both are unreduced, or an axis splits the other.
    """
    result = [aval for aval in avals if is_unreduced(aval)]
    if not result:
        return whole_terms(p, avals)
    check_sums(result)
    axes = terms_of(result[0].explicit).unreduced
    others = [terms_of(a.explicit) for a in avals if a is not result[0]]
    if len(result) > 1 or any([t.reduced not in ((), axes) for t in others]):
        raise ShardingTypeError(
            "lhs and rhs cannot both be unreduced, since a product is bilinear: one "
            "should be reduced along the axes along which the other is unreduced, but "
            f"got {', '.join(map(str, avals))}"
        )
    for aval in avals:
        splits = () if aval.explicit is None else aval.explicit.splits
        if aval is not result[0] and any([set(own) & set(axes) for own in splits]):
            raise ShardingTypeError(
                "a factor cannot be split along the axes along which the other is "
                f"unreduced, but got {', '.join(map(str, avals))}"
            )
    return Terms(axes)


def quotient_terms(p: object, avals: Sequence[ShapedArray]) -> Terms:
    """The column of quotients, which are linear in the numerator.

    Raises:
        ShardingTypeError: the denominator is unreduced.
    """
    if not is_inexact(avals[0].dtype):
        return whole_terms(p, avals)  # which rounds
    if is_unreduced(avals[1]):
        raise ShardingTypeError(
            "The denominator cannot be unreduced passed to `div`, but got "
            f"{avals[1]}: reshard it (verax.sharding.reshard)"
        )
    return product_terms(p, avals)


def mesh_text(mesh: MeshType) -> str:
    """The axes of a mesh for messages."""
    parts = zip(mesh.names, mesh.sizes, mesh.types, strict=True)
    return ", ".join([f"{name!r}: {size} ({kind.name})" for name, size, kind in parts])


WHOLE: Final = f"Arguments to {NAMED} must be unsharded along dimension"
ALIKE: Final = "got incompatible shardings for broadcasting"
"""What is wrong where operands are split as a row cannot have them, in messages."""


def connected(
    avals: Sequence[ShapedArray],
    ins: Sequence[Labels],
    outs: Sequence[Labels],
    *,
    whole: str = WHOLE,
    alike: str = ALIKE,
) -> list[Splits]:
    """The axes of results whose dimensions have the labels `outs`.

    `whole` begins the message about a split dimension that has no label, and `alike`
    the one about dimensions of one label that are split otherwise.

    Raises:
        ShardingTypeError: different axes split dimensions that go together, or a
            dimension is split that must be whole.
    """
    out: dict[Hashable, Axes] = {}
    for aval, labels in zip(avals, ins, strict=True):
        if aval.explicit is None:
            continue
        for i, (axes, label) in enumerate(
            zip(aval.explicit.splits, labels, strict=True)
        ):
            if not axes:
                continue
            if label is None:
                raise ShardingTypeError(
                    f"{whole} {i}, but got {aval}; reshard it "
                    "(verax.sharding.reshard), or say the sharding of the result with "
                    "out_sharding or verax.sharding.auto_axes"
                )
            if out.setdefault(label, axes) != axes:
                raise ShardingTypeError(
                    f"{alike}: {', '.join([shown_splits(aval) for aval in avals])}. "
                    "Reshard one of the operands with verax.sharding.reshard"
                )
    return [
        tuple([() if label is None else out.get(label, ()) for label in labels])
        for labels in outs
    ]


def shown_splits(aval: ShapedArray) -> str:
    """The axes of a type for messages."""
    if aval.explicit is None:
        return f"({', '.join(['None'] * aval.ndim)})"
    return aval.explicit.text()


def whole_results(
    p: object, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]
) -> list[Splits]:
    """The column of rows whose results are whole, however operands are split."""
    return [((),) * out.ndim for out in outs]


def axis_by_axis(
    p: object,
    avals: Sequence[ShapedArray],
    outs: Sequence[ShapedArray],
    alike: str = ALIKE,
) -> list[Splits]:
    """The column of elementwise rows: dimensions of one place go together."""
    shape = outs[0].shape
    ins = [
        [
            i if size == shape[i] else ("stretched", number, i)
            for i, size in enumerate(aval.shape)
        ]
        for number, aval in enumerate(avals)
    ]
    return connected(avals, ins, [range(out.ndim) for out in outs], alike=alike)


def in_place(
    p: object, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]
) -> list[Splits]:
    """The column of rows that keep dimensions apart, all of which may be split."""
    labels = [range(x.ndim) for x in (*avals, *outs)]
    return connected(avals, labels[: len(avals)], labels[len(avals) :])


def same_places[P](
    free: Callable[[P, ShapedArray], Sequence[int]], whole: str = WHOLE
) -> ShardingRule[P]:
    """The column of a row that keeps dimensions apart but for some.

    All operands and results have the same dimensions. Only those that `free(params,
    first operand)` lists may be split; `whole` begins the message about others.
    """

    def rule(
        p: P, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]
    ) -> list[Splits]:
        known = set(free(p, avals[0]))
        ins = [[i if i in known else None for i in range(aval.ndim)] for aval in avals]
        return connected(
            avals,
            ins,
            [[i if i in known else None for i in range(out.ndim)] for out in outs],
            whole=whole,
        )

    return rule


def stacked_along(ndim: int, kept: int) -> list[int | None]:
    """Labels of `ndim` dimensions, of which the first `kept` may be split."""
    return [i if i < kept else None for i in range(ndim)]


def leading(
    core: Callable[[ShapedArray], int],
) -> Callable[[object, Sequence[ShapedArray], Sequence[ShapedArray]], list[Splits]]:
    """The column of rows on stacks: `core(type)` dimensions at the end are whole."""

    def rule(
        p: object, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]
    ) -> list[Splits]:
        kept = avals[0].ndim - core(avals[0])
        return connected(
            avals,
            [stacked_along(aval.ndim, kept) for aval in avals],
            [stacked_along(out.ndim, kept) for out in outs],
        )

    return rule


def reshaped(
    p: object, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]
) -> list[Splits]:
    """The column of `reshape`: of what is split or merged, the outer part is split."""
    (x,), (out,) = avals, outs
    assert x.explicit is not None
    splits: list[Axes] = []
    for old, new in common_blocks(x.shape, out.shape):
        axes = [x.explicit.splits[i] for i in old]
        splits += block_splits(
            x, [x.shape[i] for i in old], axes, [out.shape[i] for i in new]
        )
    return [tuple(splits)]


def block_splits(
    x: ShapedArray, sizes: Sequence[int], axes: Sequence[Axes], new: Sequence[int]
) -> list[Axes]:
    """The splits of a block's new dimensions, whose old ones `axes` split.

    The axes must split the outer dimensions, and in their order split the new ones,
    each as often as it can.

    Raises:
        ShardingTypeError: they are not.
    """
    if not any(axes):
        return [()] * len(new)
    assert x.explicit is not None
    mesh = x.explicit.mesh
    pairs = [(n, names) for n, names in zip(sizes, axes, strict=True) if n != 1]
    if [n for n, _ in pairs] == [n for n in new if n != 1]:
        out = iter([names for _, names in pairs])
        return [() if n == 1 else next(out) for n in new]
    split = [bool(names) for _, names in pairs]
    if split != sorted(split, reverse=True):
        raise ambiguous_reshape(x, new)
    left = [name for _, names in pairs for name in names]
    result: list[Axes] = []
    for size in new:
        own: list[str] = []
        while size > 1 and left and size % mesh.size([*own, left[0]]) == 0:
            own.append(left.pop(0))
        if left and mesh.size(own) != size:
            raise ambiguous_reshape(x, new)
        result.append(tuple(own))
    return result


def ambiguous_reshape(x: ShapedArray, new: Sequence[int]) -> ShardingTypeError:
    """The error of a reshape after which no dimension is split evenly."""
    return ShardingTypeError(
        f"This reshape is not supported: a part of {x} becomes dimensions of sizes "
        f"{tuple(new)}, which leaves open how they are split. Please specify the "
        "sharding of the output via the `out_sharding` argument of verax.lax.reshape"
    )


def common_blocks(
    old: Sequence[int], new: Sequence[int]
) -> list[tuple[list[int], list[int]]]:
    """Dimensions that become each other: `(places in old, places in new)`, in order.

    >>> common_blocks((2, 3, 8), (6, 2, 4))
    [([0, 1], [0]), ([2], [1, 2])]
    """
    blocks: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(old) or j < len(new):
        olds: list[int] = []
        news: list[int] = []
        before, after = 1, 1
        while True:
            if before <= after and i < len(old):
                before, i = before * old[i], i + 1
                olds.append(i - 1)
            elif j < len(new):
                after, j = after * new[j], j + 1
                news.append(j - 1)
            else:
                break
            if before == after and olds and news:
                break
        while j < len(new) and new[j] == 1 and not (i < len(old) and old[i] == 1):
            news.append(j)
            j += 1
        blocks.append((olds, news))
    return blocks


def checked_types(
    name: str,
    avals: Sequence[ShapedArray],
    outs: Sequence[ShapedArray],
    splits: Sequence[Splits],
    terms: Terms = NO_TERMS,
) -> tuple[ShapedArray, ...]:
    """The types of results that are split so.

    Raises:
        ShardingTypeError: an axis would split two dimensions, or not evenly.
    """
    mesh = common_mesh(avals)
    return tuple(
        [
            checked_type(name, avals, out, mesh, own, terms)
            for out, own in zip(outs, splits, strict=True)
        ]
    )


def checked_type(
    name: str,
    avals: Sequence[ShapedArray],
    out: ShapedArray,
    mesh: MeshType | None,
    splits: Splits,
    terms: Terms,
) -> ShapedArray:
    """The type of one result that is split so; see `checked_types`."""
    try:
        result = out.with_explicit(explicit_on(mesh, splits, terms))
    except ValueError as error:
        raise ShardingTypeError(
            f"{DOING.get(name, name)} on sharded dims of "
            f"{', '.join(map(str, avals))}: {error}. Reshard the operand "
            "first (verax.sharding.reshard), or say the sharding of the result with "
            "out_sharding, as in x.at[...].get(out_sharding=...)"
        ) from None
    used = [axis for axes in splits for axis in axes] + list(terms.axes)
    if len(set(used)) < len(used):
        raise ShardingTypeError(
            f"{name} operation with inputs: {', '.join(map(str, avals))} produces an "
            f"illegally sharded result: {result}: an axis can split one dimension "
            "only. Reshard an operand with verax.sharding.reshard"
        )
    return result


def axes_along(
    avals: Sequence[ShapedArray], dims: tuple[Sequence[int], Sequence[int]]
) -> tuple[Splits, Splits]:
    """The axes that split dimensions of the left and the right operand."""
    left, right = [
        tuple([() if a.explicit is None else a.explicit.splits[i] for i in places])
        for a, places in zip(avals, dims, strict=True)
    ]
    return left, right


def spec_texts(specs: Sequence[Splits]) -> list[str]:
    """How axes along dimensions are written in messages."""
    return [f"({', '.join(map(axes_text, spec))})" for spec in specs]
