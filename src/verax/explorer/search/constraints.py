"""A plan as constraints in a program: what a search writes into it (floor 6).

One idea: a plan says for the results of products, and for operands that are gathered
for one, how they lie, so the compiler's partitioner has nothing left to guess::

    constrained(jaxpr, {(3,): Wishes({0: P(None, "model")}, {0: P("data")})}, mesh)
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import Final

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

type Specs = tuple[PartitionSpec, ...]
"""Where a value lies, one after the other."""


@frozen(repr=False)
class Wishes(ReprMixin):
    """How operands and results of an equation lie, by their numbers.

    A value lies at several places one after the other if it is moved in steps.
    """

    ins: Mapping[int, Specs] = field(factory=dict)
    outs: Mapping[int, Specs] = field(factory=dict)


NOTHING: Final = Wishes()

type Plan = Mapping[Path, Wishes]
"""What is wished of equations, by their paths; of inputs, by those of programs."""


def spec_of(places: Places, ndim: int, names: Sequence[str]) -> PartitionSpec:
    """The spec of a value whose dimensions the axes split so.

    >>> spec_of((1, -1), 2, ("data", "model"))
    P(None, 'data')
    """
    entries: list[object] = []
    for d in range(ndim):
        own = tuple([n for n, e in zip(names, places, strict=True) if e == d])
        entries.append(own[0] if len(own) == 1 else own or None)
    while entries and entries[-1] is None:
        entries.pop()
    return PartitionSpec(*entries)


def spec_in(model: Model, family: int, places: Places, ndim: int) -> PartitionSpec:
    """The spec of a value of a family whose dimensions the axes split so.

    If two axes split one dimension of what is stored, the faster one comes first: its
    devices sum their parts first, and the others sum parts of these.
    """
    mesh = model.mesh
    axes = mesh.fastest if family in model.program.state else mesh.axes
    names = [mesh.names[axis] for axis in axes]
    return spec_of(tuple([places[axis] for axis in axes]), ndim, names)


def value_places(model: Model, layouts: Sequence[Layout], value: int) -> Places:
    """The dimensions of a value that axes split, as its family's layout says."""
    family, dims = model.program.of[value]
    return tuple([dims.index(d) if d in dims else WHOLE for d in layouts[family]])


def value_spec(model: Model, layouts: Sequence[Layout], value: int) -> PartitionSpec:
    """The spec of a value as the layout of its family says."""
    family, dims = model.program.of[value]
    return spec_in(model, family, value_places(model, layouts, value), len(dims))


def wishes_of(model: Model, layouts: Sequence[Layout]) -> dict[Path, Wishes]:
    """What a plan wishes of the equations of its program."""
    out: dict[Path, Wishes] = {}
    for number, item in enumerate(model.program.items):
        term = model.term_of.get(number)
        traits = traits_of(item.eqn.primitive)
        if item.renews:
            (v,) = item.outs
            start = value_places(model, layouts, item.ins[0] or 0)
            steps = route(model, start, value_places(model, layouts, v))
            out[item.path] = Wishes({}, {0: specs_in(model, v, [start, *steps])})
            continue
        if term is None or not (traits.stored or traits.reads_part):
            continue
        way = model.terms[term].way(layouts, model.mesh)
        ins = operand_wishes(model, layouts, item, way.places)
        outs = result_wishes(model, layouts, item, way.places)
        out[item.path] = Wishes(ins, outs)
    values = model.program.values
    for path, results in model.program.loops.items():
        known = [(i, v) for i, v in enumerate(results) if values[v].aval.shape]
        specs = {i: (value_spec(model, layouts, v),) for i, v in known}
        out[path] = Wishes({}, specs)
    for path, given in model.program.entries.items():
        known = [(i, v) for i, v in enumerate(given) if values[v].aval.shape]
        out[path] = Wishes({i: (value_spec(model, layouts, v),) for i, v in known})
    return out


