"""Floor 3: what values a program has while it runs, by line and by iteration.

One idea: a value that leaves its line is measured, and the measures are more outputs of
the program; those of a loop's body are carried along, and merged from step to step::

    watched(jaxpr, detail)   # .jaxpr: outputs of `jaxpr`, then measures; .sites

A measure is rows of numbers, one for each site: the extremes, the moments, and sums
(of zeros, NaNs, ...) with a histogram of exponents. Beside it, each loop has its
course: the same for each iteration, or for as many neighbours as fit into its slots.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Final

import numpy as np
from attrs import define, frozen

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import float32, float64, int32, is_complex, is_inexact
from verax.ir.jaxpr import UNKNOWN_SOURCE, Atom, Eqn, Jaxpr, Source, Var
from verax.ir.records import ReprMixin
from verax.ir.walk import hoist, interpret, itself, walk
from verax.ops.calls.call import inlined, jit_p
from verax.ops.elementwise.arith import abs, add, div, max, min, mul, neg, sub
from verax.ops.elementwise.bits import bitwise_and, shift_right_logical
from verax.ops.elementwise.compare import eq, lt, ne
from verax.ops.elementwise.convert import bitcast_convert_type, convert
from verax.ops.elementwise.exp_log import log2
from verax.ops.elementwise.rounding import is_finite
from verax.ops.elementwise.select import select, stop_gradient
from verax.ops.hoisting import as_operands
from verax.ops.indexing.dynamic_slice import (
    dynamic_index_in_dim,
    dynamic_update_index_in_dim,
)
from verax.ops.indexing.gather import take_rows
from verax.ops.indexing.geometry import ScatterDimensionNumbers
from verax.ops.indexing.scatter import scatter_add
from verax.ops.reductions.reduce import reduce_max, reduce_sum
from verax.ops.structure.create import full
from verax.ops.structure.joining import concatenate
from verax.ops.structure.shape import broadcast_in_dim, reshape
from verax.ops.structure.slicing import slice as sliced, slice_in_dim
from verax.rules.rows.bodies import OfWholeValues, Role, Types, flat, thread_of, whole
from verax.rules.rows.builder import Builder, program
from verax.rules.rows.row import traits_of
from verax.rules.values.array import Array
from verax.rules.values.memo import memo, recall
from verax.rules.values.state import (
    Context,
    current_context,
    interpreting,
    widths_of,
)

SLOTS: Final = 64
"""How many iterations of a loop are kept apart."""
SAMPLE: Final = 4096
"""How many elements of a larger value the histogram counts, evenly spaced."""
HELD: Final = 1 << 13
"""Up to so many elements a value waits until others of its size are measured."""
CLASSES: Final = (64, 512, SAMPLE)
"""Values between these sizes are measured together."""
EXPONENTS: Final = 256
"""One for each exponent of float32: the first are zeros, the last NaN and infinite."""
ZEROS, NANS, INFINITE, RUNS, SAMPLED = range(5)
"""The columns of the sums; exponents follow."""
COUNTED: Final = 5
PROGRAMS: Final = 1 << 8


@frozen(repr=False)
class Site(ReprMixin):
    """A value that is watched: the result of an equation, with the loops around it."""

    primitive: str
    source: Source
    aval: ShapedArray
    loops: tuple[Source, ...] = ()


@frozen(repr=False)
class Course(ReprMixin):
    """A loop: the sites in it, from the first to before the last, and its iterations.

    `length` is None for a loop that runs until a predicate fails.
    """

    source: Source
    first: int
    end: int
    length: int | None
    reverse: bool


@frozen(repr=False)
class Watching(ReprMixin):
    """A program with measures: its sites, and the loops that have courses.

    Outputs of `jaxpr` are those of the program, then three arrays for all sites, and
    three for each course.
    """

    jaxpr: Jaxpr
    sites: tuple[Site, ...]
    courses: tuple[Course, ...]

    @cached_property
    def opened(self) -> tuple[Jaxpr, tuple[object, ...]]:
        """The program that takes array constants first, and these."""
        closed = hoist(self.jaxpr, as_operands)
        inner = closed.jaxpr
        invars = (*inner.constvars, *inner.invars)
        return Jaxpr((), invars, inner.eqns, inner.outvars), tuple(closed.consts)


type Line = tuple[str, int, bool]
"""A line of the user's, and whether it is on the way back."""
type Block = tuple[Array, Array, Array]
"""Extremes (-least, greatest), moments (count, mean, M2) and sums of several sites."""
type Measure = list[Block]
"""The block of all sites, then those of courses."""


