"""Floor 3: which equations of two programs are the same step.

One idea: what computes the same of the same inputs is found by its structure; between
such anchors, a longest common subsequence finds what is alike, by keys that say less
and less (params and operands, then params, then types alone)::

    pairing = align(left, right, names, names)
    pairing.partners        # equation of `left`: equation of `right`
"""

from bisect import bisect_left
from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from itertools import takewhile
from typing import Final

import numpy as np
from attrs import define, field, frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import is_inexact
from verax.ir.jaxpr import Aside, Atom, Eqn, Identity, Jaxpr, Literal, Var
from verax.ir.records import ReprMixin
from verax.ops.control.cond_params import CondLanesParams, CondParams
from verax.ops.control.scan_params import ScanParams
from verax.ops.control.while_params import WhileParams
from verax.transforms.engine.engine import literal_value

SMALL: Final = 1 << 16
"""The bytes up to which array constants are compared by value."""
NEAR: Final = 64
"""So many equal keys are tried for one, those in the nearest places."""

type Pair = tuple[int, int]
type Entry = tuple[int | None, int | None]
"""An equation of the left program, of the right one, or a pair of them."""
type Keys = Sequence[Hashable]


@frozen(eq=False, repr=False)
class Pairing(ReprMixin):
    """Two programs with their equations aligned.

    `order` goes through both at once. Pairs that are `moved` come there one by one. The
    programs are the `same` if only the jaxprs within their equations may differ. Of
    each variable `names` says what it is in both: equal where it is the same.
    """

    order: tuple[Entry, ...]
    partners: dict[int, int]
    same: bool
    names: tuple[tuple[Hashable, ...], tuple[Hashable, ...]]

    @cached_property
    def owners(self) -> dict[int, int]:
        """The partners of equations of the right program."""
        return {j: i for i, j in self.partners.items()}


@frozen(repr=False)
class Unknown(ReprMixin):
    """The name of a variable that has no partner."""

    side: int
    index: int


def is_open(eqn: Eqn) -> bool:
    """Whether a run goes through the jaxprs of an equation step by step."""
    p = eqn.params
    if isinstance(p, ScanParams):
        return p.length > 0
    if isinstance(p, CondLanesParams):
        return 0 not in p.lanes
    return isinstance(p, WhileParams | CondParams)


def align(left: Jaxpr, right: Jaxpr, *names: Sequence[Hashable]) -> Pairing:
    """The alignment of two programs; `names` are those of the inputs of each."""
    if left == right and names[0] == names[1]:
        count = len(left.eqns)
        each = [(i, i) for i in range(count)]
        return Pairing(tuple(each), dict(each), True, named(left, right, names, each))
    numbers = Numbers()
    jaxprs = (left, right)
    results = [structure(p, n, numbers) for p, n in zip(jaxprs, names, strict=True)]
    search = Search(left, right)
    search.fill(*results)
    search.pair_moved(*results)
    known = named(left, right, names, search.pairs())
    search.fill(*[strict_keys(p, n) for p, n in zip(jaxprs, known, strict=True)])
    exactly = search.total
    search.fill(*[list(map(loose_key, p.eqns)) for p in jaxprs])
    search.pair_replaced()
    pairs = search.pairs()
    same = exactly and reads(left) == reads(right)
    known = named(left, right, names, pairs)
    return Pairing(tuple(search.order()), dict(pairs), same, known)


def reads(jaxpr: Jaxpr) -> list[list[int | None]]:
    """The variables that equations and outputs read, by number."""
    rows = [eqn.invars for eqn in jaxpr.eqns] + [jaxpr.outvars]
    return [[a.index if isinstance(a, Var) else None for a in row] for row in rows]


class Numbers(dict[Hashable, int]):
    """A number for each key, in order."""

    def __missing__(self, key: Hashable) -> int:
        return self.setdefault(key, len(self))


# -----------------------------------------------------------------------------
# Keys: what an equation is, apart from its place.


def structure(jaxpr: Jaxpr, names: Sequence[Hashable], numbers: Numbers) -> list[int]:
    """The number of the expression that each equation is."""
    env: list[Hashable] = [("input", name) for name in names]
    out = []
    for eqn in jaxpr.eqns:
        operands = [named_atom(atom, env) for atom in eqn.invars]
        number = numbers[(eqn.primitive, hashable(eqn.params), *operands)]
        env += [("result", number, slot) for slot in range(len(eqn.outvars))]
        out.append(number)
    return out


