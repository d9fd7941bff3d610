"""Floor 3: two programs that have run, and which of their values part first.

One idea: in programs with the same equations every value counts; in others equations
may be aligned by chance, so only that counts from which a parted output comes::

    first_of(scene, names)      # the first pair of equations, or None
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from attrs import define, field, frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import ExtendedDType
from verax.ir.jaxpr import UNKNOWN_SOURCE, Atom, Eqn, Literal, Source
from verax.ir.records import ReprMixin
from verax.rules.rows.row import NDArray
from verax.transforms.comparing.alignment import Pair, Pairing
from verax.transforms.comparing.measures import Difference, Tolerance, measure
from verax.transforms.comparing.running import Frame
from verax.transforms.nans import Level

type Levels = tuple[Level, ...]
LEFT: Final = 0
RIGHT: Final = 1
SIDES: Final = (LEFT, RIGHT)
ALONE: Final = 6
"""So many equations that one program has alone are kept."""


@frozen(eq=False, repr=False)
class Executed(ReprMixin):
    """An equation that has run: its operands and results; keys as their words.

    `levels` are the loops and branches around it, outermost first.

    >>> import verax, verax.numpy as vnp
    >>> left = verax.debug.compare(vnp.sin, vnp.cos)(0.0).first.left
    >>> left.primitive, left.results
    ('sin', (array(0., dtype=float32),))
    """

    __module__ = "verax.debug"

    eqn: Eqn
    operands: tuple[np.ndarray, ...]
    results: tuple[np.ndarray, ...]
    levels: Levels

    @property
    def primitive(self) -> str:
        """The name of the primitive."""
        return self.eqn.primitive.name

    @property
    def source(self) -> Source:
        """The user's line: that of the equation or else of the nearest loop around."""
        return source_of(self.eqn, self.levels)

    def __repr__(self) -> str:
        return f"<Executed: {self.eqn!r}>"


@frozen(eq=False, repr=False)
class Divergence(ReprMixin):
    """Where the values of two programs part first.

    `left` and `right` are the equation in both, None where a program has none. If they
    make an `output` without being the same step, it is named. Equations next to them
    that one program has alone are in `only_left` and `only_right`.

    >>> import verax, verax.numpy as vnp
    >>> verax.debug.compare(vnp.sin, vnp.cos)(0.0).first
    <Divergence: sin and cos>
    """

    __module__ = "verax.debug"

    left: Executed | None
    right: Executed | None
    difference: Difference
    only_left: tuple[Eqn, ...] = ()
    only_right: tuple[Eqn, ...] = ()
    output: str = ""

    @property
    def primitives(self) -> tuple[str, ...]:
        """The operations of both sides; one if they are the same."""
        sides = [side for side in (self.left, self.right) if side is not None]
        return tuple(dict.fromkeys([side.primitive for side in sides]))

    @property
    def place(self) -> str:
        """What makes the values that part, in words."""
        what = " and ".join(self.primitives)
        if not self.output:
            return what
        return f"{self.output} ({what})" if what else self.output

    def __repr__(self) -> str:
        return f"<Divergence: {self.place}>"


def source_of(eqn: Eqn, levels: Levels) -> Source:
    """The user's line of an equation."""
    places = [eqn.source, *[level.eqn.source for level in reversed(levels)]]
    known = [source for source in places if source.code is not None]
    return known[0] if known else UNKNOWN_SOURCE


def words_of(value: NDArray, atom: Atom) -> np.ndarray:
    """A value as it is compared: of keys, the words."""
    if not isinstance(atom.aval.dtype, ExtendedDType) or value.dtype == np.uint32:
        return value
    return np.ascontiguousarray(value).reshape((*value.shape, 1)).view(np.uint32)


def comparable(left: ShapedArray, right: ShapedArray) -> bool:
    """Whether values of two types can be held against each other."""
    keys = any([isinstance(x.dtype, ExtendedDType) for x in (left, right)])
    return left.shape == right.shape and (left.dtype == right.dtype or not keys)


@frozen(eq=False, repr=False)
class Parted(ReprMixin):
    """A pair of equations whose values part, and where inside of them they do first."""

    pair: Pair
    difference: Difference | None
    inside: Divergence | None


