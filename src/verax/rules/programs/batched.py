"""Floor 1: batching a jaxpr to output axes that are requested.

One idea: a rule that is a pair of jaxprs stays a pair under vmap if both agree where
the batch dimension of each result is, so results are moved, or summed, to fit::

    batch_to(engine, jaxpr, 8, (0, None), (0, SUM))
"""

from collections.abc import Sequence
from enum import Enum
from typing import Final

from verax.ir.avals import ShapedArray
from verax.ir.jaxpr import Jaxpr
from verax.rules.rows.builder import program, write_here
from verax.rules.rows.row import Axis, CoreOps, Engine
from verax.rules.values.array import Array


class Summed(Enum):
    """The place of a result that is wanted as the sum over the batch."""

    SUM = 0


SUM: Final = Summed.SUM
type Wanted = Axis | Summed


def batch_to(
    engine: Engine,
    jaxpr: Jaxpr,
    size: int,
    axes: Sequence[Axis],
    expected: Sequence[Wanted],
) -> Jaxpr:
    """The batched jaxpr with output i batched at `wanted[i]`, or summed over the batch.

    Raises:
        ValueError: an output is wanted unbatched (None), but is batched.
    """
    batched, out_places = engine.batch(jaxpr, size, tuple(axes))
    if tuple(out_places) == tuple(expected):
        return batched

    def moved(*xs: Array) -> Sequence[Array]:
        outs = write_here(batched, *xs)
        return [
            with_batch_axis(engine.core, x, source, target, size)
            for x, source, target in zip(outs, out_places, expected, strict=True)
        ]

    return program(batched.in_avals, moved, "vmap")


def with_batch_axis(
    core: CoreOps, x: Array, source: Axis, target: Wanted, size: int
) -> Array:
    """`x`, batched at `source`, with its batch dimension at `target`."""
    if target is SUM:
        stacked = with_batch_axis(core, x, source, 0, size) if source is None else x
        return core.reduce_sum(stacked, (source or 0,))
    if source == target:
        return x
    if not isinstance(target, int):
        raise ValueError(
            "a user's rule gives a result that is batched along the mapped axis, which "
            "that of its function is not: let the function, too, use what differs "
            "between the elements (such as axis_index)"
        )
    if source is None:
        dims = tuple(i for i in range(x.ndim + 1) if i != target)
        shape = (*x.shape[:target], size, *x.shape[target:])
        return core.broadcast_in_dim(x, shape, dims)
    order = [i for i in range(x.ndim) if i != source]
    order.insert(target, source)
    return core.transpose(x, tuple(order))


def somewhere(axes: Sequence[Axis]) -> tuple[int, ...]:
    """Axes at which results can be wanted whatever a rule makes of them."""
    return tuple(0 if axis is None else axis for axis in axes)


def result_axes(axes: Sequence[Axis], result: Sequence[Axis]) -> tuple[Axis, ...]:
    """The axes of the results of a function with rules, with operands at `axes`.

    They may be `result` not to be where no operand is, as in a psum of what is not
    batched. Then neither may be what the rules give.
    """
    if is_unbatched(axes) and is_unbatched(result):
        return tuple(result)
    return somewhere(result)


def is_unbatched(axes: Sequence[Axis]) -> bool:
    """Whether nothing is batched."""
    return all([axis is None for axis in axes])


def or_summed(axes: Sequence[Axis]) -> list[Wanted]:
    """The axes of the cotangents of operands; of what is not batched, the sum."""
    return [SUM if axis is None else axis for axis in axes]


def with_outputs(engine: Engine, jaxpr: Jaxpr, used: Sequence[bool]) -> Jaxpr:
    """`jaxpr` with the outputs that `used` marks, and all of its inputs."""
    if all(used):
        return jaxpr
    slim, needed = engine.dce(jaxpr, tuple(used))
    places = [i for i, flag in enumerate(needed) if flag]
    return on_inputs(slim, jaxpr.in_avals, places, engine.core)


def on_inputs(
    jaxpr: Jaxpr,
    avals: Sequence[ShapedArray],
    places: Sequence[int | None],
    core: CoreOps,
) -> Jaxpr:
    """`jaxpr` as a program of inputs of types `avals`.

    Input i of `jaxpr` is the new input `places[i]`, or zero where that is None.
    """

    def body(*xs: Array) -> Sequence[Array]:
        pairs = zip(jaxpr.in_avals, places, strict=True)
        ins = [core.zeros(a) if place is None else xs[place] for a, place in pairs]
        return write_here(jaxpr, *ins)

    return program(avals, body, "zeros")
