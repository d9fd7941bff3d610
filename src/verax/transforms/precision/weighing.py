"""Floor 3: what the rounding of each equation does to the result, by its cotangents.

One idea: the run is kept, loops unrolled, and cotangents are pulled back along it; an
error times the cotangent of its value is what it does to the loss::

    tape = Tape(engine)
    outs = Walk(engine, wide, tape).run(jaxpr, values)
    tape.weigh(outs)                        # site.effect
"""

from collections.abc import Sequence

import numpy as np
from attrs import define, field, frozen
from pyrsistent import pvector

from verax.ir.dtypes import float64, is_complex, is_inexact
from verax.ir.jaxpr import Eqn, Jaxpr, variable
from verax.ir.records import ReprMixin
from verax.ops.elementwise.convert import reduce_precision_p
from verax.ops.elementwise.select import stop_gradient_p
from verax.rules.rows.row import Engine, NDArray
from verax.rules.values.state import widths_of
from verax.transforms.engine.derivatives import linearize
from verax.transforms.engine.engine import as_typed
from verax.transforms.precision.arithmetic import InFloat64, Wide
from verax.transforms.precision.sites import Cell, Site
from verax.transforms.precision.walking import Place, Recorder


def passes_change(site: Site) -> bool:
    """Whether a change of the operand is one of the result, whatever the derivative."""
    row = site.eqn.primitive
    return row is stop_gradient_p or row is reduce_precision_p


@frozen(eq=False, repr=False)
class Ran(ReprMixin):
    """An equation that has run, and the errors that it has made by itself."""

    site: Site
    operands: list[Cell]
    results: list[Cell]
    gaps: list[NDArray | None]


@frozen(eq=False, repr=False)
class Picked(ReprMixin):
    """A part of a value that has gone into a program."""

    whole: Cell
    index: Place
    part: Cell


@frozen(eq=False, repr=False)
class Stacked(ReprMixin):
    """Parts that have become one value."""

    parts: list[Cell]
    whole: Cell


@frozen(eq=False, repr=False)
class Pullback(ReprMixin):
    """The derivative of an equation: what to keep of a run, and the way back."""

    forward: Jaxpr
    backward: Jaxpr
    given: tuple[bool, ...]
    taken: tuple[bool, ...]
    results: int


@define(eq=False, repr=False)
class Tape(ReprMixin, Recorder):
    """A run, equation by equation; `skipped` are operations without a derivative."""

    engine: Engine
    arithmetic: InFloat64 = field(init=False)
    entries: list[Ran | Picked | Stacked] = field(factory=list)
    known: dict[int, tuple[Eqn, Pullback | None]] = field(factory=dict)
    skipped: set[str] = field(factory=set)

    def __attrs_post_init__(self) -> None:
        self.arithmetic = InFloat64(self.engine)

    def ran(
        self,
        site: Site,
        operands: list[Cell],
        results: list[Cell],
        exact: list[Wide] | None,
    ) -> None:
        gaps: list[NDArray | None] = [None] * len(results)
        if exact is not None:
            for k, (cell, due) in enumerate(zip(results, exact, strict=True)):
                if site.measured[k]:
                    gaps[k] = gap_of(cell.actual, due)
        self.entries.append(Ran(site, operands, results, gaps))

    def picked(self, whole: Cell, index: Place, part: Cell) -> None:
        self.entries.append(Picked(whole, index, part))

    def stacked(self, parts: list[Cell], whole: Cell) -> None:
        self.entries.append(Stacked(parts, whole))

    def weigh(self, outs: Sequence[Cell]) -> float:
        """Give each site its effect on the result; the size of that.

        A first output that is a scalar is the loss; else the norm of all is.
        """
        cts: dict[int, NDArray] = {}
        size = seed(outs, cts)
        with np.errstate(all="ignore"):
            for entry in reversed(self.entries):
                self.back(entry, cts)
        return size

    def back(self, entry: Ran | Picked | Stacked, cts: dict[int, NDArray]) -> None:
        """Pull cotangents back through an entry."""
        if isinstance(entry, Picked):
            ct = cts.pop(id(entry.part), None)
            if ct is not None:
                whole = cts.get(id(entry.whole))
                if whole is None:
                    whole = np.zeros(entry.whole.actual.shape, ct.dtype)
                whole[entry.index] += ct
                cts[id(entry.whole)] = whole
        elif isinstance(entry, Stacked):
            ct = cts.pop(id(entry.whole), None)
            if ct is not None:
                rows = ct.reshape((len(entry.parts), *entry.parts[0].actual.shape))
                for part, row in zip(entry.parts, rows, strict=True):
                    add_to(cts, part, row)
        else:
            self.through(entry, cts)

    def through(self, entry: Ran, cts: dict[int, NDArray]) -> None:
        """Pull cotangents back through an equation, and weigh its errors."""
        site = entry.site
        result_cts = [cts.pop(id(cell), None) for cell in entry.results]
        if all([ct is None for ct in result_cts]):
            return
        for ct, gap in zip(result_cts, entry.gaps, strict=True):
            if ct is not None and gap is not None:
                site.effect += float(np.abs(ct * gap).sum())
        if passes_change(site):
            if result_cts[0] is not None and site.reads[0]:
                add_to(cts, entry.operands[0], result_cts[0])
            return
        pullback = self.pullback(site.eqn)
        if pullback is None:
            return
        values = [self.arithmetic.widen(c.actual) for c in entry.operands]
        with widths_of((float64,)):
            kept = self.engine.evaluate(pullback.forward, values)[pullback.results :]
            given = [
                np.zeros(x.actual.shape, cotangent_dtype(x)) if ct is None else ct
                for ct, x, flag in zip(
                    result_cts, entry.results, pullback.given, strict=True
                )
                if flag
            ]
            typed = [
                as_typed(x, v.aval)
                for x, v in zip([*kept, *given], pullback.backward.invars, strict=True)
            ]
            outs = iter(self.engine.evaluate(pullback.backward, typed))
        for cell, flag in zip(entry.operands, pullback.taken, strict=True):
            if flag:
                add_to(cts, cell, next(outs))

    def pullback(self, eqn: Eqn) -> Pullback | None:
        """The derivative of an equation in wide arithmetic; None if it has none."""
        if id(eqn) not in self.known:
            self.known[id(eqn)] = eqn, self.derived(eqn)
        return self.known[id(eqn)][1]

    def derived(self, eqn: Eqn) -> Pullback | None:
        own = self.arithmetic.wider(eqn)
        if own is None or not any([is_inexact(a.aval.dtype) for a in own.invars]):
            return None
        try:
            with widths_of((float64,)):
                return derivative(self.engine, own)
        except (TypeError, ValueError, NotImplementedError, KeyError):
            self.skipped.add(eqn.primitive.name)
            return None


