"""Floor 3: transformations of the user's own, as tables of rules.

One idea: a transformation says what takes the place of a value (a value and its
tangent, a lower and an upper bound, Taylor coefficients) and how each primitive acts
on that; the walk, the templates, the loops and the errors are the same for all::

    rule = lambda walk, params, xs: [(-xs[0][1], -xs[0][0])]
    table = Propagation("bounds", {neg_p: rule})
    program, types = table.program(jaxpr, ((f32, f32),))

It makes jaxprs of jaxprs, as every transformation does, so what comes out is
differentiated, batched and compiled as anything else. `verax.extend` has the form for
functions. Rules run once per kind of equation (note 0002), so they must be pure.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar

from attrs import evolve, field, frozen
from pyrsistent import PMap, pmap

from verax.ir.jaxpr import UNKNOWN_SOURCE, Atom, Eqn, Jaxpr, Literal, Params, Primitive
from verax.ir.records import ReprMixin
from verax.ir.walk import interpret
from verax.ops.calls.call import NamedCall, inlined, jit_p
from verax.ops.calls.checkpoint import checkpoint_p
from verax.ops.control.cond import cond_lanes_p, cond_p
from verax.ops.control.scan import scan_p
from verax.ops.control.while_ import while_p
from verax.ops.custom.jvp import custom_jvp_call_p
from verax.ops.custom.vjp import custom_vjp_call_p
from verax.ops.custom.vmap import custom_vmap_call_p
from verax.rules.rows.bodies import (
    Parts,
    Types,
    Values,
    flat,
    grouped,
    plain,
    thread_of,
    types_of,
)
from verax.rules.rows.builder import Builder
from verax.rules.rows.row import MissingRule
from verax.rules.values.memo import memo, recall
from verax.rules.values.state import Context, current_context, interpreting
from verax.transforms.engine.parts import OfParts
from verax.transforms.engine.templates import located
from verax.transforms.passes.cse import cse

PROGRAMS = 1 << 12

type Rule[P: Params] = Callable[["Propagation", P, Sequence[Parts]], Sequence[Parts]]
"""The parts of the results from params and the parts of the operands. The first
argument is the transformation itself, for rules of primitives that hold jaxprs."""
type Otherwise = Callable[[Primitive], "Rule[Any] | None"]
type Fill = Callable[[Parts, int], Parts]
type AtomParts = tuple[Atom | None, ...]


def no_rule(primitive: Primitive) -> "Rule[Any] | None":
    """The error of a table without a fallback."""
    return None


def no_fill(parts: Parts, width: int) -> Parts:
    """Fills no parts: a table without `fill`, where all parts are required."""
    if len(parts) == width and None not in parts:
        return parts
    raise MissingRule(
        f"a value of {len(parts)} parts stands where {width} are required, as in the "
        "carry of a loop; define the transformation with fill=..., which makes them"
    )


def as_map(
    rules: "Mapping[Primitive, Rule[Any]]",
) -> "PMap[Primitive, Rule[Any]]":
    """The rules as a value."""
    return pmap(dict(rules))


@frozen(eq=False, repr=False)
class Propagation(ReprMixin):
    """A transformation: what each primitive does to the parts of its operands.

    Equations on untouched values are copied, effects included, and need no rule.

    Attributes:
        name: what messages and the origin of equations say.
        rules: the table from primitives to rules; `|` joins more.
        otherwise: the rule for a primitive that the table lacks, or None. Rows that
            say how to go through their programs need none.
        fill: `(parts, width)` to all of the `width` parts as arrays, where a loop needs
            that: in its carry.
    """

    __module__ = "verax.extend"

    transient: ClassVar[bool] = False

    name: str
    rules: PMap[Primitive, Rule[Any]] = field(converter=as_map)
    otherwise: Otherwise = no_rule
    fill: Fill = no_fill

    def __or__(
        self, rules: "Mapping[Primitive, Rule[Any]] | Propagation"
    ) -> "Propagation":
        """The transformation with these rules in front."""
        more = rules.rules if isinstance(rules, Propagation) else rules
        return evolve(self, rules=self.rules.update(more))

    def rule(self, primitive: Primitive) -> Rule[Any]:
        """The rule of a primitive.

        Raises:
            MissingRule: the table has none, and there is no other way.
        """
        out = self.rules.get(primitive) or self.otherwise(primitive)
        if out is None and thread_of(primitive):
            out = follow(primitive)
        if out is None:
            raise MissingRule(
                f"the primitive {primitive.name} has no rule in the table "
                f"{self.name!r}; join one: {self.name} | {{{primitive.name}_p: "
                "rule}, where rule(walk, params, parts of operands) returns the parts "
                "of the results"
            )
        return out

    def program(
        self, jaxpr: Jaxpr, types: Iterable[Types]
    ) -> tuple[Jaxpr, tuple[Types, ...]]:
        """The program on parts, and the types of the parts of its outputs.

        Contract: inputs are the parts of each input of `jaxpr` that are not None, in
        order; outputs likewise. Rewrites are remembered.

        Raises:
            MissingRule: a primitive on values that are not plain has no rule.
        """
        context = current_context()
        return recall(propagated, jaxpr, context, self, jaxpr, tuple(types))

    def __call__(self, jaxpr: Jaxpr, values: Sequence[Parts]) -> list[Parts]:
        """The parts of the outputs of `jaxpr`, written where a rule is being run."""
        program, types = self.program(jaxpr, map(types_of, values))
        return grouped(types, inlined(program, flat(values)))


@frozen(eq=False, repr=False)
class Following(OfParts):
    """A table of one's own, going through the programs of an equation."""

    walk: Propagation

    def outputs(self, number: int, types: Sequence[Types]) -> Sequence[Types]:
        return self.walk.program(self.jaxprs[number], types)[1]

    def fill(self, parts: Parts, width: int) -> Parts:
        return self.walk.fill(parts, width)

    def run(self, number: int, types: Sequence[Types]) -> Callable[[Values], Values]:
        return partial(self.walk, self.jaxprs[number])

    def full(self, parts: Parts, width: int) -> Parts:
        if width > 1:
            return self.walk.fill(parts, width)
        if not plain(parts):
            raise MissingRule(
                "a value with parts stands where a plain value is required"
            )
        return parts


