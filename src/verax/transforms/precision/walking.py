"""Floor 3: a program that runs beside its shadow, equation by equation.

One idea: every variable has a cell with its value and with what it would be; loops and
choices go the way of the values, and the shadow comes along::

    walk = Walk(engine, InFloat64(engine))
    outs = walk.run(jaxpr, values)
"""

from collections.abc import Callable, Sequence
from math import log10
from typing import Final, Literal as OneOf, TypedDict

import numpy as np
from attrs import define, field

from verax.ir.jaxpr import UNKNOWN_SOURCE, Eqn, Jaxpr, Literal, Var
from verax.ir.records import ReprMixin
from verax.ops.calls.call import NamedCall, stored_shape
from verax.ops.contraction.dot import DotParams, free
from verax.ops.control.cond_params import CondLanesParams, CondParams, branch_of
from verax.ops.control.scan_params import ScanParams
from verax.ops.control.while_params import WhileParams
from verax.rules.rows.row import Engine, NDArray, traits_of
from verax.transforms.comparing.running import Programs
from verax.transforms.engine.engine import as_typed, evaluate_eqn, literal_value
from verax.transforms.nans import PREDICATE
from verax.transforms.precision.arithmetic import Arithmetic, Wide
from verax.transforms.precision.measures import (
    SAMPLE,
    RelativeError,
    grown,
    is_finite,
    sampled,
    stride,
)
from verax.transforms.precision.noting import (
    Chosen,
    Due,
    note_decisions,
    note_order,
    note_result,
)
from verax.transforms.precision.sites import (
    Body,
    Cell,
    Site,
    body_of,
    loop_cycle,
)

ROWS: Final = 7
"""One row of a large product in so many is computed again."""
BESIDE: Final = 1.0
"""What grows by so many digits more than the carry does not go into it."""
BLAMED: Final = 0.5
"""A line of a loop counts with this share of the growth of the first one."""


type Place = int | tuple[int, ...]
type ErrorMode = OneOf["ignore", "warn", "raise", "call", "print", "log"]


class ErrorModes(TypedDict):
    """What NumPy does about errors of floating point, see `numpy.errstate`."""

    divide: ErrorMode
    over: ErrorMode
    under: ErrorMode
    invalid: ErrorMode


class Recorder:
    """Hears of each equation that has run; this one does nothing."""

    def ran(
        self,
        site: Site,
        operands: list[Cell],
        results: list[Cell],
        exact: list[Wide] | None,
    ) -> None:
        """An equation has run; `exact` is what it should have made of its operands."""

    def picked(self, whole: Cell, index: Place, part: Cell) -> None:
        """A part of a value has gone into a program."""

    def stacked(self, parts: list[Cell], whole: Cell) -> None:
        """Parts have become one value."""


