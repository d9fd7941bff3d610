"""Floor 4: the result of lowering, and what it needs to know about devices.

Both are values, so that a module can be looked at, kept and compared::

    Lowered(text, constants, kept, in_avals, out_avals)
"""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np
from attrs import field, frozen

from verax.backend.lowering.callback_calls import NO_CALLS, HostCalls
from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import NO_PARAMS, Eqn, Jaxpr, Literal, Params
from verax.ir.meshes import BaseMesh, Layout
from verax.ir.records import ReprMixin
from verax.rules.rows.emitter import Operand
from verax.transforms.engine.engine import literal_value
from verax.transforms.pipeline import Body

# Elements up to which the code of an array operation is as fast unrolled as not: it is
# dwarfed by the call of the operation.
SMALL: Final = 2048
OPERATION: Final = re.compile(r"(?<![#!\w])(?:stablehlo|chlo)\.")


@frozen(repr=False)
class Seconds(ReprMixin):
    """The time a module took to make: rewriting the program, and writing the text."""

    rewrite: float = 0.0
    write: float = 0.0


@frozen(repr=False)
class Lowered(ReprMixin):
    """A module as text, the constants it takes first, and the arguments it keeps.

    `kept[i]` says whether argument i of the jaxpr is an argument of the module;
    `donated` are the positions of arguments of the jaxpr that a run uses up; `calls`
    are the functions of the host that the module calls by their number; `name` is that
    of the function, for messages. `small` says that its arrays are: see `is_small`.
    It is for `platforms`; where it `takes_platform`, its first argument is the number
    of the one that it runs on.
    """

    text: str
    constants: tuple[Literal, ...]
    kept: tuple[bool, ...]
    in_avals: tuple[ShapedArray, ...]
    out_avals: tuple[ShapedArray, ...]
    donated: tuple[int, ...] = ()
    calls: HostCalls = NO_CALLS
    name: str = "a compiled function"
    small: bool = False
    seconds: Seconds = field(default=Seconds(), eq=False)
    platforms: tuple[str, ...] = ()
    takes_platform: bool = False

    @property
    def operations(self) -> int:
        """How many operations stand in the text, each function counted once."""
        return len(OPERATION.findall(self.text))


type Kinds = tuple[str | None, ...]


@frozen(repr=False)
class Memories(ReprMixin):
    """The kinds of memory in which arguments and results lie, None for the device's."""

    ins: Kinds
    outs: Kinds

    def kept(self, kept: Sequence[bool]) -> "Memories":
        """The same without the arguments that a module drops."""
        return Memories(
            tuple([kind for kind, flag in zip(self.ins, kept, strict=True) if flag]),
            self.outs,
        )


@frozen(repr=False)
class Spread(ReprMixin):
    """How a program over several devices spreads its arguments and results.

    `order` are the numbers of the devices, `mesh` names the axes along which they lie.
    An output is None where XLA chooses. On one device it says `memories` alone.
    """

    order: tuple[int, ...]
    mesh: BaseMesh | None
    ins: tuple[Layout | None, ...]
    outs: tuple[Layout | None, ...]
    of_constant: Callable[[Literal], Layout | None]
    memories: Memories

    @property
    def summed(self) -> tuple[Layout | None, ...]:
        """Where results must be brought: nothing if no device holds terms of a value.

        XLA brings them elsewhere by itself, but makes no sums.
        """
        layouts = (*self.ins, *self.outs)
        if any([layout is not None and bool(layout.terms) for layout in layouts]):
            return self.outs
        return ()


def array_constants(jaxpr: Jaxpr) -> tuple[Literal, ...]:
    """The array constants of a jaxpr and of those inside, one per object."""
    return tuple([const.literal for const in jaxpr.used_consts])


def inner_constants(params: Params) -> tuple[Literal, ...]:
    """The array constants of the jaxprs that an equation holds, one per object."""
    if params is NO_PARAMS:
        return ()
    found = [c for inner in params.subjaxprs() for c in array_constants(inner)]
    return tuple(dict.fromkeys(found))


def written_constant(literal: Literal) -> Operand:
    """An array constant that the module holds, written where it is first used."""
    return Operand("", literal.aval, np.asarray(literal_value(literal)))


def is_small(body: Body) -> bool:
    """Whether no array of the program is large, those of jaxprs inside included.

    Loops do not count: an array that is computed often may still be small.
    """
    avals = {v.aval for v in body.invars} | {c.aval for c in body.consts}
    seen: set[Jaxpr] = set()
    waiting: list[Iterable[Eqn]] = [body.live_eqns]
    while waiting:
        for eqn in waiting.pop():
            avals.update([v.aval for v in eqn.outvars])
            if eqn.params is not NO_PARAMS:
                inner = [j for j in eqn.params.subjaxprs() if j not in seen]
                seen.update(inner)
                waiting += [j.eqns for j in inner]
    return max([aval.size for aval in avals], default=0) <= SMALL
