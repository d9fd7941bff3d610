"""Floor 3: which lines may be narrow, if the error of a program must stay small.

One idea: what all lines together may do is settled by one trial in most programs; else
halves of the lines, those that gain most first, are tried until single lines are
left::

    plan, trials = searched(plan, jaxpr, lambda plan: error_of(plan) <= tolerance)
"""

from collections.abc import Callable, Sequence

from attrs import define, evolve

from verax.ir.jaxpr import Jaxpr
from verax.ir.records import ReprMixin
from verax.rules.rows.costs import bytes_moved
from verax.transforms.narrowing.plan import Narrowing, Place, place_of
from verax.transforms.narrowing.report import reported, runs_of


@define(eq=False, repr=False)
class Search(ReprMixin):
    """The lines that are narrow so far, and how many programs were tried."""

    plan: Narrowing
    accepts: Callable[[Narrowing], bool]
    lines: frozenset[Place] = frozenset()
    trials: int = 0

    def add(self, group: Sequence[Place]) -> None:
        """Make those of some lines narrow that can be."""
        if not group:
            return
        more = self.lines.union(group)
        self.trials += 1
        if self.accepts(evolve(self.plan, lines=more)):
            self.lines = more
        elif len(group) > 1:
            half = len(group) // 2
            self.add(group[:half])
            self.add(group[half:])


def searched(
    plan: Narrowing, jaxpr: Jaxpr, accepts: Callable[[Narrowing], bool]
) -> tuple[Narrowing, int]:
    """The plan with as many narrow lines as are accepted, and the number of trials."""
    lines = gaining(plan, jaxpr)
    search = Search(plan, accepts)
    search.add(lines)
    return evolve(plan, lines=search.lines), search.trials


def gaining(plan: Narrowing, jaxpr: Jaxpr) -> list[Place]:
    """The lines that can be narrow, those with most operations first, then bytes."""
    moved: dict[Place, float] = {}
    for eqn, times in runs_of(jaxpr):
        if plan.product(eqn) is not None:
            place = place_of(eqn.source)
            moved[place] = moved.get(place, 0.0) + times * bytes_moved(eqn)
    lines = [one for one in reported(plan, jaxpr).lines if one.narrow_flops]
    lines.sort(key=lambda one: (-one.narrow_flops, -moved[one.file, one.line]))
    return [(one.file, one.line) for one in lines]
