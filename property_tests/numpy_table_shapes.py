"""The subjects that move elements: shapes, joins, pieces, places, and what is taken.

One idea: nothing is computed here, so that results are equal to the last bit, for every
dtype, shape and axis::

    SUBJECTS = [Subject("roll", rolls), Subject("split", splits)]
"""

from typing import Any

import numpy as np

from property_tests.numpy_draws import Call, Draw, Values, kind_of
from property_tests.numpy_law import Subject


def one(d: Draw) -> Call:
    return d.call(d.array())


def factors(d: Draw, size: int) -> tuple[int, ...]:
    """A shape of `size` elements."""
    shapes = [(size,), (1, size), (size, 1, 1)]
    shapes += [(n, size // n) for n in range(2, size) if size % n == 0]
    return d.pick(*shapes)  # type: ignore[no-any-return]  # one of these


def reshapes(d: Draw) -> Call:
    x = d.array()
    shape: Any = list(factors(d, x.size))
    if x.size:
        shape[d.whole(0, len(shape) - 1)] *= d.pick(1, 1, -1)
        shape = [-1 if n < 0 else n for n in shape]
    target = d.pick(tuple(shape), shape[0]) if len(shape) == 1 else tuple(shape)
    return d.call(x, target, **d.some(order=d.pick("C", "F")))


def ravels(d: Draw) -> Call:
    return d.call(d.array(), **d.some(order=d.pick("C", "F")))


def permuted(d: Draw) -> Call:
    x = d.array()
    order = [int(i) - x.ndim * d.whole(0, 1) for i in d.random.permutation(x.ndim)]
    return d.call(x, tuple(order))


def transposed(d: Draw) -> Call:
    x, order = permuted(d).args
    return d.call(x, **d.some(axes=d.pick(order, None)))


def moved(d: Draw) -> Call:
    x = d.array("biufc", (1, 3))
    count = d.whole(1, x.ndim)
    first = tuple(int(i) for i in d.random.permutation(x.ndim)[:count])
    second = tuple(int(i) - x.ndim for i in d.random.permutation(x.ndim)[:count])
    return d.pick(d.call(x, first, second), d.call(x, first[0], second[0]))  # type: ignore[no-any-return]  # one of two


def two_axes(d: Draw) -> Call:
    x = d.array("biufc", (1, 3))
    return d.call(x, d.axis(x.ndim), d.axis(x.ndim))


def rolled_axis(d: Draw) -> Call:
    x = d.array("biufc", (1, 3))
    return d.call(x, d.axis(x.ndim), **d.some(start=d.whole(-x.ndim, x.ndim)))


def squeezed(d: Draw) -> Call:
    x = d.array()
    ones = [i - x.ndim * d.whole(0, 1) for i, n in enumerate(x.shape) if n == 1]
    return d.call(x, **d.some(axis=d.pick(None, tuple(ones), *ones)))


def expanded(d: Draw) -> Call:
    x = d.array()
    return d.call(x, d.pick(d.axis(x.ndim + 1), (0, -1), (1,), [0]))


def broadcast_one(d: Draw) -> Call:
    x = d.array()
    return d.call(x, d.pick(x.shape, (2, *x.shape), (1, 2, *x.shape)))


def several(d: Draw) -> Call:
    return d.call(*d.operands(3))


def arrays_of_any_rank(d: Draw) -> Call:
    return d.call(*[d.array() for _ in range(d.whole(1, 3))])


def broadcast_of_shapes(d: Draw) -> Call:
    shapes = [np.shape(x) for x in d.operands(3)]
    return d.call(*d.pick(shapes, [*shapes, 1]))


def with_axis_or_none(d: Draw) -> Call:
    x = d.array()
    return d.call(x, **d.some(axis=d.axes(x.ndim)))


def sizes(d: Draw) -> Call:
    x = d.array()
    return d.call(x, **d.some(axis=d.axis_or_none(x.ndim)))


def resized(d: Draw) -> Call:
    return d.call(d.array(), d.pick((), 5, (0,), (2, 3), (7,), (2, 2, 2)))


# ------------------------------------------------------------------ joins, pieces


def pile(d: Draw, rank: tuple[int, int] = (0, 3)) -> list[Values]:
    x = d.array(rank=rank)
    kinds = d.pick(None, "biuf")
    count = d.whole(1, 3)
    return [
        x,
        *[
            d.values(x.shape, d.dtype(kinds) if kinds else x.dtype)
            for _ in range(count - 1)
        ],
    ]


def dtype_for(d: Draw, parts: list[Values]) -> Any:
    """A dtype to which joins may convert, which NumPy wants to be safe enough."""
    return d.dtype("c" if any(kind_of(x.dtype) == "c" for x in parts) else "f")


def joined(d: Draw) -> Call:
    parts = pile(d, (1, 3))
    axis = d.axis(parts[0].ndim)
    if d.flag():
        longer = list(parts[0].shape)
        longer[axis] += 1
        parts.append(d.values(longer, parts[0].dtype))
    given = {"axis": d.pick(axis, None) if d.whole(0, 3) == 0 else axis}
    return d.call(parts, **given, **d.some(dtype=dtype_for(d, parts)))


def concatenated(d: Draw) -> Call:
    call = joined(d)
    return d.call(call[0], axis=call["axis"])


def stacked(d: Draw) -> Call:
    parts = pile(d)
    axis = d.axis(parts[0].ndim + 1)
    return d.call(parts, **d.some(axis=axis, dtype=dtype_for(d, parts)))


def piled(d: Draw) -> Call:
    parts = pile(d)
    return d.call(parts, **d.some(dtype=dtype_for(d, parts)))


def numpy_dstack(tup: Any, dtype: Any = None) -> Any:
    return np.dstack(tup).astype(dtype) if dtype else np.dstack(tup)


def columns(d: Draw) -> Call:
    return d.call(pile(d, (0, 2)))


def appended(d: Draw) -> Call:
    x = d.array("biufc", (1, 3))
    axis = d.axis_or_none(x.ndim)
    more = d.array() if axis is None else d.like(x)
    return d.call(x, more, **d.some(axis=axis) if axis is None else {"axis": axis})


def blocks(d: Draw) -> Call:
    x, y = d.array("iuf", (1, 2)), d.pick(1, 2.5)
    return d.call(d.pick([x, x], [[x, x], [x, x]], [[x], [d.like(x)]], x, y, [y, 2]))


def pieces(low: int, at: int | None) -> Any:
    """Splits of an array of at least `low` dimensions along `at`, or any axis."""

    def draw(d: Draw) -> Call:
        x = d.array("biufc", (low, 3))
        axis = d.axis(x.ndim) if at is None else (0 if x.ndim == 1 else at)
        n = x.shape[axis]
        divisors = [k for k in range(1, n + 1) if n % k == 0] or [1]
        cuts = sorted(d.whole(0, n + 1) for _ in range(d.whole(1, 3)))
        where = d.pick(d.pick(*divisors), cuts, tuple(cuts))
        return d.call(x, where, **({"axis": axis} if at is None else {}))

    return draw


def uneven(d: Draw) -> Call:
    x = d.array("biufc", (1, 3))
    return d.call(x, d.whole(1, 4), axis=d.axis(x.ndim))


def unstacked(d: Draw) -> Call:
    x = d.array("biufc", (1, 3))
    return d.call(x, **d.some(axis=d.axis(x.ndim)))


def tiled(d: Draw) -> Call:
    return d.call(d.array(), d.pick(2, 0, (2, 1), (1, 3, 2), ()))


def repeated(d: Draw) -> Call:
    x = d.array()
    axis = d.axis_or_none(x.ndim)
    n = x.size if axis is None else x.shape[axis]
    counts: Any = d.values((n,), np.dtype(np.int32), 0, 3)
    return d.call(
        x,
        d.pick(2, 0, counts, np.array([3])),
        **d.some(axis=axis) if axis is None else {"axis": axis},
    )


def padded(d: Draw) -> Call:
    x = d.array("biufc", (1, 3), empty=False)
    pairs = tuple((d.whole(0, 3), d.whole(0, 3)) for _ in x.shape)
    width = d.pick(1, 2, (1, 2), ((2, 1),), pairs)
    mode = d.pick("constant", "edge", "reflect", "symmetric", "wrap", "mean")
    mode = d.pick(mode, "minimum", "maximum", "median", "linear_ramp", "empty")
    options: dict[str, Any] = {}
    if mode == "constant":
        options = d.some(constant_values=d.pick(1, (1, 2), ((1, 3),)))
    if mode in ("reflect", "symmetric"):
        options = d.some(reflect_type=d.pick("even", "odd"))
    if mode in ("mean", "minimum", "maximum", "median"):
        options = d.some(stat_length=d.pick(1, 2, (1, 2)))
    if mode == "linear_ramp":
        options = d.some(end_values=d.pick(1, (0, 2)))
    return d.call(x, width, mode, **options)


def odd_padding(call: Call) -> str:
    kind = kind_of(call[0].dtype)
    if call[2] == "empty":
        return "the values of an empty padding are not defined"
    if call[2] == "median" and kind == "c":
        return "complex numbers have no order in JAX"
    if kind == "b" and call["reflect_type"] == "odd":
        return "NumPy has no minus for booleans"
    return ""


# ------------------------------------------------------------------------- places


def flipped(d: Draw) -> Call:
    x = d.array()
    return d.call(x, **d.some(axis=d.axes(x.ndim)))


def of_rank(low: int) -> Any:
    return lambda d: d.call(d.array("biufc", (low, 3)))


def turned(d: Draw) -> Call:
    x = d.array("biufc", (2, 3))
    first, second = (int(i) for i in d.random.permutation(x.ndim)[:2])
    axes = (first - x.ndim * d.whole(0, 1), second)
    return d.call(x, **d.some(k=d.whole(-5, 5), axes=axes))


def rolls(d: Draw) -> Call:
    x = d.array()
    several = tuple(d.whole(-4, 4) for _ in x.shape)
    if not x.ndim or d.whole(0, 2) == 0:
        return d.call(x, d.whole(-7, 7))
    axes = tuple(int(i) for i in d.random.permutation(x.ndim))
    return d.pick(  # type: ignore[no-any-return]  # one of these
        d.call(x, d.whole(-7, 7), axis=d.axis(x.ndim)),
        d.call(x, several, axis=axes),
        d.call(x, d.whole(-3, 3), axis=axes),
        d.call(x, np.array(several), axis=axes),
    )


def deleted(d: Draw) -> Call:
    x = d.array()
    axis = d.axis_or_none(x.ndim)
    n = x.size if axis is None else x.shape[axis]
    some = [d.whole(-n, n - 1) for _ in range(d.whole(0, 3))] if n else []
    one = d.whole(-n, n - 1) if n else slice(None)
    obj = d.pick(
        one,
        some,
        np.array(some, int),
        slice(d.whole(-3, 3), None, d.pick(1, 2, -1)),
        d.values((n,), bool),
    )
    return d.call(x, obj, **({} if axis is None else {"axis": axis}))


def inserted(d: Draw) -> Call:
    x = d.array("iufc", (1, 3))
    axis = d.axis_or_none(x.ndim)
    n = x.size if axis is None else x.shape[axis]
    places = [d.whole(-n, n) for _ in range(d.whole(1, 3))]
    obj = d.pick(places[0], places, slice(0, n, 2))
    shape = list(x.shape)
    if axis is not None:
        del shape[axis]
    values = d.pick(7, d.values((), x.dtype))
    if axis is not None and isinstance(obj, int) and d.flag():
        values = d.values(shape, x.dtype)
    if axis is None and isinstance(obj, list):
        values = d.pick(values, d.values((len(obj),), x.dtype))
    return d.call(x, obj, values, **({} if axis is None else {"axis": axis}))


def trimmed(d: Draw) -> Call:
    x = d.array("biufc", (1, 3), low=0, high=1)
    return d.call(x, **d.some(trim=d.pick("f", "b", "fb", "B"), axis=d.axes(x.ndim)))


def diagonals(d: Draw) -> Call:
    x = d.array("biufc", (2, 3))
    first, second = (int(i) for i in d.random.permutation(x.ndim)[:2])
    options = d.some(offset=d.whole(-4, 4))
    if d.flag():
        options |= {"axis1": first - x.ndim, "axis2": second}
    return d.call(x, **options)


def traces(d: Draw) -> Call:
    call = diagonals(d)
    kind = kind_of(call[0].dtype)
    return Call(
        call.args, call.kwargs | d.some(dtype=d.dtype("c" if kind == "c" else "if"))
    )


def of_matrices(d: Draw) -> Call:
    return d.call(d.array("biufc", (2, 3)), **d.some(offset=d.whole(-4, 4)))


def traces_of_matrices(d: Draw) -> Call:
    call = of_matrices(d)
    kind = kind_of(call[0].dtype)
    return Call(
        call.args, call.kwargs | d.some(dtype=d.dtype("c" if kind == "c" else "if"))
    )


def with_diagonal(low: int, high: int) -> Any:
    return lambda d: d.call(d.array("biufc", (low, high)), **d.some(k=d.whole(-3, 3)))


# -------------------------------------------------------------------------- taken


def taken(d: Draw) -> Call:
    x = d.array(empty=False)
    axis = d.axis_or_none(x.ndim)
    n = x.size if axis is None else x.shape[axis]
    mode = d.pick(None, "wrap", "clip")
    low, high = (0, n - 1) if mode is None else (-6, 6)
    indices = d.values(d.shape(), d.dtype("i"), low, high)
    options = {} if mode is None else {"mode": mode}
    return d.call(
        x, indices, **d.some(axis=axis) if axis is None else {"axis": axis}, **options
    )


def numpy_take(x: Any, indices: Any, axis: Any = None, mode: str = "raise") -> Any:
    return np.take(x, indices, axis=axis, mode=mode)  # type: ignore[call-overload]  # a name


def taken_along(d: Draw) -> Call:
    x = d.array("biufc", (1, 3), empty=False)
    axis = d.axis(x.ndim)
    shape = list(x.shape)
    shape[axis] = d.whole(0, 4)
    n = x.shape[axis]
    return d.call(x, d.values(shape, d.dtype("i"), -n, n - 1), axis)


def put_along(d: Draw) -> Call:
    x = d.array("biufc", (1, 3), empty=False)
    axis = d.axis(x.ndim)
    n = x.shape[axis]
    order = np.argsort(d.random.random(x.shape), axis)[
        (slice(None),) * (axis % x.ndim) + (slice(0, d.whole(0, n)),)
    ]
    return d.call(
        x,
        order,
        d.pick(d.values(order.shape, x.dtype), x.dtype.type(1)),
        axis,
        inplace=False,
    )


def in_place(name: str) -> Any:
    """NumPy's function that writes into its first argument, on a copy."""

    def function(x: Any, *args: Any, inplace: bool = True, **kwargs: Any) -> Any:
        del inplace
        copy = x.copy()
        getattr(np, name)(copy, *args, **kwargs)
        return copy

    return function


def put_args(d: Draw) -> Call:
    x = d.array(empty=False)
    n = x.size
    places = d.random.permutation(n)[: d.whole(0, n)]
    values = d.values((d.whole(1, 3),), x.dtype)
    if d.flag():
        return d.call(x, places, values, inplace=False)
    mode = d.pick("wrap", "clip")
    return d.call(x, np.array([d.whole(-9, 9)]), values, mode=mode, inplace=False)


def placed(d: Draw) -> Call:
    x = d.array()
    return d.call(
        x, d.values(x.shape, bool), d.values((d.whole(1, 4),), x.dtype), inplace=False
    )


def filled_diagonal(d: Draw) -> Call:
    x = d.values(d.pick((3, 3), (2, 4), (5, 2), (2, 2, 2)), d.dtype())
    val = d.pick(1, d.values((2,), x.dtype))
    options = d.some(wrap=d.flag()) if x.ndim == 2 else {}
    return d.call(x, val, **options, inplace=False)


IN_PLACE = "arrays are immutable, and inplace=False gives a new one"

SUBJECTS = [
    *(Subject(name, one) for name in ("ndim", "shape", "copy")),
    Subject("matrix_transpose", of_rank(2)),
    Subject("linalg.matrix_transpose", of_rank(2)),
    Subject("reshape", reshapes),
    Subject("ravel", ravels),
    Subject("permute_dims", permuted),
    Subject("transpose", transposed),
    Subject("moveaxis", moved),
    Subject("swapaxes", two_axes),
    Subject("rollaxis", rolled_axis),
    Subject("squeeze", squeezed),
    Subject("expand_dims", expanded),
    Subject("broadcast_to", broadcast_one),
    Subject("broadcast_arrays", several),
    Subject("broadcast_shapes", broadcast_of_shapes),
    *(Subject(f"atleast_{n}d", arrays_of_any_rank) for n in (1, 2, 3)),
    Subject("size", sizes),
    Subject("resize", resized),
    Subject("concatenate", joined),
    Subject("concat", concatenated),
    Subject("stack", stacked),
    *(Subject(name, piled) for name in ("vstack", "hstack")),
    Subject("dstack", piled, numpy_dstack, why="NumPy's has no dtype"),
    Subject("column_stack", columns),
    Subject("append", appended),
    Subject("block", blocks),
    Subject("split", pieces(1, None)),
    Subject("array_split", pieces(1, None)),
    Subject("array_split", uneven),
    Subject("hsplit", pieces(1, 1)),
    Subject("vsplit", pieces(2, 0)),
    Subject("dsplit", pieces(3, 2)),
    Subject("unstack", unstacked),
    Subject("tile", tiled),
    Subject("repeat", repeated),
    Subject("pad", padded, differs=odd_padding),
    Subject("flip", flipped),
    Subject("fliplr", of_rank(2)),
    Subject("flipud", of_rank(1)),
    Subject("rot90", turned),
    Subject("roll", rolls),
    Subject("delete", deleted),
    Subject("insert", inserted),
    Subject("trim_zeros", trimmed),
    Subject("diagonal", diagonals),
    Subject("trace", traces),
    Subject("linalg.diagonal", of_matrices),
    Subject("linalg.trace", traces_of_matrices),
    Subject("diag", with_diagonal(1, 2)),
    Subject("diagflat", with_diagonal(0, 3)),
    Subject("tril", with_diagonal(2, 3)),
    Subject("triu", with_diagonal(2, 3)),
    Subject("take", taken, numpy_take, why="indices out of bounds are NaN in JAX"),
    Subject("take_along_axis", taken_along),
    Subject("put_along_axis", put_along, in_place("put_along_axis"), why=IN_PLACE),
    Subject("put", put_args, in_place("put"), why=IN_PLACE),
    Subject("place", placed, in_place("place"), why=IN_PLACE),
    Subject("fill_diagonal", filled_diagonal, in_place("fill_diagonal"), why=IN_PLACE),
]