def line_of(source: Source) -> Line:
    """What equations have in common that were written in one line."""
    return source.file, source.line, source.backward


# -----------------------------------------------------------------------------
# Measures of one value, and of several together.
#
# Values are measured as rows of a matrix. Those that are small wait until their program
# is written, and those of one size are one matrix: what a compiler takes depends on how
# many measures there are, and hardly on what is in them.


def row_of(x: Array, dtype: np.dtype) -> Array:
    """The value of a site as a matrix of one row."""
    x = stop_gradient(x)
    if is_complex(x.aval.dtype):
        x = abs(x)
    return reshape(convert(x, dtype), (1, x.aval.size))


def measured(x: Array, sizes: Sequence[int]) -> Block:
    """The block of several sites, from their values, the rows of a matrix.

    Rows have so many elements of their own; the others are infinite.
    """
    dtype, shape = x.aval.dtype, x.shape
    assert isinstance(dtype, np.dtype)

    def like(value: object) -> Array:
        return full(shape, value, dtype)

    finite = is_finite(x)
    least = select(finite, neg(x), like(-np.inf))
    most = select(finite, x, like(-np.inf))
    kinds = [convert(y, dtype) for y in (finite, eq(x, like(0)), ne(x, x))]
    sums = of_rows(reduce_sum, [select(finite, x, like(0)), *kinds])
    whole_sum, count, zeros, nans = columns(sums)
    mean = div(whole_sum, max(count, full(count.shape, 1, dtype)))
    off = select(finite, sub(x, broadcast_in_dim(mean, shape, (0, 1))), like(0))
    square = reshape(reduce_sum(mul(off, off), (1,)), count.shape)
    own = np.reshape(np.asarray(sizes, dtype), (-1, 1))
    sampled, exponents = histogram(x, own)
    most_of_each = full((*shape[:1], 2), -np.inf, dtype)
    if shape[1]:
        most_of_each = of_rows(reduce_max, [least, most])
    runs = full(count.shape, 1, dtype)
    return (
        most_of_each,
        concatenate([count, mean, square], 1),
        concatenate([zeros, nans, sub(own, count), runs, sampled, exponents], 1),
    )


def of_rows(
    reduce: Callable[[Array, tuple[int, ...]], Array], parts: Sequence[Array]
) -> Array:
    """A column for each matrix: its rows, reduced.

    Small ones are reduced together, which compiles fast; large ones each by itself,
    without being written down beside each other.
    """
    rows, size = parts[0].shape
    if rows * size > HELD:
        return concatenate([reshape(reduce(x, (1,)), (rows, 1)) for x in parts], 1)
    return reduce(concatenate([reshape(x, (rows, 1, size)) for x in parts], 1), (2,))


