"""Floor 2: `device_put` in programs: the same values, in a memory of the device.

A memory changes no value, so the equation is the identity to every transformation. The
lowering tells XLA where the values shall lie; on the CPU all memories are one::

    b:f32[8] = device_put[kind=pinned_host] a
"""

from collections.abc import Sequence
from random import Random

from attrs import frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float32
from verax.ir.jaxpr import Params
from verax.rules.families.elementwise import SHAPES
from verax.rules.families.linear import linear, one_linear
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.row import Row, Sample, as_typed
from verax.rules.rows.traits import Traits, no_flops
from verax.rules.values.array import Array

DEVICE = "device"


@frozen(cache_hash=True, repr=False)
class MemoryParams(Params):
    """The kind of memory, such as "device" or "pinned_host"."""

    kind: str


def moved(e: Emitter, x: Operand, kind: str) -> Operand:
    """The operation that moves a value from one memory of the device to another."""
    (y,) = e.op(
        "stablehlo.custom_call",
        (x,),
        (x.aval,),
        call_target_name='"annotate_device_placement"',
        backend_config='""',
        has_side_effect="true",
    )
    e.mark(y, (("_xla_buffer_placement", kind),))
    return y


def lower_memory(
    e: Emitter, p: MemoryParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    return xs if e.platform == "cpu" else (moved(e, xs[0], p.kind),)


def draw_memory(random: Random) -> Sample[MemoryParams]:
    """One operand in either memory."""
    kind = random.choice((DEVICE, "pinned_host"))
    aval = ShapedArray(random.choice(SHAPES), float32)
    return Sample(MemoryParams(kind), (aval,))


# Types do not say in which memory values are: a cotangent is wanted on the device.
device_put_p: Row[MemoryParams] = linear(
    "device_put",
    MemoryParams,
    typing=lambda p, avals: tuple(avals),
    evaluate=lambda p, x: x,
    transpose=one_linear(lambda p, ct, x: in_memory(ct, DEVICE)),
    batch=lambda engine, p, size, xs, axes: ((device_put_p.call(p, *xs),), axes),
    lower=lower_memory,
    draw=draw_memory,
    sharding=as_typed,
    traits=Traits(flops=no_flops, makes_nans=False),
)


def in_memory(x: object, kind: str) -> Array:
    """`x` in a memory of this kind."""
    return device_put_p.call(MemoryParams(kind), x)


ROWS = (device_put_p,)