def operand_wishes(
    model: Model, layouts: Sequence[Layout], item: Item, places: Sequence[Places]
) -> dict[int, Specs]:
    """How operands lie while an equation is computed."""
    out: dict[int, Specs] = {}
    if not traits_of(item.eqn.primitive).stored:
        return out
    rest = iter(places)
    for i, v in enumerate(item.ins):
        if v is None or not model.program.values[v].aval.shape:
            continue
        due = next(rest)
        steps = route(model, value_places(model, layouts, v), due)
        out[i] = specs_in(model, v, steps or [due])
    return out


def result_wishes(
    model: Model, layouts: Sequence[Layout], item: Item, places: Sequence[Places]
) -> dict[int, Specs]:
    """How results lie where they are made, and then in their families.

    Terms of a sum are first summed along the fastest axis, each device a part, so that
    along the others less has to be sent.
    """
    arrays = [
        (i, v) for i, v in enumerate(item.outs) if model.program.values[v].aval.shape
    ]
    out: dict[int, Specs] = {}
    own = places[len(places) - len(arrays) :]
    for (i, v), made in zip(arrays, own, strict=True):
        due = value_places(model, layouts, v)
        steps = [made] if set(made) - {WHOLE} - set(due) else []
        few = [axis for axis in model.mesh.fastest if made[axis] == WHOLE != due[axis]]
        for axis in few[:1]:
            first = list(made)
            first[axis] = due[axis]
            steps = [tuple(first)]
        steps += route(model, steps[-1] if steps else made, due)
        out[i] = specs_in(model, v, steps or [due])
    return out


def route(model: Model, own: Places, due: Places) -> list[Places]:
    """The places on the way to others: gathered along the slowest axis first.

    So what is sent along the slow axis is small.
    """
    gathered = [a for a in reversed(model.mesh.fastest) if own[a] != WHOLE == due[a]]
    steps, here = [], list(due)
    for axis in gathered:
        here[axis] = own[axis]
    for axis in gathered:
        if len(set(here) - {WHOLE}) == len([d for d in here if d != WHOLE]):
            steps.append(tuple(here))
        here[axis] = WHOLE
    steps = [places for places in steps if places != own]
    return steps if own == due else [*steps, due]


def specs_in(model: Model, value: int, places: Sequence[Places]) -> Specs:
    """The specs of a value at these places, each once."""
    family, dims = model.program.of[value]
    specs = [spec_in(model, family, one, len(dims)) for one in places]
    return tuple(dict.fromkeys(specs))


def constrained(jaxpr: Jaxpr, plan: Plan, mesh: Mesh, path: Path = ()) -> Jaxpr:
    """The program with the constraints of a plan, those of programs inside too."""
    if not any([known[: len(path)] == path for known in plan]):
        return jaxpr
    numbers, made = count(), dict[tuple[Atom, PartitionSpec], Atom]()
    entry = plan.get(path, NOTHING).ins

    def write(builder: Builder, eqn: Eqn, operands: tuple[Atom, ...]) -> Sequence[Atom]:
        here = (*path, next(numbers))
        wishes = plan.get(here, NOTHING)

        def lie(atom: Atom, specs: Specs) -> Atom:
            for spec in specs if isinstance(atom, Var) else ():
                atom = at(atom, spec)
            return atom

        def at(atom: Atom, spec: PartitionSpec) -> Atom:
            if (atom, spec) not in made:
                made[atom, spec] = constraint(builder, eqn, atom, spec, mesh)
            return made[atom, spec]

        starts = [
            lie(a, entry.get(old.index, ())) if isinstance(old, Var) else a
            for a, old in zip(operands, eqn.invars, strict=True)
        ]
        ins = [lie(a, wishes.ins.get(i, ())) for i, a in enumerate(starts)]
        params = map_subjaxprs(eqn.params, inner(plan, mesh, here), aside=False)
        outs = builder.copy(eqn.replace(params=params), ins)
        return [lie(a, wishes.outs.get(i, ())) for i, a in enumerate(outs)]

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
