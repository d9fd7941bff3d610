"""The program as a search sees it: families of values, and what relates them (floor 6).

One idea: values that elementwise operations join lie alike on every sensible mesh, such
as weights, their moments and their gradients, so a family of them has one layout; all
else is an item, which costs what its families' layouts make of it::

    program = read_program(jaxpr, sources)
    program.families, program.items, program.moments

Bodies of loops are read once, whatever their lengths. Families that play the same part
in blocks that repeat get one layout together.
"""

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from math import gcd
from typing import Final

from attrs import define, evolve, field, frozen

from verax.explorer.costing import stored
from verax.explorer.search.labels import Groups, Label, Labels, labels_of
from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Var
from verax.ir.records import ReprMixin
from verax.ir.walk import Path
from verax.rules.rows.costs import bytes_of, flops_of, holds_programs, trips
from verax.rules.rows.row import traits_of

ROWS: Final = 48
"""So many moments of a program are looked at for its memory."""

type Node = tuple[int, int]
"""The number of a value, and of its dimension."""


@define(eq=False, repr=False)
class Value(ReprMixin):
    """A value: its type, and what it is called across blocks that repeat."""

    aval: ShapedArray
    role: Hashable
    whole: set[int] = field(factory=set)


@frozen(eq=False, repr=False)
class Item(ReprMixin):
    """An equation: its labels, its values (None is a literal), and what it costs.

    `stored` are the values in memory, `region` the loops around it.
    """

    path: Path
    eqn: Eqn
    labels: Labels
    ins: tuple[int | None, ...]
    outs: tuple[int, ...]
    flops: float
    moves: tuple[bool, ...]
    times: float
    region: Path
    renews: bool = False
    """Whether it is no equation of its own, but moves the result of one."""


@frozen(eq=False, repr=False)
class Moment(ReprMixin):
    """The values in memory at a moment."""

    alive: tuple[int, ...]
    bytes: float


@frozen(eq=False, repr=False)
class Family(ReprMixin):
    """Values that lie alike: their dimensions, and which sizes must be divided.

    `sizes` has the greatest common divisor for each dimension, 1 of one that stays
    whole.
    """

    number: int
    sizes: tuple[int, ...]
    role: Hashable
    bytes: float


@frozen(eq=False, repr=False)
class Program(ReprMixin):
    """A program as families and items.

    `of` has for each value its family, and for each of its dimensions that of the
    family, or None.
    """

    values: tuple[Value, ...]
    families: tuple[Family, ...]
    of: tuple[tuple[int, tuple[int | None, ...]], ...]
    items: tuple[Item, ...]
    moments: tuple[Moment, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int | None, ...]
    entries: Mapping[Path, tuple[int, ...]]
    """The inputs of the programs of loops, by the path of their equation and number."""
    loops: Mapping[Path, tuple[int, ...]]
    """The results of loops, by their paths."""
    state: frozenset[int]
    """Families of arguments that come back as results, such as parameters."""


@frozen(repr=False)
class Link(ReprMixin):
    """Two values that lie alike, an operand and a result, by their dimensions.

    `several` says whether the result has other operands.
    """

    x: int
    y: int
    pairs: Sequence[tuple[Node, Node]]
    several: bool = False