@define(eq=False, repr=False)
class Scene(ReprMixin):
    """Two programs under way: the values so far, and the pairs that part."""

    pairing: Pairing
    frames: tuple[Frame, Frame]
    levels: tuple[Levels, Levels]
    tolerance: Tolerance
    parted: dict[Pair, Parted] = field(factory=dict)

    def eqns(self, pair: Pair) -> tuple[Eqn, Eqn]:
        """The equations of a pair."""
        left, right = self.frames
        return left.jaxpr.eqns[pair[LEFT]], right.jaxpr.eqns[pair[RIGHT]]

    def has_run(self, pair: Pair) -> bool:
        """Whether both equations have run."""
        known = [len(frame.env) for frame in self.frames]
        outs = [eqn.outvars for eqn in self.eqns(pair)]
        return all(
            [not vs or vs[-1].index < n for vs, n in zip(outs, known, strict=True)]
        )

    def values(self, side: int, atoms: Sequence[Atom]) -> tuple[np.ndarray, ...]:
        """Values of one side, as they are compared."""
        arrays = self.frames[side].read(atoms)
        return tuple([words_of(x, a) for x, a in zip(arrays, atoms, strict=True)])

    def measure(self, atoms: tuple[Atom, Atom]) -> Difference | None:
        """How far two comparable values are apart; None if they are equal."""
        (left,), (right,) = [self.values(side, [atoms[side]]) for side in SIDES]
        return measure(left, right, self.tolerance)

    def agree(self, atoms: tuple[Atom, Atom]) -> bool:
        """Whether two values are equal within the tolerance."""
        if not comparable(atoms[LEFT].aval, atoms[RIGHT].aval):
            return False
        difference = self.measure(atoms)
        return difference is None or not difference.parts

    def executed(self, side: int, number: int) -> Executed:
        """An equation of one side that has run."""
        eqn = self.frames[side].jaxpr.eqns[number]
        operands, results = [self.values(side, a) for a in (eqn.invars, eqn.outvars)]
        return Executed(eqn, operands, results, self.levels[side])


# -----------------------------------------------------------------------------
# From the outputs that part back to where that begins.


type Waiting = tuple[Atom, Atom] | tuple[int, Atom]
"""Two values, or the value of one side."""


@define(eq=False, repr=False)
class WayBack(ReprMixin):
    """The way back: pairs that part and lead to a parted output, and what is alone.

    `alone` are equations without a partner, by side, that the way goes through.
    """

    scene: Scene
    makers: tuple[dict[int, int], dict[int, int]]
    pairs: dict[Pair, Parted] = field(factory=dict)
    alone: tuple[set[int], set[int]] = field(factory=lambda: (set(), set()))

    def back(self, atoms: tuple[Atom, Atom]) -> None:
        """Go back from two values that part."""
        waiting: list[Waiting] = [atoms]
        while waiting:
            one, other = waiting.pop()
            if isinstance(one, int):
                waiting += self.behind(one, other)
                continue
            pair = self.pair_of((one, other))
            if pair is None:
                waiting += [(LEFT, one), (RIGHT, other)]
            else:
                waiting += self.enter(pair)

    def maker(self, side: int, atom: Atom) -> int | None:
        """The equation that makes a value; None of inputs and constants."""
        if isinstance(atom, Literal):
            return None
        return self.makers[side].get(atom.index)

    def pair_of(self, atoms: tuple[Atom, Atom]) -> Pair | None:
        """The pair of equations that makes two values."""
        left, right = self.maker(LEFT, atoms[LEFT]), self.maker(RIGHT, atoms[RIGHT])
        if left is None or right is None:
            return None
        partner = self.scene.pairing.partners.get(left)
        return (left, right) if partner == right else None

    def enter(self, pair: Pair) -> list[Waiting]:
        """Operands from which the difference of a pair comes."""
        if pair in self.pairs or pair not in self.scene.parted:
            return []
        self.pairs[pair] = self.scene.parted[pair]
        left, right = [eqn.invars for eqn in self.scene.eqns(pair)]
        if len(left) != len(right):
            return [*[(LEFT, a) for a in left], *[(RIGHT, a) for a in right]]
        both = list(zip(left, right, strict=True))
        return [atoms for atoms in both if not self.scene.agree(atoms)]

    def behind(self, side: int, atom: Atom) -> list[Waiting]:
        """What a value of one side alone comes from."""
        number = self.maker(side, atom)
        if number is None or number in self.alone[side]:
            return []
        pairing = self.scene.pairing
        partner = (pairing.partners, pairing.owners)[side].get(number)
        if partner is not None:
            return self.enter((number, partner) if side == LEFT else (partner, number))
        self.alone[side].add(number)
        eqn = self.scene.frames[side].jaxpr.eqns[number]
        return [(side, a) for a in eqn.invars]


