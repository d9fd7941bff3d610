"""Floor 6: indexing of arrays with values, by NumPy.

One idea: while nothing is traced, a plan holds an index that means the same to NumPy,
so that reading is a view and updating a copy with one assignment; an index out of
bounds makes NumPy raise, and then the primitives do it::

    hosted_read(x, plan, (rows,)), hosted_update(x, 3, 1.0, "add")
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

import numpy as np

from verax.backend.arrays.concrete import ConcreteArray, from_host
from verax.backend.eager.interpreter import EagerInterpreter, quietly
from verax.ir.dtypes import is_float, is_integer
from verax.ir.limits import iinfo
from verax.numpy.arguments.arguments import constant_of
from verax.numpy.indexing.parse import IndexArray, Picked, parse, plain_index
from verax.numpy.indexing.read_plans import ReadPlan, View
from verax.numpy.indexing.write_plans import scatter_plan, write_plan
from verax.rules.values.array import Array
from verax.rules.values.state import STATE

UFUNCS: Final[Mapping[str, np.ufunc]] = MappingProxyType(
    {
        "add": np.add,
        "subtract": np.subtract,
        "multiply": np.multiply,
        "min": np.minimum,
        "max": np.maximum,
    }
)


def is_eager() -> bool:
    """Whether operations are computed at once in this thread."""
    return type(STATE.interpreter) is EagerInterpreter


def hosted_read(
    x: ConcreteArray, plan: ReadPlan, arrays: tuple[IndexArray, ...]
) -> ConcreteArray | None:
    """What NumPy reads, if all is concrete and in bounds; out of bounds it raises."""
    view = hosted_view(plan.view, arrays)
    if view is None:
        return None
    try:
        found = x.numpy()[view]
    except IndexError:
        return None
    return from_host(found, plan.aval)


def hosted_view(view: View, arrays: tuple[IndexArray, ...]) -> View | None:
    """The index for NumPy, if it has the same meaning and the arrays have values."""
    if not view:
        return None
    values = []
    for array in arrays:
        if type(array) is ConcreteArray and array.kind is array.aval:
            array = array.numpy()
        if type(array) is not np.ndarray or array.dtype.kind not in "iu":
            return None
        values.append(array)
    rest = iter(values)
    return tuple([next(rest) if type(k) is Picked else k for k in view])


def hosted_update(
    x: ConcreteArray, index: object, values: object, how: str
) -> Array | None:
    """x with the part at `index` replaced or combined, where no more is needed.

    That is: eager, of the dtype of x, of the shape of the part or none, in bounds.
    """
    new = hosted_values(x, values)
    if new is None or (x.aval.dtype.kind not in "fiuc" and how != "set"):
        return None
    items = plain_index(index)
    if items is not None:
        plan = write_plan(items, x.aval.shape, True, True)
        outside, shape, view = plan.outside, plan.shape, plan.view
    else:
        parsed = parse(index, x.aval.shape)
        if parsed.flags:
            return None
        places = scatter_plan(parsed.kinds, x.aval.shape, True, True)
        outside, shape = places.outside, places.shape
        view = hosted_view(places.view, parsed.arrays) or ()
    if not view or new.shape not in (shape, ()):
        return None
    if outside:
        return x
    out = np.array(x.numpy(), order="C")
    try:
        quietly(combine, out, view, new, how, items is None)
    except IndexError:
        return None
    return from_host(out, x.aval)


def combine(out: np.ndarray, view: View, new: np.ndarray, how: str, many: bool) -> None:
    """Write in place; `many` says that an element may be named several times."""
    if how == "set":
        out[view] = new
    elif many:
        UFUNCS[how].at(out, view, new)
    else:
        out[view] = UFUNCS[how](out[view], new)


def hosted_values(x: ConcreteArray, values: object) -> np.ndarray | None:
    """Values in NumPy, if they have the dtype of x or are numbers that fit it."""
    dtype = x.aval.dtype
    if not is_eager():
        return None
    if type(values) is ConcreteArray:
        taken = values.kind is values.aval and values.aval.dtype == dtype
        return values.numpy() if taken else None
    if type(values) in (int, float) and is_float(dtype):
        constant: np.ndarray = constant_of(values, dtype)
        return constant
    if type(values) is int and is_integer(dtype):
        limits = iinfo(dtype)
        fits = limits.min <= values <= limits.max
        return constant_of(values, dtype) if fits else None
    return None
