"""Floor 2: complex numbers and their parts.

One idea: transposes are linear over the complex numbers and never conjugate; what pairs
with the imaginary part of z is therefore -i ct::

    imag_p: y = Im z,  transpose: conj(complex(0, ct))
"""

import numpy as np

from verax.ir.dtypes import (
    DType,
    complex_dtype,
    float32,
    float64,
    is_complex,
    real_dtype,
)
from verax.ir.jaxpr import NO_PARAMS
from verax.ops.base import xla_semantics
from verax.rules.families.elementwise import chlo, elementwise, stablehlo
from verax.rules.rows.row import Rows
from verax.rules.rows.traits import Traits, no_flops
from verax.rules.values.array import Array
from verax.rules.values.constants import aval_of
from verax.rules.values.kinds import COMPLEX, FLOAT, Kind
from verax.rules.values.operands import alike


class ComplexParts(Kind):
    """The floats of which complex numbers are made."""

    def holds(self, dtype: DType) -> bool:
        return dtype in (float32, float64)

    def __str__(self) -> str:
        return "float32 or float64 arrays"


real_p = elementwise(
    "real",
    np.real,
    jvp=lambda z, y, t: real(t),
    transpose=lambda ct, z: complex(ct, 0.0),
    lower=stablehlo("real"),
    accepts=COMPLEX,
    result=real_dtype,
    traits=Traits(flops=no_flops, makes_nans=False, additive=True),
)
imag_p = elementwise(
    "imag",
    np.imag,
    jvp=lambda z, y, t: imag(t),
    transpose=lambda ct, z: conj(complex(0.0, ct)),
    lower=stablehlo("imag"),
    accepts=COMPLEX,
    result=real_dtype,
    traits=Traits(flops=no_flops, makes_nans=False, additive=True),
)
complex_p = elementwise(
    "complex",
    xla_semantics.join_parts,
    operands=2,
    jvp=(lambda x, y, z, t: complex(t, 0.0), lambda x, y, z, t: complex(0.0, t)),
    transpose=(lambda ct, x, y: real(ct), lambda ct, x, y: imag(conj(ct))),
    lower=stablehlo("complex"),
    accepts=ComplexParts(FLOAT.names),
    result=complex_dtype,
    traits=Traits(makes_nans=False),
)
conj_p = elementwise(
    "conj",
    np.conj,
    jvp=lambda z, y, t: conj(t),
    transpose=lambda ct, z: conj(ct),
    lower=chlo("conj"),
    accepts=COMPLEX,
    traits=Traits(makes_nans=False, keeps_zero=True),
)


def real(x: object) -> Array:
    """The real part of a complex array."""
    return real_p.call(NO_PARAMS, x)


def imag(x: object) -> Array:
    """The imaginary part of a complex array."""
    return imag_p.call(NO_PARAMS, x)


def complex(x: object, y: object) -> Array:
    """x + iy, from float32 or float64 arrays of the same shape or scalars."""
    return complex_p.call(NO_PARAMS, *alike(x, y))


def conj(x: object) -> Array:
    """The complex conjugate; a real array becomes complex."""
    if is_complex(aval_of(x).dtype):
        return conj_p.call(NO_PARAMS, x)
    return complex(x, 0.0)


ROWS: Rows = (real_p, imag_p, complex_p, conj_p)