def follow(primitive: Primitive) -> Rule[Any]:
    """The rule of a row for any table: what its programs do to the parts.

    Raises:
        ValueError: the row does not say how to go through its programs.
    """
    thread = thread_of(primitive)
    if thread is None:
        raise ValueError(
            f"the row {primitive.name} does not say how to go through its programs; "
            "give it thread=..."
        )

    def rule(walk: Propagation, p: Params, values: Values) -> Values:
        return thread(Following(tuple(p.subjaxprs()), walk), p, values)

    return rule


@memo(PROGRAMS)
def propagated(
    context: Context, table: Propagation, jaxpr: Jaxpr, types: tuple[Types, ...]
) -> tuple[Jaxpr, tuple[Types, ...]]:
    """`Propagation.program`."""
    builder = Builder(table.name)
    inputs: list[AtomParts] = grouped(types, builder.input_atoms(flat(types)))
    outs = interpret(jaxpr, inputs, partial(written, table, builder), alone)
    return builder.close(flat(outs))[0], tuple(map(atom_types, outs))


def atom_types(parts: AtomParts) -> Types:
    return tuple([None if a is None else a.aval for a in parts])


def alone(literal: Literal) -> AtomParts:
    """The one part of a literal."""
    return (literal,)


def written(
    table: Propagation, builder: Builder, eqn: Eqn, ins: Sequence[AtomParts]
) -> list[AtomParts]:
    """Write one equation on parts, or as it is if nothing touches its operands."""
    present: list[Atom] = flat(ins)
    atoms = tuple(present)
    types = tuple(map(atom_types, ins))
    if all(map(plain, ins)):
        if types == tuple([(a.aval,) for a in eqn.invars]):
            return [(a,) for a in builder.copy(eqn, atoms)]
        # A rule may have lost weakness: then the type rule has to be asked again.
        builder.source = eqn.source
        outs = builder.bind(eqn.primitive, eqn.params, builder.tracers(atoms))
        return [(builder.atom(x),) for x in outs]
    params = eqn.params
    try:
        template, out_types = recall(
            template_of, params, current_context(), table, eqn.primitive, params, types
        )
    except MissingRule as error:
        raise located(error, eqn) from error
    if len(out_types) != len(eqn.outvars):
        raise TypeError(
            f"the rule of {table.name} for {eqn.primitive.name} returns parts for "
            f"{len(out_types)} results, but there are {len(eqn.outvars)}; met at "
            f"{eqn.source}"
        )
    source = eqn.source.derived(table.name)
    return grouped(out_types, builder.inline(template, atoms, source=source))


@memo(PROGRAMS)
def template_of(
    context: Context,
    table: Propagation,
    primitive: Primitive,
    params: Params,
    types: tuple[Types, ...],
) -> tuple[Jaxpr, tuple[Types, ...]]:
    """The rule's result for an equation, as a small program on parts."""
    rule = table.rule(primitive)
    builder = Builder(f"a rule of {table.name}", source=UNKNOWN_SOURCE)
    values = grouped(types, [builder.input(t) for t in flat(types)])
    with interpreting(builder):
        outs = rule(table, params, values)
        check_parts(table, primitive, outs)
        atoms = [
            tuple([None if x is None else builder.atom(x) for x in parts])
            for parts in outs
        ]
    # What a rule walks may compute the same again: without this, programs of rules that
    # walk twice would double with each order of a series.
    template = cse(builder.close(flat(atoms))[0])
    return template, tuple(map(atom_types, atoms))


def check_parts(table: Propagation, primitive: Primitive, outs: object) -> None:
    """Raise TypeError unless a rule has returned tuples of parts."""
    results = outs if isinstance(outs, tuple | list) else [outs]
    for parts in results:
        if not isinstance(parts, tuple | list):
            raise TypeError(
                f"the rule of {table.name} for {primitive.name} returned a "
                f"{type(parts).__name__}; it must return a sequence with, for each "
                "result, the tuple of its parts: [(value, tangent)]"
            )


# -----------------------------------------------------------------------------
# What custom tables do with calls, loops and branches.
#
# An equation with programs inside does to parts what its programs do to them,
# and how values go in and come out stands in its row (`thread`); so there is one rule::
#
#     Propagation("taylor", CONTROL, fill=fill) | {sin_p: rule}
#
# `CONTROL` has it for the calls, loops and branches of the library. `INSIDE` takes
# functions with derivatives or batching rules of the user's own for what they compute,
# as evaluation does.


def inside(walk: Propagation, p: NamedCall, values: Values) -> Values:
    """An equation that means its jaxpr, written in place."""
    return walk(p.jaxpr, values)


CONTROL: Mapping[Primitive, Rule[Any]] = MappingProxyType(
    {row: follow(row) for row in (jit_p, scan_p, while_p, cond_p, cond_lanes_p)}
)
INSIDE: Mapping[Primitive, Rule[Any]] = MappingProxyType(
    {
        checkpoint_p: follow(checkpoint_p),
        custom_jvp_call_p: inside,
        custom_vjp_call_p: inside,
        custom_vmap_call_p: inside,
    }
)
