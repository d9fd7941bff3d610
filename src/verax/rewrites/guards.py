"""What guards of the shipped rules ask of operands.

One idea: a guard looks at types, at literal values, and at the equations that make an
operand, never at values that are known only later::

    @rewrite(lambda x: x + 0, where=integers)
"""

import math

from verax.ir.dtypes import is_bool, is_complex, is_float, is_integer
from verax.transforms.patterns.rewrite_rules import Operand


def reals(*xs: Operand) -> bool:
    """Whether no operand is complex."""
    return not any(is_complex(x.dtype) for x in xs)


def floats(*xs: Operand) -> bool:
    """Whether all operands are real floating numbers."""
    return all(is_float(x.dtype) for x in xs)


def integers(*xs: Operand) -> bool:
    """Whether all operands are integers or booleans."""
    return all(is_integer(x.dtype) or is_bool(x.dtype) for x in xs)


def unsigned(x: Operand) -> bool:
    return is_integer(x.dtype) and x.dtype.name.startswith("uint")


def exponent(x: Operand) -> int | None:
    """k, if the operand is the literal 2**k; else None."""
    if x.literal is None or not reals(x):
        return None
    value = float(x.literal)
    if not (math.isfinite(value) and value > 0):
        return None
    mantissa, power = math.frexp(value)
    return power - 1 if mantissa == 0.5 else None


def shifted(x: Operand) -> bool:
    """Whether a maximum has been subtracted already, as stable programs do."""
    return x.primitive == "sub" and has_maximum(x.operands[1])


def has_maximum(x: Operand) -> bool:
    """Whether an operand is a maximum over axes, in another shape or made finite."""
    through = ("broadcast_in_dim", "reshape", "squeeze", "select_n", "stop_gradient")
    if x.primitive == "reduce_max":
        return True
    return x.primitive in through and any(has_maximum(y) for y in x.operands)


def bounded(x: Operand) -> bool:
    """Whether a program keeps its exponential from overflowing: -|x| or a choice."""
    if x.primitive in ("select_n", "min", "clamp"):
        return True
    return x.primitive == "neg" and x.operands[0].primitive == "abs"