def hashable(value: object) -> Hashable:
    """A value as a key; by identity if it has no hash."""
    try:
        hash(value)
    except TypeError:
        return Identity(value)
    return value


def named_atom(atom: Atom, env: Sequence[Hashable]) -> Hashable:
    """What an operand is: a constant by its value, unless that is large."""
    if isinstance(atom, Var):
        return env[atom.index]
    if not isinstance(atom.key, Identity):
        return atom.aval.shape, atom.aval.dtype, atom.key
    return constant_key(atom)


def constant_key(literal: Literal) -> Hashable:
    """An array constant as a key."""
    aval = literal.aval
    if aval.size * aval.dtype.itemsize > SMALL:
        return literal.key
    return aval.shape, aval.dtype, np.asarray(literal_value(literal)).tobytes()


def strict_keys(jaxpr: Jaxpr, names: Sequence[Hashable]) -> list[Hashable]:
    """Each equation by its params and by what is known of its operands."""
    known = [None if isinstance(name, Unknown) else name for name in names]
    return [
        (
            loose_key(eqn) if is_open(eqn) else (eqn.primitive, hashable(eqn.params)),
            *[(named_atom(a, known), a.aval.shape, a.aval.dtype) for a in eqn.invars],
        )
        for eqn in jaxpr.eqns
    ]


def loose_key(eqn: Eqn) -> Hashable:
    """An equation by its primitive, plain params, and types, without their widths."""
    p = eqn.params
    outs = tuple([kind_of(v.aval) for v in eqn.outvars])
    if isinstance(p, ScanParams):
        return ScanParams, p.length, p.reverse, outs
    if isinstance(p, WhileParams):
        return WhileParams, outs
    if isinstance(p, CondParams):
        return CondParams, len(p.branches), outs
    fields = [plain(value) for value in p.values()]
    ins = tuple([kind_of(a.aval) for a in eqn.invars])
    return eqn.primitive.name, tuple(fields), ins, outs


def kind_of(aval: ShapedArray) -> Hashable:
    """A type without the width of its dtype."""
    dtype = aval.dtype
    if isinstance(dtype, np.dtype):
        return aval.shape, "inexact" if is_inexact(dtype) else dtype.kind
    return aval.shape, dtype


def plain(value: object) -> Hashable:
    """A field of params, None where it holds programs, functions or a dtype."""
    if isinstance(value, Jaxpr | Aside | np.dtype) or callable(value):
        return None
    if isinstance(value, tuple) and any([isinstance(x, Jaxpr) for x in value]):
        return len(value)
    return hashable(value)


def named(
    left: Jaxpr,
    right: Jaxpr,
    names: Sequence[Sequence[Hashable]],
    pairs: Sequence[Pair],
) -> tuple[tuple[Hashable, ...], tuple[Hashable, ...]]:
    """What each variable is: results of pairs are the same, of others are unknown."""
    sides = []
    for side, jaxpr in enumerate((left, right)):
        numbers = {pair[side]: k for k, pair in enumerate(pairs)}
        known = list(names[side])
        for i, eqn in enumerate(jaxpr.eqns):
            known += [
                ("pair", numbers[i], slot) if i in numbers else Unknown(side, v.index)
                for slot, v in enumerate(eqn.outvars)
            ]
        sides.append(tuple(known))
    return sides[0], sides[1]


# -----------------------------------------------------------------------------
# The search: pairs in order, and more of them in the gaps that are left.


