"""What each line of a program costs, as formulas in sizes that are not known.

One idea: a count of operations is a polynomial in the sizes of a shape, so the rules
that count on numbers count on polynomials too; numbers for the variables give what the
program of that size costs::

    b, d = verax.export.symbolic_shape("b, d")
    report = verax.debug.costs(loss)(struct((d, d)), struct((b, d)))
    report.flops                 # 2*b*d^2 + 3*b*d
    report.at(b=8, d=512)        # the CostReport
"""

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product
from numbers import Real
from typing import Any, Final, cast, override

import numpy as np
from attrs import define, field, frozen

from verax.explorer.costing import (
    CostReport,
    Costs,
    LineCost,
    Sum,
    lines_of,
    stored,
)
from verax.explorer.meshes.devices import Device
from verax.ir.avals import Shape, Shaped, ShapedArray, SymbolicSize, smaller_size
from verax.ir.dtypes import DType, numpy_dtype
from verax.ir.jaxpr import Eqn, Jaxpr, Source, Var
from verax.ir.records import ReprMixin
from verax.ir.text.columns import columns
from verax.ir.text.html import report, table
from verax.ops.symbols.expression import (
    ONE,
    Scope,
    SymbolicDim,
    Term,
    dim_as_value_p,
    dimension,
)
from verax.rules.rows.costs import flops_of, holds_programs, is_choice
from verax.rules.rows.row import traits_of, unknown_flops

PROBES: Final = (8, 128, 4096)
"""Sizes at which the branches of a choice are compared."""
COMBINED: Final = 3
"""How many variables take all sizes together; more take them at once."""
TERMS: Final = 4
"""How many terms of a formula a table shows."""

# -----------------------------------------------------------------------------
# Polynomials whose coefficients need not be integers.


class WithValue(SymbolicSize):
    """A size that is a value where it is a number, for `float` tells so."""

    __slots__ = ()

    @abstractmethod
    def __float__(self) -> float:
        """The number; a TypeError where sizes are not known."""

    @override
    def __jax_array__(self) -> float:
        return float(self)

    @override
    def in_dtype(self, dtype: DType) -> np.ndarray:
        return np.asarray(float(self), numpy_dtype(dtype))


