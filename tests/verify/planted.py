"""A user's module with rows that are wrong in one place each, as happens to authors.

check_primitive(square_size_p).raise_if_broken()      # LawsBroken: jvp
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import evolve

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float32
from verax.ir.jaxpr import NO_PARAMS, NoParams
from verax.lax import add_p, complex as pair, div, imag, log, max_p, mul, real
from verax.ops.elementwise.compare import ge
from verax.ops.elementwise.select import select
from verax.ops.reductions.reduce import reduce_sum
from verax.rules.families.elementwise import composed, elementwise
from verax.rules.rows.row import Axis, Domain, Engine, Known, Row, Sample, Tangent
from verax.rules.values.array import Array
from verax.rules.values.constants import COMPLEX, FLOAT


def size_squared(x: Any) -> Any:
    return mul(x, pair(real(x), -imag(x)))


# The derivative of x conj(x) is x conj(t) + t conj(x); a conjugate is dropped.
square_size_p = elementwise(
    "square_size",
    lambda x: x * np.conj(x),
    jvp=lambda x, y, t: mul(mul(x, t), x.dtype.type(2)),
    lower=composed(size_squared),
    accepts=COMPLEX,
)


def batch_total(
    engine: Engine, p: NoParams, size: int, xs: Sequence[Array], axes: Sequence[Axis]
) -> tuple[Sequence[Array], Sequence[Axis]]:
    """Takes the batch dimension to be the first one."""
    return (reduce_sum(xs[0], (1,)),), (0,)


total_p: Row[NoParams] = Row(
    "total",
    NoParams,
    typing=lambda p, avals: (avals[0].with_shape(avals[0].shape[1:]),),
    evaluate=lambda engine, p, xs: (xs[0].sum(0, dtype=xs[0].dtype),),
    batch=batch_total,
    composition=lambda p, x: reduce_sum(x, (0,)),
    draw=lambda random: Sample(
        NO_PARAMS, (ShapedArray((random.randint(1, 2), random.randint(1, 2)), float32),)
    ),
)

# Right wherever x and y differ; where they are equal, both tangents are taken.
larger_p = elementwise(
    "larger",
    np.maximum,
    operands=2,
    jvp=[
        lambda x, y, z, t: select(ge(x, y), t, 0.0),
        lambda x, y, z, t: select(ge(y, x), t, 0.0),
    ],
    lower=composed(lambda x, y: max_p.call(NO_PARAMS, x, y)),
    accepts=FLOAT,
)


def transpose_plus(
    engine: Engine, p: NoParams, cts: Sequence[Tangent], xs: Sequence[Known]
) -> Sequence[Tangent | None]:
    """Hands the cotangent on as it is, also to an operand that was broadcast."""
    return [None if isinstance(x, Array) else cts[0] for x in xs]


plus_p: Row[NoParams] = evolve(add_p, name="plus", transpose=transpose_plus)

# The constant has eight digits: differences in double precision cannot tell.
log10_p = elementwise(
    "log10",
    lambda x: np.log(x) / 2.302585092994046,
    jvp=lambda x, y, t: mul(div(t, x), 0.43429448),
    lower=composed(lambda x: mul(log(x), 0.4342944819032518)),
    accepts=FLOAT,
    domains=Domain(0.5, 1e3),
)
