"""Floor 1: what a rule is: a row of columns, each with one signature, and tables.

One idea: all that the engine knows of a primitive stands in one frozen row, the row
travels with its primitive, and a table is a value that replaces rows::

    rules = standard | {sin_p: evolve(sin_p, jvp=my_rule)}

Every column is a pure function. `engine` gives a rule the transformations themselves,
for primitives that hold jaxprs. Values are tracers of a small jaxpr under
construction, so a rule reads as mathematics and runs once per kind of equation.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from enum import Enum
from random import Random
from types import MappingProxyType
from typing import Any, ClassVar, Final, Protocol, overload

import numpy as np
from attrs import field, frozen
from pyrsistent import PMap, pmap

from verax.ir.avals import Shape, ShapedArray
from verax.ir.dtypes import DType
from verax.ir.jaxpr import ClosedJaxpr, Jaxpr, Params, Primitive
from verax.ir.meshes import (
    Axes,
    AxisType,
    Explicit,
    MeshAxes,
    MeshType,
    Splits,
    Terms,
    explicit_on,
)
from verax.ir.records import ReprMixin
from verax.ir.walk import close
from verax.rules.rows.bodies import ThreadRule
from verax.rules.rows.eager_costs import Costly
from verax.rules.rows.emitter import Emitter, Operand, by_platform
from verax.rules.rows.kernels import Kernel
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.state import STATE, Interpreter, interpreting

# -----------------------------------------------------------------------------
# Traits: facts about a primitive that passes ask for and no rule states.
#
# A row states them in its column `traits`, and a family fills in what holds for all of
# its members, so that no pass keeps a list of names::
#
#     sin_p = elementwise("sin", np.sin, ..., traits=Traits(Work.SLOW))
#     traits_of(eqn.primitive).work is Work.SLOW
#
# Of a primitive without traits nothing is assumed.


type Avals = Sequence[ShapedArray]
type Flops = Callable[[Any, Avals, Avals], float | None]
"""From params, types of operands and of results to a number of operations; None if it
depends on more than these."""


class Work(Enum):
    """The effort that a compiler makes for one equation, the least first.

    CHEAP: it is computed again wherever it is read, rather than stored.
    ROOT: so are small arrays of it, such as the deviations of rows.
    LIGHT: it takes little of the time of a program.
    SLOW: dozens of instructions for each element.
    STORED: operands and results are stored, for it is no part of a loop with others.
    BLOCK: the same, and the blocks of a program are made around such.
    WHOLE: the same, and a program of such compiles best as one function.

    >>> [work.name for work in Work][:3]
    ['CHEAP', 'ROOT', 'LIGHT']
    """

    __module__ = "verax.extend"

    CHEAP = "cheap"
    ROOT = "root"
    LIGHT = "light"
    SLOW = "slow"
    STORED = "stored"
    BLOCK = "block"
    WHOLE = "whole"


class Narrow(Enum):
    """How an operation stands to the rounding of its operands to a narrower type.

    MOVES: rounding its operands is rounding its result, bit for bit; it moves, picks or
    compares elements.
    SUM: it adds up elements of its only operand, or those of several devices.
    WIDE: its operands are never rounded, whatever other traits say.

    >>> [one.name for one in Narrow]
    ['MOVES', 'SUM', 'WIDE']
    """

    __module__ = "verax.extend"

    MOVES = "moves"
    SUM = "sum"
    WIDE = "wide"


type Accumulate = Callable[[Any, DType], Params | None]
"""From the params of a product and a dtype to those of the product whose operands may
be narrower than that, and its sums and results not; None if it must stay as it is."""


type Turned = Callable[[Any, Sequence[np.ndarray], Sequence[np.ndarray]], Any]
"""From params, results, and the same in other arithmetic to the latter, turned as the
results are; see `Traits.turned`."""


type Copied = Callable[[Any, Sequence[ShapedArray]], Sequence[int]]
"""From params and types to the numbers of operands. See `Traits.copied`."""

type Together = Callable[[Any, Avals, Avals], Sequence[Sequence[Hashable | None]]]
"""From params and types to labels of the dimensions of operands and results, in order:
of what has one label each device may have a part. See `Traits.together`."""


LIGHT: Final = (Work.CHEAP, Work.ROOT, Work.LIGHT, Work.SLOW)
STORED: Final = (Work.STORED, Work.BLOCK, Work.WHOLE)


def no_flops(p: object, ins: Avals, outs: Avals) -> float:
    """No operation: data is moved, or only seen in another way.

    >>> Traits(flops=no_flops, makes_nans=False).flops(None, (), ())
    0.0
    """
    return 0.0


@frozen(repr=False)
class Traits(ReprMixin):
    """Facts about a primitive, beside its rules. The law `traits` checks some of them.

    Attributes:
        work: the effort that a compiler makes for it.
        flops: counts the operations of one run; None to guess them from the types.
        elementwise: each element of a result depends on one of each operand.
        commutative: its two operands may change places, unless one is NaN.
        fma: the compiler may join it with a sum that follows, with one rounding.
        makes_nans: it computes, so that a NaN in a result may be its own doing. What
            moves, picks or converts elements, or asks the host for them, makes none.
        additive: f(x + y) is f(x) + f(y), element by element, of its only operand.
        keeps_zero: f(0) is 0, for its only operand; None if nothing is said.
        marker: it is there to be seen, so that nothing may compute it in advance.
        loop: its programs run any number of times.
        quick_in_numpy: NumPy is so good at it that compiling it gains nothing.
        view: it moves no byte.
        reads_part: it reads no more of its first operand than it returns.
        summed: XLA's library for sums and extremes on a CPU computes it on the way to
            one, or it is one.
        joined_by: the primitive that joins what a reduction makes of two parts of its
            operand, element by element.
        copied: the numbers of the operands that XLA copies into another layout on a
            CPU, from params and types.
        writes_part: the number of the operand that it writes into a part of its first.
        narrow: what rounding its operands does; see `moves`.
        accumulate: it sums products of its two operands, which may be rounded.
        turned: the mathematics leaves a sign or a phase open, or the basis of a space
            of which nothing depends: turns other right results as given ones are.
        together: labels of the dimensions that XLA's partitioner splits together, where
            it splits more than explicit axes may; None where the column `sharding` says
            all. A label that no result has is summed over.
        moves: `narrow` is MOVES, or is not said and it neither computes nor marks.
        light: `work` is LIGHT or less, or SLOW.
        stored: `work` is STORED or more.
        fuses: a compiler writes it into one loop with others of its shape.

    >>> traits = Traits(Work.SLOW, elementwise=True)
    >>> traits.light, traits.stored, traits.fuses
    (True, False, True)
    """

    __module__ = "verax.extend"

    work: Work | None = None
    flops: Flops | None = None
    elementwise: bool = False
    commutative: bool = False
    fma: bool = False
    makes_nans: bool = True
    additive: bool = False
    keeps_zero: bool | None = None
    marker: bool = False
    loop: bool = False
    quick_in_numpy: bool = False
    view: bool = False
    reads_part: bool = False
    summed: bool = False
    joined_by: Primitive | None = None
    copied: Copied | None = None
    writes_part: int | None = None
    narrow: Narrow | None = None
    accumulate: Accumulate | None = None
    turned: Turned | None = None
    together: Together | None = None
    # Passes ask for these of each equation, so they are computed once.
    light: bool = field(init=False, eq=False)
    stored: bool = field(init=False, eq=False)
    fuses: bool = field(init=False, eq=False)
    moves: bool = field(init=False, eq=False)

    @light.default
    def takes_little_time(self) -> bool:
        """Whether it takes little of the time of a program."""
        return self.work in LIGHT

    @stored.default
    def is_stored(self) -> bool:
        """Whether compilers store its results and do not compute them twice."""
        return self.work in STORED

    @fuses.default
    def joins_loops(self) -> bool:
        """Whether a compiler writes it into one loop with others of its shape."""
        return self.elementwise and self.work is not None

    @moves.default
    def commutes_with_rounding(self) -> bool:
        """Whether rounding the operands is rounding the results."""
        if self.narrow is None:
            return self.flops is no_flops and not (self.makes_nans or self.marker)
        return self.narrow is Narrow.MOVES


NO_TRAITS: Final = Traits()


def traits_of(primitive: Primitive) -> Traits:
    """The traits that the row of a primitive states.

    >>> from verax.ops.elementwise.arith import add_p, sub_p
    >>> traits_of(add_p).commutative, traits_of(sub_p).commutative
    (True, False)
    """
    traits: Traits = getattr(primitive, "traits", NO_TRAITS)
    return traits


def unknown_flops(p: object, ins: Avals, outs: Avals) -> None:
    """Types do not say: it runs outside the program."""


def each_result(p: object, ins: Avals, outs: Avals) -> float:
    """One operation for each element of the result."""
    return outs[0].size


def each_operand(p: object, ins: Avals, outs: Avals) -> float:
    """One operation for each element of the first operand."""
    return ins[0].size


def each_update(p: object, ins: Avals, outs: Avals) -> float:
    """One operation for each element that is scattered."""
    return ins[-1].size


# -----------------------------------------------------------------------------
# What a rule is: a row of columns, each with one signature, and tables.


@frozen(repr=False)
class Zero(ReprMixin):
    """A tangent or cotangent known to be zero, of the given tangent type."""

    __module__ = "verax.extend"

    aval: ShapedArray

    @classmethod
    def from_primal_value(cls, x: object) -> "Zero":
        """The zero tangent of a value."""
        return cls(aval_of(x).tangent())


@frozen(repr=False)
class Linear(ReprMixin):
    """An operand that a transpose or split rule may not look at: only its type."""

    aval: ShapedArray


type Tangent = Array | Zero
type Known = Array | Linear
type NDArray = np.ndarray
type Axis = int | None


class CoreOps(Protocol):
    """The few operations that families need; `verax.ops.core` has them."""

    def add(self, x: Array, y: Array) -> Array: ...
    def zeros(self, aval: ShapedArray) -> Array: ...
    def broadcast_in_dim(self, x: Array, shape: Shape, dimensions: Shape) -> Array: ...
    def reduce_sum(self, x: Array, axes: Shape) -> Array: ...
    def transpose(self, x: Array, permutation: Shape) -> Array: ...
    def reshape(self, x: Array, shape: Shape) -> Array: ...
    def convert(self, x: object, dtype: DType, weak_type: bool = False) -> Array: ...
    def reshard(
        self, x: Array, explicit: Explicit | None, mesh: MeshType | None = None
    ) -> Array: ...
    def sum_over(self, x: Array, axes: Axes, sizes: Shape) -> Array: ...
    def map_elements(
        self, jaxpr: Jaxpr, size: int, fixed: Sequence[Array], stacks: Sequence[Array]
    ) -> Sequence[Array]: ...


@frozen(repr=False)
class Split(ReprMixin):
    """A split equation: what is known now, and how to finish later.

    `known` has a value for each output that is known and None for the others;
    `finish(residuals, unknown operands)` gives the others, in order, and may use
    nothing but its arguments.
    """

    known: tuple[Array | None, ...]
    residuals: tuple[Array, ...]
    finish: Callable[[Sequence[Array], Sequence[Array]], Sequence[Array]]


@frozen(repr=False)
class BatchAxis(ReprMixin):
    """The dimension that batch rules add: its name, and the mesh axes that split it.

    They stand in the types of batched values if they are explicit, of `mesh`. `parts`
    is the mesh of a `shard_map` over all of its axes.
    """

    name: str | None
    spmd: tuple[str, ...] = ()
    mesh: MeshType | None = None
    parts: MeshAxes | None = None

    @property
    def of_parts(self) -> bool:
        """Whether its elements are the parts of a `shard_map` along that name."""
        return self.spmd == (self.name,)


class Engine(Protocol):
    """The transformations under one table, as rules of higher-order rows use them.

    `axis` is what is known of the dimension that `batch` adds.
    """

    def __hash__(self) -> int: ...
    @property
    def axis(self) -> BatchAxis | None: ...
    @property
    def rules(self) -> "RuleTable": ...
    @property
    def core(self) -> CoreOps: ...
    def evaluate(self, jaxpr: Jaxpr, args: Sequence[NDArray]) -> list[NDArray]: ...
    def jvp(
        self, jaxpr: Jaxpr, nonzero: tuple[bool, ...]
    ) -> tuple[Jaxpr, tuple[bool, ...]]: ...
    def transpose(
        self, jaxpr: Jaxpr, linear: tuple[bool, ...], nonzero: tuple[bool, ...]
    ) -> tuple[Jaxpr, tuple[bool, ...]]: ...
    def batch(
        self, jaxpr: Jaxpr, size: int, axes: tuple[Axis, ...]
    ) -> tuple[Jaxpr, tuple[Axis, ...]]: ...
    def split(
        self, jaxpr: Jaxpr, unknown: tuple[bool, ...]
    ) -> tuple[Jaxpr, Jaxpr, tuple[bool, ...]]: ...
    def dce(
        self, jaxpr: Jaxpr, used: tuple[bool, ...]
    ) -> tuple[Jaxpr, tuple[bool, ...]]: ...


type TypeRule[P] = Callable[[P, Sequence[ShapedArray]], Sequence[ShapedArray]]
type EvaluateRule[P] = Callable[[Engine, P, Sequence[NDArray]], Sequence[NDArray]]
# Some of the tangents are not zero: a rule of one operand is asked with its tangent.
type JvpRule[P] = Callable[
    [Engine, P, Sequence[Array], Sequence[Tangent]],
    tuple[Sequence[Array], Sequence[Tangent]],
]
# Some of the cotangents are not zero: a rule of one result is asked with its cotangent.
type TransposeRule[P] = Callable[
    [Engine, P, Sequence[Tangent], Sequence[Known]], Sequence[Tangent | None]
]
type BatchRule[P] = Callable[
    [Engine, P, int, Sequence[Array], Sequence[Axis]],
    tuple[Sequence[Array], Sequence[Axis]],
]
type LowerRule[P] = Callable[
    [Emitter, P, Sequence[Operand], Sequence[ShapedArray]], Sequence[Operand]
]
type ShardingRule[P] = Callable[
    [P, Sequence[ShapedArray], Sequence[ShapedArray]], Sequence[Splits]
]
"""From params, types of operands and of results to the axes that split the results."""
type TermRule[P] = Callable[[P, Sequence[ShapedArray]], Terms]
"""From params and types of operands to the axes over which results are to be summed."""
type SplitRule[P] = Callable[[Engine, P, Sequence[Known]], Split]
type DceRule[P] = Callable[
    [Engine, P, tuple[bool, ...]], tuple[P, tuple[bool, ...], tuple[bool, ...]]
]


def as_typed(*_: object) -> Sequence[Splits]:
    """The column of rows whose type rule speaks of explicit axes itself.

    So do rows that run programs, which have types of their own.
    """
    raise TypeError("the type rule of the row knows how the results are split")


def is_split(avals: Iterable[ShapedArray]) -> bool:
    """Whether an explicit axis splits one of these types."""
    return any([aval.explicit is not None for aval in avals])


def same_kind(aval: ShapedArray) -> ShapedArray:
    """The type without weakness and what splits it, by which programs are called."""
    return unsplit(aval.strong())


def unsplit(aval: ShapedArray) -> ShapedArray:
    """The type that says no more of mesh axes than what a program must know.

    What splits a value changes no result; but a program cannot take terms for it, nor
    what differs for what is the same on all devices.
    """
    explicit = aval.explicit
    if explicit is None:
        return aval
    own, known = explicit.terms, explicit.mesh.of_type(AxisType.Manual)
    reduced = tuple([axis for axis in own.reduced if axis in known])
    terms = Terms(own.unreduced, reduced, own.kind, varying=own.varying)
    return aval.with_explicit(explicit_on(explicit.mesh, ((),) * aval.ndim, terms))


def stripped(avals: Iterable[ShapedArray]) -> list[ShapedArray]:
    """The types without their explicit axes."""
    return [aval.with_explicit(None) for aval in avals]


@frozen(repr=False)
class Sample[P](ReprMixin):
    """One call that tests may make: params, operand types, and where values lie.

    `domains` has one entry per operand, or none for the domains of the row.
    """

    __module__ = "verax.extend"

    params: P
    avals: tuple[ShapedArray, ...]
    domains: tuple["Domain", ...] = ()


type SomeSample = Sample[Any]
"""Operands of a primitive, whatever its params are."""


@frozen(repr=False)
class Domain(ReprMixin):
    """From where tests draw operands: an interval, points of special interest.

    `kinks` are points at which no derivative exists. `smooth` says whether central
    differences make sense at all.
    """

    __module__ = "verax.extend"

    low: float = -np.inf
    high: float = np.inf
    special: tuple[float, ...] = ()
    kinks: tuple[float, ...] = ()
    smooth: bool = True


REALS = Domain()
NOWHERE: Mapping[str, LowerRule[Any]] = MappingProxyType({})


def frozen_rules(rules: Mapping[str, LowerRule[Any]]) -> Mapping[str, LowerRule[Any]]:
    """The rules of `lower_on` as a row keeps them; see `by_platform`."""
    return by_platform(rules) if rules else NOWHERE


@frozen(eq=False, repr=False)
class Row[P: Params](Primitive):
    """A primitive with all its rules.

    A column that is None follows from others where it can (`rules.programs.derived`);
    else the transformation that needs it raises an error which names primitive, column,
    the user's line and what to write. `lower_on` has the rules for platforms on which
    the row lowers differently; `lower` is for the others. A `kernel` says it in simpler
    operations, for large arrays on a CPU. `composition(params,
    *operands)` says a row in terms of other primitives. `thread` is for rows that hold
    programs: it takes transformations through them (`rules.rows.bodies`). `traits` are
    facts that passes ask for: what it moves, costs and stores (`rules.rows.traits`).
    Eager calls run in NumPy; those that are `costly` there and all of `compiled` rows
    run as compiled programs. Where `spelled(params)` gives a jaxpr, its equations run
    instead, one by one: the row is only a name for them. Rows that are `hosted` are for
    the host wherever the operands are: eager calls evaluate them there. They raise
    exceptions, or call functions of the user's, who sees there what he sees around the
    call: his context variables, and what NumPy does about floating-point errors. A row
    whose results are not always one array says `multiple_results`.
    """

    __module__ = "verax.extend"

    typing: TypeRule[P]
    evaluate: EvaluateRule[P] | None = None
    jvp: JvpRule[P] | None = None
    transpose: TransposeRule[P] | None = None
    batch: BatchRule[P] | None = None
    lower: LowerRule[P] | None = None
    lower_on: Mapping[str, LowerRule[P]] = field(
        default=NOWHERE, converter=frozen_rules
    )
    kernel: Kernel | None = None
    sharding: ShardingRule[P] | None = None
    terms: TermRule[P] | None = None
    split: SplitRule[P] | None = None
    dce: DceRule[P] | None = None
    thread: ThreadRule[P] | None = None
    draw: Callable[[Random], Sample[P]] | None = None
    domains: tuple[Domain, ...] = (REALS,)
    costly: Costly | None = None
    traits: Traits = NO_TRAITS
    compiled: bool = False
    spelled: Callable[[P], Jaxpr | None] | None = None
    hosted: bool = False
    composition: Callable[..., Any] | None = None
    whole: bool = field(init=False)

    @whole.default
    def has_all_columns(self) -> bool:
        """Whether nothing could be derived: what a table asks at each look."""
        columns = (self.evaluate, self.batch)
        return self.composition is None and None not in columns and self.lowers

    @property
    def lowers(self) -> bool:
        """Whether the row says how it lowers, on some platform at least."""
        return self.lower is not None or bool(self.lower_on)

    def has(self, column: str) -> bool:
        """Whether the row writes a column; `lower`, on some platform at least."""
        return self.lowers if column == "lower" else getattr(self, column) is not None

    def lowering(self, platform: str) -> LowerRule[P]:
        """The rule that lowers the row for a platform.

        Raises:
            MissingRule: it has none.
        """
        rule = self.lower_on.get(platform, self.lower)
        if rule is None:
            raise MissingRule(
                f"the primitive {self.name} has no lowering for {platform}; give its "
                f"row lower=..., or lower_on={{{platform!r}: ...}}"
            )
        return rule

    @overload
    def bind(self, params: P, /, *args: object) -> tuple[Array, ...]: ...
    @overload
    def bind(self, /, *args: object, **fields: object) -> Any: ...
    def bind(self, params: object = None, /, *args: object, **fields: object) -> Any:
        """Apply the primitive under the current interpreter; all results.

        Params may be given by their fields instead, as programs for JAX do:
        `bind(x, y, **params)`. That returns an array, not a tuple with one, unless
        the row has `multiple_results`.
        """
        if isinstance(params, Params):
            return STATE.interpreter.bind(self, params, args)
        operands = args if params is None else (params, *args)
        closed = {name: without_constvars(value) for name, value in fields.items()}
        result = self.params.from_keywords(closed)
        results = STATE.interpreter.bind(self, result, operands)
        if self.multiple_results:
            return results
        if len(results) != 1:
            raise TypeError(
                f"the primitive {self.name} has {len(results)} results; give its row "
                "multiple_results=True"
            )
        return results[0]

    def bind_with_trace(
        self,
        trace: Interpreter,
        args: Sequence[object],
        avals: object,
        params: Mapping[str, object],
    ) -> Any:
        """`bind` under another interpreter, by the name that libraries for JAX know."""
        with interpreting(trace):
            return self.bind(*args, **params)

    def call(self, params: P, *args: object) -> Array:
        """Apply a primitive of one result under the current interpreter."""
        return STATE.interpreter.bind(self, params, args)[0]


def without_constvars(value: object) -> object:
    """A param by keyword: constants of closed jaxprs are literals in equations."""
    if isinstance(value, ClosedJaxpr):
        return close(value)
    if isinstance(value, (tuple, list)) and any(
        isinstance(item, ClosedJaxpr) for item in value
    ):
        return tuple([without_constvars(item) for item in value])
    return value


class MissingRule(NotImplementedError):
    """A transformation reached a primitive whose row lacks the rule that it needs."""

    __module__ = "verax.errors"


class IrreversibleLoop(MissingRule, ValueError):
    """Reverse mode met a loop of unknown length; JAX raises a ValueError."""

    __module__ = "verax.errors"


class ForeignDerivative(MissingRule, ValueError):
    """A derivative of code that verax cannot see inside; JAX raises a ValueError."""

    __module__ = "verax.errors"


type SomeRow = Row[Any]
"""A primitive, whatever its params are."""


@frozen(eq=False, repr=False)
class RuleTable(ReprMixin):
    """An immutable choice of rows: `table[p]` is the row that replaces `p`, or `p`.

    `complete` adds the columns that follow from others; a table without it is strict.
    """

    __module__ = "verax.extend"

    transient: ClassVar[bool] = False

    replaced: PMap[Primitive, SomeRow] = field(factory=pmap)
    complete: Callable[[SomeRow], SomeRow] | None = None

    def __getitem__(self, primitive: Primitive) -> SomeRow:
        row = self.replaced.get(primitive, primitive) if self.replaced else primitive
        if isinstance(row, Row):
            return row if row.whole or self.complete is None else self.complete(row)
        raise MissingRule(
            f"the primitive {primitive.name} has no row in this table; make it with a "
            f"family of verax.rules, or join a table that holds one: rules | rows"
        )

    def __or__(self, rows: "RuleTable | Mapping[Primitive, SomeRow]") -> "RuleTable":
        """This table, with the rows of the other in front."""
        other = rows.replaced if isinstance(rows, RuleTable) else rows
        return RuleTable(self.replaced.update(other), self.complete)

    def strict(self) -> "RuleTable":
        """The same rows, without any column that they do not write themselves."""
        return RuleTable(self.replaced)


def missing(primitive: Primitive, column: str, advice: str) -> MissingRule:
    """The error for an empty column, with what to write."""
    return MissingRule(f"the primitive {primitive.name} has no {column} rule; {advice}")


type Rows = tuple[SomeRow, ...]
"""The primitives of a file, whatever their params are."""


def names(rows: Iterable[SomeRow]) -> dict[str, SomeRow]:
    """Rows by name, as the parser wants them; two rows of one name are an error."""
    table: dict[str, SomeRow] = {}
    for row in rows:
        if row.name in table:
            raise ValueError(f"two rows have the same name, {row.name}")
        table[row.name] = row
    return table
