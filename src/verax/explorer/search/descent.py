"""The search: from plans that split a kind of dimension along an axis, downhill.

One idea (floor 6): dimensions that equations put together anywhere in the program, such
as the batch, the heads or the experts, are few, so every way to give each axis of the
mesh one of them is tried; from the best of these one family after another, with its
neighbours, gets the layout that is best for the whole::

    plans = plans_of(model, limit)      # the best first, each another one
"""

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import Final

from attrs import define, evolve, frozen

from verax.explorer.search.labels import Groups
from verax.explorer.search.model import WHOLE, Layout, Layouts, Model, Way
from verax.ir.records import ReprMixin
from verax.rules.rows.row import NDArray

KINDS: Final = 7
"""So many kinds of dimensions are tried for each axis, those with most work first."""
STARTS: Final = 10
"""From so many of these plans the search goes downhill."""
OVER: Final = 20.0
"""How much longer a plan counts that needs twice the memory."""
SWEEPS: Final = 12


@frozen(repr=False)
class Outcome(ReprMixin):
    """Layouts, and the seconds and bytes that the model expects of them."""

    layouts: Layouts
    time: float
    memory: float


@define(eq=False, repr=False)
class State(ReprMixin):
    """Layouts with their sums, kept up to date as layouts change."""

    model: Model
    limit: float
    layouts: list[Layout]
    ways: list[Way]
    work: list[float]
    talk: list[float]
    shares: NDArray
    score: float = 0.0

    @classmethod
    def of(cls, model: Model, limit: float, layouts: Sequence[Layout]) -> "State":
        """The state with these layouts."""
        ways = [term.way(layouts, model.mesh) for term in model.terms]
        work, talk = model.sums(layouts)
        out = cls(model, limit, list(layouts), ways, work, talk, model.shares(layouts))
        out.score = out.scored(work, talk, out.shares)
        return out

    def scored(
        self, work: Sequence[float], talk: Sequence[float], shares: NDArray
    ) -> float:
        """The seconds of a step, more if memory is short."""
        seconds = self.model.total(work, talk)
        share = self.model.room(shares) / self.limit
        return seconds * (1.0 + OVER * max(share - 1.0, 0.0) + 1e-3 * min(share, 1.0))

    def attempt(self, family: int, layout: Layout) -> "State":
        """The same with another layout of a family; ways are left out."""
        model, layouts = self.model, self.layouts
        work, talk = self.work.copy(), self.talk.copy()
        old, layouts[family] = layouts[family], layout
        for number in model.near[family]:
            place, before = model.region_of[number], self.ways[number]
            after = model.terms[number].way(layouts, model.mesh)
            work[place] += after.work - before.work
            talk[place] += after.talk - before.talk
        layouts[family] = old
        shares = self.shares.copy()
        for column in model.columns_of[family]:
            shares[column] = model.share(column, layout)
        score = self.scored(work, talk, shares)
        return State(model, self.limit, layouts, self.ways, work, talk, shares, score)

    def change(self, family: int, layout: Layout) -> None:
        """Give a family another layout."""
        other = self.attempt(family, layout)
        self.work, self.talk = other.work, other.talk
        self.shares, self.score = other.shares, other.score
        self.layouts[family] = layout
        for number in self.model.near[family]:
            self.ways[number] = self.model.terms[number].way(
                self.layouts, self.model.mesh
            )

    def improve(self, family: int, options: Sequence[Layout]) -> bool:
        """Give a family the best layout; whether that is another one."""
        best, way = self.score * (1 - 1e-9), None
        for layout in options:
            if layout != self.layouts[family]:
                score = self.attempt(family, layout).score
                if score < best:
                    best, way = score, layout
        if way is not None:
            self.change(family, way)
        return way is not None

    def outcome(self) -> Outcome:
        """The layouts, and what the model expects of them."""
        layouts = tuple(self.layouts)
        seconds = self.model.total(self.work, self.talk)
        return Outcome(layouts, seconds, self.model.memory(layouts))

    def copy(self) -> "State":
        """The same, to be changed on its own."""
        return evolve(self, layouts=self.layouts.copy(), ways=self.ways.copy())


