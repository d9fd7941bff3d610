"""Floor 6: reading and updating parts of arrays: `x[index]` and `x.at[index].set(y)`.

One idea: an index that holds no arrays is looked up as it is, and finds a plan; a plan
is either bound step by step or, for arrays with values, read as a view by NumPy::

    x[3], x[1:5, ::2], x[rows, :, None]
    x.at[3].set(0.0), x.at[rows].add(1.0), x.at[9].get(mode="fill", fill_value=0)

Out of bounds, reading moves the index inside and writing does nothing, unless `mode`
says otherwise; negative indices count from the end.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Final, NamedTuple, NoReturn

import numpy as np

from verax.backend.arrays.concrete import ConcreteArray, beside, from_host
from verax.backend.eager.interpreter import EagerInterpreter, quietly
from verax.ir.avals import Shape, ShapedArray, iinfo
from verax.ir.dtypes import (
    is_bool,
    is_extended,
    is_float,
    is_integer,
    is_signed,
    is_unsigned,
)
from verax.ir.records import hiding
from verax.numpy.arguments.arguments import ArrayLike, constant_of
from verax.numpy.indexing.parse import (
    IndexArray,
    NonConcreteBooleanIndexError as NonConcreteBooleanIndexError,
    ParsedIndex,
    Picked,
    note_beyond,
    parse,
    plain_index,
)
from verax.numpy.indexing.read_plans import ReadPlan, Step, View, read_plan
from verax.numpy.indexing.slices import is_sliced, windowed
from verax.numpy.indexing.vectors import gather_indices, wrapped
from verax.numpy.indexing.write import Promises, scatter_plan, update, write_plan
from verax.ops.indexing.dynamic_slice import DynamicSliceParams, dynamic_slice_p
from verax.ops.indexing.gather import gather
from verax.ops.indexing.geometry import GatherScatterMode
from verax.ops.structure.create import full, zeros
from verax.ops.structure.reshard import call_sharded
from verax.ops.structure.shape import expand_dims
from verax.rules.values.array import Array
from verax.rules.values.state import STATE

# -----------------------------------------------------------------------------
# Indexing of arrays with values, by NumPy.
#
# While nothing is traced, a plan holds an index that means the same to NumPy,
# so that reading is a view and updating a copy with one assignment; an index out of
# bounds makes NumPy raise, and then the primitives do it::
#
#     hosted_read(x, plan, (rows,)), hosted_update(x, 3, 1.0, "add")


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
    """Reads in NumPy, if all is concrete and in bounds; out of bounds it raises."""
    view = hosted_view(plan.view, arrays)
    if view is None:
        return None
    try:
        values = x.numpy()[view]
    except IndexError:
        return None
    return from_host(values, plan.aval)


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


type Index = Any
type Mode = str | GatherScatterMode | None

FILL = GatherScatterMode.FILL_OR_DROP
PROMISE = GatherScatterMode.PROMISE_IN_BOUNDS
NOTHING_PROMISED = Promises()


def getitem(x: Array, index: Index) -> Array:
    """`x[index]` for every index that NumPy has; masks must be concrete.

    Unlike in NumPy, an integer out of bounds does not raise but is moved inside.

    Args:
        x: an array.
        index: an integer, a slice, None, `...`, an array of integers, a mask, or a
            tuple of these; also `verax.ds(start, size)` for a slice whose start may be
            traced.

    Returns:
        An array in the dtype of `x`, of the shape that NumPy gives it.

    Raises:
        IndexError: too many indices, a mask that does not fit, a traced slice bound.
        TypeError: the index is a list, or holds a float or a string.

    >>> import verax.numpy as vnp
    >>> x = vnp.array([[0, 1, 2], [3, 4, 5]])
    >>> vnp.getitem(x, (slice(None), -1)), vnp.getitem(x, (9, 9))
    (Array([2, 5], dtype=int32), Array(5, dtype=int32))
    """
    items = plain_index(index)
    if items is None:
        if is_sliced(index):
            taken = windowed(x, index, wrap=True)
            return getitem(taken.block, taken.rest)
        return read(x, parse(index, x.aval.shape), PROMISE, None, NOTHING_PROMISED)
    plan = read_plan(items, x.aval, False, True)
    if plan.beyond is not None:
        check_static(x, plan.beyond)
    if type(x) is ConcreteArray and x.kind is x.aval and is_eager():
        return from_host(x.numpy()[plan.view], plan.aval)
    for row, params in plan.before:
        x = row.call(params, x)
    for row, params in plan.after:
        x = row.call(params, x)
    return x


def run(steps: tuple[Step, ...], x: Array) -> Array:
    for row, params in steps:
        x = row.call(params, x)
    return x


def read(
    x: Array,
    parsed: ParsedIndex,
    mode: GatherScatterMode,
    fill_value: object,
    promises: Promises,
) -> Array:
    """Reads an index with arrays, or with a mode."""
    if parsed.flags:
        x = expand_dims(x, parsed.flags)
    plan = read_plan(parsed.kinds, x.aval, mode is FILL, promises.wrap)
    if plan.beyond is not None:
        check_static(x, plan.beyond)
    if plan.outside:
        return filled(plan.aval, fill_value)
    if 0 in plan.aval.shape and plan.picked:
        return beside(zeros(plan.aval), x)
    wraps = mode is not FILL and promises.wrap
    if wraps and type(x) is ConcreteArray and x.kind is x.aval and is_eager():
        out = hosted_read(x, plan, parsed.arrays)
        if out is not None:
            return out
    x = run(plan.before, x)
    if plan.picked:
        x = read_dynamic(x, plan, parsed.arrays, mode, fill_value, promises)
    return run(plan.after, x)


def check_static(x: Array, beyond: Shape) -> None:
    """Handles an int out of bounds, with its dimension and its size.

    While `checkify` traces the function, it is written down as a failed check.

    Raises:
        IndexError: `config.check_static_indices` is on.
    """
    if STATE.check_static_indices:
        index, axis, size = beyond
        raise IndexError(
            f"index {index} out of bounds for axis {axis} with size {size}; "
            "check_static_indices is on"
        )
    if STATE.checking:
        note_beyond("gather", x, beyond)


def filled(aval: ShapedArray, fill_value: object) -> Array:
    """The value of reading out of bounds in mode "fill"."""
    if fill_value is None:
        fill_value = default_fill(aval)
    return full(aval.shape, fill_value, aval.dtype)


def default_fill(aval: ShapedArray) -> bool | int | float:
    """NaN, the least integer, the largest without sign, True, or a key of all bits."""
    if is_extended(aval.dtype):
        return -1
    if is_signed(aval.dtype):
        return int(iinfo(aval.dtype).min)
    if is_unsigned(aval.dtype):
        return int(iinfo(aval.dtype).max)
    return True if is_bool(aval.dtype) else float("nan")


def read_dynamic(
    x: Array,
    plan: ReadPlan,
    arrays: tuple[IndexArray, ...],
    mode: GatherScatterMode,
    fill_value: object,
    promises: Promises,
) -> Array:
    """The dynamic slice or the gather of a plan."""
    sizes = [x.shape[axis] for axis in plan.picked]
    picks = [wrapped(a, n, promises.wrap) for a, n in zip(arrays, sizes, strict=True)]
    if plan.dims is not None:
        return gather(
            x,
            gather_indices(picks, plan.batch),
            plan.dims,
            plan.sizes,
            unique_indices=promises.unique,
            indices_are_sorted=promises.sorted,
            mode=mode,
            fill_value=fill_value,
        )
    dtype = picks[0].dtype if len({p.dtype for p in picks}) == 1 else np.dtype(np.int32)
    starts: list[object] = [dtype.type(start) for start in plan.starts]
    for axis, pick in zip(plan.picked, picks, strict=True):
        starts[axis] = pick if pick.dtype == dtype else pick.astype(dtype)
    return dynamic_slice_p.call(DynamicSliceParams(plan.sizes), x, *starts)


def at(x: Array) -> "Updates":
    """The updates of `x`: `at(x)[index].set(y)`; also `x.at[index].set(y)`.

    Args:
        x: an array, which stays as it is.

    Returns:
        An object that takes an index in brackets. What that gives has the methods
        `get`, `set`, `add`, `subtract`, `multiply`, `divide`, `power`, `min`, `max` and
        `apply`, each of which returns an array; out of bounds, nothing is written by
        default.

    >>> import verax.numpy as vnp
    >>> x = vnp.zeros(3)
    >>> vnp.at(x)[1].set(5.0), vnp.at(x)[vnp.array([0, 0, 7])].add(1.0)
    (Array([0., 5., 0.], dtype=float32), Array([2., 0., 0.], dtype=float32))
    """
    return Updates(x)


class Updates:
    """`x.at`: an index makes it an `Update`."""

    __dir__ = hiding("array")
    __slots__ = ("array",)

    def __init__(self, array: Array) -> None:
        self.array = array

    def __getitem__(self, index: Index) -> "Update":
        made = SlicedUpdate if is_sliced(index) else Update
        return made(self.array, index)

    def __repr__(self) -> str:
        return f"{self.array!r}.at"


LISTED = hiding("array count factors index update")
"""The methods of an update that editors offer."""


def is_no_array(update: object, other: object) -> NoReturn:
    """Arithmetic of `x.at[index]`, which is no array: raises TypeError."""
    raise TypeError(
        "x.at[index] is a place to update, not an array: read it as x[index], or write "
        "x.at[index].add(value), .multiply(value) or .set(value)"
    )


class NoArithmetic:
    """What `x.at[index] + 1` says, instead of adding to a tuple."""

    __slots__ = ()

    __add__ = __radd__ = __mul__ = __rmul__ = is_no_array
    __sub__ = __rsub__ = __truediv__ = __rtruediv__ = __pow__ = is_no_array


class Place(NamedTuple):
    """An array and an index of it."""

    array: Array
    index: Index


class Update(NoArithmetic, Place):
    """`x.at[index]`: the updates out of place of a part of an array.

    All take `indices_are_sorted` and `unique_indices`, promises about the index, and
    `mode`: "drop" or "fill" (the default), "clip", "promise_in_bounds".
    """

    __slots__ = ()

    def __dir__(self) -> list[str]:
        return LISTED(self)

    def get(
        self,
        *,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        mode: Mode = None,
        fill_value: object = None,
        wrap_negative_indices: bool = True,
        out_sharding: object = None,
    ) -> Array:
        """`x[index]`; with mode "fill", out of bounds is `fill_value`."""
        if out_sharding is not None:
            return call_sharded(Update.get, locals(), "x.at[index].get")
        chosen = PROMISE if mode is None else GatherScatterMode.from_any(mode)
        promises = Promises(indices_are_sorted, unique_indices, wrap_negative_indices)
        if fill_value is not None:
            fill_value = np.asarray(fill_value).item()
        parsed = parse(self.index, self.array.shape)
        return read(self.array, parsed, chosen, fill_value, promises)

    def set(self, values: ArrayLike, **options: object) -> Array:
        """x with `x[index] = values`.

        >>> import verax.numpy as vnp
        >>> vnp.zeros(3).at[1].set(5.0)
        Array([0., 5., 0.], dtype=float32)
        """
        return self.update(values, "set", options)

    def add(self, values: ArrayLike, **options: object) -> Array:
        """x with `x[index] += values`; duplicates add up."""
        return self.update(values, "add", options)

    def subtract(self, values: ArrayLike, **options: object) -> Array:
        """x with `x[index] -= values`; duplicates add up."""
        return self.update(values, "subtract", options)

    def multiply(self, values: ArrayLike, **options: object) -> Array:
        """x with `x[index] *= values`; duplicates multiply."""
        return self.update(values, "multiply", options)

    def mul(self, values: ArrayLike, **options: object) -> Array:
        """`multiply`."""
        return self.update(values, "multiply", options)

    def divide(self, values: ArrayLike, **options: object) -> Array:
        """x with `x[index] /= values`; integers become floats."""
        return self.array / self.factors(values, options)

    def power(self, values: ArrayLike, **options: object) -> Array:
        """x with `x[index] **= values`."""
        return self.array ** self.factors(values, options)

    def update(self, values: ArrayLike, how: str, options: dict[str, Any]) -> Array:
        """The array with values combined into the part, by NumPy where that will do."""
        x = self.array
        if not options and type(x) is ConcreteArray and x.kind is x.aval:
            out = hosted_update(x, self.index, values, how)
            if out is not None:
                return out
        return update(x, self.index, values, how, **options)

    def factors(self, values: ArrayLike, options: dict[str, object]) -> Array:
        """Ones, but `values` at the index."""
        ones = full(self.array.shape, 1, self.array.dtype)
        return self._replace(array=ones).update(values, "multiply", options)

    def min(self, values: ArrayLike, **options: object) -> Array:
        """x with `x[index] = minimum(x[index], values)`."""
        return self.update(values, "min", options)

    def max(self, values: ArrayLike, **options: object) -> Array:
        """x with `x[index] = maximum(x[index], values)`."""
        return self.update(values, "max", options)

    def apply(self, func: Callable[[Array], Array], **options: Any) -> Array:
        """x with `x[index] = func(x[index])`; `func` is applied once per element."""
        part = self.get(**options)
        return self.update(func(part), "set", options)


class SlicedUpdate(Update):
    """`x.at[ds(i, 4)]`: the block at the start is updated and put back."""

    __slots__ = ()

    def get(
        self, *, mode: Mode = None, fill_value: object = None, **options: Any
    ) -> Array:
        """`x[index]`; with mode "fill", a block out of bounds is `fill_value`."""
        chosen = PROMISE if mode is None else GatherScatterMode.from_any(mode)
        taken = windowed(self.array, self.index, wrap=chosen is not FILL)
        part = Update(taken.block, taken.rest)
        entry = part.get(mode=mode, fill_value=fill_value, **options)
        if chosen is not FILL:
            return entry
        return taken.chosen(entry, filled(entry.aval, fill_value))

    def update(self, values: ArrayLike, how: str, options: dict[str, Any]) -> Array:
        """The array with values combined into the part, if the block is inside."""
        taken = windowed(self.array, self.index, wrap=False)
        new = Update(taken.block, taken.rest).update(values, how, options)
        if GatherScatterMode.from_any(options.get("mode")) is FILL:
            new = taken.chosen(new, taken.block)
        return taken.replaced(new)
