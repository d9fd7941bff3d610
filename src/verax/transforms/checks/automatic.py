"""Floor 3: the checks that programs get without asking, as a table.

One idea: a check is a category, what its message says, and a test on the operands and
results of one equation, so that which equations are checked is a table from primitives
to checks; any other primitive that computes with floats is checked for NaN::

    for check in checks_of(eqn, frozenset((NaNError,))):
        failed, payload = check.test(eqn.params, ins, outs)
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import numpy as np
from attrs import frozen

from verax.ir.avals import Shape, iinfo
from verax.ir.dtypes import int32, is_inexact
from verax.ir.jaxpr import Atom, Eqn, Literal, Params
from verax.ir.records import ReprMixin
from verax.ops.elementwise.bits import bitwise_or
from verax.ops.elementwise.compare import eq, gt, lt
from verax.ops.elementwise.convert import convert
from verax.ops.elementwise.select import select
from verax.ops.indexing.dynamic_slice import DynamicSliceParams, dynamic_index_in_dim
from verax.ops.indexing.gather_impl import GatherParams
from verax.ops.indexing.scatter_impl import ScatterParams, slice_sizes
from verax.ops.reductions.reduce import argmax
from verax.ops.structure.shape import broadcast_in_dim, reshape
from verax.rules.programs.host import (
    INDEX,
    Bounds,
    Category,
    DivisionByZeroError,
    Kind,
    NaNError,
    OOBError,
    Site,
)
from verax.rules.rows.row import traits_of
from verax.rules.values.array import Array
from verax.transforms.engine.engine import literal_value
from verax.transforms.nans import Kind as Wanted, bad_elements

type Arrays = Sequence[Array]
type Failed = tuple[Arrays, Sequence[object]]
"""Booleans of any shape, one of which is true if the check fails; what it shows then.
"""


@frozen(eq=False, repr=False)
class Check(ReprMixin):
    """One check of equations: its category and its test.

    `about` is what the message says besides values, and `applies` whether there is
    anything to check.
    """

    category: Category
    test: Callable[[Any, Arrays, Arrays], Failed]
    kind: Kind = ()
    about: Callable[[Eqn], object] = lambda eqn: None
    applies: Callable[[Eqn], bool] = lambda eqn: True

    def site(self, eqn: Eqn) -> Site:
        """The check of one equation."""
        return Site(self.category, self.about(eqn), self.kind, eqn.source)


def zero_of(x: Array) -> float | int:
    """Zero, as a number that takes the dtype of `x`."""
    return 0.0 if is_inexact(x.aval.dtype) else 0


def zero_divisor(p: Params, ins: Arrays, outs: Arrays) -> Failed:
    """Whether an element of the divisor is zero."""
    return (eq(ins[1], zero_of(ins[1])),), ()


def nonzero_constant(atom: Atom) -> bool:
    """Whether an operand is a constant without zeros."""
    return isinstance(atom, Literal) and bool(np.all(literal_value(atom)))


def made_nan(p: Params, ins: Arrays, outs: Arrays) -> Failed:
    """Whether a result has a NaN."""
    inexact = [x for x in outs if is_inexact(x.aval.dtype) and x.aval.size]
    return [bad_elements(x, Wanted.NAN) for x in inexact], ()


def bounds_of(eqn: Eqn) -> Bounds:
    """The bounds of an index, in a message."""
    return Bounds(eqn.primitive.name, eqn.invars[0].aval.shape)


def window_outside(ins: Arrays, sizes: Shape, first: int) -> Failed:
    """Whether a window starts where it does not fit, and the first such dimension."""
    shape = ins[0].shape
    starts = ins[first : first + len(shape)]
    bad = [
        outside(start, n - m) for start, n, m in zip(starts, shape, sizes, strict=True)
    ]
    failed, index = bad[-1], convert(starts[-1], int32)
    axis: Array | np.int32 = np.int32(len(shape) - 1)
    for d in reversed(range(len(shape) - 1)):
        failed = bitwise_or(bad[d], failed)
        index = select(bad[d], convert(starts[d], int32), index)
        axis = select(bad[d], np.int32(d), axis)
    return (failed,), (index, axis)


def outside(x: Array, last: int) -> Array:
    """Flags of the elements that are neither 0 nor between that and `last`."""
    return bitwise_or(lt(x, 0), gt(x, min(last, int(iinfo(x.dtype).max))))


def read_window(p: DynamicSliceParams, ins: Arrays, outs: Arrays) -> Failed:
    return window_outside(ins, p.slice_sizes, 1)


def written_window(p: Params, ins: Arrays, outs: Arrays) -> Failed:
    return window_outside(ins, ins[1].shape, 2)


def vectors_outside(indices: Array, axes: Shape, shape: Shape, sizes: Shape) -> Failed:
    """Whether an index vector points outside; the first such element, in order."""
    largest = min(int(iinfo(indices.dtype).max), int(iinfo(int32).max))
    last = [min(shape[d] - sizes[d], largest) for d in axes]
    most = convert(np.array(last, np.int32), indices.dtype)
    full = broadcast_in_dim(most, indices.shape, (indices.ndim - 1,))
    bad = bitwise_or(lt(indices, 0), gt(indices, full))
    count = indices.aval.size
    place = argmax(reshape(bad, (count,)), 0, int32)
    index = dynamic_index_in_dim(
        reshape(indices, (count,)), place, 0, False, allow_negative_indices=False
    )
    dims = np.resize(np.array(axes, np.int32), count)
    axis: object = np.int32(axes[0])
    if len(axes) > 1:
        axis = dynamic_index_in_dim(dims, place, 0, False, allow_negative_indices=False)
    return (bad,), (convert(index, int32), axis)


def read_vectors(p: GatherParams, ins: Arrays, outs: Arrays) -> Failed:
    axes = p.dimension_numbers.start_index_map
    return vectors_outside(ins[1], axes, ins[0].shape, p.slice_sizes)


def written_vectors(p: ScatterParams, ins: Arrays, outs: Arrays) -> Failed:
    operand, indices, updates = ins
    axes = p.dimension_numbers.scatter_dims_to_operand_dims
    sizes = slice_sizes(p, operand.shape, updates.shape)
    return vectors_outside(indices, axes, operand.shape, sizes)


def index(test: Callable[[Any, Arrays, Arrays], Failed], place: int) -> Check:
    """A check of the indices that start at an operand, if there are any."""
    return Check(
        OOBError,
        test,
        INDEX,
        bounds_of,
        lambda eqn: any(a.aval.size for a in eqn.invars[place : place + 1]),
    )


DIVISION: Final = Check(
    DivisionByZeroError,
    zero_divisor,
    applies=lambda eqn: not nonzero_constant(eqn.invars[1]),
)
NAN: Final = Check(
    NaNError,
    made_nan,
    about=lambda eqn: eqn.primitive.name,
    applies=lambda eqn: any(is_inexact(v.aval.dtype) for v in eqn.outvars),
)
WRITTEN: Final = (index(written_vectors, 1), NAN)
CHECKS: Final[Mapping[str, tuple[Check, ...]]] = MappingProxyType(
    {
        "div": (DIVISION, NAN),
        "dynamic_slice": (index(read_window, 1),),
        "dynamic_update_slice": (index(written_window, 2),),
        "gather": (index(read_vectors, 1),),
        **dict.fromkeys(
            (
                "scatter",
                "scatter-add",
                "scatter-sub",
                "scatter-mul",
                "scatter-min",
                "scatter-max",
            ),
            WRITTEN,
        ),
    }
)
"""The checks of primitives by name, in order."""


def checks_of(eqn: Eqn, errors: frozenset[Category]) -> list[Check]:
    """The checks of an equation in these categories, in order."""
    otherwise = (NAN,) if traits_of(eqn.primitive).makes_nans else ()
    checks = CHECKS.get(eqn.primitive.name, otherwise)
    return [c for c in checks if c.category in errors and c.applies(eqn)]
