"""Floor 1: integers of less than a byte, where XLA on CPU refuses them.

One idea: some of XLA's own rewriting leaves types that its CPU backend does not take,
such as 32-bit integers laid out in four bits; operands of a whole byte avoid that::

    x = whole_bytes(e, x)      # i4[3] as i8[3], anything else as it is
"""

from verax.ir.dtypes import DType, int2, int4, int8, is_signed, uint2, uint4, uint8
from verax.rules.rows.emitter import Emitter, Operand

SMALL: tuple[DType, ...] = (int2, int4, uint2, uint4)


def whole_bytes(e: Emitter, x: Operand) -> Operand:
    """Integers of two and four bits as integers of eight, with or without sign."""
    dtype = x.aval.dtype
    if dtype not in SMALL:
        return x
    wide = x.aval.with_dtype(int8 if is_signed(dtype) else uint8)
    return e.op("stablehlo.convert", (x,), (wide,))[0]
