"""Floor 6: what one stage of a pipeline does, tick by tick, inside `shard_map`.

One idea: all stages run one program, and the number of a stage says which microbatch it
has at a tick: stage s goes forward with microbatch t - s at tick t. A tick at which
it has none is computed, too, and gated: nothing of it goes into results or gradients::

    shard_map(stages.forward, in_specs=(P("stage"), P()), ...)(blocks, microbatches)
"""

from collections.abc import Callable, Sequence
from typing import Any

from attrs import frozen

from verax import lax, numpy as vnp
from verax.api.autodiff.jvp_vjp import vjp
from verax.api.custom.checkpoint import checkpoint
from verax.api.custom.jvp import custom_jvp
from verax.api.inspect.make_jaxpr import eval_shape
from verax.api.trees.pytrees import tree_flatten, tree_map
from verax.ir.dtypes import DType, DTypeLike, is_float
from verax.ir.records import ReprMixin
from verax.rules.values.array import Array

type Block = Callable[[Any, Any], Any]
"""The parameters of a block and what comes in; what goes out, of the same types."""
type Trees = tuple[object, object, object]
"""The parameters of what is first, of the blocks, and of what is last, or the like."""
type There = tuple[object, object]
"""What a stage has received, and what it has kept of earlier ticks."""
type Back = tuple[list[Array], Trees, Array]
"""Cotangents on their way back, and the sums of the gradients and of the loss."""


@frozen(eq=False, repr=False)
class Stages(ReprMixin):
    """The blocks of a pipeline along an axis of a mesh, inside `shard_map`.

    Trees named `rows` have the microbatches along their first dimension.
    """

    block: Block
    axis: str
    size: int
    """How many stages there are."""
    microbatches: int

    def through(self, blocks: object, x: object) -> Any:
        """What the blocks of this stage make of a microbatch."""
        return lax.scan(lambda h, own: (self.block(own, h), None), x, blocks)[0]

    def onward(self, tree: object) -> object:
        """What the stage before sends; the first gets zeros."""
        return lax.ppermute(tree, self.axis, [(i, i + 1) for i in range(self.size - 1)])

    def back(self, tree: object) -> Any:
        """What the stage after sends; the last gets zeros."""
        return lax.ppermute(tree, self.axis, [(i + 1, i) for i in range(self.size - 1)])

    def microbatch(self, rows: object, number: Array | int) -> Any:
        """A microbatch; the nearest one for a number that there is not."""
        at = vnp.clip(number, 0, self.microbatches - 1)
        return tree_map(
            lambda x: lax.dynamic_index_in_dim(x, at, 0, keepdims=False), rows
        )

    def has(self, number: Array) -> Array:
        """Whether there is a microbatch of this number."""
        return (number >= 0) & (number < self.microbatches)

    def varying(self, tree: object) -> Any:
        """A tree that is the same on all stages, as one of which each has its own."""
        return lax.pcast(tree, self.axis, to="varying")

    def forward(self, blocks: object, rows: object) -> Any:
        """What comes out of the last stage, on all of them."""
        stage = lax.axis_index(self.axis)
        rows = self.varying(rows)
        ticks = vnp.arange(self.microbatches + self.size - 1)

        def tick(received: object, t: Array) -> tuple[object, object]:
            x = chosen(stage == 0, self.microbatch(rows, t), received)
            own, x = gated(self.has(t - stage), (blocks, x))
            out = self.through(own, x)
            return self.onward(out), out

        start: object = self.microbatch(rows, 0)
        _, outs = lax.scan(tick, start, ticks)
        outs = tree_map(lambda out: out[self.size - 1 :], outs)
        return self.from_stage(self.size - 1, outs)

    def from_stage(self, number: int, tree: object) -> object:
        """What one stage has, on all of them."""
        here = lax.axis_index(self.axis) == number

        def sent(x: Array) -> Array:
            if x.dtype == bool:
                return sent(x.astype(vnp.int8)).astype(bool)
            return lax.psum(vnp.where(here, x, vnp.zeros_like(x)), self.axis)

        return tree_map(sent, tree)