@define(eq=False, repr=False)
class Walk(ReprMixin):
    """A program under way with its shadow; `recorder` asks for all local errors."""

    engine: Engine
    arithmetic: Arithmetic
    recorder: Recorder | None = None
    programs: Programs = field(factory=Programs)
    steps: list[int] = field(factory=list)
    errors: ErrorModes = field(factory=np.geterr)
    root: Body | None = None

    def run(self, jaxpr: Jaxpr, values: Sequence[NDArray]) -> list[Cell]:
        """The outputs of a program, from inputs that are exact."""
        flat = self.flat(jaxpr)
        self.root = body_of(self.engine, flat, (), UNKNOWN_SOURCE, frozenset())
        with np.errstate(all="ignore"):
            return self.outputs(self.root, [Cell(x) for x in values])

    def outputs(self, body: Body, inputs: Sequence[Cell]) -> list[Cell]:
        """The outputs of a program at its place."""
        env = list(inputs)

        def read(atom: Var | Literal) -> Cell:
            if isinstance(atom, Var):
                return env[atom.index]
            known = body.constants.get(id(atom))
            if known is None:
                known = body.constants[id(atom)] = Cell(literal_value(atom))
            return known

        for number, site in enumerate(body.sites):
            cells = [read(a) for a in site.eqn.invars]
            if site.opened:
                env += self.through(body, number, site, cells)
            else:
                env += self.once(site, cells)
        return [read(a) for a in body.jaxpr.outvars]

    def flat(self, jaxpr: Jaxpr) -> Jaxpr:
        """The program without calls: one object each time."""
        if any(isinstance(eqn.params, NamedCall) for eqn in jaxpr.eqns):
            return self.programs.flat(jaxpr)
        return jaxpr

    # Equations without programs inside.

    def once(self, site: Site, cells: list[Cell]) -> list[Cell]:
        """The results of an equation, which is run in both arithmetics."""
        eqn = site.eqn
        outs = self.evaluated(site, [c.actual for c in cells])
        exact = all([c.shadow is None for c in cells])
        if site.outside or (exact and (site.plain or site.moving)):
            site.runs += 1
            results = [Cell(x, line=site.line) for x in outs]
            if self.recorder is not None:
                self.recorder.ran(site, cells, results, None)
            return results
        shadows = self.wide(eqn, [c.exact(self.arithmetic) for c in cells], outs)
        if site.plain:
            return self.plain(site, outs, shadows)
        if site.order:
            results = [note_order(self, site, cells[0], outs[0], shadows[0])]
            due = None
        else:
            due = self.due(site, cells, outs, shadows, exact)
            results = self.noted(site, cells, (outs, shadows), due)
        site.runs += 1
        if site.decides:
            note_decisions(site, results, self.steps)
        if self.recorder is not None:
            values = None if due is None else due.values
            self.recorder.ran(site, cells, results, values)
        return results

    def wide(
        self, eqn: Eqn, operands: Sequence[Wide], outs: Sequence[NDArray]
    ) -> list[Wide]:
        """The results in wide arithmetic, as near to `outs` as the mathematics lets."""
        exact = self.arithmetic.run(eqn, operands)
        turned = traits_of(eqn.primitive).turned
        return exact if turned is None else list(turned(eqn.params, outs, exact))

    def noted(
        self,
        site: Site,
        cells: list[Cell],
        both: tuple[list[NDArray], list[Wide]],
        due: Due | None,
    ) -> list[Cell]:
        """The cells of the results, measured where they have digits."""
        results = []
        for k, (out, shadow) in enumerate(zip(*both, strict=True)):
            if site.measured[k] and out.size:
                cell = note_result(self, site, cells, (out, shadow), due, k)
                results.append(cell)
            else:
                results.append(self.settled(site, out, shadow))
        return results

    def evaluated(self, site: Site, operands: list[NDArray]) -> list[NDArray]:
        """The results of the equation itself, as the interpreter has them."""
        eqn = site.eqn
        if site.evaluate is None:
            with np.errstate(**self.errors):
                return evaluate_eqn(self.engine, eqn, operands)
        outs = site.evaluate(self.engine, eqn.params, operands)
        return [as_typed(x, v.aval) for x, v in zip(outs, eqn.outvars, strict=True)]

    def plain(self, site: Site, outs: list[NDArray], shadows: list[Wide]) -> list[Cell]:
        """Results without digits, of operands some of which were decided otherwise."""
        site.runs += 1
        return [self.settled(site, x, s) for x, s in zip(outs, shadows, strict=True)]

    def settled(self, site: Site, out: NDArray, shadow: Wide) -> Cell:
        """A result without digits."""
        same = np.array_equal(out, shadow)
        return Cell(out, None if same else shadow, line=site.line)

    def due(
        self,
        site: Site,
        cells: list[Cell],
        outs: list[NDArray],
        shadows: list[Wide],
        exact: bool,
    ) -> Due | None:
        """What exact arithmetic makes of the actual operands.

        None where the equation makes no error. Of large arrays a part may be enough.
        """
        if exact:
            return Due(shadows, whole=True)
        if site.moving:
            return None
        part = None if self.recorder is not None else part_of(site, cells, outs)
        if part is None:
            wide = [c.widened(self.arithmetic) for c in cells]
            return Due(self.wide(site.eqn, wide, outs))
        chosen, operands = part
        wide = [self.arithmetic.widen(x) for x in operands]
        return Due(self.arithmetic.run(site.eqn, wide), chosen)

    # Equations with programs inside.

    def through(
        self, body: Body, number: int, site: Site, cells: list[Cell]
    ) -> list[Cell]:
        """The results of a loop or choice, which goes the way of the values."""
        site.runs += 1
        p = site.eqn.params

        def run(
            which: int, step: int | None, jaxpr: Jaxpr, inputs: list[Cell]
        ) -> list[Cell]:
            inner = self.inner(body, number, site, which, jaxpr)
            if step is None:
                return self.outputs(inner, inputs)
            self.steps.append(step)
            outs = self.outputs(inner, inputs)
            self.steps.pop()
            return outs

        if isinstance(p, ScanParams):
            outs = self.scan(p, run, cells)
            self.note_growth(body, number, cells, outs, len(p.parts(cells)[1]))
            return outs
        if isinstance(p, WhileParams):
            outs = self.repeat(p, run, site, cells)
            self.note_growth(body, number, cells, outs, len(outs))
            return outs
        if isinstance(p, CondLanesParams):
            return self.lanes(p, run, site, cells)
        assert isinstance(p, CondParams), "is_open knows the equation"
        index, *inputs = cells
        self.follow(site, index)
        branch = branch_of(p, index.actual)
        return run(p.branches.index(branch), None, branch, inputs)

    def inner(
        self, body: Body, number: int, site: Site, which: int, jaxpr: Jaxpr
    ) -> Body:
        """The program inside of an equation at its place."""
        key = (number, which)
        if key not in body.inner:
            flat = self.flat(jaxpr)
            body.inner[key] = body_of(
                self.engine,
                flat,
                (*site.levels, site.eqn),
                site.source,
                loop_cycle(site.eqn, which, flat),
            )
        return body.inner[key]

    def follow(self, site: Site, cell: Cell) -> None:
        """Note whether the shadow would have gone another way."""
        if not cell.decided:
            site.decisions += 1
            site.misled = True

    def scan(self, p: ScanParams, run: "Run", cells: list[Cell]) -> list[Cell]:
        consts, carry, xs = p.parts(cells)
        rows: list[list[Cell]] = []
        for number in range(p.length):
            row = p.length - 1 - number if p.reverse else number
            picked = [self.pick(x, row) for x in xs]
            outs = run(0, number, p.jaxpr, [*consts, *carry, *picked])
            carry, ys = p.results(outs)
            rows.append(ys)
        ordered = rows[::-1] if p.reverse else rows
        return [*carry, *[self.stack(ys) for ys in zip(*ordered, strict=True)]]

    def repeat(
        self, p: WhileParams, run: "Run", site: Site, cells: list[Cell]
    ) -> list[Cell]:
        for_test, for_body, carry = p.parts(cells)
        number = 0
        while True:
            (more,) = run(PREDICATE, number, p.cond_jaxpr, [*for_test, *carry])
            self.follow(site, more)
            if not more.actual:
                return carry
            carry = run(0, number, p.body_jaxpr, [*for_body, *carry])
            number += 1

    def lanes(
        self, p: CondLanesParams, run: "Run", site: Site, cells: list[Cell]
    ) -> list[Cell]:
        index, *rest = cells
        self.follow(site, index)
        results: list[list[Cell]] = []
        for number, lane in enumerate(np.ndindex(*p.lanes)):
            branch = branch_of(p, index.actual[lane])
            inputs = [
                self.pick(x, lane) if flag else x
                for x, flag in zip(rest, p.mapped, strict=True)
            ]
            results.append(run(p.branches.index(branch), number, branch, inputs))
        outs = []
        for parts, aval in zip(zip(*results, strict=True), p.out_avals, strict=True):
            outs.append(self.stack(parts, (*p.lanes, *stored_shape(aval))))
        return outs

    def pick(self, cell: Cell, index: Place) -> Cell:
        """A row of a value."""
        shadow = None if cell.shadow is None else np.asarray(cell.shadow[index])
        actual = np.asarray(cell.actual[index])
        part = Cell(
            actual,
            shadow,
            cell.error,
            cell.entry,
            cell.line,
            terms=cell.terms,
            unit=cell.unit,
        )
        if self.recorder is not None:
            self.recorder.picked(cell, index, part)
        return part

    def stack(
        self, parts: Sequence[Cell], shape: tuple[int, ...] | None = None
    ) -> Cell:
        """Rows as one value."""
        actual = np.stack([c.actual for c in parts])
        shadow = None
        if any([c.shadow is not None for c in parts]):
            shadow = np.stack([c.exact(self.arithmetic) for c in parts])
        if shape is not None:
            actual = actual.reshape(shape)
            shadow = None if shadow is None else shadow.reshape(shape)
        worst = max([c.error.worst for c in parts])
        mean = sum([c.error.mean for c in parts]) / len(parts)
        entry = max([c.entry for c in parts])
        unit = max([c.unit for c in parts])
        error = RelativeError(worst, mean)
        whole = Cell(actual, shadow, error, entry, parts[-1].line, unit=unit)
        if self.recorder is not None:
            self.recorder.stacked(list(parts), whole)
        return whole

    def note_growth(
        self,
        body: Body,
        number: int,
        cells: list[Cell],
        outs: list[Cell],
        carried: int,
    ) -> None:
        """Note which lines of a loop have lost digits from one iteration to the next.

        What an equation adds to the error in each iteration adds up along the carry;
        that cannot be more than what the carry has lost in all.
        """
        inner = body.inner.get((number, 0))
        if inner is None:
            return
        turning = [s for s in inner.sites if s.turning]
        unit = max([s.coarse for s in inner.every()], default=0.0)
        carry = [c.error.mean for c in outs[:carried] if not c.noise]
        after = max(carry, default=0.0)
        before = max([c.error.mean for c in cells], default=0.0)
        if unit:
            site = body.sites[number]
            most = grown(before, after, unit)
            site.growth += log10(max(after, unit) / max(before, unit))
            blame(inner, turning, most)
        for s in turning:
            s.growth = 0.0


