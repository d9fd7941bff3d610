"""Floor 3: the program that stays within so many bytes with the least work run again.

Loops come first, since what they stack is the most; then what lives across the fullest
step of the program. There, the program is cut in parts: values that are read in a later
part are kept or not needed, so that no part is computed again for the sake of another::

    plan = planned(jaxpr, 64_000_000)
    plan.jaxpr, plan.peak, plan.work
"""

from collections.abc import Callable, Collection, Iterator
from functools import cached_property, partial
from itertools import compress, islice
from math import inf
from typing import Final

import numpy as np
from attrs import frozen

from verax.ir.jaxpr import Jaxpr, Var
from verax.ir.records import ReprMixin
from verax.rules.guards import paused
from verax.rules.rows.row import NDArray
from verax.transforms.memory.crossing import Crossing, Graph
from verax.transforms.memory.exact import within
from verax.transforms.memory.loops import (
    FREE,
    Pair,
    pairs_of,
    with_fewer_stacks,
    with_stacks,
)
from verax.transforms.memory.nests import block_lengths, can_nest, in_blocks
from verax.transforms.memory.recompute import recomputed
from verax.transforms.memory.schedule import Played, Schedule
from verax.transforms.memory.storage import (
    Timeline,
    apart,
    flat,
    hosted,
    total,
    total_work,
)
from verax.transforms.memory.work import Reckoner

# Prices of a byte in operations: from what is nearly free to whole products.
PRICES: Final = (0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 120.0, 250.0, 500.0, 1e6)
ROUNDS: Final = 3

# Lengths of blocks of a loop that are tried.
BLOCKS: Final = 3

# How often loops are put in blocks.
NESTS: Final = 4

# The model of what is to be written is a little off what is written.
SLACK: Final = 0.98
MOST_PARTS: Final = 256


@frozen(repr=False)
class Host(ReprMixin):
    """Memory of the host, in which values may wait.

    Attributes:
        kind: of the memory, such as "pinned_host".
        price: the operations that a byte on its way there and back is worth. What
            costs more to compute again waits there.
    """

    kind: str
    price: float


@frozen(eq=False, repr=False)
class Plan(ReprMixin):
    """A program, and what is expected of it.

    Attributes:
        jaxpr: the program.
        peak: bytes in use at most, beside inputs and outputs.
        work: operations, those that run again among them.
        line: the memory of the program, step by step.
        reckoner: what counted the operations.
    """

    jaxpr: Jaxpr
    peak: int
    work: float
    line: Timeline
    reckoner: Reckoner

    @classmethod
    def of(cls, jaxpr: Jaxpr, reckoner: Reckoner | None = None) -> "Plan":
        """A flat program as it is."""
        count = reckoner or Reckoner()
        line = Timeline.of(jaxpr, reckoner=count)
        return cls(jaxpr, line.peak, total_work(jaxpr, count), line, count)


def unlimited(jaxpr: Jaxpr) -> Plan:
    """The plan without a limit: loops do not stack what is nearly free to compute."""
    return Plan.of(with_fewer_stacks(flat(jaxpr), FREE))


def planned(jaxpr: Jaxpr, limit: int, host: Host | None = None) -> Plan:
    """The plan of least work within `limit` bytes beside inputs and outputs.

    If there is none, the plan that needs the fewest bytes. With `host`, values may wait
    there across the fullest step of the program.
    """
    return Planner(jaxpr, host).within(limit)


class Planner:
    """Makes plans of a program for one limit after another.

    What is played for one limit is known for the next.
    """

    def __init__(self, jaxpr: Jaxpr, host: Host | None = None) -> None:
        with paused():  # programs are many objects, and hardly any of them garbage
            self.start, self.host = unlimited(jaxpr), host

    @cached_property
    def first(self) -> "Choices":
        """What can be kept across the fullest step of the program as it is."""
        return Choices(self.start, self.host)

    def within(self, limit: int) -> Plan:
        """The plan for a limit, as `planned` has it."""
        if self.start.peak <= limit:
            return self.start
        with paused():
            return self.searched(limit)

    def searched(self, limit: int) -> Plan:
        """The better one of two: loops stack less first, or their stacks wait too."""
        less = with_loops(self.start, limit)
        plan = self.across(less, limit)
        if self.host is None or less is self.start:
            return plan
        whole = self.across(self.start, limit)
        return min([plan, whole], key=better(limit, self.host.price))

    def across(self, plan: Plan, limit: int) -> Plan:
        """The plan that keeps less across its fullest steps."""
        for _ in range(ROUNDS):
            if plan.peak <= limit:
                break
            whole = plan is self.start
            choices = self.first if whole else Choices(plan, self.host)
            best = choices.best(int(SLACK * limit))
            if best is None or best.peak >= 0.99 * plan.peak:
                break
            plan = best
        return plan


