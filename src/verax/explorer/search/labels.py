"""Which dimensions of an equation's operands and results go together (floor 6).

One idea: the sharding column of a row says how results are split when operands are, so
it is asked what one axis at one dimension does; what lands in the same dimension of a
result, or may not differ, has one label::

    labels_of(dot_general_p, params, (f32[8,4], f32[4,2]))
    # ins ((0, 1), (1, 2)), outs ((0, 2),)

A dimension without a label (None) has to be whole on each device.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Final

from attrs import field, frozen

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Eqn, Params, Primitive
from verax.ir.meshes import AxisType, MeshType, Splits, explicit_on
from verax.ir.records import ReprMixin
from verax.rules.rows.row import Row, as_typed, traits_of
from verax.rules.values.memo import asked, pure

PROBE: Final = MeshType(("p", "q"), (1, 1), (AxisType.Explicit,) * 2)
"""Axes of one device, which split any size."""

type Label = int | None
type Dim = tuple[str, int, int]
type Place = tuple[int, int]
"""The number of an operand or result, and of its dimension."""


@frozen(repr=False)
class Labels(ReprMixin):
    """Labels of the dimensions of operands and of results; None must be whole.

    A label that no result has is summed over.
    """

    ins: tuple[tuple[Label, ...], ...]
    outs: tuple[tuple[Label, ...], ...]
    kept: frozenset[int] = field(init=False, eq=False)

    @kept.default
    def labels_of_results(self) -> frozenset[int]:
        """The labels that results have."""
        return frozenset([x for labels in self.outs for x in labels if x is not None])


class Groups[T]:
    """Disjoint sets, by a representative (Tarjan 1975)."""

    def __init__(self) -> None:
        self.above: dict[T, T] = {}

    def top(self, x: T) -> T:
        """The representative of a member."""
        way = []
        while (up := self.above.get(x, x)) != x:
            way.append(x)
            x = up
        for one in way:
            self.above[one] = x
        return x

    def join(self, x: T, y: T) -> None:
        """Make two sets one."""
        a, b = self.top(x), self.top(y)
        if a != b:
            self.above[b] = a


def labels_of(eqn: Eqn) -> Labels:
    """The labels of an equation without programs; once for each kind of equation."""
    ins = tuple([a.aval for a in eqn.invars])
    outs = tuple([v.aval for v in eqn.outvars])
    return asked(labelled, eqn.params, eqn.primitive, eqn.params, ins, outs)


@pure(1 << 12)
def labelled(
    primitive: Primitive,
    params: Params,
    ins: tuple[ShapedArray, ...],
    outs: tuple[ShapedArray, ...],
) -> Labels:
    """`labels_of`, by primitive, params and types."""
    together = traits_of(primitive).together
    if together is not None:
        return numbered(together(params, ins, outs), ins, outs)
    groups: Groups[Dim] = Groups()
    lands, sums = landing(primitive, params, ins, outs)
    for (i, d), places in lands.items():
        for o, e in places:
            groups.join(("in", i, d), ("out", o, e))
    for (i, d), (j, e) in combinations(sums, 2):
        probes = {(i, d): ("p",), (j, e): ("q",)}
        if i != j and splits_by(primitive, params, ins, outs, probes) is None:
            groups.join(("in", i, d), ("in", j, e))
    known = {("in", *place) for place in (*lands, *sums)}
    known |= {("out", *place) for places in lands.values() for place in places}
    known -= uneven(groups, known, ins, outs)
    numbers: dict[Dim, int] = {}

    def label(side: str, i: int, d: int) -> Label:
        if (side, i, d) not in known:
            return None
        return numbers.setdefault(groups.top((side, i, d)), len(numbers))

    return Labels(
        tuple([tuple([label("in", *p) for p in own]) for own in placed(ins)]),
        tuple([tuple([label("out", *p) for p in own]) for own in placed(outs)]),
    )


def numbered(
    labels: Sequence[Sequence[Hashable | None]],
    ins: Sequence[ShapedArray],
    outs: Sequence[ShapedArray],
) -> Labels:
    """Labels of a row's own as numbers; dimensions of size 1 have none."""
    numbers: dict[Hashable, int] = {}
    made = [
        tuple(
            [
                None if x is None or n == 1 else numbers.setdefault(x, len(numbers))
                for x, n in zip(own, aval.shape, strict=True)
            ]
        )
        for own, aval in zip(labels, (*ins, *outs), strict=True)
    ]
    return Labels(tuple(made[: len(ins)]), tuple(made[len(ins) :]))


def uneven(
    groups: Groups[Dim],
    known: Iterable[Dim],
    ins: Sequence[ShapedArray],
    outs: Sequence[ShapedArray],
) -> set[Dim]:
    """Dimensions of several sizes that go together: what is cut or padded there.

    Where all elements are kept the outer part of what is merged stays split.
    """
    if len(ins) == len(outs) == 1 and ins[0].size == outs[0].size:
        return set()
    avals = {"in": ins, "out": outs}
    sizes: dict[Dim, set[object]] = {}
    members = list(known)
    for side, i, d in members:
        top = groups.top((side, i, d))
        sizes.setdefault(top, set()).add(avals[side][i].shape[d])
    return {one for one in members if len(sizes[groups.top(one)]) > 1}


def placed(avals: Sequence[ShapedArray]) -> list[list[Place]]:
    """The dimensions of each type."""
    return [[(i, d) for d in range(aval.ndim)] for i, aval in enumerate(avals)]


def landing(
    primitive: Primitive,
    params: Params,
    ins: tuple[ShapedArray, ...],
    outs: tuple[ShapedArray, ...],
) -> tuple[dict[Place, list[Place]], list[Place]]:
    """Where in the results a split dimension of an operand is; those summed over."""
    lands: dict[Place, list[Place]] = {}
    sums: list[Place] = []
    for i, d in [place for own in placed(ins) for place in own]:
        if ins[i].shape[d] == 1:
            continue
        splits = splits_by(primitive, params, ins, outs, {(i, d): ("p",)})
        if splits is None:
            continue
        own = [(o, e) for o, s in enumerate(splits) for e, axes in enumerate(s) if axes]
        if own:
            lands[i, d] = own
        else:
            sums.append((i, d))
    return lands, sums


def splits_by(
    primitive: Primitive,
    params: Params,
    ins: tuple[ShapedArray, ...],
    outs: tuple[ShapedArray, ...],
    axes: Mapping[Place, tuple[str, ...]],
) -> Sequence[Splits] | None:
    """The splits of results if these dimensions of operands are; None if refused."""
    rule = getattr(primitive, "sharding", None)
    if not isinstance(primitive, Row) or rule is None:
        return None
    probed = [
        aval.with_explicit(
            explicit_on(PROBE, [axes.get((i, d), ()) for d in range(aval.ndim)])
        )
        for i, aval in enumerate(ins)
    ]
    if rule is as_typed:
        same = len(ins) == len(outs) == 1 and ins[0].shape == outs[0].shape
        own = tuple([axes.get((0, d), ()) for d in range(ins[0].ndim)])
        return [own] if same else None
    try:
        out: Sequence[Splits] = rule(params, probed, outs)
    except (TypeError, ValueError, AssertionError):
        return None
    return out