def blame(body: Body, turning: list[Site], most: float) -> None:
    """Give lines of a loop the digits that its carry has lost in all iterations."""
    along = [s for s in turning if s.growth <= most + BESIDE]
    first = max([s.growth for s in along], default=0.0)
    if first < BLAMED * most:  # it is lost in turns, by several of them
        along, first = turning, max([s.growth for s in turning], default=0.0)
    for s in along:
        share = min(most, s.growth)
        if s.growth < BLAMED * first or share <= s.drift:
            continue
        s.drift, s.drift_runs = share, s.runs
        inner = body.inner.get((body.sites.index(s), 0)) if s.opened else None
        if inner is not None:
            most_inside = max([x.drift for x in inner.every()], default=0.0)
            for x in inner.every():
                if x.turning and not x.opened and x.drift >= BLAMED * most_inside:
                    x.drift, x.drift_runs = max(share, x.drift), x.runs


type Run = Callable[[int, int | None, Jaxpr, list[Cell]], list[Cell]]


def part_of(
    site: Site, cells: list[Cell], outs: list[NDArray]
) -> tuple[Chosen, list[NDArray]] | None:
    """A part of the elements of a large result, with the operands that it needs."""
    if len(outs) != 1 or outs[0].size <= SAMPLE or not is_finite(outs[0]):
        return None
    if site.elementwise:
        return sample_of(cells, outs[0])
    p = site.eqn.params
    if isinstance(p, DotParams):
        return some_rows(p, [c.actual for c in cells])
    return None


def sample_of(cells: list[Cell], out: NDArray) -> tuple[Chosen, list[NDArray]] | None:
    """An even sample of a result of which each element is made by itself."""
    step = stride(out.size)
    operands = []
    for c in cells:
        x = c.actual
        if x.size == 1:
            operands.append(x.reshape(()))
        elif x.shape == out.shape:
            operands.append(sampled(x, step))
        else:
            return None
    return step, operands


def some_rows(
    p: DotParams, operands: list[NDArray]
) -> tuple[Chosen, list[NDArray]] | None:
    """One row of a product in so many, with these rows of its left operand."""
    left, right = operands
    rows = free(p, 0, left.ndim)
    longest = max(rows, key=lambda i: left.shape[i], default=None)
    if longest is None or left.shape[longest] < 2 * ROWS:
        return None
    before = len(p.dimension_numbers[1][0]) + rows.index(longest)
    own = (*[slice(None)] * longest, slice(None, None, ROWS))
    return (*[slice(None)] * before, slice(None, None, ROWS)), [left[own], right]
