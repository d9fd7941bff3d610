"""Floor 2: `composite`: a program under a name that a compiler may know.

One idea: the equation means its program, and says to a compiler that has better code
for it what it is::

    b:f32[3] c:i32[3] = composite[name=my.top_k jaxpr={ ... } attributes=(('k', 3),)] a

A derivative, a batch or a part of it is no operation of that name any more: they are
made of the program.
"""

from collections.abc import Sequence
from random import Random

import numpy as np
from attrs import frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float32, float64
from verax.ir.jaxpr import Jaxpr
from verax.ops.calls.call import NamedCall, inlined
from verax.ops.custom.base import called, typing_of_call
from verax.ops.elementwise.arith import mul
from verax.rules.families.elementwise import SHAPES
from verax.rules.rows.bodies import thread_call
from verax.rules.rows.builder import program
from verax.rules.rows.emitter import (
    ArrayAttribute,
    Attribute,
    Composite,
    Emitter,
    Operand,
)
from verax.rules.rows.row import Row, Rows, Sample, as_typed
from verax.rules.values.array import Array


@frozen(eq=False, repr=False)
class CompositeParams(NamedCall):
    """The name of the operation, what it means, and what else a compiler is told."""

    name: str
    jaxpr: Jaxpr
    version: int
    attributes: tuple[tuple[str, Attribute], ...]


def lower_composite(
    e: Emitter, p: CompositeParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """`stablehlo.composite`, which names the function that it may be replaced by."""
    return e.call(p.jaxpr, xs, p.name, Composite(p.name, p.version, p.attributes))


def draw_composite(random: Random) -> Sample[CompositeParams]:
    """The product of two arrays, and twice the first, with attributes of some kinds."""
    aval = ShapedArray(random.choice(SHAPES), random.choice((float32, float64)))

    def body(x: Array, y: Array) -> Sequence[object]:
        return mul(x, y), mul(x, 2.0)

    attributes: dict[str, Attribute] = {
        "count": random.randint(-3, 3),
        "flag": random.random() < 0.5,
        "kind": "a name",
        "scale": random.choice((0.5, -1e30, float("inf"))),
        "table": ArrayAttribute.of(np.arange(3, dtype=np.float32)),
    }
    chosen = random.sample(sorted(attributes), random.randint(0, len(attributes)))
    told = tuple([(key, attributes[key]) for key in chosen])
    params = CompositeParams(
        "my.product", program((aval, aval), body), random.randint(0, 2), told
    )
    return Sample(params, (aval, aval))


composite_p: Row[CompositeParams] = Row(
    "composite",
    CompositeParams,
    typing=typing_of_call,
    composition=lambda p, *xs: inlined(p.jaxpr, xs),
    lower=lower_composite,
    draw=draw_composite,
    thread=lambda through, p, values: thread_call(through, values, called(p)),
    spelled=lambda p: p.jaxpr,
    multiple_results=True,
    sharding=as_typed,
)

ROWS: Rows = (composite_p,)