@frozen(eq=False, repr=False)
class OneForwardOneBackward(ReprMixin):
    """The schedule in which a microbatch goes back as soon as it has come out.

    Stage s of S goes forward with microbatch t - s and back with t - 2 (S - 1) + s at
    tick t, the last stage with the same one. What came in waits in between, at most
    2 S - 1 microbatches however many there are, and the stage is computed again.
    """

    stages: Stages
    first: Block
    last: Block
    loss: Callable[..., Any]

    @property
    def delay(self) -> int:
        """The ticks between the way there and the way back on the first stage."""
        return 2 * (self.stages.size - 1)

    def __call__(
        self, params: Trees, rows: object, targets: Sequence[object]
    ) -> tuple[Array, Trees]:
        """The mean loss, and the gradients of (first, blocks, last)."""
        stages = self.stages
        first, blocks, last = params
        everywhere = stages.varying((first, last, rows, tuple(targets)))
        first, last, rows, targets = everywhere
        tick = Tick(self, (first, blocks, last), rows, targets)
        ends = stages.size - 1
        x = self.first(first, stages.microbatch(rows, 0))
        kept = tree_map(lambda leaf: vnp.stack([leaf] * (self.delay + 1)), x)
        zero = tree_map(lambda p: vnp.zeros_like(p, wide(p.dtype)), params)
        zero = (stages.varying(zero[0]), zero[1], stages.varying(zero[2]))
        loss = stages.varying(vnp.zeros((), vnp.float32))
        loss = loss.astype(tick.loss_type(x))
        there = (x, kept)
        backward = ([vnp.zeros_like(leaf) for leaf in floats(x)], zero, loss)
        count = stages.microbatches
        there, _ = lax.scan(
            lambda c, t: (tick.forward(c, t), None), there, vnp.arange(ends)
        )
        (there, backward), _ = lax.scan(
            tick.both, (there, backward), vnp.arange(ends, ends + count)
        )
        kept = there[1]
        (_, grads, loss), _ = lax.scan(
            lambda c, t: (tick.backward(c, kept, t), None),
            backward,
            vnp.arange(ends + count, 2 * ends + count),
        )
        grads = (
            lax.psum(grads[0], stages.axis),
            grads[1],
            lax.psum(grads[2], stages.axis),
        )
        grads = tree_map(lambda g, p: g.astype(p.dtype), grads, params)
        return lax.psum(loss, stages.axis), grads


