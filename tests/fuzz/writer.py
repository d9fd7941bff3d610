"""What writes a generated program: its random numbers, its names and its blocks.

One idea: a kind of statement is a function of the writer and of where the statement
stands, and may ask the writer for blocks within it::

    Writer(7, late=True, flat=(step,), deep=(scan,)).block(Place("x", (), 2))
"""

from collections.abc import Callable, Sequence
from random import Random
from textwrap import indent
from typing import NamedTuple


class Place(NamedTuple):
    """Where a statement stands: the vector that it makes anew, and what it may read.

    `around` names vectors; `forward` allows only what has derivatives forward.
    """

    x: str
    around: tuple[str, ...]
    depth: int
    forward: bool = False


type Kind = Callable[["Writer", Place], str]


class Writer:
    """Writes one program: `late` says where rules read what they need.

    `used` are the names of all that the program is made of.
    """

    def __init__(
        self, seed: int, late: bool, flat: Sequence[Kind], deep: Sequence[Kind]
    ) -> None:
        self.random = Random(seed)
        self.late = late
        self.flat = flat
        self.deep = deep
        self.count = 0
        self.used: dict[str, None] = {}

    def name(self, kind: str) -> str:
        """A name that nothing else has."""
        self.count += 1
        return f"{kind}{self.count}"

    def number(self) -> str:
        """A number that keeps values tame."""
        return repr(self.random.randint(2, 14) / 8)

    def chance(self, probability: float) -> bool:
        """Whether something happens."""
        return self.random.random() < probability

    def pick(self, *choices: str) -> str:
        """One of some texts."""
        return self.random.choice(choices)

    def use(self, kind: Kind, place: Place) -> str:
        """A statement of a kind."""
        self.used[kind.__name__] = None
        return kind(self, place)

    def block(self, place: Place) -> str:
        """Statements that make something else of the vector."""
        most = 2 if place.depth else 1
        lines = []
        for _ in range(self.random.randint(1, most)):
            deep = place.depth and self.chance(0.7)
            kind = self.random.choice(self.deep if deep else self.flat)
            lines.append(self.use(kind, place))
        return "\n".join(lines)

    def function(self, place: Place, more: str = "") -> tuple[str, str]:
        """A function of a vector, as text, and its name; `x` is what stands around.

        It takes `more` arguments, which are vectors or numbers.
        """
        f, z = self.name("f"), self.name("z")
        around = (*place.around, *filter(None, more.split(", ")))
        if place.x:
            around += (place.x,)
        inner = Place(z, around, max(place.depth - 1, 0), place.forward)
        taken = ", ".join([z, *filter(None, more.split(", "))])
        body = self.block(inner)
        return f"def {f}({taken}):\n{indent(body, '    ')}\n    return {z}", f
