"""Floor 3: the program in which products are narrow, and each value is rounded once.

One idea: every value has a wide version, and a narrow one from the moment at which a
product asks for it. What only moves elements commutes with rounding, so the narrow
version of its result is what it does to the narrow version of its operand, and a cast
stands where it is cheapest::

    Writer(plan, builder).run(jaxpr, values)

Programs inside take and return both versions of each value, and what nobody reads goes
in the end. So weights are rounded outside the loop that reads them, and what a loop
stacks for its way back is narrow if that is all that is read of it.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from attrs import define, field, frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import is_inexact, numpy_dtype
from verax.ir.jaxpr import (
    UNKNOWN_SOURCE,
    Atom,
    Eqn,
    Jaxpr,
    Literal,
    Params,
    Primitive,
    Source,
    Var,
)
from verax.ir.records import ReprMixin
from verax.ir.walk import close, hoist, interpret
from verax.ops.calls.call import NamedCall, inlined
from verax.ops.elementwise.convert import (
    ConvertParams,
    convert,
    convert_element_type_p,
)
from verax.ops.hoisting import as_operands
from verax.rules.rows.bodies import (
    Parts,
    Types,
    Values,
    flat,
    grouped,
    thread_of,
)
from verax.rules.rows.builder import Builder
from verax.rules.rows.infer import inferred
from verax.rules.rows.row import Row, traits_of
from verax.rules.values.constants import constant
from verax.rules.values.memo import kept_with, memo
from verax.rules.values.state import Context, current_context, interpreting
from verax.transforms.engine.engine import STANDARD
from verax.transforms.engine.partial_eval import dce
from verax.transforms.engine.parts import OfParts
from verax.transforms.narrowing.plan import PROGRAMS, Narrowing
from verax.transforms.passes.cse import cse

DEEP = 100
"""So many moves in a row are followed back to where a value was made."""


def narrowed(plan: Narrowing, jaxpr: Jaxpr) -> Jaxpr:
    """The program with narrow products; the same one if there are none.

    Contract: inputs, output types and effects are kept.
    """
    return kept_with(jaxpr, remembered, current_context(), plan, jaxpr)


@memo(PROGRAMS)
def remembered(context: Context, plan: Narrowing, jaxpr: Jaxpr) -> Jaxpr:
    """`narrowed`, once per program."""
    if not plan.touches(jaxpr):
        return jaxpr
    # Arrays that a loop closes over are rounded outside of it.
    jaxpr = close(hoist(jaxpr, as_operands))
    builder = Builder("narrow")
    writer = Writer(plan, builder)
    inputs, dealt = builder.input_atoms(jaxpr.in_avals), dealt_out(plan, jaxpr)
    values = [
        Value(a.aval, a, dealt=v in dealt)
        for a, v in zip(inputs, jaxpr.invars, strict=True)
    ]
    outs = writer.run(jaxpr, values)
    pairs = zip(outs, jaxpr.out_avals, strict=True)
    made = builder.close([writer.typed(v, aval) for v, aval in pairs])[0]
    return dce(STANDARD, cse(made), (True,) * len(outs), keep=len(inputs))[0]


@define(eq=False, repr=False)
class Value(ReprMixin):
    """A value of the old program, and where its versions are in the new one.

    `offered` is a narrow version that nobody may read: one that programs inside got.
    A `native` value is one of which light operations are narrow.
    `eqn` made it, of `operands`, as its result number `place`. It is `dealt` if it is
    only cut in parts, which have no more elements together.
    """

    aval: ShapedArray
    wide: Atom | None
    narrow: Atom | None = None
    offered: Atom | None = None
    native: bool = False
    eqn: Eqn | None = None
    operands: Sequence["Value"] = ()
    place: int = 0
    dealt: bool = False


@define(eq=False, repr=False)
class Writer(ReprMixin):
    """Writes the program, equation by equation."""

    plan: Narrowing
    builder: Builder
    literals: dict[Literal, Value] = field(factory=dict)

    def run(self, jaxpr: Jaxpr, values: Iterable[Value]) -> list[Value]:
        """What the outputs of a program on values are."""
        dealt = dealt_out(self.plan, jaxpr)

        def write(eqn: Eqn, ins: Sequence[Value]) -> list[Value]:
            outs = self.write(eqn, ins)
            for old, new in zip(eqn.outvars, outs, strict=True):
                new.dealt = old in dealt
            return outs

        return interpret(jaxpr, values, write, self.literal)

    def literal(self, literal: Literal) -> Value:
        """The value of a literal, which is one wherever it stands."""
        return self.literals.setdefault(literal, Value(literal.aval, literal))

    def write(self, eqn: Eqn, ins: Sequence[Value]) -> list[Value]:
        """What stands for the results of an equation."""
        plan = self.plan
        inside = list(eqn.params.subjaxprs(aside=False))
        if inside and any(map(plan.touches, inside)) and not plan.kept(eqn):
            return self.through(eqn, ins, tuple(eqn.params.subjaxprs()))
        params = plan.product(eqn)
        if params is not None:
            return self.product(eqn, params, ins)
        if eqn.primitive is convert_element_type_p and len(ins) == 1:
            return self.converted(eqn, ins[0])
        if plan.is_narrow_sum(eqn) or self.stays_narrow(eqn, ins):
            outs = self.on_narrow(eqn, ins)
            if outs is not None:
                pairs = zip(eqn.outvars, outs, strict=True)
                return [native(self.plan, v.aval, atom) for v, atom in pairs]
        return self.copied(eqn, ins)

    def product(self, eqn: Eqn, params: Params, ins: Sequence[Value]) -> list[Value]:
        """The narrow product, whose sums are wide."""
        atoms = [self.narrow(v, eqn.source) for v in ins]
        (out,) = self.bound(eqn.source, eqn.primitive, params, atoms)
        return [Value(out.aval, out, native=self.plan.elementwise)]

    def converted(self, eqn: Eqn, x: Value) -> list[Value]:
        """A conversion of the user's: a rounding that may be there, or its inverse."""
        (out,) = eqn.outvars
        strong = not out.aval.weak_type
        if strong and out.aval.dtype == self.plan.to and self.plan.narrows(x.aval):
            return [Value(out.aval, self.narrow(x, eqn.source))]
        (value,) = self.copied(eqn, [x])
        if x.aval.dtype == self.plan.to and self.plan.narrows(out.aval):
            value.narrow, value.native = self.wide(x), True
        return [value]

    def stays_narrow(self, eqn: Eqn, ins: Sequence[Value]) -> bool:
        """Whether a light operation has nothing but narrow operands."""
        if not self.plan.is_light(eqn) or self.plan.kept(eqn):
            return False
        floats = [v for v in ins if self.plan.narrows(v.aval)]
        alone = [v for v in floats if not isinstance(v.wide, Literal) or v.aval.shape]
        return bool(alone) and all([v.native for v in alone])

    def copied(self, eqn: Eqn, ins: Sequence[Value]) -> list[Value]:
        """The equation on wide values."""
        atoms = tuple([self.wide(v) for v in ins])
        if all([a.aval is b.aval for a, b in zip(atoms, eqn.invars, strict=True)]):
            outs: Sequence[Atom] = self.builder.copy(eqn, atoms)
        else:  # a product has lost weakness, so the type rule has to be asked again
            outs = self.bound(eqn.source, eqn.primitive, eqn.params, atoms)
        return [
            Value(a.aval, a, None, None, False, eqn, ins, i) for i, a in enumerate(outs)
        ]

    def bound(
        self,
        source: Source,
        primitive: Primitive,
        params: Params,
        atoms: Sequence[Atom],
    ) -> list[Atom]:
        """The results of a new equation, at the line of another."""
        self.builder.source = source
        outs = self.builder.bind(primitive, params, self.builder.tracers(atoms))
        self.builder.source = None
        return [self.builder.atom(x) for x in outs]

    def wide(self, value: Value) -> Atom:
        """The wide version."""
        if value.wide is None:
            assert value.narrow is not None
            params = ConvertParams(value.aval.dtype, value.aval.weak_type)
            tracers = self.builder.tracers([value.narrow])
            (out,) = self.builder.bind(convert_element_type_p, params, tracers)
            value.wide = self.builder.atom(out)
        return value.wide

    def typed(self, value: Value, aval: ShapedArray) -> Atom:
        """The wide version with the weakness of a type."""
        atom = self.wide(value)
        if atom.aval.weak_type == aval.weak_type:
            return atom
        with interpreting(self.builder):
            (x,) = self.builder.tracers([atom])
            return self.builder.atom(convert(x, aval.dtype, aval.weak_type))

    def cast(self, atom: Atom, source: Source) -> Atom:
        """An atom rounded, for a line."""
        if isinstance(atom, Literal) and not atom.aval.shape:
            value = np.asarray(atom.value).astype(numpy_dtype(self.plan.to))
            return constant(value[()])
        params = ConvertParams(self.plan.to)
        return self.bound(source, convert_element_type_p, params, [atom])[0]

    def narrow(self, value: Value, source: Source, offer: bool = False) -> Atom:
        """The narrow version, for a line; one to `offer` may stay unread."""
        return self.rounded(value, source, offer, DEEP)

    def rounded(self, value: Value, source: Source, offer: bool, deep: int) -> Atom:
        if not self.plan.narrows(value.aval):
            return self.wide(value)
        if value.narrow is None and value.offered is None:
            atom = self.moved(value, source, offer, deep)
            if atom is None:
                atom = self.cast(self.wide(value), source)
            value.offered = atom
        if value.narrow is None and not offer:
            value.narrow = value.offered
        out = value.narrow or value.offered
        assert out is not None
        return out

    def moved(
        self, value: Value, source: Source, offer: bool, deep: int
    ) -> Atom | None:
        """The narrow version of a result by moving narrow operands, if that is less."""
        eqn = value.eqn
        if eqn is None or not deep or not self.plan.moves(eqn) or self.plan.kept(eqn):
            return None
        floats = [v for v in value.operands if self.plan.narrows(v.aval)]
        due = [v for v in floats if v.narrow is None and not is_scalar(v)]
        if not floats or any([v.aval.symbolic for v in floats]) or len(due) > 1:
            return None
        if due and due[0].aval.size > value.aval.size and not due[0].dealt:
            return None
        operands = value.operands
        if not self.fits(eqn, operands):
            return None
        atoms = [self.rounded(v, source, offer, deep - 1) for v in operands]
        return self.bound(eqn.source, eqn.primitive, eqn.params, atoms)[value.place]

    def on_narrow(self, eqn: Eqn, ins: Sequence[Value]) -> list[Atom] | None:
        """The results of an equation on narrow operands, if it takes them."""
        if not self.fits(eqn, ins):
            return None
        atoms = [self.narrow(v, eqn.source) for v in ins]
        return self.bound(eqn.source, eqn.primitive, eqn.params, atoms)

    def fits(self, eqn: Eqn, ins: Sequence[Value]) -> bool:
        """Whether an equation of narrow operands has the same results, but narrow."""
        row = eqn.primitive
        if not isinstance(row, Row):
            return False
        avals = [v.aval.with_dtype(self.plan.dtype_of(v.aval)).strong() for v in ins]
        try:
            outs = inferred(row, eqn.params, *avals)
        except (TypeError, ValueError):
            return False
        return all(
            [
                new.shape == old.aval.shape
                and new.dtype == self.plan.dtype_of(old.aval)
                and not (is_inexact(old.aval.dtype) and not self.plan.suits(old.aval))
                for new, old in zip(outs, eqn.outvars, strict=True)
            ]
        )

    def through(
        self, eqn: Eqn, ins: Sequence[Value], jaxprs: tuple[Jaxpr, ...]
    ) -> list[Value]:
        """An equation that holds programs with something to narrow."""
        thread = thread_of(eqn.primitive)
        if thread is None:
            if not isinstance(eqn.params, NamedCall):
                return self.copied(eqn, ins)
            # What has rules of the user's own is what its function computes.
            body = eqn.params.jaxpr
            pairs = zip(ins, body.in_avals, strict=True)
            return self.run(body, [self.as_input(v, aval) for v, aval in pairs])
        builder = self.builder
        given = [tuple(builder.tracers(self.versions(v))) for v in ins]
        body_of = Inside(jaxprs, self.plan, traits_of(eqn.primitive).loop)
        builder.source = eqn.source
        with interpreting(builder):
            outs = thread(body_of, eqn.params, given)
        builder.source = None
        return [self.value_of(parts) for parts in outs]

    def as_input(self, value: Value, aval: ShapedArray) -> Value:
        """The value as an input of a program, which may be weak or not."""
        if value.aval.weak_type == aval.weak_type:
            return value
        return Value(aval, self.typed(value, aval))

    def versions(self, value: Value) -> list[Atom]:
        """Both versions of a value, or the one that there is, as atoms."""
        source = value.eqn.source if value.eqn else UNKNOWN_SOURCE
        atoms = [self.wide(value)]
        if self.plan.narrows(value.aval):
            atoms.append(self.narrow(value, source, offer=True))
        return atoms

    def value_of(self, parts: Parts) -> Value:
        """The value that parts are."""
        wide, *rest = [None if x is None else self.builder.atom(x) for x in parts]
        assert wide is not None
        return Value(wide.aval, wide, None, rest[0] if rest else None)


