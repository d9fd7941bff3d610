"""What layouts cost: the time and memory of one device, without a compiler (floor 6).

One idea: along each axis of the mesh an equation splits one of its labels, or none and
every device computes all; what operands must be gathered for that, and what results
must be summed, is read off their labels, and the cheapest way counts::

    model = Model(program, mesh)
    model.time(layouts), model.memory(layouts)

A layout says for each axis of the mesh which dimension of a family it splits, -1 for
none. Contracted labels make sums (all-reduce, reduce-scatter), others moves
(all-gather, all-to-all); what is whole is cut for nothing.
"""

from collections.abc import Hashable, Mapping, Sequence
from functools import partial
from itertools import product
from math import gcd, prod
from typing import Final, NamedTuple

import numpy as np
from attrs import astuple, define, field, frozen

from verax.explorer.meshes.devices import Device, Link
from verax.explorer.meshes.timing import Route, talk_time
from verax.explorer.search.families import Family, Item, Program
from verax.explorer.search.labels import Label
from verax.ir.records import ReprMixin
from verax.rules.rows.costs import bytes_of
from verax.rules.rows.row import NDArray, traits_of

type Layout = tuple[int, ...]
"""For each axis of the mesh the dimension of a family that it splits, or -1."""
type Layouts = tuple[Layout, ...]
"""The layout of each family."""
type Places = tuple[int, ...]
"""For each axis the dimension of a value that it splits, or -1."""

WHOLE: Final = -1
KINDS: Final = ("all-gather", "all-reduce", "all-to-all", "reduce-scatter")
TIES: Final = 0.02
"""How much of what is hidden behind other work counts all the same."""