class Formula(WithValue):
    """A number that depends on sizes: a polynomial in symbolic dimensions.

    `at` gives its value, as in `formula.at(b=8, t=128)`, `variables()` the names; it
    adds and multiplies with numbers and with symbolic dimensions.

    >>> import verax, verax.numpy as vnp
    >>> b, d = verax.export.symbolic_shape("b, d")
    >>> x = verax.ShapeDtypeStruct((b, d), vnp.float32)
    >>> flops = verax.debug.costs(lambda x: x @ x.T, device="h100")(x).flops
    >>> flops, flops.at(b=8, d=16)
    (2*b^2*d, 2048.0)
    """

    __module__ = "verax.debug"
    __slots__ = ("scope", "terms")
    __array_ufunc__ = None

    terms: tuple[tuple[Term, float], ...]
    scope: Scope | None

    def __init__(self, terms: Mapping[Term, float], scope: Scope | None) -> None:
        self.terms = tuple(sorted([(t, n) for t, n in terms.items() if n]))[::-1]
        self.scope = scope

    @classmethod
    def of(cls, x: object) -> "Formula | None":
        """A number, a size or a formula as a formula; None for what is none of them."""
        if isinstance(x, Formula):
            return x
        if isinstance(x, SymbolicDim):
            return cls(dict(x.terms), x.scope)
        return cls({ONE: x}, None) if isinstance(x, Real) else None  # type: ignore[dict-item]  # numbers of NumPy too

    @property
    def constant(self) -> float | None:
        """The number, if it depends on no size."""
        if any(term.powers for term, _ in self.terms):
            return None
        return sum([n for _, n in self.terms])

    @property
    def as_dimension(self) -> Any:
        """The same as a size.

        Raises:
            TypeError: a coefficient is no integer.
        """
        if any(n != int(n) for _, n in self.terms):
            raise TypeError(f"{self} is no size: it has coefficients with fractions")
        terms = {term: int(n) for term, n in self.terms}
        return int(float(self)) if self.scope is None else dimension(terms, self.scope)

    def at(self, **sizes: int) -> float:
        """The value for these sizes, one for each variable.

        Raises:
            TypeError: a variable has no size, or a name is no variable.
        """
        check_names(self.variables(), sizes, exactly=True)
        value: float = self.evaluated(sizes)
        return value

    @override
    def evaluated(self, env: Mapping[str, int]) -> Any:
        total = 0.0
        for term, n in self.terms:
            value = n
            for factor, exponent in term.powers:
                value = value * factor.evaluate(env) ** exponent
            total += value
        return total

    @override
    def variables(self) -> set[str]:
        return set().union(*[term.variables() for term, _ in self.terms])

    @override
    def maximum(self, other: object) -> Any:
        first, second = self.as_dimension, sure(other).as_dimension
        return Formula.of(-smaller_size(-first, -second))

    @override
    def minimum(self, other: object) -> Any:
        return Formula.of(smaller_size(self.as_dimension, sure(other).as_dimension))

    def __add__(self, other: object) -> "Formula":
        it = Formula.of(other)
        if it is None:
            return NotImplemented
        terms = dict(self.terms)
        for term, n in it.terms:
            terms[term] = terms.get(term, 0) + n
        return combined(terms, self.scope or it.scope)

    def __mul__(self, other: object) -> "Formula":
        it = Formula.of(other)
        if it is None:
            return NotImplemented
        terms: dict[Term, float] = {}
        for one, n in self.terms:
            for two, m in it.terms:
                term = one * two
                terms[term] = terms.get(term, 0) + n * m
        return combined(terms, self.scope or it.scope)

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> "Formula":
        return self * -1

    def __sub__(self, other: object) -> "Formula":
        it = Formula.of(other)
        return NotImplemented if it is None else self + -it

    def __rsub__(self, other: object) -> "Formula":
        return -self + other

    def __truediv__(self, other: object) -> "Formula":
        it = Formula.of(other)
        if it is None:
            return NotImplemented
        if len(it.terms) != 1:
            raise TypeError(f"{self} is not divided by {it}, which has several terms")
        ((divisor, n),) = it.terms
        terms = {}
        for term, m in self.terms:
            quotient = term.over(divisor)
            if quotient is None:
                raise TypeError(f"{self} is not divided evenly by {it}")
            terms[quotient] = m / n if m % n else m // n
        return combined(terms, self.scope or it.scope)

    def __pow__(self, exponent: int) -> "Formula":
        out: Formula = sure(1)
        for _ in range(exponent):
            out = out * self
        return out

    @override
    def __eq__(self, other: object) -> bool:
        it = Formula.of(other)
        return it is not None and self.terms == it.terms

    @override
    def __hash__(self) -> int:
        return hash(self.terms)

    @override
    def __float__(self) -> float:
        value = self.constant
        if value is None:
            raise TypeError(
                f"{self} is a formula: {call_of(self.variables())} gives its value"
            )
        return float(value)

    @override
    def __repr__(self) -> str:
        return text_of(self.terms)


def combined(terms: Mapping[Term, float], scope: Scope | None) -> Formula:
    """The formula of these terms, with the equalities of their scope used."""
    if scope is None or not scope.constraints:
        return Formula(terms, scope)
    return Formula(scope.normalized(cast(Mapping[Term, int], terms)), scope)


def sure(x: object) -> Formula:
    """A number or a size as a formula.

    Raises:
        TypeError: it is neither.
    """
    out = Formula.of(x)
    if out is None:
        raise TypeError(f"{x!r} is no number and no size")
    return out


def text_of(terms: Sequence[tuple[Term, float]], most: int | None = None) -> str:
    """A sum of terms, the largest first; at most so many."""
    text = "".join([signed(term, n) for term, n in terms[:most]])
    rest = " + …" if most is not None and len(terms) > most else ""
    if text.startswith(" - "):
        text = f"-{text[3:]}"
    return (text.removeprefix(" + ") or "0") + rest


def signed(term: Term, n: float) -> str:
    """A term with its sign and coefficient."""
    sign, size = (" - ", -n) if n < 0 else (" + ", n)
    number = f"{int(size)}" if size == int(size) else f"{size:.4g}"
    if not term.powers:
        return f"{sign}{number}"
    return f"{sign}{term}" if size == 1 else f"{sign}{number}*{term}"


def call_of(names: Iterable[str]) -> str:
    """How to ask for a value."""
    return f".at({', '.join([f'{name}=...' for name in sorted(names)])})"