class Search:
    """A search over the layouts of a program's families."""

    def __init__(self, model: Model, limit: float) -> None:
        self.model, self.limit = model, limit
        self.options = [model.layouts_of(f) for f in model.program.families]
        sized = sorted(model.program.families, key=lambda f: -f.bytes)
        self.order = [f.number for f in sized if len(self.options[f.number]) > 1]
        self.around = [self.neighbours(f) for f in range(len(self.options))]

    def neighbours(self, family: int) -> list[int]:
        """The families that meet one in a term."""
        near = self.model.near[family]
        own = [f for n in near for f in self.model.terms[n].families if f != family]
        return [f for f in dict.fromkeys(own) if len(self.options[f]) > 1]

    def descend(self, state: State) -> None:
        """Change one family at a time until none gets better."""
        for _ in range(SWEEPS):
            changed = [state.improve(f, self.options[f]) for f in self.order]
            if not any(changed):
                return

    def together(self, state: State) -> State:
        """Change a family, and let its neighbours follow, where both is better."""
        for family in self.order:
            for layout in self.options[family]:
                if layout == state.layouts[family]:
                    continue
                trial = state.copy()
                trial.change(family, layout)
                if trial.score > 3 * state.score:
                    continue
                for other in self.around[family]:
                    trial.improve(other, self.options[other])
                if trial.score < state.score * (1 - 1e-6):
                    state = trial
        self.descend(state)
        return state

    def starts(self) -> list[list[Layout]]:
        """Plans that split one kind of dimension along each axis; all the ways."""
        kinds = kinds_of(self.model)
        axes = [[-1, *range(len(kinds))] if n > 1 else [-1] for n in self.sizes]
        return [self.start(kinds, choice) for choice in product(*axes)]

    @property
    def sizes(self) -> tuple[int, ...]:
        """The devices along each axis."""
        return self.model.mesh.sizes

    def start(
        self, kinds: Sequence[dict[int, int]], choice: Sequence[int]
    ) -> list[Layout]:
        """The layouts in which each axis splits one kind of dimension."""
        out = []
        for family in self.model.program.families:
            layout: list[int] = []
            for size, kind in zip(self.sizes, choice, strict=True):
                d = WHOLE if kind < 0 else kinds[kind].get(family.number, WHOLE)
                known = zip(self.sizes, layout, strict=False)
                count = prod([n for n, e in known if e == d])
                even = d != WHOLE and family.sizes[d] % (size * count) == 0
                layout.append(d if even and family.sizes[d] > 1 else WHOLE)
            out.append(tuple(layout))
        return out

    def promise(self) -> float:
        """The score of the best plan from which the search would start."""
        states = [State.of(self.model, self.limit, x) for x in self.starts()]
        return min([one.score for one in states])

    def run(self) -> list[Outcome]:
        """The best plans, each another one, the best first."""
        states = [State.of(self.model, self.limit, x) for x in self.starts()]
        states.sort(key=lambda one: one.score)
        result: dict[Layouts, State] = {}
        for state in states[:STARTS]:
            self.descend(state)
            result.setdefault(tuple(state.layouts), state)
        best = sorted(result.values(), key=lambda one: one.score)
        if best:
            more = self.together(best[0].copy())
            result.setdefault(tuple(more.layouts), more)
        best = sorted(result.values(), key=lambda one: one.score)
        return [one.outcome() for one in best]


def plainer(model: Model, limit: float, layouts: Layouts) -> list[Outcome]:
    """The plans that store arguments in fewer parts: along one axis less each.

    What is split because the values in between are, such as the batch, stays so.
    """
    search, kinds = Search(model, limit), kinds_of(model)
    given = {model.program.of[v][0] for v in model.program.inputs}
    out: list[Outcome] = []
    for axis in range(len(model.mesh.sizes)):
        main = main_kind(model, layouts, axis, kinds) or {}
        stored = [f for f in given if layouts[f][axis] not in (WHOLE, main.get(f))]
        changed = [*layouts]
        for f in stored:
            changed[f] = (*layouts[f][:axis], WHOLE, *layouts[f][axis + 1 :])
        if not stored:
            continue
        state = State.of(model, limit, changed)
        for f in search.order:
            if f not in given:
                state.improve(f, search.options[f])
        out.append(state.outcome())
    return out


def main_kind(
    model: Model, layouts: Layouts, axis: int, kinds: Sequence[dict[int, int]]
) -> dict[int, int] | None:
    """The kind of dimension that an axis splits in most values, if there is one."""
    weights = [0.0] * len(kinds)
    for family in model.program.families:
        d = layouts[family.number][axis]
        for i, kind in enumerate(kinds):
            if d != WHOLE and kind.get(family.number) == d:
                weights[i] += family.bytes
    best = max(range(len(kinds)), key=weights.__getitem__, default=-1)
    return kinds[best] if best >= 0 and weights[best] else None


def kinds_of(model: Model) -> list[dict[int, int]]:
    """Kinds of dimensions: for each family its first of that kind; most work first."""
    groups: Groups[tuple[int, int]] = Groups()
    weights: dict[tuple[int, int], float] = {}
    for term in model.terms:
        ends: dict[int, tuple[int, int]] = {}
        for part in (*term.ins, *term.outs):
            for d, label in zip(part.dims, part.labels, strict=True):
                if d is None or label is None:
                    continue
                node = part.family, d
                groups.join(ends.setdefault(label, node), node)
        for node in ends.values():
            cost = term.times * (term.flops + sum([p.bytes for p in term.outs]))
            weights[node] = weights.get(node, 0.0) + cost
    sums: dict[tuple[int, int], float] = {}
    members: dict[tuple[int, int], dict[int, int]] = {}
    for family in model.program.families:
        for d, n in enumerate(family.sizes):
            if n == 1:
                continue
            node = family.number, d
            top = groups.top(node)
            members.setdefault(top, {}).setdefault(family.number, d)
            sums[top] = sums.get(top, 0.0) + weights.get(node, 0.0)
    tops = sorted(members, key=lambda top: -sums[top])
    return [members[top] for top in tops[:KINDS]]
