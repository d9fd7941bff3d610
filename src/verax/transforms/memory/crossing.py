"""Floor 3: which values to keep across a place of a program.

Values made before the place are read after it. Each of them is kept, or computed again
from others. If a byte is worth so many operations, the cheapest choice is a minimum cut
of a graph (a closure as in Picard 1976; as in rematerialisation by minimum cuts)::

    source -> read values     without limit
    value -> its step         price * bytes       cut: the value is kept
    step -> sink              operations          cut: the step runs again
    step -> what it reads     without limit

The cuts for all prices are the lower convex hull of work over memory.
"""

from collections.abc import Collection, Sequence
from itertools import compress
from math import inf
from typing import Final

import numpy as np
from attrs import frozen

from verax.ir.jaxpr import Var
from verax.ir.records import ReprMixin
from verax.rules.rows.row import NDArray
from verax.transforms.memory.flows import source_side
from verax.transforms.memory.storage import Step, bytes_of, total

# Prices of a byte, in operations, between which all choices lie.
LEAST_PRICE: Final = 1e-3
GREATEST_PRICE: Final = 1e7


@frozen(eq=False, repr=False)
class Crossing(ReprMixin):
    """The steps before a place, and the values among theirs that are read after it.

    Attributes:
        steps: the steps, in order.
        read: the values that are read later.
        begun: values that no step makes, which are kept or not needed.
        free: values that are there anyway, such as outputs.
    """

    steps: Sequence[Step]
    read: Collection[Var]
    begun: Collection[Var] = ()
    free: Collection[Var] = ()

    def graph(self) -> "Graph":
        """The graph of what may be needed."""
        return Graph(self)


class Graph:
    """The graph of a crossing. Nodes: source, sink, a value each, a step each."""

    def __init__(self, crossing: Crossing) -> None:
        maker = {v: step for step in crossing.steps for v in step.writes}
        known = {*maker, *crossing.begun}.difference(crossing.free)
        self.values: dict[Var, int] = {}
        self.runs: dict[int, int] = {}
        self.maker: dict[Var, int | None] = {}
        self.rows: list[int] = []
        self.columns: list[int] = []
        self.bytes: list[float] = []
        self.work: list[float] = []
        self.made_by: list[int] = []
        self.count = 2
        waiting = [v for v in crossing.read if v in known]
        for v in waiting:
            self.edge(0, self.node(v), work=inf)
        while waiting:
            v = waiting.pop()
            step = maker.get(v)
            if step is None:
                self.edge(self.node(v), 1, size=bytes_of(v.aval))
                self.maker[v] = None
                continue
            fresh = step.place not in self.runs
            run = self.runs.setdefault(step.place, self.count)
            self.maker[v] = run
            self.count += fresh
            self.edge(self.node(v), run, size=bytes_of(v.aval))
            if fresh:
                self.edge(run, 1, work=step.work, place=step.place)
                for a in step.reads:
                    if a in known:
                        if a not in self.values:
                            waiting.append(a)
                        self.edge(run, self.node(a), work=inf)
        self.arrays = (
            np.array(self.rows, np.int32),
            np.array(self.columns, np.int32),
            np.array(self.bytes, float),
            np.array(self.work, float),
            np.array(self.made_by, np.int64),
        )
        # Where no step makes a value, the sink stands for it, which is never near.
        self.ends = (
            np.array(list(self.values.values()), np.intp),
            np.array([self.maker[v] or 1 for v in self.values], np.intp),
        )

    def node(self, v: Var) -> int:
        number = self.values.get(v)
        if number is None:
            number = self.values[v] = self.count
            self.count += 1
        return number

    def edge(
        self,
        row: int,
        column: int,
        *,
        size: float = 0,
        work: float = 0,
        place: int = -1,
    ) -> None:
        self.rows.append(row)
        self.columns.append(column)
        self.bytes.append(size)
        self.work.append(work)
        self.made_by.append(place)

    def kept(self, price: float, once: Collection[int] = ()) -> frozenset[Var]:
        """The values to keep if a byte is worth `price` operations.

        Args:
            once: places of steps that must not run again.
        """
        keep = self.chosen(price, once)
        return frozenset(compress(self.values, keep.tolist()))

    def chosen(self, price: float, once: Collection[int] = ()) -> NDArray:
        """Which of `values`, in their order, are those to keep."""
        if not self.values:
            return np.zeros(0, bool)
        rows, columns, size, work, places = self.arrays
        weights = size * price + work
        if once:
            weights = np.where(np.isin(places, list(once)), inf, weights)
        near = source_side(self.count, rows, columns, weights)
        numbers, runs = self.ends
        keep: NDArray = near[numbers] & ~near[runs]
        return keep

    def within(self, limit: int) -> frozenset[Var]:
        """The values to keep in at most so many bytes, for little work.

        The cheapest choice at the least price that is enough, with values of the choice
        at a lower price from some step on, as far as they have room.
        """
        low, high = LEAST_PRICE, GREATEST_PRICE
        more, fewer = self.kept(low), self.kept(high)
        if total(more) <= limit:
            return more
        while high / low > 1.05:
            middle = (low * high) ** 0.5
            cut = self.kept(middle)
            if total(cut) <= limit:
                high, fewer = middle, cut
            else:
                low, more = middle, cut
        order = sorted([*more, *fewer], key=lambda v: v.index)
        first, last = 0, len(order)
        best = fewer
        while last - first > 1:
            at = (first + last) // 2
            border = order[at].index
            mixed = frozenset(
                [v for v in fewer if v.index < border]
                + [v for v in more if v.index >= border]
            )
            if total(mixed) <= limit:
                last, best = at, mixed
            else:
                first = at
        return best