def makers_of(frame: Frame) -> dict[int, int]:
    """The number of the equation that makes each variable."""
    return {v.index: i for i, eqn in enumerate(frame.jaxpr.eqns) for v in eqn.outvars}


def search_from(scene: Scene, atoms: Sequence[tuple[Atom, Atom]]) -> WayBack:
    """The way back from these values."""
    left, right = scene.frames
    search = WayBack(scene, (makers_of(left), makers_of(right)))
    for each in atoms:
        search.back(each)
    return search


def first_of(scene: Scene, names: Sequence[str]) -> Divergence | None:
    """Where the values of two programs part first; `names` are those of outputs."""
    if scene.pairing.same:
        return earliest(scene, scene.parted)
    left, right = [frame.jaxpr.outvars for frame in scene.frames]
    outputs = {
        k: atoms
        for k, atoms in enumerate(zip(left, right, strict=False))
        if comparable(atoms[LEFT].aval, atoms[RIGHT].aval) and not scene.agree(atoms)
    }
    if not outputs:
        return None
    search = search_from(scene, list(outputs.values()))
    if search.pairs:
        return earliest(scene, search.pairs)
    k, atoms = next(iter(outputs.items()))
    name = names[k] if k < len(names) else f"result {k} of the step"
    return at_output(scene, search, atoms, name)


def earliest(scene: Scene, pairs: dict[Pair, Parted]) -> Divergence | None:
    """The pair that comes first, or what is first inside of it."""
    if not pairs:
        return None
    places = {i: n for n, (i, _) in enumerate(scene.pairing.order) if i is not None}
    pair = sorted(pairs, key=lambda pair: places[pair[LEFT]])[0]
    one = pairs[pair]
    if one.inside is not None:
        return one.inside
    left, right = [scene.executed(side, pair[side]) for side in SIDES]
    alone: tuple[tuple[Eqn, ...], tuple[Eqn, ...]] = ((), ())
    if not scene.pairing.same:
        ours, theirs = scene.eqns(pair)
        both = list(zip(ours.invars, theirs.invars, strict=False))
        apart = [atoms for atoms in both if not scene.agree(atoms)]
        alone = alone_in(scene, search_from(scene, apart))
    assert one.difference is not None, "it parts here or inside"
    return Divergence(left, right, one.difference, *alone)


def at_output(
    scene: Scene, search: WayBack, atoms: tuple[Atom, Atom], name: str
) -> Divergence:
    """The divergence at an output, which the programs make in different ways."""
    made = []
    for side, atom in enumerate(atoms):
        number = search.maker(side, atom)
        made.append(None if number is None else scene.executed(side, number))
    difference = scene.measure(atoms)
    assert difference is not None, "the values do not agree"
    left, right = made
    own = [None if side is None else side.eqn for side in made]
    ours, theirs = [
        tuple([eqn for eqn in eqns if eqn is not made_here])
        for eqns, made_here in zip(alone_in(scene, search), own, strict=True)
    ]
    return Divergence(left, right, difference, ours, theirs, name)


def alone_in(scene: Scene, search: WayBack) -> tuple[tuple[Eqn, ...], tuple[Eqn, ...]]:
    """The last equations without a partner on a way back, of both sides."""
    left, right = [
        tuple([frame.jaxpr.eqns[i] for i in sorted(search.alone[side])[-ALONE:]])
        for side, frame in enumerate(scene.frames)
    ]
    return left, right