def derivative(engine: Engine, eqn: Eqn) -> Pullback:
    """The derivative of an equation, whose operands are all inputs."""
    count = len(eqn.invars)
    inputs = tuple([variable(i, a.aval) for i, a in enumerate(eqn.invars)])
    outs = tuple([variable(count + i, v.aval) for i, v in enumerate(eqn.outvars)])
    jaxpr = Jaxpr((), inputs, pvector([eqn.replace(invars=inputs, outvars=outs)]), outs)
    varying = tuple([is_inexact(a.aval.dtype) for a in inputs])
    forward, tangent, mask = linearize(engine, jaxpr, varying)
    kept = len(forward.outvars) - len(outs)
    moving = len(tangent.invars) - kept
    linear = (*[False] * kept, *[True] * moving)
    backward, live = engine.transpose(tangent, linear, (True,) * len(tangent.outvars))
    flags = iter(live)
    taken = tuple([flag and next(flags) for flag in varying])
    return Pullback(forward, backward, mask, taken, len(outs))


def gap_of(actual: NDArray, due: Wide) -> NDArray | None:
    """The distance of each element from what it should be; None if there is none."""
    if not isinstance(due, np.ndarray) or due.shape != actual.shape:
        return None
    gaps = np.abs(np.asarray(actual, due.dtype) - due)
    gaps = np.nan_to_num(gaps.astype(np.float64), posinf=0.0)
    return gaps if gaps.any() else None


def seed(outs: Sequence[Cell], cts: dict[int, NDArray]) -> float:
    """The cotangents of the outputs, and the size of what they are derivatives of."""
    known = [c for c in outs if is_inexact(c.actual.dtype)]
    if known and known[0] is outs[0] and not known[0].actual.shape:
        cts[id(known[0])] = np.ones((), cotangent_dtype(known[0]))
        return abs(complex(known[0].actual[()]))
    wide = [c.actual.astype(cotangent_dtype(c)) for c in known]
    norm = float(np.sqrt(sum([float((np.abs(x) ** 2).sum()) for x in wide])))
    for c, x in zip(known, wide, strict=True):
        add_to(cts, c, np.conj(x) / norm if norm else np.ones_like(x))
    return norm


def cotangent_dtype(cell: Cell) -> type[np.number]:
    """The dtype of the cotangent of a value."""
    return np.complex128 if is_complex(cell.actual.dtype) else np.float64


def add_to(cts: dict[int, NDArray], cell: Cell, ct: NDArray) -> None:
    """Add to the cotangent of a value."""
    if cell.actual.dtype.kind in "biu":
        return
    known = cts.get(id(cell))
    cts[id(cell)] = np.array(ct) if known is None else known + ct
