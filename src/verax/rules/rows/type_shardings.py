"""Floor 1: how explicit axes split the results of an operation.

A row says which dimensions of its operands and results go together; what splits one
then splits the other. A result that could be split in several ways is an error::

    connected(avals, [("i", "k"), ("k", "j")], [("i", "j")])    # a product of matrices
"""

from collections.abc import Callable, Hashable, Iterable, Sequence

from verax.ir.avals import ShapedArray
from verax.ir.meshes import Axes, MeshType, Splits, explicit_on
from verax.rules.rows.row import ShardingRule
from verax.rules.values.typed import ShardingTypeError

type Labels = Sequence[Hashable | None]
"""What goes together, one label for each dimension; None for one that stays whole."""


def common_mesh(avals: Iterable[ShapedArray]) -> MeshType | None:
    """The mesh of all types that explicit axes split.

    Raises:
        ShardingTypeError: there are several.
    """
    found = None
    for aval in avals:
        if aval.explicit is None:
            continue
        mesh = aval.explicit.mesh
        if found is not None and mesh != found:
            raise ShardingTypeError(
                f"got operands on different meshes: {mesh_text(found)} and "
                f"{mesh_text(mesh)}; move one with verax.sharding.reshard"
            )
        found = mesh
    return found


def mesh_text(mesh: MeshType) -> str:
    """The axes of a mesh for messages."""
    parts = zip(mesh.names, mesh.sizes, mesh.types, strict=True)
    return ", ".join([f"{name!r}: {size} ({kind.name})" for name, size, kind in parts])


def connected(
    avals: Sequence[ShapedArray], ins: Sequence[Labels], outs: Sequence[Labels]
) -> list[Splits]:
    """The axes of results whose dimensions have the labels `outs`.

    Raises:
        ShardingTypeError: different axes split dimensions that go together, or a
            dimension is split that must be whole.
    """
    found: dict[Hashable, Axes] = {}
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
                    f"the operands must be unsharded along dimension {i}, but got "
                    f"{aval}; reshard it (verax.sharding.reshard), or say the sharding "
                    "of the result with out_sharding or verax.sharding.auto_axes"
                )
            if found.setdefault(label, axes) != axes:
                raise ShardingTypeError(
                    "got incompatible shardings for broadcasting: "
                    f"{', '.join([shown_splits(aval) for aval in avals])}. Reshard one "
                    "of the operands with verax.sharding.reshard"
                )
    return [
        tuple([() if label is None else found.get(label, ()) for label in labels])
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
    p: object, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]
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
    return connected(avals, ins, [range(out.ndim) for out in outs])


def in_place(
    p: object, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray]
) -> list[Splits]:
    """The column of rows that keep dimensions apart, all of which may be split."""
    labels = [range(x.ndim) for x in (*avals, *outs)]
    return connected(avals, labels[: len(avals)], labels[len(avals) :])


def same_places[P](free: Callable[[P, ShapedArray], Sequence[int]]) -> ShardingRule[P]:
    """The column of a row that keeps dimensions apart but for some.

    All operands and results have the same dimensions. Only those that `free(params,
    first operand)` lists may be split.
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
    """How the new dimensions of a block are split, whose old ones `axes` split.

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
        found = iter([names for _, names in pairs])
        return [() if n == 1 else next(found) for n in new]
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
) -> tuple[ShapedArray, ...]:
    """The types of results that are split so.

    Raises:
        ShardingTypeError: an axis would split two dimensions, or not evenly.
    """
    mesh = common_mesh(avals)
    return tuple(
        [
            checked_type(name, avals, out, mesh, own)
            for out, own in zip(outs, splits, strict=True)
        ]
    )


def checked_type(
    name: str,
    avals: Sequence[ShapedArray],
    out: ShapedArray,
    mesh: MeshType | None,
    splits: Splits,
) -> ShapedArray:
    """The type of one result that is split so; see `checked_types`."""
    try:
        found = out.with_explicit(explicit_on(mesh, splits))
    except ValueError as error:
        raise ShardingTypeError(
            f"{name} on {', '.join(map(str, avals))}: {error}. Reshard the operand "
            "first (verax.sharding.reshard), or say the sharding of the result with "
            "out_sharding, as in x.at[...].get(out_sharding=...)"
        ) from None
    used = [axis for axes in splits for axis in axes]
    if len(set(used)) < len(used):
        raise ShardingTypeError(
            f"{name} operation with inputs: {', '.join(map(str, avals))} produces an "
            f"illegally sharded result: {found}: an axis can split one dimension only. "
            "Reshard an operand with verax.sharding.reshard"
        )
    return found
