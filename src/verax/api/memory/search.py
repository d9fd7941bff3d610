"""Floor 5: a program within a budget of memory: `jit(f, memory="2GB")`.

One idea: plans are made on a model of memory, and held to what the compiler says: a
program is planned, compiled and measured, and planned again until it fits::

    found = search(jaxpr, "2GB", measure)
    found.plan.jaxpr, found.measured.total
"""

from collections.abc import Callable
from typing import Final

from attrs import evolve, frozen

from verax.api.memory.budgets import (
    Budget,
    MemoryBudgetExceeded,
    Offload,
    limit_of,
    written,
)
from verax.backend.programs.partitioned import is_absent
from verax.backend.programs.placement import Placement
from verax.backend.xla.executable import MemoryAnalysis
from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.transforms.memory.plan import Host, Plan, Planner

TRIES: Final = 5

# A plan that leaves more than this of the budget free is tried to be better.
CLOSE: Final = 0.85


# Sums are slower in a lean program, which must take no more than this share of memory.
LEAN: Final = 0.9


@frozen(repr=False)
class Measured(ReprMixin):
    """The bytes that a compiled program needs.

    Attributes:
        beside: arguments and results, less what they share.
        temporaries: what is in between.
    """

    beside: int
    temporaries: int

    @property
    def total(self) -> int:
        """All of it."""
        return self.beside + self.temporaries

    @classmethod
    def of(cls, memory: MemoryAnalysis) -> "Measured":
        """What a compiler says."""
        beside = memory.arguments + memory.outputs - memory.aliased
        return cls(beside, memory.temporaries)


type Measure = Callable[[Jaxpr, bool], Measured]
"""Compiles a program, perhaps with `CompileOptions.lean`, and says what it takes."""


@frozen(eq=False, repr=False)
class Fit(ReprMixin):
    """What a search led to.

    Attributes:
        limit: the budget in bytes.
        before: the program without a plan, and `unplanned` its memory.
        plan: the program that was chosen, and `measured` its memory.
        lean: whether that is compiled with `CompileOptions.lean`.
    """

    limit: int
    before: Plan
    unplanned: Measured
    plan: Plan
    measured: Measured
    lean: bool = False

    @property
    def fits(self) -> bool:
        """Whether the program stays within the budget."""
        return self.measured.total <= self.limit

    @property
    def extra(self) -> float:
        """The work that is done again, as a share of the work without a budget."""
        return self.plan.work / self.before.work - 1 if self.before.work else 0.0


def placed(placement: Placement | None) -> Placement | None:
    """Where programs are measured: devices that are not there compile nothing."""
    return None if is_absent(placement) else placement


def host_of(budget: Budget) -> Host | None:
    """The memory of the host that a budget lets values wait in."""
    return Host(budget.to, budget.price) if isinstance(budget, Offload) else None


def search(
    jaxpr: Jaxpr, budget: Budget, measure: Measure, host: Host | None = None
) -> Fit:
    """The plan of little work whose compiled program is within the budget.

    If there is none, the one whose program needs the least. Values may wait in `host`.
    """
    planner = Planner(jaxpr, host)
    before = evolve(planner.start, jaxpr=jaxpr)
    unplanned = measure(jaxpr, False)
    limit = limit_of(budget, unplanned.total)
    start = Fit(limit, before, unplanned, before, unplanned)
    if start.fits:
        return start
    measured = measure(jaxpr, True)
    if measured.total < LEAN * unplanned.total:
        start = evolve(start, measured=measured, lean=True)
        if start.fits:
            return start
    room = max(limit - unplanned.beside, 0)
    target = int(room * before.peak / max(start.measured.temporaries, 1))
    tried: list[Fit] = []
    for _ in range(TRIES):
        plan = planner.within(target)
        candidate = evolve(start, plan=plan, measured=measure(plan.jaxpr, start.lean))
        tried.append(candidate)
        share = candidate.measured.temporaries / max(room, 1)
        if candidate.fits and (share > CLOSE or sum([one.fits for one in tried]) > 1):
            break
        if not candidate.fits and plan.peak > 1.02 * target and len(tried) > 1:
            break  # no plan takes less
        target = int(plan.peak / share * 0.98) if share else before.peak
    fits = [one for one in tried if one.fits]
    if fits:
        return min(fits, key=lambda one: one.plan.work)
    return min(tried, key=lambda one: one.measured.total)


def within(
    jaxpr: Jaxpr, budget: Budget, name: str, measure: Measure, host: Host | None = None
) -> Fit:
    """The program of least work within a budget, as `search` has it.

    Raises:
        MemoryBudgetExceeded: no plan is; the message says how much the best one needs.
        ValueError: shapes are symbolic.
    """
    if any([aval.symbolic for aval in jaxpr.in_avals]):
        raise ValueError(
            f"memory= of {name}: the sizes of its arguments are symbolic, so that the "
            "memory of its program is not known; give the budget where they are numbers"
        )
    fit = search(jaxpr, budget, measure, host)
    if not fit.fits:
        raise MemoryBudgetExceeded(
            f"{name} does not run in {written(fit.limit)}: the least found is "
            f"{written(fit.measured.total)}, of which arguments and results are "
            f"{written(fit.measured.beside)}; without a budget it takes "
            f"{written(fit.unplanned.total)}. Pass memory="
            f"{fit.measured.total} or more, or make the batch smaller"
        )
    return fit
