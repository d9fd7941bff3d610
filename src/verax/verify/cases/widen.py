"""Floor 6: calls in double precision, for central differences need the digits.

One idea: a call in float64 is the same mathematics, so types and those params that
name an inexact dtype are widened together, also those of programs inside the params::

    widened(sin_p, Sample(NO_PARAMS, (f32[3],)))     # Sample(NO_PARAMS, (f64[3],))
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from attrs import evolve, fields, has

from verax.ir.avals import ShapedArray
from verax.ir.dtypes import complex128, float64, is_complex, is_float
from verax.ir.jaxpr import (
    Atom,
    Eqn,
    Jaxpr,
    Literal,
    NoParams,
    Params,
    array_literal,
    scalar_literal,
)
from verax.ir.walk import interpret
from verax.rules.rows.builder import Builder
from verax.rules.rows.infer import inferred
from verax.rules.rows.row import Row, Sample


def widened(row: Row[Any], sample: Sample[Any]) -> Sample[Any]:
    """The call in double precision, or as it is if its row does not take that."""
    avals = tuple([wide_aval(aval) for aval in sample.avals])
    for change in (wide_params, unchanged):
        try:
            params = change(sample.params)
            inferred(row, params, *avals)
        except (TypeError, ValueError):
            continue
        return evolve(sample, params=params, avals=avals)
    return sample


def unchanged[P: Params](params: P) -> P:
    return params


def wide_aval(aval: ShapedArray) -> ShapedArray:
    """The type in double precision; integers and booleans stay."""
    if is_float(aval.dtype):
        return aval.with_dtype(float64, aval.weak_type)
    if is_complex(aval.dtype):
        return aval.with_dtype(complex128, aval.weak_type)
    return aval


def wide_params[P: Params](params: P) -> P:
    """Params with double precision for all that they say about inexact dtypes.

    Those are dtypes and types among the fields, and the programs that they hold.

    Raises:
        TypeError: an equation inside does not take double precision.
    """
    if isinstance(params, NoParams) or not has(type(params)):
        return params
    wide: P = wide_record(params)
    return wide


def wide_record(record: Any) -> Any:
    """The record with wide fields; itself, if no field changes."""
    changed = {}
    for attribute in fields(type(record)):
        before = getattr(record, attribute.name)
        after = wide_value(before)
        if after is not before:
            changed[attribute.name] = after
    return evolve(record, **changed) if changed else record


def wide_value(value: Any) -> Any:
    """The value of a field in double precision, the same object if nothing changes."""
    if isinstance(value, np.dtype):
        return wide_dtype(value)
    if isinstance(value, ShapedArray):
        return wide_aval(value)
    if isinstance(value, Jaxpr):
        return wide_jaxpr(value)
    if isinstance(value, tuple):
        items = tuple([wide_value(item) for item in value])
        same = all(a is b for a, b in zip(items, value, strict=True))
        return value if same or type(value) is not tuple else items
    # Rules of custom calls are records that hold programs; engines are none.
    if has(type(value)) and any(is_program(value, a.name) for a in fields(type(value))):
        return wide_record(value)
    return value


def is_program(record: object, name: str) -> bool:
    return isinstance(getattr(record, name), Jaxpr)


def wide_jaxpr(jaxpr: Jaxpr) -> Jaxpr:
    """The program in double precision, equation by equation."""
    builder = Builder("a law")
    inputs = builder.input_atoms(map(wide_aval, jaxpr.in_avals))

    def write(eqn: Eqn, ins: Sequence[Atom]) -> list[Atom]:
        outs = builder.bind(eqn.primitive, wide_params(eqn.params), ins)
        return [builder.atom(x) for x in outs]

    return builder.close(interpret(jaxpr, inputs, write, wide_literal))[0]


def wide_literal(atom: Literal) -> Literal:
    """The literal with a wide constant."""
    aval = wide_aval(atom.aval)
    if aval is atom.aval:
        return atom
    value = np.asarray(atom.value).astype(aval.dtype)  # type: ignore[arg-type]  # no keys
    return array_literal(value, aval) if aval.shape else scalar_literal(value, aval)


def wide_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    if is_float(dtype):
        return float64
    return complex128 if is_complex(dtype) else dtype
