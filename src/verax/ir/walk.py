"""Floor 0: going through a jaxpr and the jaxprs inside it, and mapping over them.

One idea: params say which jaxprs they hold, so nothing here knows any primitive, and
every function returns a new value::

    [eqn.primitive.name for path, eqn in walk(jaxpr)]
    outs = interpret(jaxpr, values, results_of_eqn)

Whoever gives values to the variables of a jaxpr keeps them in an environment (`Env`).
`read` takes atoms from it, and `interpret` goes through all equations.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np
from attrs import evolve, fields, frozen
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
from verax.ir.jaxpr import (
    NO_PARAMS,
    Aside,
    ClosedJaxpr,
    Eqn,
    Jaxpr,
    Params,
    UsedConst,
    equation,
)
from verax.ir.memos import memoised
from verax.ir.records import ReprMixin

type Path = tuple[int, ...]
"""The place of an equation: its number; before it, for each jaxpr around it, the
number of the equation and which of that equation's jaxprs it is."""

type Env[T] = Sequence[T] | Mapping[int, T]
"""The values of variables, by their numbers: the inputs, then the results."""


def read[T](atoms: Iterable[Atom], env: Env[T]) -> list[T | Literal]:
    """The values of atoms; a literal stands for itself."""
    return [env[a.index] if type(a) is Var else a for a in atoms]


def read_as[T](
    atoms: Iterable[Atom], env: Env[T], literal: Callable[[Literal], T]
) -> list[T]:
    """The values of atoms; `literal` gives the value of a literal."""
    return [env[a.index] if type(a) is Var else literal(a) for a in atoms]


def itself(literal: Literal) -> Literal:
    """The value of a literal where values are atoms."""
    return literal


def beside[T](atoms: Iterable[Atom], env: Env[T]) -> list[T | None]:
    """The values beside variables, such as tangents; literals have none there."""
    return [env[a.index] if type(a) is Var else None for a in atoms]


def interpret[T](
    jaxpr: Jaxpr,
    values: Iterable[T],
    results: Callable[[Eqn, list[T]], Iterable[T]],
    literal: Callable[[Literal], T],
) -> list[T]:
    """The outputs of `jaxpr` on `values`; `results` computes equation by equation.

    A value may be anything: an array, an atom of another program, several of them.
    """
    env = list(values)
    for eqn in jaxpr.eqns:
        env += results(eqn, read_as(eqn.invars, env, literal))
    return read_as(jaxpr.outvars, env, literal)


def walk(jaxpr: Jaxpr, path: Path = ()) -> Iterator[tuple[Path, Eqn]]:
    """Every equation with its path, those of nested jaxprs right after their own."""
    for number, eqn in enumerate(jaxpr.eqns):
        here = (*path, number)
        yield here, eqn
        for which, inner in enumerate(eqn.params.subjaxprs()):
            yield from walk(inner, (*here, which))


def equation_at(jaxpr: Jaxpr, path: Path) -> Eqn:
    """The equation at a path that `walk` has returned."""
    eqn = jaxpr.eqns[path[0]]
    if len(path) == 1:
        return eqn
    return equation_at(tuple(eqn.params.subjaxprs())[path[1]], path[2:])


def count_eqns(jaxpr: Jaxpr) -> int:
    """The number of equations, nested ones included once for each place they are in."""
    return counted(jaxpr, {})


def counted(jaxpr: Jaxpr, known: dict[int, int]) -> int:
    """`count_eqns`, with the counts of jaxprs already met, by identity."""
    if id(jaxpr) not in known:
        inner = [
            counted(inner, known)
            for eqn in jaxpr.eqns
            if eqn.params is not NO_PARAMS
            for inner in eqn.params.subjaxprs()
        ]
        known[id(jaxpr)] = len(jaxpr.eqns) + sum(inner)
    return known[id(jaxpr)]


def defined_variables(jaxpr: Jaxpr) -> tuple[Var, ...]:
    """Every variable of the jaxpr itself, in the order of the definitions."""
    results = [var for eqn in jaxpr.eqns for var in eqn.outvars]
    return (*jaxpr.constvars, *jaxpr.invars, *results)


def read_variables(jaxpr: Jaxpr) -> tuple[Var, ...]:
    """Every variable that equations or outputs read, once, by first use."""
    reads = [atom for eqn in jaxpr.eqns for atom in eqn.invars]
    variables = [atom for atom in (*reads, *jaxpr.outvars) if type(atom) is Var]
    return tuple(dict.fromkeys(variables))


def free_variables(jaxpr: Jaxpr) -> tuple[Var, ...]:
    """The variables that are read and nowhere defined: none in a well-formed jaxpr."""
    defined = frozenset(defined_variables(jaxpr))
    return tuple([var for var in read_variables(jaxpr) if var not in defined])


def unused_variables(jaxpr: Jaxpr) -> tuple[Var, ...]:
    """Variables that are defined and never read: inputs and results without a use."""
    used = frozenset(read_variables(jaxpr))
    return tuple([var for var in defined_variables(jaxpr) if var not in used])


@runtime_checkable
class Passing(Protocol):
    """Params of equations that may pass operands on."""

    def passed_on(self, i: int) -> int | None:
        """The operand that result `i` is, whatever the values; None if computed."""


