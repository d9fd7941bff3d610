"""Floor 1: integers of less than a byte, where XLA on CPU refuses them.

One idea: some of XLA's own rewriting leaves types that its CPU backend does not take,
such as 32-bit integers laid out in four bits, and of two bits it sorts, joins and
multiplies what is not there; operands of a whole byte avoid that::

    x = whole_bytes(e, x)      # i4[3] as i8[3], anything else as it is
    in_bytes(e, "stablehlo.concatenate", xs, outs, dimension=i64(0))
"""

from collections.abc import Sequence

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import DType, int2, int4, int8, is_signed, uint2, uint4, uint8
from verax.rules.rows.emitter import Emitter, Operand, converted

SMALL: tuple[DType, ...] = (int2, int4, uint2, uint4)
TWO_BITS: tuple[DType, ...] = (int2, uint2)


def whole_bytes(e: Emitter, x: Operand) -> Operand:
    """Integers of two and four bits as integers of eight, with or without sign."""
    if x.aval.dtype not in SMALL:
        return x
    return e.op("stablehlo.convert", (x,), (of_bytes(x.aval),))[0]


def of_bytes(aval: ShapedArray) -> ShapedArray:
    """The type of integers of two and four bits as integers of eight."""
    return aval.with_dtype(int8 if is_signed(aval.dtype) else uint8)


def in_bytes(
    e: Emitter,
    name: str,
    operands: Sequence[Operand],
    outs: Sequence[ShapedArray],
    **attributes: str,
) -> Sequence[Operand]:
    """An operation whose integers are of eight bits inside, if some are of two.

    What wraps round at eight bits does so at two.
    """
    if not any(x.aval.dtype in TWO_BITS for x in operands):
        return e.op(name, operands, outs, (), **attributes)
    wide = [whole_bytes(e, x) for x in operands]
    avals = [of_bytes(out) if out.dtype in SMALL else out for out in outs]
    found = e.op(name, wide, avals, (), **attributes)
    return [converted(e, y, out.dtype) for y, out in zip(found, outs, strict=True)]