def dealt_out(plan: Narrowing, jaxpr: Jaxpr) -> set[Var]:
    """The values that are only cut in parts, with no more elements than they have."""
    taken: dict[Var, int] = {}
    other = {a for a in jaxpr.outvars if isinstance(a, Var)}
    for eqn in jaxpr.eqns:
        inputs = {a for a in eqn.invars if isinstance(a, Var)}
        if len(inputs) > 1 or not plan.moves(eqn) or is_symbolic(eqn):
            other |= inputs
            continue
        for a in inputs:
            size = sum([v.aval.size for v in eqn.outvars])
            taken[a] = taken.get(a, 0) + size
    return {a for a, size in taken.items() if a not in other and size <= a.aval.size}


def is_symbolic(eqn: Eqn) -> bool:
    """Whether sizes are not known."""
    return any([a.aval.symbolic for a in (*eqn.invars, *eqn.outvars)])


def native(plan: Narrowing, aval: ShapedArray, atom: Atom) -> Value:
    """A result that was computed of narrow operands."""
    if plan.narrows(aval):
        return Value(aval, None, atom, native=True)
    return Value(aval, atom)


def is_scalar(value: Value) -> bool:
    """Whether a value is a number that stands in the program."""
    return isinstance(value.wide, Literal) and not value.aval.shape


