"""Floor 3: functions with rules of the user's own, on what references hold.

The call takes values and gives what the function writes, and so do its rules. Tangents
and cotangents of references pass the call as they are; what a backward rule returns for
a reference is added::

    b:f32[] = custom_jvp_call[...] r:Ref{f32[]} a
    b:f32[] s:f32[] = custom_jvp_call[...] r:f32[] a    # r holds s afterwards
"""

from collections.abc import Callable, Sequence
from typing import Any

from attrs import evolve, field, frozen

from verax.ir.avals import is_reference
from verax.ir.dtypes import is_inexact
from verax.ir.jaxpr import Atom, Eqn, Jaxpr
from verax.ir.records import ReprMixin
from verax.ops.calls.call import NamedCall
from verax.ops.calls.subjaxprs import inlined
from verax.ops.custom import jvp, vjp
from verax.ops.custom.base import Remade
from verax.ops.custom.jvp import CustomJvpParams, JvpRule
from verax.ops.custom.vjp import CustomVjpParams, VjpRule
from verax.ops.custom.vmap import CustomVmapParams, VmapRule
from verax.ops.elementwise.arith import add
from verax.rules.rows.builder import program
from verax.rules.rows.masks import Mask, chosen
from verax.rules.values.array import Array
from verax.transforms.references.discharge import (
    Discharged,
    Operand,
    Slot,
    Writer,
    values_of,
    write_back,
)

type Pure = Callable[[Jaxpr, Mask], Discharged]
"""Discharges the marked inputs of a program."""


@frozen(cache_hash=True, repr=False)
class Written(ReprMixin):
    """What a call of the function `name`, which has so many `results`, writes.

    `marks` are the operands that become values, `places` those of them that hold
    something else afterwards; the first ones are `captured`.
    """

    pure: Pure = field(repr=False)
    name: str
    captured: int
    results: int
    marks: Mask
    places: tuple[int, ...]

    @property
    def own(self) -> list[int]:
        """The places, counted from the first operand that is not captured."""
        return [i - self.captured for i in self.places]

    def on_values(self, jaxpr: Jaxpr) -> Jaxpr:
        """A program of a rule, which gives what references hold after its results.

        Raises:
            NotImplementedError: it writes to another reference than the function.
        """
        count, total = self.results, len(jaxpr.outvars)
        rest = len(jaxpr.invars) - len(self.marks)
        found = self.pure(jaxpr, (*self.marks, *[False] * rest))
        if not set(found.written) <= set(self.places):
            raise NotImplementedError(
                f"a rule of {self.name} writes to a mutable reference to which the "
                "function itself does not write; have the function write, too"
            )

        def body(*ins: Array) -> Sequence[object]:
            outs = inlined(found.jaxpr, ins)
            finals = dict(zip(found.written, outs[total:], strict=True))
            held = [finals.get(i, ins[i]) for i in self.places]
            return [*outs[:count], *held, *outs[count:total]]

        return program(found.jaxpr.in_avals, body)


@frozen(cache_hash=True, repr=False)
class DischargedJvp(Remade, ReprMixin):
    """A forward-mode rule on values."""

    rule: JvpRule
    written: Written

    def pushed(self, nonzero: Mask) -> tuple[Jaxpr, Mask]:
        """See `JvpRule.pushed`."""
        inner, mask = self.rule.pushed(nonzero)
        jaxpr = self.written.on_values(inner)
        moving = [i for i in self.written.own if i >= 0 and nonzero[i]]
        first = len(jaxpr.invars) - sum(nonzero)
        tangents = [jaxpr.invars[first + sum(nonzero[:i])] for i in moving]
        outs: tuple[Atom, ...] = (*jaxpr.outvars, *tangents)
        found = (*mask, *[i in moving for i in self.written.own])
        return evolve(jaxpr, outvars=outs), found


