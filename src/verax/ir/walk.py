"""Floor 0: going through a jaxpr and the jaxprs inside it, and mapping over them.

One idea: params say which jaxprs they hold, so nothing here knows any primitive, and
every function returns a new value::

    [eqn.primitive.name for path, eqn in walk(jaxpr)]
    outs = interpret(jaxpr, values, results_of_eqn)

Whoever gives values to the variables of a jaxpr keeps them in an environment (`Env`).
`read` takes atoms from it, and `interpret` goes through all equations.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from attrs import evolve, fields
from pyrsistent import pvector

from verax.ir.atoms import Atom, Literal, Var
from verax.ir.jaxpr import NO_PARAMS, Aside, Eqn, Jaxpr, Params

type Path = tuple[int, ...]
"""Where an equation stands: its number; before that, for each jaxpr around it, the
number of the equation and which of that equation's jaxprs it is."""

type Env[T] = Sequence[T] | Mapping[int, T]
"""What stands for variables, by their numbers: the inputs, then the results."""


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
    """What stands beside variables, such as tangents; literals have nothing there."""
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
    """What is read and nowhere defined: nothing, in a well-formed jaxpr."""
    defined = frozenset(defined_variables(jaxpr))
    return tuple([var for var in read_variables(jaxpr) if var not in defined])


def unused_variables(jaxpr: Jaxpr) -> tuple[Var, ...]:
    """What is defined and never read: inputs and results that have no use."""
    used = frozenset(read_variables(jaxpr))
    return tuple([var for var in defined_variables(jaxpr) if var not in used])


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