@frozen(eq=False, repr=False)
class Inside(OfParts):
    """The way of both versions of values through the programs of an equation.

    In those of a loop, a version that comes from outside costs nothing.
    """

    plan: Narrowing
    loop: bool

    def made(
        self, number: int, types: Sequence[Types]
    ) -> tuple[Jaxpr, Sequence[Types]]:
        """A program on parts, and the types of its results."""
        jaxpr = self.jaxprs[number]
        context = current_context()
        return kept_with(
            jaxpr, on_parts, context, self.plan, jaxpr, tuple(types), self.loop
        )

    def outputs(self, number: int, types: Sequence[Types]) -> Sequence[Types]:
        return self.made(number, types)[1]

    def fill(self, parts: Parts, width: int) -> Parts:
        if len(parts) == width:
            return parts
        (x,) = parts
        return (x, convert(x, self.plan.to))

    def run(self, number: int, types: Sequence[Types]) -> Callable[[Values], Values]:
        jaxpr, outs = self.made(number, types)
        return lambda values: grouped(outs, inlined(jaxpr, flat(values)))

    def full(self, parts: Parts, width: int) -> Parts:
        return parts[:1] if width == 1 else self.fill(parts, width)


@memo(PROGRAMS)
def on_parts(
    context: Context,
    plan: Narrowing,
    jaxpr: Jaxpr,
    types: tuple[Types, ...],
    free: bool,
) -> tuple[Jaxpr, tuple[Types, ...]]:
    """The program from both versions of its inputs to both of its outputs.

    Narrow versions that come in are `free`, or are asked for only where they are less.
    """
    builder = Builder("narrow")
    writer = Writer(plan, builder)
    inputs: list[Any] = grouped(types, builder.input_atoms(flat(types)))
    values, dealt = [], dealt_out(plan, jaxpr)
    for atoms, var in zip(inputs, jaxpr.invars, strict=True):
        value, aval = Value(atoms[0].aval, atoms[0], dealt=var in dealt), var.aval
        if value.aval.weak_type != aval.weak_type:
            value = writer.as_input(value, aval)
        narrow = atoms[1] if len(atoms) > 1 else None
        value.narrow, value.offered = (narrow, None) if free else (None, narrow)
        values.append(value)
    outs = [writer.versions(v) for v in writer.run(jaxpr, values)]
    out_types = tuple([tuple([a.aval for a in atoms]) for atoms in outs])
    made, _ = builder.close([a for atoms in outs for a in atoms])
    return cse(made), out_types