def with_loops(plan: Plan, limit: int) -> Plan:
    """The plan in which loops stack less, at the least price that is enough."""

    def at(price: float) -> Plan:
        jaxpr = with_fewer_stacks(plan.jaxpr, price)
        return plan if jaxpr is plan.jaxpr else Plan.of(jaxpr)

    last = at(PRICES[-1])
    if last is plan:
        return plan
    first = next((p for price in PRICES[:-1] if (p := at(price)).peak <= limit), last)
    if first.peak <= limit:
        return filled(plan, first, limit)
    return min([first, *nested(plan, limit), *nested(last, limit)], key=better(limit))


def better(limit: int, price: float = 0.0) -> Callable[[Plan], tuple[bool, float]]:
    """The order of plans: those within the limit by work, then others by bytes.

    What waits on the host costs `price` for each byte.
    """

    def order(plan: Plan) -> tuple[bool, float]:
        if plan.peak > limit:
            return True, plan.peak
        return False, plan.work + (price * total(hosted(plan.jaxpr)) if price else 0.0)

    return order


def nested(plan: Plan, limit: int) -> Iterator[Plan]:
    """Plans of loops in blocks, until one is within the limit.

    The pair that stacks most goes in blocks first; then another one, or the loops over
    its blocks.
    """
    for _ in range(NESTS):
        pairs = [pair for pair in pairs_of(plan.jaxpr) if can_nest(pair)]
        if not pairs:
            return
        pair = max(pairs, key=lambda one: total(one.taken))
        plans = []
        for size in islice(block_lengths(pair), BLOCKS):
            plans.append(Plan.of(in_blocks(plan.jaxpr, pair, size)))
            yield plans[-1]
            if plans[-1].peak <= limit:
                return
        if not plans or plans[0].peak >= plan.peak:
            return
        plan = plans[0]


def filled(plan: Plan, best: Plan, limit: int) -> Plan:
    """A plan of one pair of loops that uses all of the budget, if it is better."""
    pairs = pairs_of(plan.jaxpr)
    if len(pairs) != 1:
        return best
    whole = total(pairs[0].read)
    low, high = 0.0, 1.0
    while high - low > 1 / 64:
        share = (low + high) / 2
        room = int(share * whole)
        jaxpr = with_stacks(plan.jaxpr, partial(in_room, room))
        middle = Plan.of(jaxpr)
        if middle.peak > limit:
            high = share
            continue
        low = share
        if middle.work < best.work:
            best = middle
    return best


def in_room(room: int, pair: Pair, graph: Graph) -> frozenset[Var]:
    """What the first loop of a pair stacks in so many bytes a step."""
    return within(graph, room)


@frozen(eq=False, repr=False)
class Choice(ReprMixin):
    """Which values are kept, those `away` on the host, and what comes of it."""

    kept: NDArray
    away: NDArray
    played: Played


