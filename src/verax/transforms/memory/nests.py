"""Floor 3: loops in blocks: the way back runs each block of steps again.

A pair of loops keeps a row of each step. In blocks, the first loop keeps what it
carries into each block only; the later one, block by block, runs the steps of a block
again, now with their rows, and then its own (Griewank 1992; Chen et al. 2016)::

    for each block of b steps:             carry  -> block(carry, rows of the block)
    for each block, from the last one:     rows = steps again; d = later steps(d, rows)
"""

from collections.abc import Sequence

from attrs import evolve, frozen

from verax.ir.jaxpr import Atom, Jaxpr, Var
from verax.ir.records import ReprMixin
from verax.ops.control.scan import scan_p
from verax.ops.control.scan_params import ScanParams, cut
from verax.ops.structure.shape import reshape
from verax.rules.rows.builder import Builder, program
from verax.rules.values.array import Array
from verax.rules.values.state import interpreting
from verax.transforms.memory.loops import Pair
from verax.transforms.memory.storage import total


def block_lengths(pair: Pair) -> list[int]:
    """The lengths of equal blocks of a pair of loops, those that need least first.

    What is there at a time is what is carried into each block, and the rows of one.
    """
    length = pair.first.p.length
    carried = total(pair.first.p.parts(pair.first.body.invars)[1])
    rows = total(pair.read)
    lengths = [b for b in range(2, length) if length % b == 0]
    return sorted(lengths, key=lambda b: (length // b * carried + b * rows, b))


def can_nest(pair: Pair) -> bool:
    """Whether the later loop goes the other way, and the first may run again."""
    first, second = pair.first, pair.second
    return (
        first.p.reverse != second.p.reverse
        and not first.p.jaxpr.effects
        and first.p.num_carry > 0
    )


def in_blocks(jaxpr: Jaxpr, pair: Pair, size: int) -> Jaxpr:
    """The flat program whose pair of loops goes in blocks of so many steps."""
    return Nester(jaxpr, pair, size).written()


@frozen(eq=False, repr=False)
class Nester(ReprMixin):
    """Writes a program in which a pair of loops goes in blocks."""

    jaxpr: Jaxpr
    pair: Pair
    size: int

    @property
    def stay(self) -> list[int]:
        """The stacks of the first loop that others read, by number."""
        count = len(self.pair.first.stacks)
        return [k for k in range(count) if k not in self.pair.numbers]

    def written(self) -> Jaxpr:
        """The program."""
        first, second = self.pair.first, self.pair.second
        builder = Builder("blocks")
        inputs = builder.input_atoms(self.jaxpr.in_avals)
        env: dict[Var, Atom] = dict(zip(self.jaxpr.invars, inputs, strict=True))
        begun: list[Array] = []

        def read(a: Atom) -> Atom:
            return env[a] if isinstance(a, Var) else a

        def traced(atoms: Sequence[Atom]) -> list[Array]:
            return list(builder.tracers([read(a) for a in atoms]))

        for place, eqn in enumerate(self.jaxpr.eqns):
            if place not in (first.place, second.place):
                ins = [read(a) for a in eqn.invars]
                env.update(zip(eqn.outvars, builder.copy(eqn, ins), strict=True))
                continue
            builder.source = eqn.source
            with interpreting(builder):
                if place == first.place:
                    carry, begun, stacks = self.forward(traced(eqn.invars))
                    old_carry, old = first.p.results(eqn.outvars)
                    names = [*old_carry, *[old[k] for k in self.stay]]
                    outs = [*carry, *stacks]
                else:
                    gone = {first.stacks[k] for k in self.pair.numbers}
                    own = traced([a for a in eqn.invars if a not in gone])
                    names = list(eqn.outvars)
                    outs = self.backward(traced(first.eqn.invars), begun, own)
            env.update(zip(names, map(builder.atom, outs), strict=True))
            builder.source = None
        return builder.close([read(a) for a in self.jaxpr.outvars])[0]

    def blocked(self, x: Array) -> Array:
        """An array of rows as an array of blocks of rows."""
        return reshape(x, (x.shape[0] // self.size, self.size, *x.shape[1:]))

    def joined(self, x: Array) -> Array:
        """An array of blocks of rows as an array of rows."""
        return reshape(x, (x.shape[0] * self.size, *x.shape[2:]))

    def params(self, p: ScanParams, body: Jaxpr, consts: int, carry: int) -> ScanParams:
        """The params of the loop over blocks."""
        count = len(body.invars)
        return ScanParams(
            body, p.length // self.size, (False,) * count, carry, consts, p.reverse, 1
        )

    def forward(
        self, given: Sequence[Array]
    ) -> tuple[list[Array], list[Array], list[Array]]:
        """The first loop: its last carries, those into blocks, and stacks that stay."""
        first = self.pair.first
        p = first.p
        consts, carry, xs = p.parts(given)
        outs, made = p.results(first.body.outvars)
        slim = evolve(first.body, outvars=(*outs, *[made[k] for k in self.stay]))
        inner = evolve(p, jaxpr=slim, length=self.size)

        def block(*args: Array) -> Sequence[object]:
            _, into, _ = p.parts(args)
            after, ys = p.results(scan_p.bind(inner, *args))
            return [*after, *into, *ys]

        operands = [*consts, *carry, *map(self.blocked, xs)]
        avals = [x.aval for x in (*consts, *carry)]
        rows = [x.aval.element() for x in operands[len(avals) :]]
        body = program((*avals, *rows), block)
        outer = self.params(p, body, len(consts), len(carry))
        last, begun, stacks = cut(
            (len(carry), len(carry), len(self.stay)), scan_p.bind(outer, *operands)
        )
        return list(last), list(begun), [self.joined(y) for y in stacks]

    def backward(
        self, given: Sequence[Array], begun: Sequence[Array], own: Sequence[Array]
    ) -> list[Array]:
        """The later loop, block by block, after the steps of the block run again."""
        first, second = self.pair.first, self.pair.second
        p, q = first.p, second.p
        consts, _, xs = p.parts(given)
        same, moving, _ = q.parts(second.eqn.invars)
        ours, carry, others = cut(
            (len(same), len(moving), len(own) - len(same) - len(moving)), own
        )
        outs, rows = p.results(first.body.outvars)
        read = [rows[k] for k in self.pair.numbers]
        again = evolve(p, jaxpr=evolve(first.body, outvars=(*outs, *read)))
        again = evolve(again, length=self.size)
        later = evolve(q, length=self.size)
        number = {first.stacks[k]: i for i, k in enumerate(self.pair.numbers)}
        order = second.p.parts(second.eqn.invars)[2]
        counts = (len(consts), len(ours), len(carry), len(begun), len(xs), len(others))

        def block(*args: Array) -> Sequence[object]:
            theirs, mine, state, into, slices, rest = cut(counts, args)
            _, stacks = p.results(scan_p.bind(again, *theirs, *into, *slices))
            left = iter(rest)
            given = [
                stacks[number[a]] if isinstance(a, Var) and a in number else next(left)
                for a in order
            ]
            return scan_p.bind(later, *mine, *state, *given)

        blocks = [*map(self.blocked, xs), *map(self.blocked, others)]
        avals = (
            *[x.aval for x in (*consts, *ours, *carry)],
            *[x.aval.element() for x in (*begun, *blocks)],
        )
        body = program(avals, block)
        outer = self.params(q, body, len(consts) + len(ours), len(carry))
        operands = [*consts, *ours, *carry, *begun, *blocks]
        after, ys = q.results(scan_p.bind(outer, *operands))
        return [*after, *[self.joined(y) for y in ys]]
