"""The collectives of a partitioned program: which devices talk, and of how much.

XLA says who talks by groups of devices, in one of three forms, or by pairs of senders
and receivers; the axes of a mesh follow from where these devices lie in it::

    groups_of("replica_groups=[2,4]<=[4,2]T(1,0)", 8)     # ((0, 2, 4, 6), (1, 3, 5, 7))
    axes_of(groups, Grid(("x", "y"), (4, 2))).names       # ("x",)
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from math import prod
from typing import Final

import numpy as np
from attrs import frozen

from verax.explorer.rows.hlo import (
    FUSION,
    TRIPS,
    Computation,
    Instruction,
    computations,
    size_of,
)
from verax.ir.records import ReprMixin

type Groups = tuple[tuple[int, ...], ...]

KINDS: Final = frozenset(
    [
        "all-gather",
        "all-reduce",
        "all-to-all",
        "collective-broadcast",
        "collective-permute",
        "ragged-all-to-all",
        "reduce-scatter",
    ]
)
START: Final = "-start"
ENDS: Final = frozenset(["async-done", "async-update"])
"""Operations that only wait for what a start has begun."""
LISTED: Final = re.compile(r"replica_groups=\{((?:\{[\d,]*\},?)*)\}")
EACH: Final = re.compile(r"\{([\d,]*)\}")
SPACED: Final = re.compile(
    r"replica_groups=\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?"
)
BY_AXES: Final = re.compile(
    r"replica_groups=@?mesh\[([^\]]*)\](?:, ?device_ids=\(([^{]*)\))? ?\{([^}]*)\}"
)
AXIS: Final = re.compile(r"'([^']*)'=(\d+)")
PART: Final = re.compile(r"'([^']*)'(?::\((\d+)\)(\d+))?")
PAIRS: Final = re.compile(r"source_target_pairs=\{((?:\{\d+,\d+\},?)*)\}")
PROMOTED: Final = re.compile(r"to_apply=%?[\w.\-]*_promoted\b")
"""What a reducer is called where a CPU adds 16-bit numbers with 32 bits."""
SHAPED: Final = re.compile(r"\[([\d,]+)\](?:T\(([\d,]+)\))?")


@frozen(repr=False)
class Grid(ReprMixin):
    """A mesh of positions in a program: names and sizes of its axes.

    `places` are the positions in row-major order; those of a program whose devices are
    numbered as they lie in the mesh are 0, 1, 2 and so on.
    """

    names: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    places: tuple[int, ...] | None = None

    @property
    def count(self) -> int:
        """The number of devices."""
        return prod(self.sizes)

    def coordinates(self) -> np.ndarray:
        """The coordinates of each position, one row for each."""
        order = range(self.count) if self.places is None else self.places
        out = np.zeros((self.count, len(self.sizes)), int)
        out[list(order)] = np.indices(self.sizes).reshape(len(self.sizes), -1).T
        return out


@frozen(repr=False)
class Along(ReprMixin):
    """The axes of a mesh along which devices talk; `whole` if along all of each."""

    names: tuple[str, ...]
    whole: bool = True


# -----------------------------------------------------------------------------
# Groups of devices, as XLA writes them.


def ints(text: str | None) -> tuple[int, ...]:
    """The numbers of a text, between commas."""
    return tuple([int(word) for word in (text or "").split(",") if word.strip()])


def spaced(sizes: Sequence[int], order: Sequence[int] = ()) -> np.ndarray:
    """All positions in an array of these sizes whose axes are then reordered."""
    places = np.arange(prod(sizes)).reshape(tuple(sizes))
    return places.transpose(tuple(order)) if order else places


def groups_of(text: str, count: int) -> Groups | None:
    """The groups that talk, of a program for so many devices; None if unsaid.

    >>> groups_of("replica_groups={{0,2},{1,3}}, use_global_device_ids=true", 4)
    ((0, 2), (1, 3))
    >>> groups_of("replica_groups=[2,2]<=[2,2]T(1,0)", 4)
    ((0, 2), (1, 3))
    >>> groups_of("replica_groups=mesh['x'=2,'y'=2] {'x'}", 4)
    ((0, 2), (1, 3))
    >>> groups_of("replica_groups=mesh['x'=4] {'x':(2)2}", 4)
    ((0, 1), (2, 3))
    """
    if match := SPACED.search(text):
        places = spaced(ints(match[2]), ints(match[3])).reshape(ints(match[1]))
        return as_groups(places)
    if match := BY_AXES.search(text):
        return groups_by_axes(match)
    if match := LISTED.search(text):
        listed = tuple([ints(group) for group in EACH.findall(match[1])])
        return listed or (tuple(range(count)),)
    return None


def groups_by_axes(match: re.Match[str]) -> Groups:
    """The groups along axes, or parts of axes, of a mesh that stands in the text."""
    sizes = {name: int(size) for name, size in AXIS.findall(match[1])}
    shape = tuple(sizes.values())
    shaped = SHAPED.search(match[2] or "")
    if shaped is not None:
        places = spaced(ints(shaped[1]), ints(shaped[2]))
    elif match[2]:
        places = np.array(ints(match[2]))
    else:
        places = spaced(shape)
    parts: dict[str, list[tuple[int, int]]] = {}
    for name, before, size in PART.findall(match[3]):
        full = (1, sizes[name])
        parts.setdefault(name, []).append((int(before), int(size)) if size else full)
    split: list[int] = []
    talking: list[int] = []
    for name, whole in sizes.items():
        for size, talks in cut(whole, sorted(parts.get(name, ()))):
            if talks:
                talking.append(len(split))
            split.append(size)
    rest = [i for i in range(len(split)) if i not in talking]
    table = places.reshape(split).transpose((*rest, *talking))
    return as_groups(table.reshape(-1, prod([split[i] for i in talking])))


def cut(size: int, parts: Sequence[tuple[int, int]]) -> Iterator[tuple[int, bool]]:
    """An axis in pieces, outer first, and which of them are the given parts.

    >>> list(cut(8, [(2, 2)])), list(cut(4, []))
    ([(2, False), (2, True), (2, False)], [(4, False)])
    """
    done = 1
    for before, part in parts:
        if before > done:
            yield before // done, False
        yield part, True
        done = before * part
    if size > done:
        yield size // done, False


def as_groups(table: np.ndarray) -> Groups:
    """The rows of a table as groups."""
    return tuple([tuple(row) for row in table.tolist()])


def pairs_of(text: str) -> Groups | None:
    """The pairs of a sender and a receiver; None if there are none.

    >>> pairs_of("source_target_pairs={{0,1},{1,0}}")
    ((0, 1), (1, 0))
    """
    match = PAIRS.search(text)
    return None if match is None else tuple(map(ints, EACH.findall(match[1])))


def axes_of(groups: Groups, grid: Grid, *, pairs: bool = False) -> Along:
    """The axes along which the devices of groups, or of `pairs`, talk.

    >>> grid = Grid(("x", "y", "z"), (2, 2, 2))
    >>> axes_of(((0, 1, 4, 5), (2, 3, 6, 7)), grid)
    Along(names=('x', 'z'), whole=True)
    >>> axes_of(((0, 1), (2, 3)), Grid(("x",), (4,)))
    Along(names=('x',), whole=False)
    """
    if not grid.names or not groups:
        return Along(())
    at = grid.coordinates()
    moved = np.zeros(len(grid.sizes), bool)
    for group in groups:
        rows = at[list(group)]
        moved |= (rows != rows[:1]).any(0)
    axes = [i for i in range(len(moved)) if moved[i]]
    names = tuple([grid.names[i] for i in axes])
    size = prod([grid.sizes[i] for i in axes])
    # Devices of a group of this size differ in these axes alone, so it has them all.
    whole = pairs or all([len(group) == size for group in groups])
    return Along(names, whole)


# -----------------------------------------------------------------------------
# The instructions that talk, and how often they run.


@frozen(eq=False, repr=False)
class Talk(ReprMixin):
    """One operand of a collective: XLA joins several of the user's into one.

    Attributes:
        name: of the instruction, which those that were joined have in common.
        kind: such as "all-reduce".
        text: its attributes.
        bytes: of the operand, on each device.
        times: how often it runs in one run of the program.
        known: whether `times` is sure: not in a loop of unknown length or a branch.
        origin: the number that the metadata name, of it or of what is next to it.
        sliced: whether each device only keeps a slice of the result.
        message: whether it counts as a message, as the first operand does.
    """

    name: str
    kind: str
    text: str
    bytes: int
    times: float
    known: bool
    origin: int | None
    sliced: bool
    message: bool


@frozen(eq=False, repr=False)
class Body(ReprMixin):
    """A computation with its instructions by name, and who reads them."""

    named: Mapping[str, Instruction]
    readers: Mapping[str, Sequence[Instruction]]


def body_of(computation: Computation) -> Body:
    """A computation, ready for questions."""
    readers: dict[str, list[Instruction]] = {}
    for one in computation.instructions:
        for name in dict.fromkeys(one.operands):
            readers.setdefault(name, []).append(one)
    return Body({one.name: one for one in computation.instructions}, readers)


VIEW: Final = re.compile("bitcast|copy|reshape|transpose")
"""Instructions that show the same elements in another way."""
CONVERT: Final = "convert"
HALF: Final = ("bf16[", "f16[")
WIDE: Final = "f32["
SLICE: Final = "dynamic-slice"
FAR: Final = 8
"""How many instructions away an origin is looked for."""


type Test = Callable[[Instruction, str], bool]
type After = Callable[[], bool]


def never() -> bool:
    """What reads the result of a program is not known."""
    return False


class Talks:
    """Finds the collectives of a program in its text."""

    def __init__(self, text: str) -> None:
        self.table, self.entry = computations(text)
        self.bodies: dict[str, Body] = {}

    def all(self) -> list[Talk]:
        """Those of the program, each as often as it is called from another place."""
        return list(self.inside(self.entry, 1.0, True)) if self.entry else []

    def body(self, name: str) -> Body:
        """A computation by its name."""
        if name not in self.bodies:
            self.bodies[name] = body_of(self.table[name])
        return self.bodies[name]

    def inside(self, name: str, times: float, known: bool) -> Iterator[Talk]:
        """Those of a computation that runs so many times."""
        if name not in self.table:
            return
        for one in self.table[name].instructions:
            kind = one.opcode.removesuffix(START)
            if kind in KINDS:
                yield from self.operands(one, kind, self.body(name), times, known)
            elif one.called and one.opcode not in (FUSION, *ENDS):
                count, sure = runs(one)
                for _, callee in one.called:
                    yield from self.inside(callee, times * count, known and sure)

    def operands(
        self, one: Instruction, kind: str, body: Body, times: float, known: bool
    ) -> Iterator[Talk]:
        """Each operand of a collective."""
        given = [body.named[name] for name in one.operands if name in body.named]
        several = len(given) > 1
        for number, operand in enumerate(given):
            origin = None if several else one.origin
            if origin is None:
                origin = self.behind(operand, body)
            if origin is None:
                origin = self.ahead(one, body)
            yield Talk(
                one.name,
                kind,
                one.rest,
                size_of(operand.kind)
                // (2 if self.widened(one, operand, number, body) else 1),
                times,
                known,
                origin,
                kind == "all-reduce" and self.is_sliced(one, number, body),
                number == 0,
            )

    def behind(self, one: Instruction, body: Body) -> int | None:
        """The origin of an instruction, or else of what it reads first."""
        for _ in range(FAR):
            if one.origin is not None:
                return one.origin
            following = [
                body.named[name] for name in one.operands if name in body.named
            ]
            if not following:
                return None
            one = following[0]
        return None

    def ahead(self, one: Instruction, body: Body) -> int | None:
        """The origin of what first reads an instruction, or reads what reads it."""
        front = [one]
        for _ in range(FAR):
            front = [r for each in front for r in body.readers.get(each.name, ())][:FAR]
            known = [each.origin for each in front if each.origin is not None]
            if known:
                return known[0]
        return None

    def results(self, one: Instruction, number: int, body: Body) -> list[Instruction]:
        """The instructions whose value is the result for an operand of a collective."""
        if not one.kind.startswith("("):
            return [one]
        return [
            r
            for r in body.readers.get(one.name, ())
            if r.opcode == "get-tuple-element"
            and f"index={number}" in r.rest.split(", ")
        ]

    def is_sliced(self, one: Instruction, number: int, body: Body) -> bool:
        """Whether all that is read of a result is a slice."""
        out = self.results(one, number, body)
        return bool(out) and all([self.reads(r, body, self.slices) for r in out])

    def widened(
        self, one: Instruction, operand: Instruction, number: int, body: Body
    ) -> bool:
        """Whether an operand is of 16-bit floats, and a CPU needs it wider."""
        if PROMOTED.search(one.rest):
            return True
        out = self.results(one, number, body)
        return (
            operand.kind.startswith(WIDE)
            and self.from_half(operand, body)
            and bool(out)
            and all([self.reads(r, body, self.narrows) for r in out])
        )

    def from_half(self, one: Instruction, body: Body) -> bool:
        """Whether a value was made of 16-bit floats by converting them."""
        while VIEW.fullmatch(one.opcode) and one.operands[0] in body.named:
            one = body.named[one.operands[0]]
        if one.opcode == CONVERT:
            source = body.named.get(one.operands[0])
            return source is not None and source.kind.startswith(HALF)
        if one.opcode != FUSION or not one.called:
            return False
        inner = self.body(one.called[0][1])
        return any([self.from_half(r, inner) for r in inner.named.values() if r.root])

    def reads(
        self, one: Instruction, body: Body, test: Test, after: After = never
    ) -> bool:
        """Whether all that reads a value passes a test, behind other views of it.

        `after` says so of what reads the result of the body, if that is the value.
        """
        readers = body.readers.get(one.name, ())
        out = [self.passes(r, one.name, body, test, after) for r in readers]
        out += [after()] if one.root else []
        return bool(out) and all(out)

    def passes(
        self, one: Instruction, name: str, body: Body, test: Test, after: After
    ) -> bool:
        """Whether what reads a value passes, or what reads that in turn."""
        if test(one, name):
            return True
        if VIEW.fullmatch(one.opcode) or one.opcode == CONVERT:
            return self.reads(one, body, test, after)
        if one.opcode != FUSION or not one.called:
            return False
        inner = self.body(one.called[0][1])
        places = [i for i, given in enumerate(one.operands) if given == name]
        params = [p for p in inner.named.values() if p.opcode == "parameter"]
        own = [p for p in params if int(p.rest.partition(",")[0]) in places]
        around = partial(self.reads, one, body, test, after)
        return bool(own) and all([self.reads(p, inner, test, around) for p in own])

    def slices(self, one: Instruction, name: str) -> bool:
        """Whether an instruction reads only a slice of a value."""
        return one.opcode == SLICE and one.operands.index(name) == 0

    def narrows(self, one: Instruction, name: str) -> bool:
        """Whether an instruction converts a value to 16-bit floats."""
        return one.opcode == CONVERT and one.kind.startswith(HALF)


def runs(one: Instruction) -> tuple[float, bool]:
    """How often what an instruction calls runs each time, and whether that is sure."""
    if one.opcode == "while":
        trips = TRIPS.search(one.rest)
        return (1.0, False) if trips is None else (float(trips[1]), True)
    return 1.0, one.opcode != "conditional"
