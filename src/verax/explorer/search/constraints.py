"""A plan as constraints in a program: what a search writes into it (floor 6).

One idea: a plan says for the results of products, and for operands that are gathered
for one, how they lie, so the compiler's partitioner has nothing left to guess::

    constrained(jaxpr, {(3,): Wishes({0: P(None, "model")}, {0: P("data")})}, mesh)
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Any, Final

from attrs import field, frozen

from verax.backend.placement.mesh import Mesh, PartitionSpec
from verax.backend.placement.sharding import NamedSharding
from verax.explorer.search.families import Item
from verax.explorer.search.model import WHOLE, Layout, Model, Places
from verax.ir.jaxpr import Atom, Eqn, Jaxpr, Var
from verax.ir.records import ReprMixin
from verax.ir.walk import Path, map_subjaxprs
from verax.ops.parallel.sharding_constraint import (
    ShardingParams,
    sharding_constraint_p,
)
from verax.rules.rows.builder import Builder, rebuilt
from verax.rules.rows.row import traits_of


@frozen(repr=False)
class Wishes(ReprMixin):
    """How operands and results of an equation lie, by their numbers."""

    ins: Mapping[int, PartitionSpec] = field(factory=dict)
    outs: Mapping[int, PartitionSpec] = field(factory=dict)


NOTHING: Final = Wishes()

type Plan = Mapping[Path, Wishes]
"""What is wished of equations, by their paths."""


def spec_of(places: Places, ndim: int, names: Sequence[str]) -> PartitionSpec:
    """The spec of a value whose dimensions the axes split so.

    >>> spec_of((1, -1), 2, ("data", "model"))
    P(None, 'data')
    """
    entries: list[Any] = []
    for d in range(ndim):
        own = tuple([n for n, e in zip(names, places, strict=True) if e == d])
        entries.append(own[0] if len(own) == 1 else own or None)
    while entries and entries[-1] is None:
        entries.pop()
    return PartitionSpec(*entries)


def value_spec(model: Model, layouts: Sequence[Layout], value: int) -> PartitionSpec:
    """The spec of a value as the layout of its family says."""
    family, dims = model.program.of[value]
    layout = layouts[family]
    places = tuple([dims.index(d) if d in dims else WHOLE for d in layout])
    return spec_of(places, len(dims), model.mesh.names)


def wishes_of(model: Model, layouts: Sequence[Layout]) -> dict[Path, Wishes]:
    """What a plan wishes of the equations of its program."""
    out: dict[Path, Wishes] = {}
    for number, item in enumerate(model.program.items):
        term = model.term_of.get(number)
        if term is None or not traits_of(item.eqn.primitive).stored:
            continue
        way = model.terms[term].way(layouts, model.mesh)
        ins = operand_wishes(model, layouts, item, way.places)
        outs = {
            i: value_spec(model, layouts, v)
            for i, v in enumerate(item.outs)
            if model.program.values[v].aval.shape
        }
        out[item.path] = Wishes(ins, outs)
    return out


def operand_wishes(
    model: Model, layouts: Sequence[Layout], item: Item, places: Sequence[Places]
) -> dict[int, PartitionSpec]:
    """How operands lie that are not where their families are."""
    out: dict[int, PartitionSpec] = {}
    if traits_of(item.eqn.primitive).writes_part is not None:
        return out
    rest = iter(places)
    for i, v in enumerate(item.ins):
        if v is None or not model.program.values[v].aval.shape:
            continue
        due = next(rest)
        ndim = model.program.values[v].aval.ndim
        spec = spec_of(due, ndim, model.mesh.names)
        if spec != value_spec(model, layouts, v):
            out[i] = spec
    return out


def constrained(jaxpr: Jaxpr, plan: Plan, mesh: Mesh, path: Path = ()) -> Jaxpr:
    """The program with the constraints of a plan, those of programs inside too."""
    if not any([known[: len(path)] == path for known in plan]):
        return jaxpr
    numbers, made = count(), dict[tuple[Atom, PartitionSpec], Atom]()

    def write(
        builder: Builder, eqn: Eqn, operands: tuple[Atom, ...]
    ) -> Sequence[Atom]:
        here = (*path, next(numbers))
        wishes = plan.get(here, NOTHING)

        def lie(atom: Atom, spec: PartitionSpec | None) -> Atom:
            if spec is None or not isinstance(atom, Var):
                return atom
            if (atom, spec) not in made:
                made[atom, spec] = constraint(builder, eqn, atom, spec, mesh)
            return made[atom, spec]

        ins = [lie(a, wishes.ins.get(i)) for i, a in enumerate(operands)]
        params = map_subjaxprs(eqn.params, inner(plan, mesh, here), aside=False)
        outs = builder.copy(eqn.replace(params=params), ins)
        return [lie(a, wishes.outs.get(i)) for i, a in enumerate(outs)]

    return rebuilt(jaxpr, write, "a plan")


def inner(plan: Plan, mesh: Mesh, path: Path) -> Callable[[Jaxpr], Jaxpr]:
    """A function that writes a plan into the programs of an equation, in order."""
    numbers = count()

    def change(jaxpr: Jaxpr) -> Jaxpr:
        return constrained(jaxpr, plan, mesh, (*path, next(numbers)))

    return change


def constraint(
    builder: Builder, eqn: Eqn, atom: Atom, spec: PartitionSpec, mesh: Mesh
) -> Atom:
    """A value at its place, at the line of an equation."""
    layout = NamedSharding(mesh, spec).layout
    builder.source = eqn.source
    (out,) = builder.bind(
        sharding_constraint_p, ShardingParams(layout), builder.tracers([atom])
    )
    builder.source = None
    return builder.atom(out)