@frozen(eq=False, repr=False)
class MeshModel(ReprMixin):
    """The axes of a mesh with their sizes and links, and the device."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    links: Mapping[str, Link]
    device: Device
    overlap: bool = True

    rates: Mapping[str, tuple[tuple[float, float], ...]] = field(init=False)

    @rates.default
    def seconds_of_talk(self) -> Mapping[str, tuple[tuple[float, float], ...]]:
        """For each kind and axis the seconds of a byte, and those of any size."""
        return {kind: tuple(map(partial(self.rate, kind), self.axes)) for kind in KINDS}

    fastest: tuple[int, ...] = field(init=False)
    """The axes, those first along which a byte takes least."""

    @fastest.default
    def by_speed(self) -> tuple[int, ...]:
        """The axes by the seconds of a byte."""
        rates = self.rates["all-gather"]
        return tuple(sorted(self.axes, key=lambda axis: rates[axis][0]))

    @property
    def axes(self) -> range:
        """The numbers of the axes."""
        return range(len(self.sizes))

    def rate(self, kind: str, axis: int) -> tuple[float, float]:
        """The seconds of a byte along an axis, and those of steps; both add up."""
        name, count = self.names[axis], self.sizes[axis]
        if count == 1:
            return 0.0, 0.0
        route = Route({name: count}, {name: self.links[name]})
        one = talk_time(kind, 1.0, count, route)
        return one.bytes, one.steps

    def talk(self, kind: str, size: float, axis: int) -> float:
        """The seconds of a collective along an axis."""
        each, fixed = self.rates[kind][axis]
        return size * each + fixed

    def parts(self, places: Sequence[int]) -> int:
        """The number of parts in which a value lies."""
        out = 1
        for n, d in zip(self.sizes, places, strict=True):
            if d >= 0:
                out *= n
        return out


@frozen(eq=False, repr=False)
class Part(ReprMixin):
    """An operand or result of a term: its family, and the labels of its dimensions."""

    family: int
    dims: tuple[int | None, ...]
    labels: tuple[Label, ...]
    shape: tuple[int, ...]
    bytes: float
    itemsize: int
    moved: bool
    shared: float
    """Its share in what it costs to move it, where others ask for the same."""

    def places(self, layout: Layout) -> Places:
        """The dimensions that the axes split."""
        dims = self.dims
        return tuple([dims.index(f) if f in dims else WHOLE for f in layout])

    def at(self, label: Label) -> int:
        """The dimension with a label, or WHOLE."""
        return self.labels.index(label) if label in self.labels else WHOLE


class Way(NamedTuple):
    """How a term is computed: seconds of work and talk, and where its parts lie."""

    work: float
    talk: float
    places: tuple[Places, ...]


class Split(NamedTuple):
    """A label for each axis: the seconds of work, and where parts lie then."""

    work: float
    ins: tuple[Places, ...]
    outs: tuple[Places, ...]
    even: bool
    """Whether the axes split dimensions into equal parts."""


def spent(way: Way) -> float:
    """All seconds of a way, as if nothing overlapped."""
    return way.work + way.talk


@define(eq=False, repr=False)
class Term(ReprMixin):
    """Equations of one kind whose values are of the same families."""

    ins: tuple[Part, ...]
    outs: tuple[Part, ...]
    flops: float
    itemsize: int
    times: float
    region: Hashable
    families: tuple[int, ...]
    seconds: float | None = None
    """Those of work that all devices of the family share, if that is all there is."""
    known: dict[tuple[Layout, ...], Way] = field(factory=dict)
    splits: dict[tuple[Label, ...], Split] = field(factory=dict)
    talks: dict[tuple[int, Hashable, Places], float] = field(factory=dict)
    """The seconds of an operand (from 0) or result (from -1), by what it is and due."""
    sizes: dict[int, int] = field(init=False)
    """What divides all sizes of dimensions with a label."""

    @sizes.default
    def common_sizes(self) -> dict[int, int]:
        """The greatest common divisors."""
        out: dict[int, int] = {}
        for part in (*self.ins, *self.outs):
            for n, x in zip(part.shape, part.labels, strict=True):
                if x is not None:
                    out[x] = gcd(out.get(x, 0), n)
        return out

    def way(self, layouts: Sequence[Layout], mesh: MeshModel) -> Way:
        """The cheapest way to compute it, once for each layout of its families."""
        key = tuple([layouts[f] for f in self.families])
        way = self.known.get(key)
        if way is None:
            make = self.best if self.seconds is None else self.shared
            way = self.known[key] = make(layouts, mesh)
        return way

    def shared(self, layouts: Sequence[Layout], mesh: MeshModel) -> Way:
        """The only way of what works element by element, in one family."""
        (part,) = self.outs
        assert self.seconds is not None
        places = part.places(layouts[part.family])
        return Way(self.seconds / mesh.parts(places), 0.0, (places,))

    def best(self, layouts: Sequence[Layout], mesh: MeshModel) -> Way:
        """The cheapest of all choices of a label for each axis."""
        ins = [part.places(layouts[part.family]) for part in self.ins]
        outs = [part.places(layouts[part.family]) for part in self.outs]
        choices = [
            self.choices(
                [
                    p.labels[q[axis]]
                    for p, q in zip(self.ins, ins, strict=True)
                    if q[axis] >= 0
                ],
                [
                    p.labels[q[axis]]
                    for p, q in zip(self.outs, outs, strict=True)
                    if q[axis] >= 0
                ],
            )
            for axis in mesh.axes
        ]
        ways = [
            self.along(labels, split, ins, outs, mesh)
            for labels in product(*choices)
            if (split := self.split(labels, mesh)).even
        ]
        if not ways:
            labels = (None,) * len(mesh.sizes)
            ways = [self.along(labels, self.split(labels, mesh), ins, outs, mesh)]
        return min(ways, key=spent)

    def choices(self, ins: Sequence[Label], outs: Sequence[Label]) -> list[Label]:
        """The labels that an axis may split, of those that it splits in some part.

        To compute all on every device is worth a try if one operand alone is split.
        """
        known = dict.fromkeys([x for x in (*ins, *outs) if x is not None])
        alone = None in ins or None in outs or (len(ins) <= 1 and not outs)
        return [*known, None] if alone or not known else [*known]

    def even(self, labels: Sequence[Label], mesh: MeshModel) -> bool:
        """Whether the axes split dimensions with these labels into equal parts."""
        counts: dict[int, int] = {}
        for label, size in zip(labels, mesh.sizes, strict=True):
            if label is not None:
                counts[label] = counts.get(label, 1) * size
        return all([self.sizes[x] % n == 0 for x, n in counts.items()])

    def split(self, labels: tuple[Label, ...], mesh: MeshModel) -> Split:
        """What it means that each axis splits this label, worked out once."""
        out = self.splits.get(labels)
        if out is None:
            ins, outs = [
                tuple(
                    [
                        tuple([WHOLE if x is None else part.at(x) for x in labels])
                        for part in parts
                    ]
                )
                for parts in (self.ins, self.outs)
            ]
            even = self.even(labels, mesh)
            work = self.seconds_of_work(labels, (*ins, *outs), mesh)
            out = self.splits[labels] = Split(work, ins, outs, even)
        return out

    def seconds_of_work(
        self, labels: Sequence[Label], places: Sequence[Places], mesh: MeshModel
    ) -> float:
        """The seconds of work where parts lie so."""
        split = prod(
            [n for n, x in zip(mesh.sizes, labels, strict=True) if x is not None]
        )
        moved = 0.0
        for part, own in zip((*self.ins, *self.outs), places, strict=True):
            moved += part.bytes / mesh.parts(own) if part.moved else 0.0
        device = mesh.device
        return max(
            self.flops / split / device.peak(self.itemsize), moved / device.bandwidth
        )

    def along(
        self,
        labels: tuple[Label, ...],
        split: Split,
        ins: Sequence[Places],
        outs: Sequence[Places],
        mesh: MeshModel,
    ) -> Way:
        """The way in which each axis splits this label."""
        talk, talks = 0.0, self.talks
        for i, (own, due) in enumerate(zip(ins, split.ins, strict=True)):
            seconds = talks.get((i, own, due))
            if seconds is None:
                part = self.ins[i]
                seconds = part.shared * moving(part.bytes, own, due, mesh)
                talks[i, own, due] = seconds
            talk += seconds
        for i, (made, due) in enumerate(zip(split.outs, outs, strict=True)):
            seconds = talks.get((~i, labels, due))
            if seconds is None:
                sums = [
                    x is not None and d == WHOLE
                    for x, d in zip(labels, made, strict=True)
                ]
                seconds = summing(self.outs[i].bytes, made, due, sums, mesh)
                talks[~i, labels, due] = seconds
            talk += seconds
        places = (*split.ins, *split.outs)
        return Way(self.times * split.work, self.times * talk, places)


def moving(size: float, own: Places, due: Places, mesh: MeshModel) -> float:
    """The seconds until a value of so many bytes lies otherwise."""
    if own == due:
        return 0.0
    parts = mesh.parts(own)
    seconds = 0.0
    pairs = list(enumerate(zip(own, due, strict=True)))
    for axis, (a, b) in pairs:
        if a == WHOLE != b:
            parts *= mesh.sizes[axis]
    for axis, (a, b) in pairs:
        if WHOLE not in (a, b) and a != b:
            seconds += mesh.talk("all-to-all", size / parts, axis)
    for axis, (a, b) in pairs:
        if a != WHOLE == b:
            seconds += mesh.talk("all-gather", size / parts, axis)
            parts //= mesh.sizes[axis]
    return seconds


def scattered(axis: int, made: Places, due: Places) -> bool:
    """Whether terms along an axis are summed where a part of the sum is due."""
    return due[axis] != WHOLE and due[axis] not in made


def summing(
    size: float, made: Places, due: Places, sums: Sequence[bool], mesh: MeshModel
) -> float:
    """The seconds until terms of a result are summed, and it lies as is due."""
    parts = mesh.parts(made)
    seconds = 0.0
    own = list(made)
    for axis in mesh.fastest:
        if sums[axis] and scattered(axis, made, due):
            seconds += mesh.talk("reduce-scatter", size / parts, axis)
            parts *= mesh.sizes[axis]
            own[axis] = due[axis]
    for axis, flag in enumerate(sums):
        if flag and own[axis] == WHOLE:
            seconds += mesh.talk("all-reduce", size / parts, axis)
    return seconds + moving(size, tuple(own), due, mesh)


# -----------------------------------------------------------------------------
# The whole program.


class Model:
    """Time and memory of a program on a mesh, by the layouts of its families."""

    def __init__(
        self, program: Program, mesh: MeshModel, aliased: Sequence[int] = ()
    ) -> None:
        self.program = program
        self.mesh = mesh
        self.terms, self.term_of = terms_of(program, mesh)
        self.near: list[list[int]] = [[] for _ in program.families]
        for number, term in enumerate(self.terms):
            for f in term.families:
                self.near[f].append(number)
        self.regions = list(dict.fromkeys([term.region for term in self.terms]))
        places = {region: i for i, region in enumerate(self.regions)}
        self.region_of = [places[term.region] for term in self.terms]
        self.columns, self.rows = room_of(program, set(aliased))
        self.columns_of: list[list[int]] = [[] for _ in program.families]
        for column, (f, _) in enumerate(self.columns):
            self.columns_of[f].append(column)

    def layouts_of(self, family: Family) -> list[Layout]:
        """All layouts that a family may have: each axis splits evenly, or not."""
        sizes = self.mesh.sizes
        dims = [WHOLE, *[d for d, n in enumerate(family.sizes) if n > 1]]
        out = []
        for layout in product(*[dims if n > 1 else [WHOLE] for n in sizes]):
            counts = {
                d: prod([n for n, e in zip(sizes, layout, strict=True) if e == d])
                for d in layout
                if d != WHOLE
            }
            if all([family.sizes[d] % n == 0 for d, n in counts.items()]):
                out.append(layout)
        return out

    def sums(self, layouts: Sequence[Layout]) -> tuple[list[float], list[float]]:
        """The seconds of work and of talk in each region."""
        work, talk = [0.0] * len(self.regions), [0.0] * len(self.regions)
        for term, place in zip(self.terms, self.region_of, strict=True):
            way = term.way(layouts, self.mesh)
            work[place] += way.work
            talk[place] += way.talk
        return work, talk

    def total(self, work: Sequence[float], talk: Sequence[float]) -> float:
        """The seconds of a step; what overlaps counts a little."""
        both = sum(work) + sum(talk)
        if not self.mesh.overlap:
            return both
        return sum(map(max, work, talk)) + TIES * both

    def share(self, column: int, layout: Layout) -> float:
        """The share of one device in the values of a column."""
        _, dims = self.columns[column]
        pairs = zip(self.mesh.sizes, layout, strict=True)
        return 1.0 / prod([n for n, d in pairs if d in dims])

    def shares(self, layouts: Sequence[Layout]) -> NDArray:
        """The share of one device in the values of each column."""
        each = [self.share(i, layouts[f]) for i, (f, _) in enumerate(self.columns)]
        return np.asarray(each)

    def room(self, shares: NDArray) -> float:
        """The bytes of one device at its fullest moment."""
        return float((self.rows @ shares).max()) if self.rows.size else 0.0

    def memory(self, layouts: Sequence[Layout]) -> float:
        """The bytes of one device at its fullest moment."""
        return self.room(self.shares(layouts))


def terms_of(program: Program, mesh: MeshModel) -> tuple[list[Term], dict[int, int]]:
    """Items that cost the same as terms, and the term of each item."""
    uses: dict[Hashable, int] = {}
    for item in program.items:
        if not elementwise(program, item):
            for key in {
                use_of(item, i) for i, v in enumerate(item.ins) if v is not None
            }:
                uses[key] = uses.get(key, 0) + 1
    terms: dict[Hashable, Term] = {}
    order: dict[Hashable, int] = {}
    numbers: dict[int, int] = {}
    for i, item in enumerate(program.items):
        ins, outs = parts_of(program, item, uses)
        if not (ins or outs):
            continue
        if elementwise(program, item):
            add_shared(terms, item, (*ins, *outs), mesh)
            continue
        key = (*map(shown_part, (*ins, *outs)), len(ins), item.flops, item.region)
        if key in terms:
            terms[key].times += item.times
        else:
            few = tuple(dict.fromkeys([p.family for p in (*ins, *outs)]))
            size = max([p.itemsize for p in ins or outs])
            terms[key] = Term(
                tuple(ins), tuple(outs), item.flops, size, item.times, item.region, few
            )
        numbers[i] = order.setdefault(key, len(order))
    known = {key: i for i, key in enumerate(terms)}
    back = {i: key for key, i in order.items()}
    return list(terms.values()), {i: known[back[n]] for i, n in numbers.items()}


def use_of(item: Item, number: int) -> Hashable:
    """What an operand is used for: those who ask for the same move it once."""
    eqn = item.eqn
    kind = eqn.primitive, eqn.params, tuple([a.aval for a in eqn.invars])
    return item.ins[number], number, kind


def shown_part(part: Part) -> Hashable:
    """All of a part, as a key."""
    return astuple(part, recurse=False)


def add_shared(
    terms: dict[Hashable, Term], item: Item, parts: Sequence[Part], mesh: MeshModel
) -> None:
    """Add an elementwise item to the term of all of its family and dimensions."""
    moved = sum([p.bytes for p in parts if p.moved])
    whole = max(parts, key=lambda p: p.bytes)
    peak = mesh.device.peak(max([p.itemsize for p in parts]))
    seconds = item.times * max(item.flops / peak, moved / mesh.device.bandwidth)
    if not seconds:
        return
    dims = tuple(sorted([d for d in whole.dims if d is not None]))
    key = "shared", whole.family, dims, item.region
    term = terms.get(key)
    if term is None:
        term = terms[key] = Term(
            (), (whole,), 0.0, 4, 1.0, item.region, (whole.family,), 0.0
        )
    assert term.seconds is not None
    term.seconds += seconds


def elementwise(program: Program, item: Item) -> bool:
    """Whether all values of an item are of one family, and nothing is summed."""
    if traits_of(item.eqn.primitive).stored:
        return False
    arrays = [v for v in (*item.ins, *item.outs) if v is not None]
    own = {program.of[v][0] for v in arrays if program.values[v].aval.shape}
    labels = {x for names in item.labels.ins for x in names if x is not None}
    return len(own) == 1 and labels <= item.labels.kept


def parts_of(
    program: Program, item: Item, uses: Mapping[Hashable, int]
) -> tuple[list[Part], list[Part]]:
    """The operands and results of an item that are arrays."""
    out: list[list[Part]] = []
    values = (*item.ins, *item.outs)
    labels = (*item.labels.ins, *item.labels.outs)
    triples = list(zip(values, labels, item.moves, strict=True))
    plain = elementwise(program, item)
    for group in (triples[: len(item.ins)], triples[len(item.ins) :]):
        own = []
        for i, (v, names, moved) in enumerate(group):
            if v is None or not program.values[v].aval.shape:
                continue
            aval = program.values[v].aval
            family, dims = program.of[v]
            share = 1.0
            if not plain and i < len(item.ins) and v == item.ins[i]:
                share = 1.0 / uses[use_of(item, i)]
            own.append(
                Part(
                    family,
                    dims,
                    names,
                    tuple(map(int, aval.shape)),
                    bytes_of(aval),
                    aval.dtype.itemsize,
                    moved,
                    share,
                )
            )
        out.append(own)
    return out[0], out[1]


def room_of(
    program: Program, aliased: set[int]
) -> tuple[list[tuple[int, tuple[int, ...]]], NDArray]:
    """Bytes at each moment, by family and the dimensions that values have of it."""
    columns: dict[tuple[int, tuple[int, ...]], int] = {}
    rows: list[dict[int, float]] = []
    for moment in program.moments:
        row: dict[int, float] = {}
        for v in moment.alive:
            if v in aliased:
                continue
            family, dims = program.of[v]
            key = family, tuple(sorted([d for d in dims if d is not None]))
            column = columns.setdefault(key, len(columns))
            row[column] = row.get(column, 0.0) + bytes_of(program.values[v].aval)
        rows.append(row)
    out = np.zeros((len(rows), len(columns)))
    for i, row in enumerate(rows):
        for column, size in row.items():
            out[i, column] = size
    return list(columns), out