def source(jaxpr: Jaxpr, atom: Atom) -> int | None:
    """The input that an atom is, through equations that pass it on; None if computed.

    >>> import verax
    >>> program = verax.make_jaxpr(verax.jit(lambda x, y: (y, x + y)))(1.0, 2.0)
    >>> [source(program.jaxpr, atom) for atom in program.jaxpr.outvars]
    [1, None]
    """
    while isinstance(atom, Var):
        if atom in jaxpr.invars:
            return jaxpr.invars.index(atom)
        # Results are made near the end.
        makers = (eqn for eqn in reversed(jaxpr.eqns) if atom in eqn.outvars)
        maker = next(makers, None)
        if maker is None or not isinstance(maker.params, Passing):
            return None
        place = maker.params.passed_on(maker.outvars.index(atom))
        if place is None:
            return None
        atom = maker.invars[place]
    return None


def substitute(jaxpr: Jaxpr, atoms: Mapping[Var, Atom]) -> Jaxpr:
    """`jaxpr` with every use of the variables replaced; their definitions stay."""

    def replaced(old: tuple[Atom, ...]) -> tuple[Atom, ...]:
        return tuple([atoms.get(a, a) if type(a) is Var else a for a in old])

    eqns = [
        Eqn(e.primitive, e.params, replaced(e.invars), e.outvars, e.source)
        for e in jaxpr.eqns
    ]
    outvars = replaced(jaxpr.outvars)
    return Jaxpr(jaxpr.constvars, jaxpr.invars, pvector(eqns), outvars)


def map_eqns(jaxpr: Jaxpr, change: Callable[[Eqn], Eqn]) -> Jaxpr:
    """`jaxpr` with each of its own equations changed; `jaxpr` itself if none is."""
    eqns = [change(eqn) for eqn in jaxpr.eqns]
    if all(new is old for new, old in zip(eqns, jaxpr.eqns, strict=True)):
        return jaxpr
    return Jaxpr(jaxpr.constvars, jaxpr.invars, pvector(eqns), jaxpr.outvars)


def map_subjaxprs[P: Params](
    params: P, change: Callable[[Jaxpr], Jaxpr], aside: bool = True
) -> P:
    """`params` with each of `params.subjaxprs(aside)` changed; same if none is."""
    return params if params is NO_PARAMS else mapped_fields(params, change, aside)


def mapped_fields[T: Params | Aside](
    record: T, change: Callable[[Jaxpr], Jaxpr], aside: bool
) -> T:
    """`record` with the jaxprs in its fields changed; the same object if none is."""
    changes: dict[str, object] = {}
    for attribute in fields(type(record)):
        old: object = getattr(record, attribute.name)
        new = mapped(old, change, aside)
        if new is not old:
            changes[attribute.alias or attribute.name] = new
    return evolve(record, **changes) if changes else record


def mapped(value: object, change: Callable[[Jaxpr], Jaxpr], aside: bool) -> object:
    """One field with its jaxprs changed; the same object if there is nothing to do."""
    if isinstance(value, Jaxpr):
        return change(value)
    if aside and isinstance(value, Aside):
        return mapped_fields(value, change, aside)
    if not isinstance(value, tuple):
        return value
    items = [change(item) if isinstance(item, Jaxpr) else item for item in value]
    same = all(new is old for new, old in zip(items, value, strict=True))
    return value if same else tuple(items)


def map_jaxprs(jaxpr: Jaxpr, change: Callable[[Jaxpr], Jaxpr]) -> Jaxpr:
    """`change` of every jaxpr, the inner ones first, then `jaxpr` itself."""

    def inside(eqn: Eqn) -> Eqn:
        params = map_subjaxprs(eqn.params, lambda inner: map_jaxprs(inner, change))
        if params is eqn.params:
            return eqn
        return Eqn(eqn.primitive, params, eqn.invars, eqn.outvars, eqn.source)

    return change(map_eqns(jaxpr, inside))


# -----------------------------------------------------------------------------
# Array constants: literals inside, constvars at the surface.
#
# An array constant is a literal wherever transformations work, and only what
# the user looks at, or the runtime calls, has it as an input::
#
#     closed = hoist(jaxpr)    # { lambda a:f32[16]; b:f32[16]. let ... }
#     close(closed) == jaxpr


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
    """A slot for an array constant: its number, and where the array lies."""

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

    def atoms(result: tuple[Atom, ...]) -> tuple[Atom, ...]:
        return tuple([slots.get(a, a) if type(a) is Literal else a for a in result])

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
        result = [c for inner in params.subjaxprs() for c in direct_consts(inner)]
        literals = tuple(dict.fromkeys(result))
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
    out = [variable(i, literal.aval) for i, literal in enumerate(literals)]
    return rebuilt(jaxpr, (), dict(zip(literals, out, strict=True)))


def direct_consts(jaxpr: Jaxpr) -> tuple[Literal, ...]:
    """The array constants of the jaxpr's own equations and outputs, each once."""
    atoms = [atom for eqn in jaxpr.eqns for atom in eqn.invars]
    out = [
        atom
        for atom in (*atoms, *jaxpr.outvars)
        if type(atom) is Literal and type(atom.key) is Identity
    ]
    return tuple(dict.fromkeys(out))


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