@define(eq=False, repr=False)
class Search(ReprMixin):
    """The pairs found so far: `anchors` in the order of both programs, others moved."""

    left: Jaxpr
    right: Jaxpr
    anchors: list[Pair] = field(factory=list)
    moved: dict[int, int] = field(factory=dict)

    @property
    def total(self) -> bool:
        """Whether every equation has its partner in the same place."""
        count = len(self.left.eqns)
        return (
            not self.moved
            and len(self.anchors) == count == len(self.right.eqns)
            and all([i == j for i, j in self.anchors])
        )

    def pairs(self) -> list[Pair]:
        """All of them, in the order of the left program."""
        return sorted([*self.anchors, *self.moved.items()])

    def gaps(self) -> Iterator[tuple[list[int], list[int]]]:
        """The equations without a partner, between each two anchors."""
        gone = set(self.moved.values())
        before = (-1, -1)
        for after in [*self.anchors, (len(self.left.eqns), len(self.right.eqns))]:
            ours = range(before[0] + 1, after[0])
            theirs = range(before[1] + 1, after[1])
            yield (
                [i for i in ours if i not in self.moved],
                [j for j in theirs if j not in gone],
            )
            before = after

    def fill(self, xs: Keys, ys: Keys) -> None:
        """Add what has equal keys, in the order of both programs."""
        anchors = list(self.anchors)
        for ours, theirs in self.gaps():
            pairs = common([xs[i] for i in ours], [ys[j] for j in theirs])
            anchors += [(ours[i], theirs[j]) for i, j in pairs]
        self.anchors = sorted(anchors)

    def pair_moved(self, xs: Keys, ys: Keys) -> None:
        """Add what has equal keys in another order."""
        gaps = list(self.gaps())
        places: dict[Hashable, list[int]] = {}
        for _, theirs in gaps:
            for j in theirs:
                places.setdefault(ys[j], []).append(j)
        for i in [i for ours, _ in gaps for i in ours]:
            if not is_open(self.left.eqns[i]) and places.get(xs[i]):
                self.moved[i] = places[xs[i]].pop(0)

    def pair_replaced(self) -> None:
        """Add what is left at the end of both gaps, as long as results are alike."""
        anchors = list(self.anchors)
        for ours, theirs in self.gaps():
            pairs = zip(reversed(ours), reversed(theirs), strict=False)
            anchors += takewhile(lambda pair: self.alike(*pair), pairs)
        self.anchors = sorted(anchors)

    def alike(self, i: int, j: int) -> bool:
        """Whether the results of two equations can be compared."""
        ours, theirs = self.left.eqns[i].outvars, self.right.eqns[j].outvars
        return [kind_of(v.aval) for v in ours] == [kind_of(v.aval) for v in theirs]

    def order(self) -> Iterator[Entry]:
        """Both programs at once: pairs together, what is alone before them."""
        ends = (len(self.left.eqns), len(self.right.eqns))
        before = (-1, -1)
        for after in [*self.anchors, ends]:
            yield from [(i, None) for i in range(before[0] + 1, after[0])]
            yield from [(None, j) for j in range(before[1] + 1, after[1])]
            if after is not ends:
                yield after
            before = after


def common(xs: Keys, ys: Keys) -> list[Pair]:
    """A longest common subsequence, as pairs of places.

    >>> common("abcd", "xbdcd")
    [(1, 1), (2, 3), (3, 4)]
    """
    start = 0
    while start < min(len(xs), len(ys)) and xs[start] == ys[start]:
        start += 1
    end = 0
    while end < min(len(xs), len(ys)) - start and xs[-1 - end] == ys[-1 - end]:
        end += 1
    inner = longest(xs[start : len(xs) - end], ys[start : len(ys) - end])
    return [
        *[(k, k) for k in range(start)],
        *[(i + start, j + start) for i, j in inner],
        *[(len(xs) - k, len(ys) - k) for k in range(end, 0, -1)],
    ]


type Chain = tuple[Pair, "Chain | None"]


def longest(xs: Keys, ys: Keys) -> list[Pair]:
    """`common` without equal ends: chains of pairs, the shortest-reaching kept."""
    places: dict[Hashable, list[int]] = {}
    for j, y in enumerate(ys):
        places.setdefault(y, []).append(j)
    ends: list[int] = []
    chains: list[Chain] = []
    for i, x in enumerate(xs):
        for j in reversed(nearest(places.get(x, []), i)):
            k = bisect_left(ends, j)
            chain = ((i, j), chains[k - 1] if k else None)
            ends[k : k + 1] = [j]
            chains[k : k + 1] = [chain]
    out: list[Pair] = []
    last = chains[-1] if chains else None
    while last is not None:
        pair, last = last
        out.append(pair)
    return out[::-1]


def nearest(places: list[int], place: int) -> list[int]:
    """At most `NEAR` of the places, in order."""
    if len(places) <= NEAR:
        return places
    first = bisect_left(places, place) - NEAR // 2
    first = max(0, min(first, len(places) - NEAR))
    return places[first : first + NEAR]
