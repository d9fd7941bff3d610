"""Floor 0: array constants: literals inside, constvars at the surface.

One idea: an array constant is a literal wherever transformations work, and only what
the user looks at, or the runtime calls, has it as an input::

    closed = hoist(jaxpr)    # { lambda a:f32[16]; b:f32[16]. let ... }
    close(closed) == jaxpr
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from attrs import frozen
from pyrsistent import pvector

from verax.ir.atoms import (
    Atom,
    Identity,
    Literal,
    Var,
    array_literal,
    results_like,
    scalar_literal,
    variable,
)
from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import ClosedJaxpr, Eqn, Jaxpr, UsedConst, equation
from verax.ir.memos.memo import memoised
from verax.ir.records import ReprMixin
from verax.ir.walk import map_eqns, map_subjaxprs


@runtime_checkable
class Stored(Protocol):
    """An array of the runtime, which gives its memory as a NumPy array."""

    def stored(self) -> np.ndarray: ...


type Hoistable = Callable[[Eqn, tuple[Literal, ...]], Eqn | None]
"""Gives the equation that takes these constants of its jaxprs as operands; or None.

What it returns has the literals among its operands and not in its jaxprs; only the
primitive knows how operands and inner inputs correspond, see `into_operands`.
"""


def used_consts(jaxpr: Jaxpr) -> tuple[UsedConst, ...]:
    """The array constants of `jaxpr` and of the jaxprs inside, each object once.

    They come in the order in which the printer numbers them, and are remembered by the
    jaxpr.
    """
    return jaxpr.used_consts


def close(closed: ClosedJaxpr) -> Jaxpr:
    """The jaxpr without constvars: the constants are literals of its equations."""
    constvars = closed.jaxpr.constvars
    literals = [
        constant_literal(value, var.aval)
        for value, var in zip(closed.consts, constvars, strict=True)
    ]
    return rebuilt(closed.jaxpr, literals, {})


def constant_literal(value: object, aval: ShapedArray) -> Literal:
    """The literal of a constant: scalars by value, arrays and tracers by reference."""
    if aval.shape or hasattr(value, "atom"):
        return array_literal(value, aval)
    stored = value.stored() if isinstance(value, Stored) else np.asarray(value)
    return scalar_literal(stored, aval)


@frozen(repr=False)
class Slot(ReprMixin):
    """What stands for an array constant: its number, and where the array lies."""

    number: int
    place: Hashable = None

    transient: ClassVar[bool] = False


slot = memoised(Slot)


def numbered(
    jaxpr: Jaxpr, place_of: Callable[[object], Hashable]
) -> tuple[Jaxpr, tuple[Literal, ...]]:
    """The jaxpr with slots for its array constants, and the constants by number.

    Programs that differ in the values of their constants alone have equal ones.
    `place_of` says where an array lies, if that is part of the program.
    """
    literals = tuple([use.literal for use in jaxpr.used_consts])
    if not literals:
        return jaxpr, ()
    slots: dict[Atom, Atom] = {}
    for number, literal in enumerate(literals):
        held = slot(number, place_of(literal.value))
        slots[literal] = Literal(held, literal.aval, Identity(held))
    return exchanged(jaxpr, slots, {}), literals


def exchanged(
    jaxpr: Jaxpr, slots: Mapping[Atom, Atom], done: dict[int, Jaxpr]
) -> Jaxpr:
    """`jaxpr` with other constants, nested jaxprs included; `done` has those so far."""
    if not jaxpr.used_consts:
        return jaxpr

    def atoms(found: tuple[Atom, ...]) -> tuple[Atom, ...]:
        return tuple([slots.get(a, a) if type(a) is Literal else a for a in found])

    def inside(inner: Jaxpr) -> Jaxpr:
        return exchanged(inner, slots, done)

    if id(jaxpr) not in done:
        eqns = [
            equation(
                eqn.primitive,
                map_subjaxprs(eqn.params, inside),
                atoms(eqn.invars),
                eqn.outvars,
                eqn.source,
            )
            for eqn in jaxpr.eqns
        ]
        outvars = atoms(jaxpr.outvars)
        done[id(jaxpr)] = Jaxpr((), jaxpr.invars, pvector(eqns), outvars)
    return done[id(jaxpr)]


def hoist(jaxpr: Jaxpr, hoistable: Hoistable | None = None) -> ClosedJaxpr:
    """The jaxpr with its array constants as constvars, and their values.

    Constants of nested jaxprs come out where `hoistable` knows how to make them
    operands of the equation around; without it they stay literals where they are.
    Constvars that `jaxpr` has already are not touched: close it first.

    Raises:
        ValueError: `jaxpr` has constvars, whose values are not known here.
    """
    if jaxpr.constvars:
        raise ValueError("hoist needs a jaxpr without constvars; call close before it")
    if not jaxpr.used_consts:
        return ClosedJaxpr(jaxpr)
    surfaced = surface(jaxpr, hoistable) if hoistable else jaxpr
    literals = direct_consts(surfaced)
    lifted = lift(surfaced, literals)
    ours, theirs = lifted.invars[: len(literals)], lifted.invars[len(literals) :]
    values = tuple([literal.value for literal in literals])
    return ClosedJaxpr(Jaxpr(ours, theirs, lifted.eqns, lifted.outvars), values)


def surface(jaxpr: Jaxpr, hoistable: Hoistable) -> Jaxpr:
    """`jaxpr` with the constants of its nested jaxprs as operands, where possible."""

    def changed(eqn: Eqn) -> Eqn:
        if not any(inner.used_consts for inner in eqn.params.subjaxprs()):
            return eqn
        params = map_subjaxprs(eqn.params, lambda inner: surface(inner, hoistable))
        inside = Eqn(eqn.primitive, params, eqn.invars, eqn.outvars, eqn.source)
        found = [c for inner in params.subjaxprs() for c in direct_consts(inner)]
        literals = tuple(dict.fromkeys(found))
        return (hoistable(inside, literals) if literals else None) or inside

    return map_eqns(jaxpr, changed)


def into_operands(eqn: Eqn, literals: tuple[Literal, ...], position: int = 0) -> Eqn:
    """The equation with constants as operands `position`, and as first inner inputs.

    This is the `Hoistable` of primitives whose operands, from `position` on, are the
    inputs of each of their jaxprs (`jit`, and `cond` behind its index).
    """
    params = map_subjaxprs(eqn.params, lambda inner: lift(inner, literals))
    invars = (*eqn.invars[:position], *literals, *eqn.invars[position:])
    return Eqn(eqn.primitive, params, invars, eqn.outvars, eqn.source)


def lift(jaxpr: Jaxpr, literals: Sequence[Literal]) -> Jaxpr:
    """`jaxpr` with new first inputs, which replace these literals."""
    found = [variable(i, literal.aval) for i, literal in enumerate(literals)]
    return rebuilt(jaxpr, (), dict(zip(literals, found, strict=True)))


def direct_consts(jaxpr: Jaxpr) -> tuple[Literal, ...]:
    """The array constants of the jaxpr's own equations and outputs, each once."""
    atoms = [atom for eqn in jaxpr.eqns for atom in eqn.invars]
    found = [
        atom
        for atom in (*atoms, *jaxpr.outvars)
        if type(atom) is Literal and type(atom.key) is Identity
    ]
    return tuple(dict.fromkeys(found))


def rebuilt(
    jaxpr: Jaxpr, constants: Sequence[Atom], lifted: Mapping[Literal, Var]
) -> Jaxpr:
    """`jaxpr` with `constants` as its constvars and inputs instead of `lifted`."""
    count = len(lifted)
    env: list[Atom] = list(constants)

    def define(variables: tuple[Var, ...]) -> tuple[Var, ...]:
        nonlocal count
        new = results_like(count, variables)
        count += len(new)
        env.extend(new)
        return new

    def read(atoms: Sequence[Atom]) -> tuple[Atom, ...]:
        return tuple(
            [
                env[a.index]
                if isinstance(a, Var)
                else lifted.get(a, a)
                if type(a.key) is Identity  # others need not be hashed
                else a
                for a in atoms
            ]
        )

    invars = (*lifted.values(), *define(jaxpr.invars))
    eqns = [
        equation(e.primitive, e.params, read(e.invars), define(e.outvars), e.source)
        for e in jaxpr.eqns
    ]
    return Jaxpr((), invars, pvector(eqns), read(jaxpr.outvars))
