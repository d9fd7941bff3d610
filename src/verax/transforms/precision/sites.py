"""Floor 3: equations that were watched beside their shadow, and what was measured.

One idea: an equation has a site for each place from which its program runs, and adds up
there what each of its runs has shown::

    site.lost, site.local, site.overflow
"""

from enum import Enum, auto
from math import prod
from types import CodeType

import numpy as np
from attrs import define, field

from verax.ir.atoms import Literal, Var
from verax.ir.dtypes import DType, is_inexact
from verax.ir.jaxpr import Eqn, Jaxpr, Params, Source
from verax.ir.records import ReprMixin
from verax.ops.contraction.dot import DotParams
from verax.ops.control.scan_params import ScanParams
from verax.ops.control.while_params import WhileParams
from verax.ops.elementwise.arith import add_p, sub_p
from verax.ops.elementwise.convert import convert_element_type_p, reduce_precision_p
from verax.ops.reductions.cumulative import cumsum_p
from verax.ops.reductions.reduce import reduce_sum_p
from verax.rules.rows.row import Engine, EvaluateRule, NDArray, Traits, no_flops
from verax.transforms.comparing.alignment import is_open
from verax.transforms.nans import PREDICATE
from verax.transforms.precision.arithmetic import Arithmetic, Wide
from verax.transforms.precision.measures import (
    EXACT,
    Accidents,
    RelativeError,
    roundoff,
    smallest,
)

type Line = tuple[str, int, str]


class Kind(Enum):
    """What an equation is to digits, beside its traits."""

    DIFFERENCE = auto()
    SUM = auto()
    PRODUCT = auto()
    OTHER = auto()


def kind_of(eqn: Eqn) -> Kind:
    """What adds up its operands, or the elements of one, or of a product of two."""
    row = eqn.primitive
    if row is add_p or row is sub_p:
        return Kind.DIFFERENCE
    if row is reduce_sum_p or row is cumsum_p:
        return Kind.SUM
    return Kind.PRODUCT if isinstance(eqn.params, DotParams) else Kind.OTHER


def only_rounds(eqn: Eqn) -> bool:
    """Whether an equation has its operand as its result, in a narrower type."""
    row = eqn.primitive
    return row is convert_element_type_p or row is reduce_precision_p


def is_order(eqn: Eqn, traits: Traits) -> bool:
    """Whether a result has each element of the operand as often as any other."""
    if traits.flops is not no_flops or (len(eqn.invars), len(eqn.outvars)) != (1, 1):
        return False
    (x,), (y,) = eqn.invars, eqn.outvars
    return x.aval.dtype == y.aval.dtype and prod(y.aval.shape) >= prod(x.aval.shape)


@define(eq=False, repr=False)
class Cell(ReprMixin):
    """A value in a run: as it is, and as it would be; no shadow if they are equal.

    `error` is that of the value so far; `entry` is the one with which the values came
    that `line` has made it from, and `terms` the size of what it is a sum of.
    It is `noise` if it would be 0. `unit` is the roundoff of the narrowest type that it
    has been rounded to.
    """

    actual: NDArray
    shadow: Wide | None = None
    error: RelativeError = EXACT
    entry: float = 0.0
    line: Line | None = None
    wide: Wide | None = None
    terms: float = 0.0
    noise: bool = False
    unit: float = 0.0

    def widened(self, arithmetic: Arithmetic) -> Wide:
        """The value itself in wide arithmetic."""
        if self.wide is None:
            self.wide = arithmetic.widen(self.actual)
        return self.wide

    def exact(self, arithmetic: Arithmetic) -> Wide:
        """The value as it would be."""
        return self.widened(arithmetic) if self.shadow is None else self.shadow

    @property
    def decided(self) -> bool:
        """Whether it is as the shadow has it."""
        return self.shadow is None or np.array_equal(self.actual, self.shadow)