class Choices:
    """What can be kept across the fullest step of a program."""

    def __init__(self, plan: Plan, host: Host | None) -> None:
        jaxpr, line = plan.jaxpr, plan.line
        self.plan, self.host = plan, host
        self.place = line.steps[line.fullest].place
        self.apart = apart(jaxpr)
        self.schedule = Schedule(line, self.place, self.apart)
        steps = self.schedule.steps[: self.schedule.middle]
        self.read = self.schedule.crossing()
        self.graph = Crossing(steps, self.read, free=self.apart).graph()
        numbers = self.schedule.numbers
        self.places = np.array([numbers[v] for v in self.graph.values], np.intp)
        self.order = np.array([self.schedule.maker[v] for v in numbers.values()])
        self.count = sum([len(step.writes) for step in steps])
        self.none_away = np.zeros(len(numbers), bool)
        self.seen: dict[tuple[bytes, bytes], Choice] = {}

    def choice(self, kept: NDArray, away: NDArray) -> Choice:
        """A choice; each is played once."""
        key = kept.tobytes(), away.tobytes()
        choice = self.seen.get(key)
        if choice is None:
            price = 0.0 if self.host is None else self.host.price
            played = self.schedule.play(kept, away, price)
            choice = self.seen[key] = Choice(kept, away, played)
        return choice

    def at_price(self, price: float, once: Collection[int]) -> Choice:
        """What is kept if a byte is worth so many operations."""
        if self.host is None or price <= self.host.price:
            return self.choice(self.kept(price, once), self.none_away)
        kept = self.kept(self.host.price, once)
        return self.choice(kept, kept)

    def kept(self, price: float, once: Collection[int]) -> NDArray:
        """The values to keep, as a mask."""
        result = np.zeros(len(self.order), bool)
        result[self.places] = self.graph.chosen(price, once)
        return result

    def partitions(self) -> Iterator[frozenset[int]]:
        """Steps that must not run again, for each number of parts."""
        seen = set()
        parts = 1
        while parts <= min(MOST_PARTS, max(1, self.schedule.middle // 4)):
            borders = self.schedule.borders(parts)
            if borders not in seen:
                seen.add(borders)
                yield frozenset(self.schedule.crossing_borders(borders))
            parts = parts * 2 if parts < 4 else parts * 3 // 2

    def best(self, limit: int) -> Plan | None:
        """The choice of least work within a limit, else the one of the least peak."""
        fits: Choice | None = None
        least: Choice | None = None
        for once in self.partitions():
            more, fewer = self.around(once, limit)
            if least is None or fewer.played.peak < least.played.peak:
                least = fewer
            if fewer.played.peak > limit:
                continue
            best = inf if fits is None else fits.played.work
            if more is not None and more.played.work < best:
                fewer = self.between(more, fewer, limit)
            if fewer.played.work < best:
                fits = fewer
        chosen = fits or least
        if chosen is None:
            return None
        kind = "" if self.host is None else self.host.kind
        kept = list(compress(self.schedule.numbers, chosen.kept))
        away = dict.fromkeys(compress(self.schedule.numbers, chosen.away), kind)
        plan = self.plan
        jaxpr = recomputed(plan.jaxpr, self.place, kept, away, plan.line.stored)
        return Plan.of(jaxpr, plan.reckoner)

    def around(self, once: Collection[int], limit: int) -> tuple[Choice | None, Choice]:
        """The choices at neighbouring prices of which the second is within a limit.

        If none is, the second is that of the least peak among those that were played.
        """
        played: dict[int, Choice] = {}

        def at(i: int) -> Choice:
            if i not in played:
                played[i] = self.at_price(PRICES[i], once)
            return played[i]

        low, high = -1, len(PRICES) - 1
        if at(high).played.peak > limit:
            # What is kept shrinks with the price, but what runs again at once grows.
            best = min(range(len(PRICES)), key=lambda i: at(i).played.peak)
            if at(best).played.peak > limit:
                return None, at(best)
            high = best
        while high - low > 1:
            middle = (low + high) // 2
            if at(middle).played.peak <= limit:
                high = middle
            else:
                low = middle
        return (at(low) if low >= 0 else None), at(high)

    def between(self, more: Choice, fewer: Choice, limit: int) -> Choice:
        """What keeps `fewer` in early steps and `more` from some step on.

        The first parts are those whose values wait the longest.
        """
        best = fewer
        low, high = 0, self.count
        while high - low > max(1, self.count // 64):
            at = (low + high) // 2
            early = self.order < at
            kept = np.where(early, fewer.kept, more.kept)
            choice = self.choice(kept, np.where(early, fewer.away, more.away))
            if choice.played.peak <= limit:
                high = at
                if choice.played.work < best.played.work:
                    best = choice
            else:
                low = at
        return best
