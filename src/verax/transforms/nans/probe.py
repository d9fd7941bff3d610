"""Floor 3: the operands and results of one equation, as a program.

One idea: what came before an equation is a program too, also in the third step of a
loop, for that is two steps and the start of a body::

    probe(jaxpr, place_of(jaxpr, site, steps))   # (operands, results)
"""

from collections.abc import Sequence

import numpy as np
from attrs import frozen

from verax.ir.effects import SHOWN
from verax.ir.jaxpr import UNKNOWN_SOURCE, Atom, Eqn, Jaxpr
from verax.ir.records import ReprMixin
from verax.ir.walk import Path, walk
from verax.ops.calls.call import NamedCall
from verax.ops.calls.callbacks import silenced
from verax.ops.control.cond_params import CondLanesParams, CondParams
from verax.ops.control.scan import scan_p
from verax.ops.control.scan_params import ScanParams
from verax.ops.control.while_params import WhileParams
from verax.ops.structure.shape import reshape
from verax.ops.structure.slicing import index_in_dim, slice_in_dim
from verax.rules.rows.builder import Builder
from verax.rules.rows.row import Engine
from verax.rules.values.array import Array
from verax.rules.values.state import interpreting
from verax.transforms.engine.dce import dce
from verax.transforms.nans.flags import has_steps

PREDICATE = 1


@frozen(repr=False)
class Level(ReprMixin):
    """An equation around another: which of its jaxprs, and which step or element."""

    eqn: Eqn
    which: int
    step: int | None

    def __str__(self) -> str:
        return f"{describe(self)}, at {self.eqn.source}"


@frozen(repr=False)
class Place(ReprMixin):
    """Where an equation stands in a program, and what is around it, outermost first."""

    path: Path
    eqn: Eqn
    levels: tuple[Level, ...]


def place_of(jaxpr: Jaxpr, site: int, steps: Sequence[int]) -> Place:
    """The equation that `walk` meets as number `site`, with the steps around it."""
    path, eqn = next(found for i, found in enumerate(walk(jaxpr)) if i == site)
    numbers = iter(steps)
    levels, rest = [], path
    while len(rest) > 1:
        around = jaxpr.eqns[rest[0]]
        step = next(numbers) if has_steps(around) else None
        levels.append(Level(around, rest[1], step))
        jaxpr = tuple(around.params.subjaxprs())[rest[1]]
        rest = rest[2:]
    return Place(path, eqn, tuple(levels))


def describe(level: Level) -> str:
    """A level in words."""
    p, step = level.eqn.params, level.step
    if isinstance(p, ScanParams):
        row = f" (row {p.length - 1 - (step or 0)})" if p.reverse else ""
        return f"iteration {step} of {p.length} of {level.eqn.primitive.name}{row}"
    if isinstance(p, WhileParams):
        part = "the predicate" if level.which == PREDICATE else "the body"
        return f"{part} of {level.eqn.primitive.name} in iteration {step}"
    if isinstance(p, CondLanesParams):
        lane = [str(i) for i in np.unravel_index(step or 0, p.lanes)]
        return f"branch {level.which} of cond for batch element {', '.join(lane)}"
    if isinstance(p, CondParams):
        return f"branch {level.which} of cond"
    if step is not None:
        return f"program {level.which} of {level.eqn.primitive.name} in step {step}"
    name = getattr(p, "name", "")
    return f"{level.eqn.primitive.name} of {name}" if name else str(level.eqn.primitive)


def probe(engine: Engine, jaxpr: Jaxpr, place: Place) -> Jaxpr:
    """The program whose outputs are the operands, then the results of an equation."""
    builder = Builder("find_nans", source=UNKNOWN_SOURCE)
    with interpreting(builder):
        atoms = builder.input_atoms(jaxpr.in_avals)
        path = place.path
        for level in place.levels:
            ins = before(builder, jaxpr, path[0], atoms)
            jaxpr, args = enter(level, builder.tracers(ins))
            atoms, path = [builder.atom(x) for x in args], path[2:]
        ins = before(builder, jaxpr, path[0], atoms)
        outs = builder.copy(place.eqn, ins)
        found, _ = builder.close([*ins, *outs])
    count = len(found.outvars)
    silent = silenced(found)
    return dce(engine, silent, (True,) * count, keep=len(found.invars))[0]


def before(
    builder: Builder, jaxpr: Jaxpr, number: int, atoms: Sequence[Atom]
) -> list[Atom]:
    """Write the equations before one; its operands."""
    eqns, eqn = jaxpr.eqns[:number], jaxpr.eqns[number]
    return builder.inline(Jaxpr((), jaxpr.invars, eqns, eqn.invars), atoms)


def enter(level: Level, args: Sequence[Array]) -> tuple[Jaxpr, Sequence[object]]:
    """The jaxpr inside, and its inputs in the step or batch element of the level."""
    p, step = level.eqn.params, level.step or 0
    jaxpr = tuple(p.subjaxprs())[level.which]
    if isinstance(p, ScanParams):
        return jaxpr, at_scan_step(p, args, step)
    if isinstance(p, WhileParams):
        cond_consts, body_consts, carry = p.parts(args)
        loop = ScanParams(
            p.body_jaxpr,
            step,
            (False,) * (len(body_consts) + len(carry)),
            len(carry),
            len(body_consts),
            False,
            1,
        )
        if step:
            carry = list(scan_p.bind(loop, *body_consts, *carry))
        own = cond_consts if level.which == PREDICATE else body_consts
        return jaxpr, [*own, *carry]
    if isinstance(p, CondLanesParams):
        pairs = zip(p.mapped, args[1:], strict=True)
        return jaxpr, [element_of(x, p, step) if flag else x for flag, x in pairs]
    return jaxpr, args[1:] if isinstance(p, CondParams) else args


def at_scan_step(p: ScanParams, args: Sequence[Array], step: int) -> list[object]:
    """The inputs of the body in one step, after those before it."""
    consts, carry, xs = p.parts(args)
    row = p.length - 1 - step if p.reverse else step
    first, end = (row + 1, p.length) if p.reverse else (0, row)
    if step:
        done = [slice_in_dim(x, first, end) for x in xs]
        loop = ScanParams(
            p.jaxpr, step, p.linear, p.num_carry, p.num_consts, p.reverse, 1
        )
        carry = list(scan_p.bind(loop, *consts, *carry, *done)[: p.num_carry])
    rows = [index_in_dim(x, row, 0, keepdims=False) for x in xs]
    return [*consts, *carry, *rows]


def element_of(x: Array, p: CondLanesParams, lane: int) -> Array:
    """One batch element of an operand that begins with the batch dimensions."""
    rest = x.aval.shape[len(p.lanes) :]
    flat = reshape(x, (int(np.prod(p.lanes)), *rest))
    return index_in_dim(flat, lane, 0, keepdims=False)


def repeatable(jaxpr: Jaxpr) -> bool:
    """Whether a program may run again: it has no effects but to show values."""
    return jaxpr.effects <= SHOWN


def is_reachable(place: Place) -> bool:
    """Whether `probe` can get to each of the steps around a place."""
    known = NamedCall | ScanParams | WhileParams | CondParams
    return all([isinstance(level.eqn.params, known) for level in place.levels])
