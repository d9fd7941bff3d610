"""Floor 3: two programs in step.

One idea: both run along one alignment of their equations, with their loops in the same
iteration, and what is aligned is measured as it comes::

    walk = Walk((left, right), Tolerance(), ("output",))
    outs, first = walk.run(values)      # first is None if they agree
"""

from collections.abc import Hashable, Sequence
from itertools import count

from attrs import define, evolve, field, frozen

from verax.ir.jaxpr import Eqn, Jaxpr, Source, Var
from verax.ir.records import ReprMixin
from verax.rules.rows.row import NDArray
from verax.transforms.comparing.alignment import Entry, Pair, Pairing, align, is_open
from verax.transforms.comparing.measures import Difference, Tolerance, worse
from verax.transforms.comparing.running import (
    Frame,
    Programs,
    Runner,
    Step,
    Values,
)
from verax.transforms.comparing.scenes import (
    LEFT,
    RIGHT,
    SIDES,
    Divergence,
    Levels,
    Parted,
    Scene,
    first_of,
    source_of,
)
from verax.transforms.nans import Level

type Names = tuple[Hashable, ...]


@frozen(eq=False, repr=False)
class Side(ReprMixin):
    """One of two runs: its name in reports, its program, and what runs it.

    `outputs` are those of the program as a whole, where that is not how it is run here.
    """

    name: str
    runner: Runner
    jaxpr: Jaxpr
    outputs: Values | None = None


@frozen(eq=False, repr=False)
class LineDifference(ReprMixin):
    """The largest difference of values that a line makes.

    `left` and `right` are the line in both programs, `primitives` the operations with
    that difference, `levels` the iterations in which it arose. The results differ of so
    many `pairs` of equations, and of `parted` beyond the tolerance.

    >>> import verax, verax.numpy as vnp
    >>> (row,) = verax.debug.compare(vnp.sin, vnp.cos)(0.0).rows
    >>> row.primitives, row.pairs, row.parted
    (('sin', 'cos'), 1, 1)
    """

    __module__ = "verax.debug"

    left: Source
    right: Source
    primitives: tuple[str, str]
    difference: Difference
    levels: Levels
    pairs: int
    parted: int

    def __repr__(self) -> str:
        names = " and ".join(dict.fromkeys(self.primitives))
        return f"<LineDifference: {names}, {self.difference}>"


