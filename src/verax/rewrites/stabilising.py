"""Numerical stabilisation: the same function, with the digits that it should have.

One idea: a rule is worth its cost where digits are lost, and a shadow of the function
in wider arithmetic says where that is. So each use of a rule is tried on the arguments
that are given, and kept if it helps there::

    better = stabilise(loss)(params, batch)
    print(better)                   # which rule at which line, digits before and after
    jit(grad(better.function))
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import log10
from typing import Any, Final

import numpy as np
from attrs import evolve, frozen

from verax.api.inspect.precision import Run, Shadow, arithmetic_for, check_shadow
from verax.api.jit import own_statics
from verax.api.tracing.apply import ENGINE
from verax.ir.dtypes import is_inexact
from verax.ir.jaxpr import Eqn, Jaxpr
from verax.ir.records import ReprMixin
from verax.ir.walk import walk
from verax.rewrites.applying import Applied, apply
from verax.rewrites.differences import DIFFERENCES
from verax.rewrites.logarithms import LOGARITHMS
from verax.rewrites.slopes import slopes_of
from verax.rewrites.sums import SUMS, UNDONE
from verax.rules.rows.row import NDArray
from verax.rules.values.conversions import shown
from verax.transforms.patterns.matching import (
    PASSES,
    Places,
    RewriteLoop,
    Use,
    rewritten,
)
from verax.transforms.patterns.rewrite_rules import Rewrite
from verax.transforms.precision.lines import LITTLE, PrecisionLine
from verax.transforms.precision.measures import (
    LEAST,
    RelativeError,
    roundoff,
    sampled,
    yardstick,
)
from verax.transforms.precision.report import PrecisionReport
from verax.transforms.precision.sites import Cell
from verax.transforms.precision.walking import Walk

RULES: tuple[Rewrite, ...] = (*LOGARITHMS, *DIFFERENCES)
MEASURED: tuple[Rewrite, ...] = (*SUMS, *UNDONE)

MINIMUM: Final = 0.5
"""Fewer digits than this are not worth another form."""
ROUNDINGS: Final = 4
"""An error of so many roundings is none to repair, and none to complain of."""
WORSE: Final = 0.1
"""An output may lose so many digits to a use that helps elsewhere."""
AGREED: Final = 0.1
"""Two shadows of one function agree to a digit at least, or they are of two."""

type Place = tuple[str, int]
"""A file and a line."""


def stable(*, measured: bool = False) -> tuple[Rewrite, ...]:
    """Rules that keep results from overflow and cancellation.

    Results are nearer to the exact ones than what they replace; where that was
    accurate they agree with it within the rules' `ulps`. They gain `gain` digits for
    the operands in `weak`, and keep derivatives.

    Args:
        measured: also rules that are only good where a measurement says so, as in
            `stabilise`: sums in loops with what is rounded off, which cost more, and
            `(x + y) - x`, which may be meant as it is written.

    Returns:
        the rules, those of larger patterns first.

    >>> import verax.nn, verax.numpy as vnp
    >>> from verax.rewrites import apply, stable
    >>> def loss(x): return vnp.log(verax.nn.sigmoid(x))
    >>> float(loss(-200.0)), float(apply(stable())(loss)(-200.0))
    (-inf, -200.0)
    """
    return (*RULES, *MEASURED) if measured else RULES


@frozen(repr=False)
class Repair(ReprMixin):
    """A rule that is used at a line, and what that does to digits.

    `lost` and `left` are the digits that the worst of its lines loses without it and
    with it; `error` and `now` the largest relative errors of an output.

    >>> import verax.numpy as vnp
    >>> from verax.rewrites import stabilise
    >>> repair = stabilise(lambda x: vnp.log(1 + x))(3e-6).repairs[0]
    >>> repair.rule, round(repair.lost), round(repair.left)
    ('log_of_one_plus', 5, 0)
    """

    __module__ = "verax.rewrites"

    rule: str
    file: str
    line: int
    code: str
    lost: float
    left: float
    error: float
    now: float

    def __str__(self) -> str:
        """What is done where, in words."""
        change = f"{self.lost:.1f} digits lost before, {self.left:.1f} after"
        return f"line {self.line}: {self.rule}; {change}"


@frozen(eq=False, repr=False)
class Stabilised(ReprMixin):
    """A function whose lines keep their digits, as far as rules can do that.

    `function` is the function with the rules where they have helped, for any arguments;
    it may be compiled, mapped and differentiated like the one it comes from, and is
    that one itself if nothing has helped. `repairs` says what was done, `before` and
    `after` are the reports of `debug.precision`.

    >>> import verax, verax.numpy as vnp
    >>> from verax.rewrites import stabilise
    >>> better = stabilise(lambda x: vnp.sqrt(x + 1) - vnp.sqrt(x))(1e6)
    >>> better
    <Stabilised: <lambda> with step_of_sqrt>
    >>> float(better.result), float(verax.grad(better.function)(1e6))
    (0.000499999..., -2.49999...e-10)
    """

    __module__ = "verax.rewrites"

    name: str
    function: Callable[..., Any]
    repairs: tuple[Repair, ...]
    before: PrecisionReport
    after: PrecisionReport

    @property
    def result(self) -> Any:
        """What the new function returns."""
        return self.after.result

    @property
    def rules(self) -> tuple[str, ...]:
        """The names of the rules that are used."""
        return tuple(dict.fromkeys([repair.rule for repair in self.repairs]))

    def __str__(self) -> str:
        errors = f"{self.before.error:.2g} before, {self.after.error:.2g} after"
        head = f"{self.name}: error of the result, against {self.after.shadow}"
        lines = [f"{head}: {errors}"]
        if not self.repairs:
            lines.append("  no rule helps" if self.before.alarms else "  nothing to do")
        for repair in self.repairs:
            place = f"{repair.file}:{repair.line}" if repair.line else "unknown line"
            lines += [f"  {repair}", f"      {place}  {repair.code}".rstrip()]
        return "\n".join([*lines, *[f"  still, {x}" for x in self.after.alarms]])

    def __repr__(self) -> str:
        what = f"with {', '.join(self.rules)}" if self.repairs else "as it was"
        return f"<Stabilised: {self.name} {what}>"


def stabilise[**P](
    fun: Callable[P, object],
    rules: Rewrite | Iterable[Rewrite] | None = None,
    *,
    minimum: float = MINIMUM,
    shadow: Shadow | None = None,
) -> Callable[P, Stabilised]:
    """A function that finds the rules which give `fun` back its digits.

    On the arguments that it gets, `fun` runs beside a shadow in wider arithmetic, as in
    `debug.precision`. Wherever a line loses digits, the rules that match there are
    tried, one use after the other, and measured: a use is kept if an output or the line
    has at least `minimum` digits more, no output is worse, and the function is the same
    in the shadow. Lines inside of loops, branches, calls, rules of one's own and
    derivatives count like others.

    Args:
        fun: the function; it may be a gradient or any other composition.
        rules: the rules to try; by default all of `stable(measured=True)`.
        minimum: how many digits a use must gain, in base 10.
        shadow: "float64", "longdouble" or "mpmath", as in `debug.precision`. A shadow
            only sees what it has digits for: in float64 itself, log(1 + 1e-17) is 0.

    Returns:
        A function of the arguments of `fun` that returns a `Stabilised`: the new
        function, what was done, and the reports before and after.

    Raises:
        ConcretizationTypeError: it is called where there are no values, in a trace;
            `.function` of what it returns may be called there.
        TypeError: `fun` is not a function, or one of the rules is not a rule.
        ValueError: there is no such shadow, or `minimum` is not positive.

    >>> import verax, verax.numpy as vnp
    >>> from verax.rewrites import stabilise
    >>> def f(x):
    ...     return (1 - vnp.cos(x)) / x**2
    >>> better = stabilise(f)(1e-3)
    >>> print(better)
    f: error of the result, against float64: 0.046 before, ...e-0... after
      line 2: one_minus_cos; 5.9 digits lost before, 0.1 after
          ...:2  return (1 - vnp.cos(x)) / x**2
    >>> float(f(1e-4)), float(verax.jit(better.function)(1e-4))
    (0.0, 0.5)
    """
    if not callable(fun):
        raise TypeError(
            f"stabilise takes a function, not {shown(fun)}; write stabilise(f)(*xs)"
        )
    if not minimum > 0:
        raise ValueError(
            f"minimum is how many digits a rule must gain, not {shown(minimum)}; "
            "write a number greater than 0"
        )
    check_shadow(shadow)
    chosen = apply(stable(measured=True) if rules is None else rules).rules
    statics = own_statics(fun, None, None)

    def stabilised(*args: P.args, **kwargs: P.kwargs) -> Stabilised:
        run = Run.of(fun, statics, args, kwargs, "stabilise")
        search = Search(run, chosen, shadow, minimum)
        first = search.measure(run.jaxpr)
        best = search.improved(first, Best(first))
        if best.now.losing:
            search = evolve(search, rules=(*chosen, *slopes_of(chosen)))
            best = search.improved(first, best)
        function: Callable[..., object] = fun
        if best.uses:
            function = Applied(search.rules, PASSES, best.uses).function(fun)
        now = best.now.report
        return Stabilised(run.name, function, best.repairs, first.report, now)

    return stabilised


# -----------------------------------------------------------------------------
# The search for uses that help.


@frozen(eq=False, repr=False)
class Measured(ReprMixin):
    """A program, its report, and its outputs beside their shadows."""

    jaxpr: Jaxpr
    walk: Walk
    cells: list[Cell]
    report: PrecisionReport

    def lost_at(self, places: Iterable[Place]) -> float:
        """The digits that the worst of some lines loses."""
        asked = set(places)
        lines = [x for x in self.report.lines if place_of(x) in asked]
        return max([x.lost for x in lines], default=0.0)

    @property
    def losing(self) -> Mapping[Place, float]:
        """The lines that lose digits, and how many."""
        out: dict[Place, float] = {}
        for x in self.report.lines:
            if x.lost >= LITTLE:
                place = place_of(x)
                out[place] = max(x.lost, out.get(place, 0.0))
        return out


def place_of(line: PrecisionLine) -> Place:
    """Where a line is."""
    return line.file, line.line


@frozen(eq=False, repr=False)
class Best(ReprMixin):
    """The best program so far, and how it was made."""

    now: Measured
    uses: frozenset[Use] = frozenset()
    repairs: tuple[Repair, ...] = ()


@frozen(eq=False, repr=False)
class Trial(ReprMixin):
    """A use that may help, and the lines of the equations that it replaces."""

    use: Use
    places: frozenset[Place]
    lost: float
    size: int


@frozen(eq=False, repr=False)
class Search(ReprMixin):
    """The uses of rules in the program of a run, by what they do to its digits."""

    run: Run
    rules: tuple[Rewrite, ...]
    shadow: Shadow | None
    minimum: float

    def measure(self, jaxpr: Jaxpr) -> Measured:
        """A program on the arguments of the run."""
        walk = Walk(ENGINE, arithmetic_for(self.run.jaxpr, self.shadow))
        cells = walk.run(jaxpr, self.run.values)
        report = evolve(self.run, jaxpr=jaxpr).report(walk, cells)
        return Measured(jaxpr, walk, cells, report)

    def improved(self, first: Measured, best: Best) -> Best:
        """The best program with each use that helps after those before it."""
        tried = set(best.uses)
        while (trial := self.next_trial(best.now, tried)) is not None:
            tried.add(trial.use)
            after = self.tried(best.uses | {trial.use}, best.now)
            if after is not None and self.helps(first, best.now, after, trial):
                repair = repair_of(trial, best.now, after)
                uses = best.uses | {trial.use}
                best = Best(after, uses, (*best.repairs, repair))
        return best

    def next_trial(self, now: Measured, tried: set[Use]) -> Trial | None:
        """The use to try next: at the worst line, of the largest pattern there."""
        losing = now.losing
        if not losing:
            return None
        places = Places(ENGINE, self.rules)
        places.program(now.jaxpr)
        trials = [
            trial_of(use, eqns, losing)
            for use, eqns in places.places
            if use not in tried
        ]
        useful = [trial for trial in trials if trial.lost]
        # The first of equals, as the rules are in order.
        return max(useful, key=lambda t: (round(t.lost, 1), t.size), default=None)

    def tried(self, uses: frozenset[Use], now: Measured) -> Measured | None:
        """The program with some uses; None if it is as it was, or never ends."""
        try:
            jaxpr = rewritten(ENGINE, self.run.jaxpr, self.rules, PASSES, uses)
        except RewriteLoop:
            return None
        return None if jaxpr == now.jaxpr else self.measure(jaxpr)

    def helps(
        self, first: Measured, now: Measured, after: Measured, trial: Trial
    ) -> bool:
        """Whether a use gains digits, loses none, and keeps the function."""
        if not agree(first, after):
            return False
        pairs = list(zip(now.cells, after.cells, strict=True))
        gains = [digits(old, new) for old, new in pairs]
        if min(gains, default=0.0) < -WORSE:
            return False
        if max(gains, default=0.0) >= self.minimum:
            return True
        lost = [max([x.lost for x in m.report.lines], default=0) for m in (now, after)]
        there = now.lost_at(trial.places) - after.lost_at(trial.places)
        return there >= self.minimum and lost[1] <= lost[0] + WORSE


def trial_of(use: Use, eqns: Sequence[Eqn], losing: Mapping[Place, float]) -> Trial:
    """A use, with the lines of its equations and what the worst of them loses."""
    inner = [
        e for eqn in eqns for jaxpr in eqn.params.subjaxprs() for _, e in walk(jaxpr)
    ]
    places = frozenset([(e.source.file, e.source.line) for e in (*eqns, *inner)])
    lost = max([losing.get(place, 0.0) for place in places], default=0.0)
    return Trial(use, places, lost, len(eqns))


def repair_of(trial: Trial, before: Measured, after: Measured) -> Repair:
    """What a use has done."""
    use = trial.use
    here = before.report.by_line(use.line)
    code = next((x.code for x in here if x.file == use.file), "")
    lost, left = (m.lost_at(trial.places) for m in (before, after))
    errors = before.report.error, after.report.error
    return Repair(use.rule, use.file, use.line, code, lost, left, *errors)


def digits(old: Cell, new: Cell) -> float:
    """The digits that an output has more, by its mean or its worst element.

    Errors of a few roundings are alike. What one of both loses counts.
    """
    if not is_inexact(old.actual.dtype):
        return 0.0
    least = max(ROUNDINGS * roundoff(old.actual.dtype), LEAST)
    before, after = old.error, new.error
    mean, worst = (
        log10(max(a, least) / max(b, least))
        for a, b in ((before.mean, after.mean), (before.worst, after.worst))
    )
    return min(mean, worst) if min(mean, worst) < -WORSE else max(mean, worst)


def agree(first: Measured, after: Measured) -> bool:
    """Whether two programs are one function in wide arithmetic.

    They may differ by what the first one loses, but agree to a digit at least; where
    the first is not finite, anything may be.
    """
    for old, new in zip(first.cells, after.cells, strict=True):
        if not is_inexact(old.actual.dtype) or not old.actual.size:
            continue
        exact = old.exact(first.walk.arithmetic)
        other = new.exact(after.walk.arithmetic)
        off = distance(np.asarray(other), np.asarray(exact)).mean
        least = ROUNDINGS * roundoff(old.actual.dtype)
        if off > min(max(old.error.mean, least), AGREED):
            return False
    return True


def distance(other: NDArray, exact: NDArray) -> RelativeError:
    """How far two shadows are from each other, where the second is finite."""
    due = exact.astype(complex if exact.dtype.kind == "c" else float)
    exact = np.where(np.isfinite(due), exact, other)
    with np.errstate(all="ignore"):
        return yardstick(sampled(other, 1), sampled(exact, 1)).error(sampled(exact, 1))
