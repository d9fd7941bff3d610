"""Floor 2: a symbolic dimension as the value of an array.

`x.sum() / x.shape[0]` divides by a number that is known when the program runs: the
primitive has no operands, and the dimension is its parameter::

    a:~i32[] = dim_as_value[dim=b]
"""

from collections.abc import Sequence
from typing import Any, NoReturn

from attrs import frozen

from verax.ir.avals import ShapedArray, SymbolicSize
from verax.ir.dtypes import DType, canonical, int64
from verax.ir.jaxpr import Params
from verax.rules.rows.emitter import Emitter, Operand
from verax.rules.rows.row import Engine, Row
from verax.rules.rows.traits import Traits, no_flops
from verax.rules.values.array import Array
from verax.rules.values.state import STATE


@frozen(repr=False)
class DimParams(Params):
    """The dimension, and the type of its value."""

    dim: SymbolicSize
    dtype: DType
    weak_type: bool


def evaluate_dim(engine: Engine, p: DimParams, xs: Sequence[Any]) -> NoReturn:
    raise TypeError(
        f"the symbolic dimension '{p.dim}' has no value until the program that was "
        "exported with it is called"
    )


def lower_dim(
    e: Emitter, p: DimParams, xs: Sequence[Operand], outs: Sequence[ShapedArray]
) -> Sequence[Operand]:
    return (e.constant(p.dim, outs[0]),)  # type: ignore[arg-type]  # modules with symbols write it


dim_as_value_p: Row[DimParams] = Row(
    "dim_as_value",
    DimParams,
    typing=lambda p, avals: (ShapedArray((), p.dtype, p.weak_type),),
    evaluate=evaluate_dim,
    lower=lower_dim,
    # A device knows it no more than NumPy: nothing is compiled to say so.
    hosted=True,
    traits=Traits(flops=no_flops),
)


def dim_as_value(dim: SymbolicSize) -> Array:
    """A symbolic dimension as a scalar, weak as Python's integers are."""
    dtype = canonical(int64, STATE.enable_x64)
    return dim_as_value_p.call(DimParams(dim, dtype, weak_type=True))


def dim_in_dtype(dim: SymbolicSize, dtype: DType) -> Array:
    """A symbolic dimension as a scalar of a dtype."""
    return dim_as_value_p.call(DimParams(dim, dtype, weak_type=False))


ROWS = (dim_as_value_p,)
