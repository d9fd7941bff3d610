"""Floor 5: zeros that rules of the user's own may see and return.

One idea: a rule that asks for symbolic zeros is told which tangents are zero, and may
say the same of what it returns, in place of computing with arrays of zeros::

    if isinstance(t, SymbolicZero): ...
"""

from typing import Any

import numpy as np
from attrs import frozen

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import DType, float0
from verax.ops.structure.create import zeros
from verax.rules.values.constants import aval_of


@frozen
class SymbolicZero:
    """A tangent or cotangent that is known to be zero, of the given type."""

    aval: ShapedArray

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> DType:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return self.aval.ndim


@frozen(eq=False)
class CustomVJPPrimal:
    """An argument of a forward rule with symbolic zeros: is it differentiated?"""

    value: Any
    perturbed: bool


def zero_from_primal(x: object) -> SymbolicZero:
    """The symbolic zero of the tangent type of `x`."""
    return SymbolicZero(aval_of(x).tangent())


def instantiate(aval: ShapedArray, symbolic: bool) -> Any:
    """A zero tangent as a rule gets it: symbolic if it asked for that."""
    if symbolic:
        return SymbolicZero(aval)
    if aval.dtype == float0:
        return np.zeros(aval.shape, float0)
    return zeros(aval)