def check_names(
    known: Iterable[str], sizes: Mapping[str, object], exactly: bool
) -> None:
    """Find variables without a size, and names of none, unless not `exactly`.

    Raises:
        TypeError: there is one.
    """
    names = set(known)
    if names - set(sizes) or (exactly and set(sizes) - names):
        given = ", ".join(sorted(sizes)) or "nothing"
        raise TypeError(
            f"at takes a size for each variable: {call_of(names)}, not {given}"
        )


class Sized(Shaped):
    """A type whose sizes are formulas, for rules that count."""

    __slots__ = ("dtype", "shape")

    def __init__(self, shape: Shape, dtype: DType) -> None:
        self.shape = shape
        self.dtype = dtype


def sized(aval: ShapedArray) -> ShapedArray:
    """The type with formulas in place of sizes that are symbols."""
    shape = [Formula.of(n) if isinstance(n, SymbolicSize) else n for n in aval.shape]
    return cast(ShapedArray, Sized(cast(Shape, tuple(shape)), aval.dtype))


# -----------------------------------------------------------------------------
# Reports.


@frozen(repr=False)
class LineFormula(ReprMixin):
    """The cost of a line as formulas: operations and bytes.

    `notes` say what the formulas do not: that a loop of unknown length counts once, or
    that the dearest branch of a choice depends on sizes. `seconds` is the time of
    computing alone. The other entries are those of `LineCost`.

    >>> import verax, verax.numpy as vnp
    >>> (n,) = verax.export.symbolic_shape("n")
    >>> x = verax.ShapeDtypeStruct((n,), vnp.float32)
    >>> (line,) = verax.debug.costs(vnp.sin, device="h100")(x).lines
    >>> line.flops, line.bytes, line.at(n=1000).bytes
    (n, 8*n, 8000.0)
    """

    __module__ = "verax.debug"

    source: Source = field(repr=False)
    flops: Formula
    bytes: Formula
    seconds: Formula = field(repr=False)
    device: Device = field(repr=False)
    notes: tuple[str, ...]

    @property
    def file(self) -> str:
        """The file of the line."""
        return self.source.file

    @property
    def line(self) -> int:
        """Its number there."""
        return self.source.line

    @property
    def function(self) -> str:
        """The function that it is in."""
        return self.source.function

    @property
    def code(self) -> str:
        """Its text."""
        return self.source.text

    @property
    def kind(self) -> str:
        """ "value", or "cotangent" for what a gradient computes on the way back."""
        return "cotangent" if self.source.backward else "value"

    @property
    def estimated(self) -> bool:
        """Whether all counts are known."""
        return not self.notes

    def variables(self) -> set[str]:
        """The names of the sizes that it depends on."""
        return self.flops.variables() | self.bytes.variables()

    def at(self, **sizes: int) -> LineCost:
        """The cost for these sizes.

        Raises:
            TypeError: a variable has no size.
        """
        check_names(self.variables(), sizes, exactly=False)
        total = Sum(
            self.source,
            self.flops.evaluated(sizes),
            self.bytes.evaluated(sizes),
            self.seconds.evaluated(sizes),
            self.estimated,
        )
        (line,) = lines_of([total], self.device)
        return line


@frozen(repr=False)
class CostFormulas(Costs):
    """The costs of a program whose sizes are symbols: formulas by line.

    `at` gives the report for sizes, without a trace. The lines that are dearest for
    large sizes come first.

    >>> import verax, verax.numpy as vnp
    >>> b, d = verax.export.symbolic_shape("b, d")
    >>> x, w = [verax.ShapeDtypeStruct((n, d), vnp.float32) for n in (b, d)]
    >>> report = verax.debug.costs(vnp.matmul, device="h100")(x, w)
    >>> print(report.title)
    matmul: 2*b*d^2 flops, 8*b*d + 4*d^2 B on h100
    >>> report.at(b=64, d=32).flops
    131072.0
    """

    __module__ = "verax.debug"

    name: str
    device: Device
    lines: tuple[LineFormula, ...]

    @property
    def flops(self) -> Formula:
        """All operations."""
        return sum([line.flops for line in self.lines], sure(0))

    @property
    def bytes(self) -> Formula:
        """All bytes that are read and written."""
        return sum([line.bytes for line in self.lines], sure(0))

    @property
    def time(self) -> float:
        """Unknown: the time is no formula.

        Raises:
            TypeError: always.
        """
        names = call_of(self.variables())
        raise TypeError(f"the time of {self.name} depends on its sizes: {names}.time")

    def variables(self) -> set[str]:
        """The names of the sizes."""
        return set().union(*[line.variables() for line in self.lines])

    def at(self, **sizes: int) -> CostReport:
        """The costs for these sizes, as of the program with them.

        Raises:
            TypeError: a variable has no size, or a name is no variable.
        """
        check_names(self.variables(), sizes, exactly=True)
        lines = sorted([e.at(**sizes) for e in self.lines], key=lambda e: -e.time)
        return CostReport(self.name, self.device, tuple(lines))

    @property
    def title(self) -> str:
        """The sums, in a line."""
        flops, moved = (text_of(x.terms, TERMS) for x in (self.flops, self.bytes))
        return f"{self.name}: {flops} flops, {moved} B on {self.device.name}"

    def __str__(self) -> str:
        rows = columns([HEADS, *map(cells, self.lines)])
        return "\n".join([self.title, *rows])

    def _repr_html_(self) -> str:
        """The table, for notebooks."""
        return report(table(self.title, HEADS, list(map(cells, self.lines))))


