"""Floor 6: calls in double precision, for central differences need the digits.

One idea: a call in float64 is the same mathematics, so types and those params that
name an inexact dtype are widened together::

    widened(sin_p, Sample(NO_PARAMS, (f32[3],)))     # Sample(NO_PARAMS, (f64[3],))
"""

from typing import Any

import numpy as np
from attrs import evolve, fields, has

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import complex128, float64, is_complex, is_float
from verax.ir.jaxpr import NoParams, Params
from verax.rules.infer import infer
from verax.rules.row import Row, Sample


def widened(row: Row[Any], sample: Sample[Any]) -> Sample[Any]:
    """The call in double precision, or as it is if its row does not take that."""
    avals = tuple([wide_aval(aval) for aval in sample.avals])
    for params in (wide_params(sample.params), sample.params):
        try:
            infer(row, params, *avals)
        except (TypeError, ValueError):
            continue
        return evolve(sample, params=params, avals=avals)
    return sample


def wide_aval(aval: ShapedArray) -> ShapedArray:
    """The type in double precision; integers and booleans stay."""
    if is_float(aval.dtype):
        return aval.with_dtype(float64, aval.weak_type)
    if is_complex(aval.dtype):
        return aval.with_dtype(complex128, aval.weak_type)
    return aval


def wide_params[P: Params](params: P) -> P:
    """Params with double precision for the inexact dtypes among their fields."""
    if isinstance(params, NoParams) or not has(type(params)):
        return params
    changed = {
        attribute.name: wide_dtype(getattr(params, attribute.name))
        for attribute in fields(type(params))
        if isinstance(getattr(params, attribute.name), np.dtype)
    }
    return evolve(params, **changed) if changed else params


def wide_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if is_float(dtype):
        return float64
    return complex128 if is_complex(dtype) else dtype
