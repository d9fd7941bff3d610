"""Floor 2: the lengths of complex numbers, as a CPU computes them.

The parts are scaled by a power of 2 where their squares overflow or vanish, so that
there is no division, and no error but that of the squares and of the root::

    |x + iy| = s √((x / s)² + (y / s)²)

It is written for the compiler, since the rows that it would be made of know `abs`.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import DType, bool_, float32, float64, is_complex
from verax.ir.jaxpr import Params
from verax.rules.rows.emitter import Emitter, Operand, compared

# Up to which exponent parts are small, from which on they are large, and the exponent
# of the factor of small ones. None of what is between has a square that overflows.
SCALES: Final[dict[DType, tuple[int, int, int]]] = {
    float32: (-30, 60, 70),
    float64: (-400, 500, 600),
}


def suits(p: Params, avals: Sequence[ShapedArray]) -> bool:
    """Whether a magnitude is the length of a complex number."""
    return is_complex(avals[0].dtype)


def lower_length(
    e: Emitter, p: Params, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    """The length of complex numbers."""
    (out,) = outs
    low, high, exponent = SCALES[out.dtype]

    def two(name: str, x: Operand, y: Operand) -> Operand:
        return e.op(f"stablehlo.{name}", (x, y), outs)[0]

    def chosen(where: Operand, x: Operand, y: Operand) -> Operand:
        return e.op("stablehlo.select", (where, x, y), outs)[0]

    parts = [e.op(f"stablehlo.{name}", xs, outs)[0] for name in ("real", "imag")]
    sizes = [e.op("stablehlo.abs", (part,), outs)[0] for part in parts]
    longer = two("maximum", *sizes)
    small = compared(e, longer, "LE", e.constant(2.0**low, out))
    large = compared(e, longer, "GE", e.constant(2.0**high, out))
    one = e.constant(1.0, out)
    up, down = (e.constant(2.0**k, out) for k in (exponent, -exponent))
    factor = chosen(large, down, chosen(small, up, one))
    scale = chosen(large, up, chosen(small, down, one))
    scaled = [two("multiply", part, factor) for part in parts]
    total = two("add", *[two("multiply", part, part) for part in scaled])
    length = two("multiply", e.op("stablehlo.sqrt", (total,), outs)[0], scale)
    # An infinite part makes it infinite, whatever the other one is.
    infinity = e.constant(np.inf, out)
    ends = [compared(e, size, "EQ", infinity) for size in sizes]
    (infinite,) = e.op("stablehlo.or", ends, (ShapedArray(out.shape, bool_),))
    return (chosen(infinite, infinity, length),)