@frozen(cache_hash=True, repr=False)
class DischargedVjp(Remade, ReprMixin):
    """Reverse-mode rules on values."""

    rule: VjpRule
    written: Written

    def forward(self, nonzero: Mask) -> Jaxpr:
        """See `VjpRule.forward`.

        Raises:
            NotImplementedError: the rule hands a reference to the backward rule.
        """
        inner = self.rule.forward(nonzero)
        if any(map(is_reference, inner.outvars)):
            raise NotImplementedError(
                f"the forward rule of {self.written.name} hands a mutable reference to "
                "the backward rule, under a transformation that needs what it holds; "
                "hand on that: ref[...]"
            )
        return self.written.on_values(inner)

    def backward(self, nonzero: Mask, given: Mask) -> tuple[Jaxpr, Mask]:
        """See `VjpRule.backward`: what a rule gives for a reference is added."""
        count, own = self.written.results, self.written.own
        inner, mask = self.rule.backward(nonzero, given[:count])
        finals = self.forward(nonzero).out_avals[count : len(given)]
        types = [a.tangent() for a in chosen(given[count:], finals)]
        size = len(inner.invars)
        last = {i: size + k for k, i in enumerate(chosen(given[count:], own))}
        passing = [flag and i in last for i, flag in enumerate(nonzero)]
        found = tuple([a or b for a, b in zip(mask, passing, strict=True)])

        def body(*ins: Array) -> Sequence[object]:
            pulled = iter(inlined(inner, ins[:size]))
            outs = []
            for i, asked in enumerate(mask):
                parts = [next(pulled)] if asked else []
                parts += [ins[last[i]]] if passing[i] else []
                outs += [add(*parts) if len(parts) > 1 else x for x in parts[:1]]
            return outs

        return program([*inner.in_avals, *types], body), found


@frozen(cache_hash=True, repr=False)
class DischargedVmap(ReprMixin):
    """A batching rule on values."""

    rule: VmapRule
    written: Written

    def batched(self, size: int, in_batched: Mask) -> tuple[Jaxpr, Mask]:
        """See `VmapRule.batched`: what a stack of references holds is a stack."""
        inner, mask = self.rule.batched(size, in_batched)
        jaxpr = self.written.on_values(inner)
        return jaxpr, (*mask, *[in_batched[i] for i in self.written.places])


def custom_rule(
    pure: Pure, writer: Writer, eqn: Eqn, operands: Sequence[Operand]
) -> Sequence[Operand]:
    """The call on values; if nobody will ask the rules, what the function computes."""
    params = eqn.params
    assert isinstance(params, NamedCall)
    if writer.final:
        return writer.run(params.jaxpr, operands)
    inner = writer.discharged(params.jaxpr, operands)
    marks = tuple([isinstance(x, Slot) for x in operands])
    count = len(eqn.outvars)
    changed = on_values(pure, params, inner, marks, count)
    outs = writer.bind(eqn, changed, values_of(eqn, operands))
    write_back(operands, inner.written, outs[count:])
    return outs[:count]


def on_values(
    pure: Pure, params: Any, inner: Discharged, marks: Mask, count: int
) -> NamedCall:
    """The params of the call of the discharged function.

    Raises:
        NotImplementedError: a batching rule does not see a reference.
    """
    captured, places = params.captured, inner.written
    written = Written(pure, params.name, captured, count, marks, places)
    rule: Any
    match params:
        case CustomJvpParams():
            rule = jvp.settled(DischargedJvp(params.rule, written), params.rule)
        case CustomVjpParams():
            active = tuple([is_inexact(a.dtype) for a in inner.jaxpr.out_avals])
            rule = DischargedVjp(params.rule, written)
            rule = vjp.settled(rule, params.rule, active)
        case CustomVmapParams():
            if any(marks[:captured]):
                raise NotImplementedError(
                    f"the custom_vmap function {params.name} closes over a mutable "
                    "reference; pass it as an argument, so that its vmap rule sees it"
                )
            rule = DischargedVmap(params.rule, written)
            own = tuple(written.own)
            rule = evolve(
                rule, written=evolve(written, marks=marks[captured:], places=own)
            )
    found: NamedCall = evolve(params, jaxpr=inner.jaxpr, rule=rule)
    return found