def histogram(x: Array, own: np.ndarray) -> tuple[object, Array]:
    """How many elements of each row are counted, and how many have which exponent.

    Of long rows an even sample is counted.
    """
    count, size = x.shape
    dtype, width = x.aval.dtype, count * EXPONENTS
    if not size:
        return own, full((count, EXPONENTS), 0, dtype)
    stride = -(-size // SAMPLE)
    some = sliced(x, (0, 0), (count, size), (1, stride)) if stride > 1 else x
    bits = bitcast_convert_type(convert(some, float32), int32)
    shifted = shift_right_logical(bits, full(bits.shape, 23, int32))
    places = bitwise_and(shifted, full(bits.shape, EXPONENTS - 1, int32))
    starts = np.arange(0, width, EXPONENTS, dtype=np.int32)
    if count > 1:
        places = add(places, broadcast_in_dim(starts, bits.shape, (0,)))
    bins = scatter_add(
        full((width,), 0, dtype),
        reshape(places, (places.aval.size, 1)),
        full((places.aval.size,), 1, dtype),
        ScatterDimensionNumbers((), (0,), (0,)),
        indices_are_sorted=False,
        unique_indices=False,
        mode="promise_in_bounds",
    )
    counts = reshape(bins, (count, EXPONENTS))
    if stride > 1:
        return np.full_like(own, some.shape[1]), counts
    filled = np.zeros((count, EXPONENTS), own.dtype)
    filled[:, -1] = size - own[:, 0]
    return own, sub(counts, filled) if filled.any() else counts


def together(parts: Sequence[Block | Array]) -> Block:
    """The block of all sites, of which some are rows that are measured now."""
    counts = [1 if isinstance(x, Array) else x[0].shape[0] for x in parts]
    starts = np.cumsum([0, *counts])
    blocks: list[Block] = []
    order: list[int] = []
    waiting: dict[int, dict[int, Array]] = {}
    for start, count, part in zip(starts.tolist(), counts, parts, strict=False):
        if isinstance(part, Array):
            waiting.setdefault(class_of(part.shape[1]), {})[start] = part
        else:
            blocks.append(part)
            order += range(start, start + count)
    for rows in waiting.values():
        sizes = [x.shape[1] for x in rows.values()]
        longest = sorted(sizes)[-1]
        matrix = concatenate([filled_up(x, longest) for x in rows.values()], 0)
        blocks.append(measured(matrix, sizes))
        order += rows
    block = stacked(blocks)
    if order == sorted(order):
        return block
    places = np.argsort(order).astype(np.int32)
    ends, moments, sums = [take_rows(x, places) for x in block]
    return ends, moments, sums


def class_of(size: int) -> int:
    """What values have in common that are measured together: about the same size."""
    return next((n for n in CLASSES if size <= n), size)


def filled_up(row: Array, size: int) -> Array:
    """A row with infinite elements at its end."""
    rest = size - row.shape[1]
    if not rest:
        return row
    return concatenate([row, full((1, rest), np.inf, row.aval.dtype)], 1)


def merged(first: Block, second: Block) -> Block:
    """Two blocks of the same sites as one; moments as Chan, Golub and LeVeque do."""
    (ends, moments, sums), (other_ends, other, other_sums) = first, second
    n, mean, m2 = columns(moments)
    k, other_mean, other_m2 = columns(other)
    count = add(n, k)
    share = div(k, max(count, full(count.shape, 1, count.aval.dtype)))
    apart = sub(other_mean, mean)
    both = add(mean, mul(apart, share))
    square = add(add(m2, other_m2), mul(mul(apart, apart), mul(n, share)))
    return (
        max(ends, other_ends),
        concatenate([count, both, square], moments.ndim - 1),
        add(sums, other_sums),
    )


def columns(x: Array) -> list[Array]:
    """The columns of a matrix, or of several, each with its dimension."""
    last = x.ndim - 1
    return [slice_in_dim(x, i, i + 1, axis=last) for i in range(x.shape[last])]


def nothing(sites: int, dtype: np.dtype, slots: Shape = ()) -> Block:
    """The block of sites that have not been reached."""
    width = COUNTED if slots else COUNTED + EXPONENTS
    return (
        full((*slots, sites, 2), -np.inf, dtype),
        full((*slots, sites, 3), 0, dtype),
        full((*slots, sites, width), 0, dtype),
    )


# -----------------------------------------------------------------------------
# Programs inside equations: calls, branches and loops.


@define(eq=False, repr=False)
class Threading(OfWholeValues):
    """The programs of one equation with their measures, and what comes out of them."""

    inner: tuple[Watching | None, ...]
    dtype: np.dtype
    length: int | None
    reverse: bool
    measure: tuple[Array, ...] = ()
    role: Role = Role.CALL

    @property
    def empty(self) -> list[Array]:
        """The measures of all programs where none has run."""
        return [
            x for one in self.inner if one is not None for x in blank(one, self.dtype)
        ]

    def enter(self, role: Role) -> Sequence[object]:
        if role is not Role.STEP:
            return ()
        count = sum(len(one.sites) for one in self.inner if one is not None)
        course = nothing(count, self.dtype, (SLOTS,))
        return [np.int32(0), *self.empty, *course]

    def program(
        self,
        number: int,
        role: Role,
        types: Sequence[Types],
        due: Sequence[Types | None],
    ) -> Jaxpr:
        jaxpr, one = self.jaxprs[number], self.inner[number]
        count, own = len(jaxpr.outvars), len(jaxpr.invars)
        if role is Role.TEST:
            states = [x.aval for x in self.enter_avals()]
            return program(
                (*jaxpr.in_avals, *states), lambda *xs: inlined(jaxpr, xs[:own])
            )

        def once(*ins: Array) -> Sequence[object]:
            outs = inlined(jaxpr if one is None else one.jaxpr, ins)
            return [*outs[:count], *self.filled(number, outs[count:])]

        def again(*ins: Array) -> Sequence[object]:
            outs = once(*ins[:own])
            return [*outs[:count], *self.stepped(ins[own:], outs[count:])]

        if role is not Role.STEP:
            return program(jaxpr.in_avals, once)
        states = [x.aval for x in self.enter_avals()]
        return program((*jaxpr.in_avals, *states), again)

    def enter_avals(self) -> list[Array]:
        """The state at the start of a loop, as arrays, for their types."""
        made: list[Array] = []

        def body() -> list[Array]:
            first, *rest = self.enter(Role.STEP)
            made.append(full((), first, int32))
            made.extend([x for x in rest if isinstance(x, Array)])
            return made

        program((), body)
        return made

    def filled(self, number: int, measure: Sequence[object]) -> list[object]:
        """The measures of all programs of which one has run."""
        out: list[object] = []
        for i, one in enumerate(self.inner):
            if one is not None:
                out += measure if i == number else blank(one, self.dtype)
        return out

    def stepped(
        self, state: Sequence[Array], measure: Sequence[object]
    ) -> list[object]:
        """The state after one step, whose measures these are."""
        count, *before = state
        known, course = before[:-3], before[-3:]
        blocks = [
            merged(blocks_of(known)[i], new) for i, new in enumerate(blocks_of(measure))
        ]
        totals = self.totals(measure)
        slot = slot_of(count, self.length, self.reverse)
        here = [dynamic_index_in_dim(x, slot, 0, keepdims=False) for x in course]
        both = merged((here[0], here[1], here[2]), totals)
        kept = [
            dynamic_update_index_in_dim(x, new, slot, 0)
            for x, new in zip(course, both, strict=True)
        ]
        return [add(count, np.int32(1)), *[x for b in blocks for x in b], *kept]

    def totals(self, measure: Sequence[object]) -> Block:
        """The block of all sites of all programs, without histograms."""
        firsts, at = [], 0
        blocks = blocks_of(measure)
        for one in self.inner:
            if one is not None:
                firsts.append(blocks[at])
                at += 1 + len(one.courses)
        ends, moments, sums = stacked(firsts)
        return ends, moments, slice_in_dim(sums, 0, COUNTED, axis=1)

    def leave(self, role: Role, state: Sequence[Array], lanes: Shape = ()) -> None:
        self.role = role
        out = tuple(state[1:]) if role is Role.STEP else tuple(state)
        self.measure = tuple(over_lanes(out, len(lanes))) if lanes else out


def blank(one: Watching, dtype: np.dtype) -> list[Array]:
    """The measures of a program that has not run."""
    out = [*nothing(len(one.sites), dtype)]
    for course in one.courses:
        out += nothing(course.end - course.first, dtype, (SLOTS,))
    return out


def blocks_of(measure: Sequence[object]) -> list[Block]:
    """The blocks of a measure that was written down array by array."""
    blocks: list[Block] = []
    for i in range(0, len(measure), 3):
        ends, moments, sums = measure[i : i + 3]
        assert isinstance(ends, Array)
        assert isinstance(moments, Array)
        assert isinstance(sums, Array)
        blocks.append((ends, moments, sums))
    return blocks


def stacked(blocks: Sequence[Block]) -> Block:
    """The blocks of different sites, one below the other."""
    ends, moments, sums = zip(*blocks, strict=True)
    return concatenate(ends, 0), concatenate(moments, 0), concatenate(sums, 0)


def over_lanes(measure: Sequence[Array], lanes: int) -> Iterator[Array]:
    """Measures of batch elements, which are the first dimensions, as those of all."""
    for block in blocks_of(measure):
        for _ in range(lanes):
            block = over_rows(block)
        yield from block


def over_rows(block: Block) -> Block:
    """A block for each row, as one of all rows."""
    ends, moments, sums = block
    n, mean, m2 = columns(moments)
    count = reduce_sum(n, (0,))
    some = max(count, full(count.shape, 1, count.aval.dtype))
    both = div(reduce_sum(mul(n, mean), (0,)), some)
    apart = sub(mean, broadcast_in_dim(both, n.shape, range(1, n.ndim)))
    square = reduce_sum(add(m2, mul(n, mul(apart, apart))), (0,))
    most = full(ends.shape[1:], -np.inf, ends.aval.dtype)
    if ends.shape[0]:
        most = reduce_max(ends, (0,))
    return (
        most,
        concatenate([count, both, square], moments.ndim - 2),
        reduce_sum(sums, (0,)),
    )


def slot_of(count: Array, length: int | None, reverse: bool) -> Array:
    """The slot of an iteration: evenly spread, or by logarithm if the end is open."""
    if length is not None:
        row = sub(np.int32(length - 1), count) if reverse else count
        if length <= SLOTS:
            return row
        part = mul(convert(row, float32), np.float32(SLOTS / length))
        return min(convert(part, int32), np.int32(SLOTS - 1))
    half = SLOTS // 2
    far = mul(log2(convert(max(count, np.int32(1)), float32)), np.float32(4))
    late = add(convert(far, int32), np.int32(half - 20))
    late = min(max(late, np.int32(half)), np.int32(SLOTS - 1))
    return select(lt(count, np.int32(half)), count, late)


@frozen(repr=False)
class Uses(ReprMixin):
    """Which results, as numbers of equation and output, other lines read.

    `residual` are those that only the way back reads, of what is made on the way there.
    """

    leaving: frozenset[tuple[int, int]]
    residual: frozenset[tuple[int, int]]


def uses_of(jaxpr: Jaxpr, around: Line | None, residual: Sequence[bool]) -> Uses:
    """The uses in a program within the line `around`, if it is in one.

    `residual` flags the outputs of the program that only the way back reads.
    """
    made: dict[Var, tuple[int, int]] = {}
    lines = [line_of(eqn.source) for eqn in jaxpr.eqns]
    leaving: set[tuple[int, int]] = set()
    back: set[tuple[int, int]] = set()
    there: set[tuple[int, int]] = set()
    for number, eqn in enumerate(jaxpr.eqns):
        here = lines[number]
        for atom in eqn.invars:
            place = made.get(atom) if isinstance(atom, Var) else None
            if place is None:
                continue
            if here[2] and not lines[place[0]][2]:
                back.add(place)
                continue
            there.add(place)
            if lines[place[0]] != here:
                leaving.add(place)
        made.update({v: (number, i) for i, v in enumerate(eqn.outvars)})
    for atom, only_back in zip(jaxpr.outvars, residual, strict=True):
        place = made.get(atom) if isinstance(atom, Var) else None
        if place is None:
            continue
        if only_back:
            back.add(place)
            continue
        there.add(place)
        if lines[place[0]] != around:
            leaving.add(place)
    return Uses(frozenset(leaving), frozenset(back - there))


# -----------------------------------------------------------------------------
# One program.


def watch(jaxpr: Jaxpr, every: bool) -> Watching:
    """The program with measures of the values that leave their lines, or of all."""
    wide = any(v.aval.dtype == float64 for _, eqn in walk(jaxpr) for v in eqn.outvars)
    dtype = np.dtype(np.float64 if wide else np.float32)
    with widths_of([dtype]):
        return inner_watch(jaxpr, every, dtype, None, (False,) * len(jaxpr.outvars))


def inner_watch(
    jaxpr: Jaxpr,
    every: bool,
    dtype: np.dtype,
    around: Line | None,
    residual: tuple[bool, ...],
) -> Watching:
    context = current_context()
    return recall(written, jaxpr, context, jaxpr, every, dtype, around, residual)


@memo(PROGRAMS)
def written(
    context: Context,
    jaxpr: Jaxpr,
    every: bool,
    dtype: np.dtype,
    around: Line | None,
    residual: tuple[bool, ...],
) -> Watching:
    """The program, written again; results for the line `around` do not leave it."""
    writer = Writer(every, dtype, uses_of(jaxpr, around, residual))
    inputs = writer.builder.input_atoms(jaxpr.in_avals)
    with interpreting(writer.builder):
        outs = interpret(jaxpr, inputs, writer.write, itself)
        writer.builder.source = UNKNOWN_SOURCE
        block_of_all = together(writer.blocks or [nothing(0, dtype)])
        measure = [x for block in (block_of_all, *writer.tracks) for x in block]
        atoms = [writer.builder.atom(x) for x in measure]
    closed = writer.builder.close([*outs, *atoms])[0]
    return Watching(closed, tuple(writer.sites), tuple(writer.courses))


class Writer:
    """One program while it is written again: its sites and their measures, so far."""

    def __init__(self, every: bool, dtype: np.dtype, uses: Uses) -> None:
        self.builder = Builder("watch", source=UNKNOWN_SOURCE)
        self.every, self.dtype = every, dtype
        self.sites: list[Site] = []
        self.blocks: list[Block | Array] = []
        self.courses: list[Course] = []
        self.tracks: list[Block] = []
        self.number = 0
        self.uses = uses

    def write(self, eqn: Eqn, ins: Sequence[Atom]) -> Sequence[Atom]:
        """Write an equation, and the measures of its results and of what is inside."""
        builder, number = self.builder, self.number
        builder.source = eqn.source
        self.number += 1
        through = self.threading(eqn, number)
        if through is None:
            outs: Sequence[Atom] = builder.copy(eqn, ins)
        else:
            thread = thread_of(eqn.primitive)
            assert thread is not None, "threading found it"
            args = builder.tracers(ins)
            arrays = flat(thread(through, eqn.params, whole(args)))
            outs = [builder.atom(x) for x in arrays]
            self.take(eqn, through)
        for i, (v, x) in enumerate(
            zip(eqn.outvars, builder.tracers(outs), strict=True)
        ):
            if is_inexact(v.aval.dtype) and self.is_watched(eqn, (number, i)):
                name = maker(eqn, i).primitive.name
                self.sites.append(Site(name, eqn.source, v.aval))
                row = row_of(x, self.dtype)
                few = v.aval.size <= HELD
                self.blocks.append(row if few else measured(row, [v.aval.size]))
        return outs

    def is_watched(self, eqn: Eqn, place: tuple[int, int]) -> bool:
        """Whether a result is a value of the user's: one that leaves a line.

        A call of a jitted function has the values of the lines in it, not its own too.
        """
        made = maker(eqn, place[1])
        if made is not eqn and (self.every or is_of_another_line(made, eqn)):
            return False
        known = eqn.source.code is not None
        return self.every or (known and place in self.uses.leaving)

    def threading(self, eqn: Eqn, number: int) -> Threading | None:
        """How to go through the programs of an equation, if it holds watched values."""
        p = eqn.params
        jaxprs = tuple(p.subjaxprs())
        if thread_of(eqn.primitive) is None or not jaxprs:
            return None
        around = None if is_loop(eqn) else line_of(eqn.source)
        here = [(number, i) in self.uses.residual for i in range(len(eqn.outvars))]
        watches = []
        for inner_jaxpr in jaxprs:
            count = len(inner_jaxpr.outvars)
            mask = tuple(here) if len(here) == count else (False,) * count
            watches.append(
                inner_watch(inner_jaxpr, self.every, self.dtype, around, mask)
            )
        inner = tuple([one if one.sites else None for one in watches])
        if not any(inner):
            return None
        length: int | None = getattr(p, "length", None)
        reverse = bool(getattr(p, "reverse", False))
        return Threading(jaxprs, inner, self.dtype, length, reverse)

    def take(self, eqn: Eqn, through: Threading) -> None:
        """Take over the sites inside an equation, and their measures."""
        looped = through.role is Role.STEP
        rest = list(blocks_of(through.measure))
        own = rest.pop() if looped else None
        start = len(self.sites)
        for one in through.inner:
            if one is None:
                continue
            base = len(self.sites)
            around = (eqn.source,) if looped else ()
            for site in one.sites:
                loops = (*around, *site.loops)
                self.sites.append(Site(site.primitive, site.source, site.aval, loops))
            self.blocks.append(rest.pop(0))
            for course in one.courses:
                self.courses.append(
                    Course(
                        course.source,
                        course.first + base,
                        course.end + base,
                        course.length,
                        course.reverse,
                    )
                )
                self.tracks.append(rest.pop(0))
        if own is not None:
            end, length = len(self.sites), through.length
            self.courses.append(Course(eqn.source, start, end, length, through.reverse))
            self.tracks.append(own)


def maker(eqn: Eqn, output: int) -> Eqn:
    """The equation that makes a result, inside of the calls that return it."""
    while eqn.primitive is jit_p:
        (jaxpr,) = eqn.params.subjaxprs()
        atom = jaxpr.outvars[output]
        places = {v: (e, i) for e in jaxpr.eqns for i, v in enumerate(e.outvars)}
        if not isinstance(atom, Var) or atom not in places:
            return eqn
        eqn, output = places[atom]
    return eqn


def is_of_another_line(made: Eqn, call: Eqn) -> bool:
    """Whether a line of the user's inside of a call makes its result."""
    return made.source.code is not None and line_of(made.source) != line_of(call.source)


def is_loop(eqn: Eqn) -> bool:
    """Whether an equation's programs run again and again."""
    return (
        getattr(eqn.params, "length", None) is not None or traits_of(eqn.primitive).loop
    )