@frozen(eq=False, repr=False)
class Tick(ReprMixin):
    """One tick: a microbatch forward, and one back."""

    schedule: OneForwardOneBackward
    params: Trees
    rows: object
    targets: Sequence[object]

    @property
    def stages(self) -> Stages:
        return self.schedule.stages

    @property
    def stage(self) -> Array:
        """The number of this stage."""
        return lax.axis_index(self.stages.axis)

    def both(
        self, carry: tuple[There, Back], t: Array
    ) -> tuple[tuple[There, Back], None]:
        """The way there first: the last stage goes back with what has just come."""
        there = self.forward(carry[0], t)
        return (there, self.backward(carry[1], there[1], t)), None

    def forward(self, there: There, t: Array) -> There:
        """Keep what has come in, and send on what the stage makes of it."""
        received, kept = there
        slot = t % (self.schedule.delay + 1)
        kept = tree_map(
            lambda ring, x: lax.dynamic_update_index_in_dim(ring, x, slot, 0),
            kept,
            received,
        )
        first, blocks, _ = self.params
        out = self.stages.through(blocks, self.entered(first, received, t))
        return self.stages.onward(out), kept

    def entered(self, first: object, received: object, number: Array) -> Any:
        """What the blocks of this stage take: the first stage makes it itself."""
        here = self.stage == 0
        first = gated(here, first)
        x = self.schedule.first(first, self.stages.microbatch(self.rows, number))
        return chosen(here, x, received)

    def backward(self, back: Back, kept: object, t: Array) -> Back:
        """Compute the stage again, and pull back what the stage after sends."""
        cotangents, grads, loss = back
        stages, delay = self.stages, self.schedule.delay
        at_end = self.stage == stages.size - 1
        here = stages.has(t - delay + self.stage)
        slot = (t - delay + 2 * self.stage) % (delay + 1)
        came = tree_map(lambda ring: picked(ring, slot), kept)

        def whole(params: Trees, moving: list[Array]) -> tuple[list[Array], Array]:
            first, blocks, last = params
            x = self.entered(first, joined(moving, came), t - delay)
            out = stages.through(blocks, x)
            return floats(out), self.loss_of(gated(at_end, (last, out)), t - delay // 2)

        (_, value), pull = vjp(whole, self.params, floats(came))
        cotangents = [vnp.where(at_end, vnp.zeros_like(c), c) for c in cotangents]
        share = vnp.where(at_end, 1 / stages.microbatches, 0).astype(value.dtype)
        steps, out = pull((cotangents, share))
        grads = tree_map(
            lambda sums, g: sums + vnp.where(here, g, 0).astype(sums.dtype),
            grads,
            steps,
        )
        part = vnp.where(here & at_end, value / stages.microbatches, 0)
        out = [vnp.where(here, c, vnp.zeros_like(c)) for c in out]
        return stages.back(out), grads, loss + part.astype(loss.dtype)

    def loss_of(self, ended: tuple[object, object], number: Array | int) -> Any:
        """The loss of a microbatch from what has come out of the last block."""
        last, out = ended
        targets = self.stages.microbatch(self.targets, number)
        return self.schedule.loss(self.schedule.last(last, out), *targets)

    def loss_type(self, x: object) -> Any:
        """The dtype of the loss."""
        return eval_shape(lambda: self.loss_of((self.params[2], x), 0)).dtype


@custom_jvp
def gated(here: object, tree: object) -> Any:
    """The tree; its tangents and cotangents, where `here` is true, and zeros elsewhere.

    A tick without a microbatch has cotangents of zero, and where a derivative is
    infinite NaN would come of them.
    """
    return tree


@gated.defjvp
def gated_jvp(
    primals: tuple[Array, object], tangents: tuple[object, object]
) -> tuple[object, object]:
    """Tangents pass where `here` is true."""
    here, tree = primals
    return tree, tree_map(
        lambda t: passed(here, t) if is_float(t.dtype) else t, tangents[1]
    )


@checkpoint
def passed(here: Array, tangent: Array) -> Array:
    """The tangent or zeros.

    What is remembered of each tick is one truth value, not one for each number.
    """
    return vnp.where(here, tangent, vnp.zeros_like(tangent))


def chosen(condition: Array, x: object, y: object) -> Any:
    """One of two trees."""
    return tree_map(lambda a, b: vnp.where(condition, a, b), x, y)


def picked(ring: Array, slot: Array) -> Array:
    """An entry along the first dimension, which each stage chooses for itself."""
    return lax.dynamic_index_in_dim(ring, slot, 0, keepdims=False)


def floats(tree: object) -> list[Array]:
    """The leaves that have cotangents."""
    return [leaf for leaf in tree_flatten(tree)[0] if is_float(leaf.dtype)]


def joined(moving: Sequence[object], tree: object) -> Any:
    """The tree with these as its leaves that have cotangents."""
    leaves, structure = tree_flatten(tree)
    rest = iter(moving)
    return structure.unflatten(
        [next(rest) if is_float(leaf.dtype) else leaf for leaf in leaves]
    )


def wide(dtype: DType) -> DTypeLike:
    """The dtype in which gradients of microbatches are added: no 16-bit floats."""
    return vnp.float32 if dtype.itemsize < 4 else dtype