@define(eq=False, repr=False)
class Site(ReprMixin):
    """An equation at its place in a program, and what its runs have shown.

    `lost` and `line_lost` are the digits of the worst run: lost by the equation, and by
    its line up to its result; `drift` those that all runs of a loop have lost together.
    `evaluate` is the rule of an equation that needs no care.
    """

    eqn: Eqn
    source: Source
    levels: tuple[Eqn, ...]
    leaves: bool
    turning: bool
    opened: bool
    moving: bool
    order: bool
    outside: bool
    elementwise: bool
    evaluate: EvaluateRule[Params] | None
    measured: tuple[bool, ...]
    reads: tuple[bool, ...]
    dtype: DType | None
    unit: float
    limit: float
    line: Line
    name: str
    kind: Kind
    terms: int
    coarse: float = 0.0
    runs: int = 0
    worst: RelativeError = EXACT
    worst_at: tuple[int, ...] = ()
    total: float = 0.0
    local: RelativeError = EXACT
    local_total: float = 0.0
    lost: float = 0.0
    lost_at: tuple[int, ...] = ()
    line_lost: float = 0.0
    line_at: tuple[int, ...] = ()
    entry: float = 0.0
    growth: float = 0.0
    drift: float = 0.0
    drift_runs: int = 0
    cancelled: float = 0.0
    overflow: int = 0
    underflow: int = 0
    subnormal: int = 0
    nans: int = 0
    absorbed: int = 0
    decisions: int = 0
    misled: bool = False
    effect: float = 0.0

    @property
    def plain(self) -> bool:
        """Whether there is nothing with digits in the equation."""
        return self.dtype is None and not any(self.reads)

    @property
    def decides(self) -> bool:
        """Whether it makes a decision of numbers that have errors."""
        return any(self.reads) and not all(self.measured)

    def count(self, accidents: Accidents, scale: float) -> None:
        """Add what happened to elements; of a sample, as many as there may be."""
        self.overflow += round(accidents.overflow * scale)
        self.underflow += round(accidents.underflow * scale)
        self.subnormal += round(accidents.subnormal * scale)
        self.nans += round(accidents.nans * scale)


@define(eq=False, repr=False)
class Body(ReprMixin):
    """A program at its place: its sites, and the programs inside of its equations."""

    jaxpr: Jaxpr
    sites: list[Site]
    inner: dict[tuple[int, int], "Body"] = field(factory=dict)
    constants: dict[int, Cell] = field(factory=dict)

    def every(self) -> list[Site]:
        """All sites, those of inner programs too."""
        sites = list(self.sites)
        for inner in self.inner.values():
            sites += inner.every()
        return sites


def body_of(
    engine: Engine,
    jaxpr: Jaxpr,
    levels: tuple[Eqn, ...],
    around: Source,
    cycle: frozenset[int],
) -> Body:
    """The sites of a program; equations `cycle` are on the way of a loop's carry."""
    known: dict[CodeType, list[int]] = {}
    lines: list[Line] = []
    sources: list[Source] = []
    for eqn in jaxpr.eqns:
        source = eqn.source if eqn.source.code is not None else around
        sources.append(source)
        lines.append(line_of(source, known))
    leaving = leaving_equations(jaxpr, lines)
    sites = [
        site_of(engine, eqn, source, line, levels, i in leaving, i in cycle)
        for i, (eqn, source, line) in enumerate(
            zip(jaxpr.eqns, sources, lines, strict=True)
        )
    ]
    return Body(jaxpr, sites)


def line_of(source: Source, known: dict[CodeType, list[int]]) -> Line:
    """The file, the number and the function of a line; `known` has those of codes."""
    code = source.code
    if code is None:
        return source.file, 0, source.function
    if code not in known:
        known[code] = [place[0] or 0 for place in code.co_positions()]
    numbers, place = known[code], source.instruction // 2
    number = numbers[place] if place < len(numbers) else 0
    return source.file, number or source.line, source.function