HEADS: Final = ("line", "flops", "bytes", "")


def cells(entry: LineFormula) -> tuple[str, ...]:
    """The row of a line in a table."""
    code = ("← " if entry.kind == "cotangent" else "") + (entry.code or "(of no line)")
    return (
        f"{entry.line:>4}  {code if len(code) <= 52 else code[:51] + '…'}",
        text_of(entry.flops.terms, TERMS) + ("" if entry.estimated else "+"),
        text_of(entry.bytes.terms, TERMS),
        "; ".join(entry.notes),
    )


# -----------------------------------------------------------------------------
# Counting.

OPEN_LOOP: Final = "a loop whose length is not known counts once"
SILENT: Final = "an operation does not say what it costs"
SIZES_DECIDE: Final = "sizes decide which branch is dearest: that of large ones counts"


@define(eq=False, repr=False)
class Total(ReprMixin):
    """The costs of a line, so far."""

    source: Source
    flops: Formula
    bytes: Formula
    seconds: Formula
    notes: dict[str, None] = field(factory=dict)


class FormulaCounter:
    """Adds the costs of programs up, by line; see `costing.Counter`."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.totals: dict[object, Total] = {}

    def count(self, jaxpr: Jaxpr, times: Formula, notes: Sequence[str]) -> None:
        """Count a program that runs so many times."""
        sizes = of_sizes(jaxpr)
        memory = stored(jaxpr) - sizes
        for eqn in jaxpr.eqns:
            if sizes.issuperset(eqn.outvars):
                continue
            if holds_programs(eqn):
                self.inside(eqn, times, notes)
                continue
            flops = work_of(eqn)
            silent = [SILENT] if flops is None else []
            self.add(
                eqn,
                times * (flops or 0.0),
                times * moved(eqn, memory),
                [*notes, *silent],
            )

    def inside(self, eqn: Eqn, times: Formula, notes: Sequence[str]) -> None:
        """Count the programs of an equation: of a choice, the one that costs most."""
        length = getattr(eqn.params, "length", None)
        if length is None and traits_of(eqn.primitive).loop:
            notes = [*notes, OPEN_LOOP]
        programs = list(eqn.params.subjaxprs(aside=False))
        if is_choice(eqn):
            dearest, certain = self.dearest(programs)
            programs, notes = [dearest], [*notes, *([] if certain else [SIZES_DECIDE])]
        for jaxpr in programs:
            self.count(jaxpr, times * (1 if length is None else length), notes)

    def dearest(self, programs: Sequence[Jaxpr]) -> tuple[Jaxpr, bool]:
        """The program that takes most time for large sizes, and whether for others."""
        counters = [FormulaCounter(self.device) for _ in programs]
        for counter, jaxpr in zip(counters, programs, strict=True):
            counter.count(jaxpr, sure(1), ())
        names = set().union(*[counter.variables() for counter in counters])
        answer = 0, True
        for i, sizes in enumerate(probes(sorted(names))):
            times = [counter.time(sizes) for counter in counters]
            best = times.index(max(times))
            answer = best, answer[1] and (not i or times[answer[0]] == times[best])
        return programs[answer[0]], answer[1]

    def variables(self) -> set[str]:
        """The names of all sizes."""
        return set().union(
            *[x.flops.variables() | x.bytes.variables() for x in self.totals.values()]
        )

    def time(self, sizes: Mapping[str, int]) -> float:
        """The time of all lines for these sizes."""
        speed = self.device.bandwidth
        total = 0.0
        for x in self.totals.values():
            moving = x.bytes.evaluated(sizes) / speed
            total += max(x.seconds.evaluated(sizes), moving)
        return total

    def add(
        self, eqn: Eqn, flops: Formula, moved: Formula, notes: Iterable[str]
    ) -> None:
        """Add the cost of an equation to its line."""
        source, zero = eqn.source, sure(0)
        key = source.file, source.line, source.backward
        entry = self.totals.setdefault(key, Total(source, zero, zero, zero))
        sizes = [v.aval.dtype.itemsize for v in eqn.outvars] or [4]
        entry.flops = entry.flops + flops
        entry.bytes = entry.bytes + moved
        entry.seconds = entry.seconds + flops * (1 / self.device.peak(max(sizes)))
        entry.notes.update(dict.fromkeys(notes))


def probes(names: Sequence[str]) -> Iterator[Mapping[str, int]]:
    """Sizes for the variables, the largest last."""
    if len(names) > COMBINED:
        yield from ({name: size for name in names} for size in PROBES)
        return
    for sizes in product(PROBES, repeat=len(names)):
        yield dict(zip(names, sizes, strict=True))


def of_sizes(jaxpr: Jaxpr) -> set[Var]:
    """The scalars that are numbers of Python where sizes are numbers.

    What follows from sizes alone is one, unless a rule for derivatives computes it.
    """
    values: set[Var] = set()
    for eqn in jaxpr.eqns:
        operands = {a for a in eqn.invars if isinstance(a, Var)}
        size = eqn.primitive is dim_as_value_p
        known = values.issuperset(operands) if operands else size
        written = eqn.source.backward and work_of(eqn) != 0
        if known and not written and not any([v.aval.shape for v in eqn.outvars]):
            values.update(eqn.outvars)
    return values


def work_of(eqn: Eqn) -> Formula | None:
    """The operations of an equation; None if its row does not say."""
    ins, outs = [a.aval for a in eqn.invars], [v.aval for v in eqn.outvars]
    count = traits_of(eqn.primitive).flops
    if count is None or count is unknown_flops or not (ins and outs):
        shapes = {aval.shape for aval in (*ins, *outs) if aval.shape}
        if count is None and ins and outs and len(shapes) <= 1:
            return sure(outs[0].size)
        return Formula.of(flops_of(eqn, ins, outs)) if not (ins and outs) else None
    try:
        return Formula.of(
            count(eqn.params, list(map(sized, ins)), list(map(sized, outs)))
        )
    except (TypeError, ValueError):  # rules of users, which want numbers
        return None


def bytes_of(aval: ShapedArray) -> Any:
    """The bytes of an array, which may be a symbol."""
    return aval.size * aval.dtype.itemsize


def moved(eqn: Eqn, memory: set[Var]) -> Formula:
    """The bytes that an equation reads and writes in memory."""
    traits = traits_of(eqn.primitive)
    operands = {a: a.aval for a in eqn.invars if isinstance(a, Var) and a in memory}
    whole = sum(map(bytes_of, operands.values()))
    whole += sum([bytes_of(v.aval) for v in eqn.outvars if v in memory])
    if not traits.reads_part and traits.writes_part is None:
        return sure(0 if traits.view else whole)
    rest = sum(map(bytes_of, list({id(a): a.aval for a in eqn.invars}.values())[1:]))
    if traits.reads_part:
        part = rest + 2 * sum([bytes_of(v.aval) for v in eqn.outvars])
    else:
        assert traits.writes_part is not None
        part = rest + bytes_of(eqn.invars[traits.writes_part].aval)
    return sure(smaller_size(whole, part))


def formulas_of(name: str, jaxpr: Jaxpr, device: Device) -> CostFormulas:
    """The costs of a program by line, as formulas."""
    counter = FormulaCounter(device)
    counter.count(jaxpr, sure(1), ())
    large = dict.fromkeys(counter.variables(), PROBES[-1])
    lines = [
        LineFormula(x.source, x.flops, x.bytes, x.seconds, device, tuple(x.notes))
        for x in counter.totals.values()
    ]
    lines.sort(key=lambda line: -line.at(**large).time)
    return CostFormulas(name, device, tuple(lines))