@define(eq=False, repr=False)
class Walk(ReprMixin):
    """Two programs that run side by side, and what was found on the way."""

    sides: tuple[Side, Side]
    tolerance: Tolerance
    names: Sequence[str]
    programs: Programs = field(factory=Programs)
    pairings: dict[tuple[int, int, Names, Names], Pairing] = field(factory=dict)
    lines: dict[Hashable, LineDifference] = field(factory=dict)
    compared: int = 0

    def run(
        self, values: Values
    ) -> tuple[tuple[list[NDArray], list[NDArray]], Divergence | None]:
        """The outputs of both programs, and where their values part first."""
        left, right = self.sides
        given = [list(map(side.runner.converted, values)) for side in self.sides]
        names: Names = tuple(range(len(values)))
        inputs = given[LEFT], given[RIGHT]
        return self.level((left.jaxpr, right.jaxpr), inputs, (names, names), ((), ()))

    def level(
        self,
        jaxprs: tuple[Jaxpr, Jaxpr],
        inputs: tuple[list[NDArray], list[NDArray]],
        names: tuple[Names, Names],
        levels: tuple[Levels, Levels],
    ) -> tuple[tuple[list[NDArray], list[NDArray]], Divergence | None]:
        """The same for two jaxprs, which may be inside of equations."""
        left, right = map(self.programs.flat, jaxprs)
        key = (id(left), id(right), *names)
        if key not in self.pairings:
            self.pairings[key] = align(left, right, *names)
        frames = (
            Frame(self.sides[LEFT].runner, left, list(inputs[LEFT])),
            Frame(self.sides[RIGHT].runner, right, list(inputs[RIGHT])),
        )
        scene = Scene(self.pairings[key], frames, levels, self.tolerance)
        for entry in scene.pairing.order:
            self.advance(scene, entry)
        outs = (frames[LEFT].read(left.outvars), frames[RIGHT].read(right.outvars))
        return outs, first_of(scene, self.names if levels == ((), ()) else ())

    def advance(self, scene: Scene, entry: Entry) -> None:
        """Run what comes next, and compare what both have run."""
        i, j = entry
        if i is not None and j is not None and is_in_step(scene.eqns((i, j))):
            self.compare(scene, (i, j), self.both(scene, (i, j)))
            return
        for frame, number in zip(scene.frames, entry, strict=True):
            if number is not None:
                self.programs.advance(frame, number)
        if i is not None:
            j = scene.pairing.partners.get(i)
        elif j is not None:
            i = scene.pairing.owners.get(j)
        if i is not None and j is not None and scene.has_run((i, j)):
            self.compare(scene, (i, j), None)

    def both(self, scene: Scene, pair: Pair) -> Divergence | None:
        """Run two loops or choices in step; where inside of them values part first."""
        first = None
        runs = [f.steps(i) for f, i in zip(scene.frames, pair, strict=True)]
        steps = [next(run) for run in runs]
        results: list[list[NDArray] | None] = [None, None]
        while results == [None, None] and are_alike(*steps):
            outs, divergence = self.step(scene, pair, steps)
            first = first or divergence
            for side in SIDES:
                try:
                    steps[side] = runs[side].send(outs[side])
                except StopIteration as end:
                    results[side] = end.value
        for side, frame in enumerate(scene.frames):
            rest = results[side]
            if rest is None:
                rest = self.programs.finish(frame.runner, runs[side], steps[side])
            frame.env += rest
        return first

    def step(
        self, scene: Scene, pair: Pair, steps: Sequence[Step]
    ) -> tuple[tuple[list[NDArray], list[NDArray]], Divergence | None]:
        """One run of a jaxpr in both loops."""
        names, levels = [], []
        for side, step in enumerate(steps):
            eqn = scene.frames[side].jaxpr.eqns[pair[side]]
            names.append(inner_names(eqn, step, scene.pairing.names[side]))
            level = Level(eqn, step.which, step.number)
            levels.append((*scene.levels[side], level))
        left, right = steps
        if left.jaxpr.in_avals == right.jaxpr.in_avals:
            names = [tuple(range(len(left.inputs)))] * 2
        return self.level(
            (left.jaxpr, right.jaxpr),
            (left.inputs, right.inputs),
            (names[LEFT], names[RIGHT]),
            (levels[LEFT], levels[RIGHT]),
        )

    def compare(self, scene: Scene, pair: Pair, inside: Divergence | None) -> None:
        """Measure the results of a pair, and note the line that made them."""
        eqns = scene.eqns(pair)
        difference = None
        for atoms in zip(eqns[LEFT].outvars, eqns[RIGHT].outvars, strict=True):
            self.compared += 1
            difference = worse(difference, scene.measure(atoms))
        parts = difference is not None and difference.parts
        # What a loop returns, its body has made, unless one ran longer.
        if difference and not (is_open(eqns[LEFT]) and (inside or not parts)):
            self.note(scene, eqns, difference)
        if inside is not None or parts:
            scene.parted[pair] = Parted(pair, difference, inside)

    def note(self, scene: Scene, eqns: Sequence[Eqn], difference: Difference) -> None:
        """Keep the largest difference of a line."""
        left, right = [
            source_of(eqn, levels)
            for eqn, levels in zip(eqns, scene.levels, strict=True)
        ]
        key = tuple([(s.file, s.line, s.function) for s in (left, right)])
        old = self.lines.get(key)
        pairs, parted = (old.pairs, old.parted) if old else (0, 0)
        if old is None or difference.excess > old.difference.excess:
            names = (eqns[LEFT].primitive.name, eqns[RIGHT].primitive.name)
            levels = scene.levels[LEFT]
            old = LineDifference(left, right, names, difference, levels, pairs, parted)
        self.lines[key] = evolve(old, pairs=pairs + 1, parted=parted + difference.parts)


def is_in_step(eqns: Sequence[Eqn]) -> bool:
    """Whether two equations are loops or choices of one kind."""
    left, right = eqns
    return is_open(left) and is_open(right) and type(left.params) is type(right.params)


def are_alike(left: Step, right: Step) -> bool:
    """Whether two runs are the same step of two loops."""
    return (left.which, left.number) == (right.which, right.number)


def inner_names(eqn: Eqn, step: Step, names: Names) -> Names:
    """What the inputs of a jaxpr are in both programs, by what goes in.

    What goes in twice is told apart by its turn.
    """
    turns: dict[Hashable, count[int]] = {}
    out = []
    for place in step.places:
        atom = eqn.invars[place]
        name = names[atom.index] if isinstance(atom, Var) else atom.key
        turn = next(turns.setdefault(name, count()))
        out.append((name, turn))
    return tuple(out)