def site_of(
    engine: Engine,
    eqn: Eqn,
    source: Source,
    line: Line,
    levels: tuple[Eqn, ...],
    leaves: bool,
    turning: bool,
) -> Site:
    """The site of an equation, before its first run."""
    name = eqn.primitive.name
    row = engine.rules[eqn.primitive]
    traits = row.traits
    measured = tuple([is_inexact(v.aval.dtype) for v in eqn.outvars])
    dtypes = [
        v.aval.dtype for v, flag in zip(eqn.outvars, measured, strict=True) if flag
    ]
    picks = traits.flops is no_flops or not traits.makes_nans
    moving = picks and not only_rounds(eqn)
    dtype = dtypes[0] if dtypes else None
    held = next(eqn.params.subjaxprs(), None) is not None
    return Site(
        eqn,
        source,
        levels,
        leaves,
        turning,
        is_open(eqn),
        moving,
        moving and is_order(eqn, traits),
        row.hosted,
        traits.elementwise,
        None if held or row.hosted else row.evaluate,
        measured,
        tuple([is_inexact(a.aval.dtype) for a in eqn.invars]),
        dtype,
        roundoff(dtype) if dtype is not None else 0.0,
        smallest(dtype) if dtype is not None else 0.0,
        line,
        name,
        kind_of(eqn),
        terms_of(eqn),
    )


def terms_of(eqn: Eqn) -> int:
    """How many terms a sum has."""
    shapes = [a.aval.shape for a in eqn.invars]
    if isinstance(eqn.params, DotParams):
        (left, _), _ = eqn.params.dimension_numbers
        return prod([shapes[0][i] for i in left])
    if kind_of(eqn) is not Kind.SUM:
        return 1
    before, after = prod(shapes[0]), prod(eqn.outvars[0].aval.shape)
    return before // after if 0 < after < before else 2


def leaving_equations(jaxpr: Jaxpr, lines: list[Line]) -> set[int]:
    """The equations with a result that another line reads, or that is returned."""
    makers = {v.index: i for i, eqn in enumerate(jaxpr.eqns) for v in eqn.outvars}
    numbers = {makers.get(a.index) for a in jaxpr.outvars if isinstance(a, Var)}
    for i, eqn in enumerate(jaxpr.eqns):
        for atom in eqn.invars:
            maker = None if isinstance(atom, Literal) else makers.get(atom.index)
            if maker is not None and lines[maker] != lines[i]:
                numbers.add(maker)
    return {i for i in numbers if i is not None}


def cycle_of(jaxpr: Jaxpr, carry_in: range, carry_out: range) -> frozenset[int]:
    """The equations of a loop's body on a way from its carry to the next one."""
    reached = {jaxpr.invars[i].index for i in carry_in}
    forward = set()
    for i, eqn in enumerate(jaxpr.eqns):
        if any(isinstance(a, Var) and a.index in reached for a in eqn.invars):
            forward.add(i)
            reached.update([v.index for v in eqn.outvars])
    carried = {a.index for k in carry_out if isinstance(a := jaxpr.outvars[k], Var)}
    numbers = set()
    for i in reversed(range(len(jaxpr.eqns))):
        eqn = jaxpr.eqns[i]
        if any(v.index in carried for v in eqn.outvars):
            carried.update([a.index for a in eqn.invars if isinstance(a, Var)])
            if i in forward:
                numbers.add(i)
    return frozenset(numbers)


def loop_cycle(eqn: Eqn, which: int, jaxpr: Jaxpr) -> frozenset[int]:
    """The same for a program of an equation that may be a loop."""
    p, count = eqn.params, len(jaxpr.invars)
    if isinstance(p, ScanParams):
        consts, carry, _ = p.parts(range(len(eqn.invars)))
        first, length = len(consts), len(carry)
        return cycle_of(jaxpr, range(first, first + length), range(length))
    if isinstance(p, WhileParams) and which != PREDICATE:
        carried = len(jaxpr.outvars)
        return cycle_of(jaxpr, range(count - carried, count), range(carried))
    return frozenset()
