"""Floor 6: functions of several operations that are one ufunc of NumPy for floats.

Eagerly, on arrays of one float type of NumPy, the ufunc gives the bits of the steps::

    @in_numpy(Exactly(np.copysign))
    def copysign(x1, x2): ...
"""

from collections.abc import Sequence
from math import isfinite
from typing import Any, ClassVar

import numpy as np
from attrs import frozen

from verax.backend.eager.composites import OneGo
from verax.ir.avals import ShapedArray
from verax.ir.dtypes import float32, float64
from verax.ir.records import ReprMixin

FLOATS = (float32, float64)


def one_float(types: Sequence[Any]) -> bool:
    """Whether all arguments are arrays of one float dtype of NumPy."""
    first = types[0]
    return (
        type(first) is ShapedArray
        and first.dtype in FLOATS
        and all([type(x) is ShapedArray and x.dtype is first.dtype for x in types])
    )


@frozen(repr=False)
class Exactly(ReprMixin):
    """`at_once` for what `ufunc` computes of all floats, special ones included."""

    transient: ClassVar[bool] = False

    ufunc: np.ufunc

    def __call__(self, *types: Any) -> OneGo | None:
        return self.ufunc if one_float(types) else None


@frozen(repr=False)
class WhereFinite(ReprMixin):
    """`at_once` for what `ufunc` computes where its (first) result is finite."""

    transient: ClassVar[bool] = False

    ufunc: np.ufunc

    def __call__(self, *types: Any) -> OneGo | None:
        return self.found if one_float(types) else None

    def found(self, *xs: Any) -> Any:
        """The results; None where they are not finite."""
        results = self.ufunc(*xs)
        values = results[0] if type(results) is tuple else results
        # The sum of squares is infinite or NaN if an element is.
        return results if isfinite(np.vdot(values, values)) else None
