"""Floor 4: the part of a jaxpr that a function of a module writes.

One idea: what nothing needs is skipped in place, so that no second program is built
before it becomes text::

    body, kept = live_body(engine, jaxpr)
    [eqn for eqn in body.eqns if eqn is not None]
"""

from collections.abc import Iterable, Sequence
from typing import Final

from attrs import evolve, frozen

from verax.backend.lowering.result import array_constants
from verax.ir.avals import ShapedArray
from verax.ir.effects import Effect
from verax.ir.jaxpr import (
    NO_PARAMS,
    Atom,
    Eqn,
    Jaxpr,
    Literal,
    Var,
    consts_of,
)
from verax.ir.records import ReprMixin
from verax.rules.rows.row import Engine
from verax.rules.values.lazy import LazyFunction
from verax.transforms.engine.dce import live, variables

# Most programs are short, and do not need it.
for_one_cpu: Final = LazyFunction("verax.transforms.passes.chains", "for_one_cpu")
# Equations of a program in which nothing is worth a function or several loops.
FEW: Final = 48
# Elements up to which the code of an array operation is as fast unrolled as not: it is
# dwarfed by the call of the operation.
SMALL: Final = 2048


@frozen(eq=False, repr=False)
class Body(ReprMixin):
    """What a function writes of a jaxpr: inputs, equations, constants, outputs.

    An equation is None where nothing needs it; variables keep their numbers, of which
    there are `size`.
    """

    inputs: tuple[Var, ...]
    eqns: Sequence[Eqn | None]
    outvars: tuple[Atom, ...]
    consts: tuple[Literal, ...]
    effects: frozenset[Effect]
    size: int

    @property
    def in_avals(self) -> tuple[ShapedArray, ...]:
        return tuple([v.aval for v in self.inputs])

    @property
    def out_avals(self) -> tuple[ShapedArray, ...]:
        return tuple([a.aval for a in self.outvars])


def body_of(jaxpr: Jaxpr) -> Body:
    """All of a jaxpr."""
    return Body(
        jaxpr.invars,
        jaxpr.eqns,
        jaxpr.outvars,
        array_constants(jaxpr),
        jaxpr.effects,
        variables(jaxpr),
    )


def live_body(engine: Engine, jaxpr: Jaxpr) -> tuple[Body, tuple[bool, ...]]:
    """The part of a jaxpr that outputs and effects need, and which inputs it reads."""
    eqns, kept = live(engine, jaxpr, (True,) * len(jaxpr.outvars))
    inputs = tuple([v for v, flag in zip(jaxpr.invars, kept, strict=True) if flag])
    consts = consts_of([eqn for eqn in eqns if eqn is not None], jaxpr.outvars)
    body = Body(
        inputs,
        eqns,
        jaxpr.outvars,
        tuple([const.literal for const in consts]),
        jaxpr.effects,
        variables(jaxpr),
    )
    return body, kept


def body_for_cpu(body: Body, calls: str) -> Body:
    """The body with calls for what occurs again, and long chains split; see `chains`.

    This is for programs on one CPU.
    """
    eqns = [eqn for eqn in body.eqns if eqn is not None]
    if len(eqns) < FEW and not any(map(holds_programs, eqns)):
        return body
    found, size = for_one_cpu(eqns, body.outvars, calls, body.size)
    return evolve(body, eqns=found, size=size)


def holds_programs(eqn: Eqn) -> bool:
    """Whether the equation holds a jaxpr that runs with it."""
    return any([True for _ in eqn.params.subjaxprs(aside=False)])


def is_small(body: Body) -> bool:
    """Whether no array of the program is large, those of jaxprs inside included.

    Loops do not count: an array that is computed often may still be small.
    """
    eqns = [eqn for eqn in body.eqns if eqn is not None]
    found = {v.aval for v in body.inputs} | {c.aval for c in body.consts}
    seen: set[Jaxpr] = set()
    waiting: list[Iterable[Eqn]] = [eqns]
    while waiting:
        for eqn in waiting.pop():
            found.update([v.aval for v in eqn.outvars])
            if eqn.params is not NO_PARAMS:
                inner = [j for j in eqn.params.subjaxprs() if j not in seen]
                seen.update(inner)
                waiting += [j.eqns for j in inner]
    return max([aval.size for aval in found], default=0) <= SMALL