class Reader:
    """Reads a program, those inside it where their equations are."""

    def __init__(self) -> None:
        self.values: list[Value] = []
        self.items: list[Item] = []
        self.joined: Groups[int] = Groups()
        self.dims: Groups[Node] = Groups()
        self.links: list[Link] = []
        self.weak: list[Link] = []
        self.entries: dict[Path, tuple[int, ...]] = {}
        self.loops: dict[Path, tuple[int, ...]] = {}
        self.given: set[int] = set()
        self.state: set[int] = set()

    def value(self, aval: ShapedArray, role: Hashable) -> int:
        """A new value."""
        self.values.append(Value(aval, role))
        return len(self.values) - 1

    def program(
        self, jaxpr: Jaxpr, ins: Sequence[int], path: Path, times: float, region: Path
    ) -> tuple[list[int | None], list[Moment]]:
        """The outputs of a program on values, and its fullest moments."""
        env: dict[Var, int] = dict(zip(jaxpr.invars, ins, strict=True))
        memory = stored(jaxpr)
        last = {a: n for n, e in enumerate(jaxpr.eqns) for a in e.invars}
        last |= dict.fromkeys([*jaxpr.outvars], len(jaxpr.eqns))
        alive: dict[Var, float] = {}
        moments: list[Moment] = []
        for n, eqn in enumerate(jaxpr.eqns):
            here = (*path, n)
            operands = [env[a] if isinstance(a, Var) else None for a in eqn.invars]
            inner: list[Moment] = []
            if holds_programs(eqn):
                outs, inner = self.inside(eqn, operands, here, times, region)
            else:
                outs = self.item(eqn, operands, here, times, region, memory)
            env |= zip(eqn.outvars, outs, strict=True)
            alive |= {v: bytes_of(v.aval) for v in eqn.outvars if v in memory}
            own = tuple([env[v] for v in alive]), sum(alive.values())
            for one in inner or [Moment((), 0.0)]:
                moments.append(Moment((*own[0], *one.alive), own[1] + one.bytes))
            alive = {v: size for v, size in alive.items() if last.get(v, -1) > n}
        outputs = [env[a] if isinstance(a, Var) else None for a in jaxpr.outvars]
        return outputs, fullest(moments, ROWS if not path else ROWS // 4)

    def item(
        self,
        eqn: Eqn,
        operands: Sequence[int | None],
        path: Path,
        times: float,
        region: Path,
        memory: set[Var],
    ) -> list[int]:
        """The results of an equation without programs."""
        labels = labels_of(eqn)
        source = eqn.source
        role = source.code, source.instruction, source.backward, eqn.primitive.name
        outs = [
            self.value(v.aval, (role, i, v.aval.shape))
            for i, v in enumerate(eqn.outvars)
        ]
        ins, avals = [a.aval for a in eqn.invars], [v.aval for v in eqn.outvars]
        moves = moved_values(eqn, memory)
        flops = flops_of(eqn, ins, avals) or 0.0
        self.items.append(
            Item(
                path,
                eqn,
                labels,
                tuple(operands),
                tuple(outs),
                flops,
                moves,
                times,
                region,
            )
        )
        self.relate(labels, operands, outs)
        return outs

    def relate(
        self, labels: Labels, operands: Sequence[int | None], outs: Sequence[int]
    ) -> None:
        """Join values that lie alike, as far as the labels of an equation say it."""
        ends = [
            (value, self.placed(value, own))
            for value, own in zip(
                [*operands, *outs], [*labels.ins, *labels.outs], strict=True
            )
            if value is not None
        ]
        single = len(operands) == 1 == len(outs)
        for x, places in ends[: len(ends) - len(outs)]:
            for y, results in ends[len(ends) - len(outs) :]:
                if places is None or results is None or not (places and results):
                    continue
                pairs = [
                    ((x, places[k]), (y, results[k])) for k in places if k in results
                ]
                if set(places) == set(results) and self.even(pairs):
                    if self.covers(x, places) and self.covers(y, results):
                        arrays = len({v for v, own in ends if own}) - len(outs)
                        self.links.append(Link(x, y, pairs, arrays > 1))
                elif single and self.is_satellite(x, places, y, results):
                    self.weak.append(Link(x, y, pairs))

    def is_satellite(
        self, x: int, places: Mapping[int, int], y: int, results: Mapping[int, int]
    ) -> bool:
        """Whether all dimensions of one value are dimensions of the other."""
        return any(
            [
                self.covers(value, own) and set(own) <= set(others)
                for value, own, others in ((x, places, results), (y, results, places))
            ]
        )

    def covers(self, value: int, places: Mapping[int, int]) -> bool:
        """Whether all dimensions of a value have labels."""
        shape = self.values[value].aval.shape
        return len(places) == sum([n != 1 for n in shape])

    def even(self, pairs: Iterable[tuple[Node, Node]]) -> bool:
        """Whether dimensions that go together have one size."""
        return all([self.size(x) == self.size(y) for x, y in pairs])

    def size(self, node: Node) -> int:
        """The size of a dimension."""
        value, d = node
        return int(self.values[value].aval.shape[d])

    def placed(self, value: int, own: Sequence[Label]) -> dict[int, int] | None:
        """The dimension with each label; None if one has several."""
        shape = self.values[value].aval.shape
        places = {x: d for d, x in enumerate(own) if x is not None and shape[d] != 1}
        count = sum([x is not None and shape[d] != 1 for d, x in enumerate(own)])
        return places if len(places) == count else None

    def join(self, x: int, y: int, pairs: Iterable[tuple[Node, Node]]) -> None:
        """Let two values lie alike."""
        self.joined.join(x, y)
        for a, b in pairs:
            self.dims.join(a, b)

    def inside(
        self,
        eqn: Eqn,
        operands: Sequence[int | None],
        path: Path,
        times: float,
        region: Path,
    ) -> tuple[list[int], list[Moment]]:
        """The results of an equation with programs, which are read once."""
        outs = [self.value(v.aval, ("out", i)) for i, v in enumerate(eqn.outvars)]
        known = trips(eqn)
        loop = traits_of(eqn.primitive).loop or hasattr(eqn.params, "length")
        runs = 1.0 if known is None else known
        moments: list[Moment] = []
        for which, inner in enumerate(eqn.params.subjaxprs(aside=False)):
            if loop and [aval.shape for aval in inner.out_avals] == [()] != outs_of(
                eqn
            ):
                continue  # the predicate of a loop
            here = (*path, which)
            ins = [self.value(v.aval, ("in", i)) for i, v in enumerate(inner.invars)]
            if loop:
                self.entries[here] = tuple(ins)
                self.loops[path] = tuple(outs)
            for own, other in zip(reversed(ins), reversed(operands), strict=False):
                if other is not None:
                    self.enter(own, other)
            place = here if loop else region
            results, own_moments = self.program(inner, ins, here, times * runs, place)
            for own_out, out in zip(reversed(results), reversed(outs), strict=False):
                if own_out is not None:
                    self.enter(own_out, out)
            for own_out, start in carries(eqn, inner, results, ins) if loop else ():
                if own_out is not None:
                    self.enter(own_out, start)
            moments += own_moments
        return outs, moments

    def enter(self, inner: int, outer: int) -> None:
        """A value of a program inside, which is one outside, or a row of one."""
        small, large = self.values[inner].aval.shape, self.values[outer].aval.shape
        if len(large) == len(small) + 1 and large[1:] == small:
            self.values[outer].whole.add(0)
            offset = 1
        elif small == large:
            offset = 0
        else:
            return
        dims = [d for d, n in enumerate(small) if n != 1]
        if dims:
            pairs = [((inner, d), (outer, d + offset)) for d in dims]
            self.links.append(Link(outer, inner, pairs))

    def join_all(self) -> None:
        """Join what is linked, but for parameters and what becomes of them.

        So these may lie otherwise than the state of an optimiser, which lies as the
        gradients and the new parameters do.
        """
        used = self.parameters()
        for link in self.links:
            if not (link.several and link.x in used and link.y not in used):
                self.join(link.x, link.y, link.pairs)
        self.join_satellites()

    def parameters(self) -> set[int]:
        """Arguments that products or indexing read, with what is only made of them."""
        after: dict[int, list[int]] = {}
        for link in self.links:
            if not link.several:
                after.setdefault(link.x, []).append(link.y)
        read: set[int] = set()
        for item in self.items:
            traits = traits_of(item.eqn.primitive)
            if traits.stored or traits.reads_part:
                read |= {v for v in item.ins if v is not None}
        out: set[int] = set()
        for start in self.given:
            reached, line = {start}, [start]
            for one in line:
                new = [v for v in after.get(one, ()) if v not in reached]
                reached.update(new)
                line += new
            if reached & read:
                out |= reached
        return out

    def renewed(
        self, outs: Sequence[int | None], ins: Sequence[int]
    ) -> list[int | None]:
        """The outputs, of which new parameters are moved to where the old ones lie."""
        whole: Groups[int] = Groups()
        for link in self.links:
            whole.join(link.x, link.y)
        free = list(ins)
        made: dict[int, int] = {one.outs[0]: i for i, one in enumerate(self.items)}
        result: list[int | None] = []
        for v in outs:
            mates = [
                i
                for i in free
                if v is not None
                and v in made
                and whole.top(i) == whole.top(v)
                and self.values[i].aval == self.values[v].aval
            ]
            if not mates or v is None:
                result.append(v)
                continue
            free.remove(mates[0])
            self.state |= {v, mates[0]}
            result.append(self.moved(v, mates[0], self.items[made[v]]))
        return result

    def moved(self, value: int, mate: int, item: Item) -> int:
        """A value at the place of another one of its type, to which it is moved."""
        if self.joined.top(value) == self.joined.top(mate):
            return value
        aval = self.values[value].aval
        out = self.value(aval, ("new", self.values[mate].role))
        names = tuple(range(aval.ndim))
        self.items.append(
            evolve(
                item,
                labels=Labels((names,), (names,)),
                ins=(value,),
                outs=(out,),
                flops=0.0,
                moves=(False, False),
                renews=True,
            )
        )
        self.join(
            mate, out, [((mate, d), (out, d)) for d in names if aval.shape[d] != 1]
        )
        return out

    def join_satellites(self) -> None:
        """Join what is reduced or stretched to the values that it comes from.

        Arguments of the program keep layouts of their own.
        """
        for link in self.weak:
            x, y = link.x, link.y
            tops = {self.joined.top(v) for v in self.given}
            small = x if self.values[x].aval.size <= self.values[y].aval.size else y
            if self.joined.top(small) not in tops and self.even(link.pairs):
                self.join(x, y, link.pairs)


def outs_of(eqn: Eqn) -> list[object]:
    """The shapes of results."""
    return [v.aval.shape for v in eqn.outvars]


def carries(
    eqn: Eqn,
    inner: Jaxpr,
    results: Sequence[int | None],
    ins: Sequence[int],
) -> list[tuple[int | None, int]]:
    """What a loop carries: results of its step, and where they go in."""
    count: int = getattr(eqn.params, "num_carry", len(results))
    start: int = getattr(eqn.params, "num_consts", len(ins) - count)
    return list(zip(results[:count], ins[start : start + count], strict=False))


def fullest(moments: Sequence[Moment], most: int) -> list[Moment]:
    """The moments with most bytes."""
    return sorted(moments, key=lambda one: -one.bytes)[:most]


def moved_values(eqn: Eqn, memory: set[Var]) -> tuple[bool, ...]:
    """Which operands and results an equation reads or writes in memory."""
    traits = traits_of(eqn.primitive)
    seen: set[Atom] = set()
    out = []
    for i, a in enumerate((*eqn.invars, *eqn.outvars)):
        own = a in memory and a not in seen and not traits.view
        if traits.reads_part and i == 0:
            own = False
        if traits.writes_part is not None and i in (0, len(eqn.invars)):
            own = False
        seen.add(a)
        out.append(own)
    return tuple(out)


# -----------------------------------------------------------------------------
# Families.


def read_program(jaxpr: Jaxpr, names: Sequence[str]) -> Program:
    """The families and items of a program; `names` are those of its inputs.

    Inputs whose names differ in numbers only, as in a list of layers, may be of one
    kind.
    """
    reader = Reader()
    ins = [
        reader.value(v.aval, ("input", NUMBER.sub("#", name), v.aval.shape))
        for v, name in zip(jaxpr.invars, names, strict=True)
    ]
    reader.given = set(ins)
    outs, moments = reader.program(jaxpr, ins, (), 1.0, ())
    reader.join_all()
    outs = reader.renewed(outs, ins)
    families, of = families_of(reader)
    return Program(
        tuple(reader.values),
        families,
        of,
        tuple(reader.items),
        tuple([Moment((*ins, *one.alive), one.bytes) for one in moments]),
        tuple(ins),
        tuple(outs),
        reader.entries,
        reader.loops,
        frozenset([of[v][0] for v in reader.state]),
    )


NUMBER: Final = re.compile(r"\d+")


@define(eq=False, repr=False)
class Draft(ReprMixin):
    """A family while its members are counted."""

    members: list[int] = field(factory=list)
    dims: dict[Node, int] = field(factory=dict)
    sizes: list[int] = field(factory=list)


def families_of(
    reader: Reader,
) -> tuple[tuple[Family, ...], tuple[tuple[int, tuple[int | None, ...]], ...]]:
    """The families, and the place of each value in its own."""
    drafts: dict[int, Draft] = {}
    places: list[tuple[int, tuple[int | None, ...]]] = []
    for number, value in enumerate(reader.values):
        top = reader.joined.top(number)
        draft = drafts.setdefault(top, Draft())
        draft.members.append(number)
        places.append((top, draft_places(reader, draft, number, value)))
    kinds: dict[tuple[tuple[int, ...], Hashable], int] = {}
    numbers: dict[int, int] = {}
    sums: dict[int, float] = {}
    for top, draft in drafts.items():
        kind = role_of(reader, draft)
        number = numbers[top] = kinds.setdefault(kind, len(kinds))
        size = sum([bytes_of(reader.values[one].aval) for one in draft.members])
        sums[number] = sums.get(number, 0.0) + size
    families = tuple(
        [
            Family(number, kind[0], kind[1], sums[number])
            for kind, number in kinds.items()
        ]
    )
    return families, tuple([(numbers[top], own) for top, own in places])


def draft_places(
    reader: Reader, draft: Draft, number: int, value: Value
) -> tuple[int | None, ...]:
    """The dimensions of a family at the dimensions of a value."""
    out: list[int | None] = []
    for d, n in enumerate(value.aval.shape):
        if n == 1:
            out.append(None)
            continue
        top = reader.dims.top((number, d))
        place = draft.dims.setdefault(top, len(draft.sizes))
        if place == len(draft.sizes):
            draft.sizes.append(0)
        draft.sizes[place] = gcd(draft.sizes[place], int(n))
        if place in out or d in value.whole:
            draft.sizes[place] = 1
        out.append(place)
    return tuple(out)


def role_of(reader: Reader, draft: Draft) -> tuple[tuple[int, ...], Hashable]:
    """What families of blocks that repeat have in common: sizes, and their members."""
    roles = frozenset([reader.values[one].role for one in draft.members])
    return tuple(draft.sizes), roles
