"""Floor 3: a program that returns, besides its results, what failed in it first.

One idea: each check is one boolean beside the equation that it is about, and the least
number of one that failed is one more output, with what its message shows::

    body = checked(jaxpr, frozenset((NaNError,)))    # outputs of jaxpr, code, values
    sites_of(jaxpr, errors)[code]                    # the check, with the user's line

The result is a program like any other: it is compiled, differentiated and batched,
where each batch element has an error.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from verax.ir.avals import Shape
from verax.ir.effects import CHECK
from verax.ir.jaxpr import NO_PARAMS, UNKNOWN_SOURCE, Atom, Eqn, Jaxpr, Source, Var
from verax.ir.walk import read
from verax.ops.calls.check import CheckParams
from verax.ops.calls.checkpoint import BARRIER, optimization_barrier_p
from verax.ops.elementwise.arith import min
from verax.ops.elementwise.compare import eq
from verax.ops.elementwise.select import select
from verax.ops.reductions.reduce import reduce_min
from verax.rules.programs.host import PASSED, Category, Kind, Site, by_kind, kinds_of
from verax.rules.rows.builder import Builder
from verax.rules.rows.row import traits_of
from verax.rules.values.array import Array
from verax.rules.values.memo import memo, recall
from verax.rules.values.state import Context, current_context, interpreting
from verax.transforms.checks.automatic import Check, checks_of
from verax.transforms.checks.errors import (
    NOTHING,
    Checked,
    Failure,
    bodies_of,
    first_of,
    shifted,
    shown,
    with_bodies,
)

PROGRAMS = 1 << 10

type Errors = frozenset[Category]
type Values = Mapping[Kind, Sequence[object]]

NO_VALUES: Values = MappingProxyType({})


def sites_of(
    jaxpr: Jaxpr, errors: Errors, around: Source = UNKNOWN_SOURCE
) -> Iterator[Site]:
    """The checks of a program in these categories, in the order of their numbers.

    Equal programs may come from different lines, so this is asked of the program
    itself, while `checked` is remembered. `around` is the line of the call.
    """
    for eqn in jaxpr.eqns:
        source = eqn.source if eqn.source.code is not None else around
        p = eqn.params
        if p is not NO_PARAMS:
            if isinstance(p, CheckParams):
                if has_errors(p.sites, errors):
                    yield from [site.at(source) for site in p.sites]
                continue
            bodies = bodies_of(eqn)
            if bodies:
                for body in bodies:
                    yield from sites_of(body, errors, source)
                continue
        yield from [check.site(eqn).at(source) for check in checks_of(eqn, errors)]


def has_errors(sites: Sequence[Site], errors: Errors) -> bool:
    """Whether some of the checks are in the categories."""
    return any(site.category in errors for site in sites)


def checked(jaxpr: Jaxpr, errors: Errors) -> Checked:
    """`written`, found again where that was asked before."""
    out, kinds, count = recall(written, jaxpr, current_context(), jaxpr, errors)
    return Checked(out, kinds, count)


@memo(PROGRAMS)
def written(
    context: Context, jaxpr: Jaxpr, errors: Errors
) -> tuple[Jaxpr, tuple[Kind, ...], int]:
    """The program with its error, the kinds of values in that, and how many checks.

    Contract: outputs are those of `jaxpr`, then the int32 number of the check that
    failed first (PASSED if none did), and values of each kind.
    """
    writer = Writer(jaxpr, errors)
    with interpreting(writer.builder):
        for eqn in jaxpr.eqns:
            writer.write(eqn)
        writer.builder.source = UNKNOWN_SOURCE
        writer.settle()
        kinds = tuple(writer.kinds)
        outs = read(jaxpr.outvars, writer.env)
        error = list(map(writer.builder.atom, writer.failure.flat(kinds)))
    return writer.builder.close([*outs, *error])[0], kinds, writer.number


def last_uses(jaxpr: Jaxpr) -> dict[int, int]:
    """The number of the last equation that reads a variable, counted from 1."""
    uses: dict[int, int] = {}
    for place, eqn in enumerate(jaxpr.eqns, 1):
        for a in eqn.invars:
            if type(a) is Var:
                uses[a.index] = place
    for a in jaxpr.outvars:
        if type(a) is Var:
            uses[a.index] = len(jaxpr.eqns) + 1
    return uses


class Writer:
    """One jaxpr while it is written again: values, and the error so far."""

    def __init__(self, jaxpr: Jaxpr, errors: Errors) -> None:
        self.errors = errors
        self.builder = Builder("checkify", source=UNKNOWN_SOURCE)
        self.env = self.builder.input_atoms(jaxpr.in_avals)
        self.failure = NOTHING
        self.pending: dict[Shape, Array] = {}
        self.kinds: dict[Kind, None] = {}
        self.number = 0
        # What is used after an equation, if there are checks that seal it.
        self.last_uses = last_uses(jaxpr) if CHECK in jaxpr.effects else {}
        self.place = 0
        self.sealed = len(self.env)

    def write(self, eqn: Eqn) -> None:
        """Write an equation, and the checks of it or of the jaxprs inside it."""
        self.place += 1
        builder, p = self.builder, eqn.params
        builder.source = eqn.source
        ins = read(eqn.invars, self.env)
        bodies: Sequence[Jaxpr] = ()
        if p is not NO_PARAMS:
            if isinstance(p, CheckParams):
                self.take(p, ins)
                self.seal()
                return
            bodies = bodies_of(eqn)
            inner = [checked(body, self.errors) for body in bodies]
            count = sum([body.count for body in inner])
            if count or (bodies and CHECK in p.effects):
                args = builder.tracers(ins)
                outs, result = with_bodies(eqn, args, lambda b: checked(b, self.errors))
                self.env += [builder.atom(x) for x in outs]
                self.add(result, count)
                return
        made = builder.copy(eqn, ins)
        self.env += made
        if bodies:
            return
        if traits_of(eqn.primitive).stored:
            self.settle()
        for check in checks_of(eqn, self.errors):
            self.test(check, eqn, ins, made)

    def add(self, failure: Failure, count: int) -> None:
        """Take over an error, whose numbers are `count` many."""
        self.settle()
        self.failure = first_of(self.failure, shifted(failure, self.number))
        self.kinds |= dict.fromkeys(failure.values)
        self.number += count

    def test(
        self, check: Check, eqn: Eqn, ins: Sequence[Atom], outs: Sequence[Var]
    ) -> None:
        """Write one automatic check; what shows no values waits for `settle`."""
        tracers = self.builder.tracers
        failed, payload = check.test(eqn.params, tracers(ins), tracers(outs))
        if check.kind:
            self.settle()
        for bad in failed:
            code = select(bad, np.int32(self.number), PASSED)
            known = self.pending.get(bad.shape)
            self.pending[bad.shape] = code if known is None else min(known, code)
        if check.kind:
            self.settle({check.kind: shown(payload, check.kind)})
            self.kinds |= {check.kind: None}
        self.number += 1

    def settle(self, values: Values = NO_VALUES) -> None:
        """Ask which of the waiting checks failed first, if one did.

        They wait for the end of what XLA computes in one go: if it had to know it of
        each check, it would compute all that comes before once more for each.
        """
        array: object = PASSED
        for code in self.pending.values():
            least = reduce_min(code, range(code.ndim)) if code.ndim else code
            array = least if array is PASSED else min(array, least)
        self.pending.clear()
        self.failure = first_of(self.failure, Failure(array, values))

    def seal(self) -> None:
        """End what XLA computes in one go: arrays from here on are read from memory.

        Else it would compute all that comes before once more for each check, since a
        check asks for a scalar of its own.
        """
        fresh = [
            i
            for i in range(self.sealed, len(self.env))
            if self.env[i].aval.shape and self.last_uses.get(i, 0) > self.place
        ]
        self.sealed = len(self.env)
        if fresh:
            arrays = self.builder.tracers([self.env[i] for i in fresh])
            for i, x in zip(
                fresh, optimization_barrier_p.bind(BARRIER, *arrays), strict=True
            ):
                self.env[i] = self.builder.atom(x)

    def take(self, p: CheckParams, ins: Sequence[Atom]) -> None:
        """Take over the error that an equation would raise, as far as it is wanted."""
        if not has_errors(p.sites, self.errors):
            return
        code, *values = self.builder.tracers(ins)
        array: object = code
        for i, site in enumerate(p.sites):
            if site.category not in self.errors:
                array = select(eq(array, np.int32(i)), PASSED, array)
        kinds = kinds_of(p.sites)
        groups = by_kind(kinds, values)
        payload = {kind: shown(groups[kind], kind) for kind in kinds}
        self.add(Failure(array, payload), len(p.sites))
