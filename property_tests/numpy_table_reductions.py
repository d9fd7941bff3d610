"""The subjects that reduce, accumulate, or describe samples along axes.

One idea: every parameter of a reduction is an option that a draw may give, one by one
or together: axis, keepdims, dtype, initial, where, ddof, weights::

    SUBJECTS = [*reductions("sum prod", dtype=True, initial=True)]
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from property_tests.numpy_draws import Call, Draw, kind_of
from property_tests.numpy_law import Subject


def reductions(
    names: str,
    kinds: str = "biufc",
    *,
    dtype: str = "",
    initial: bool = False,
    where: bool = True,
    special: bool = False,
    **options: Any,
) -> Iterator[Subject]:
    """Functions with axis and keepdims, and what else is named."""

    def draw(d: Draw) -> Call:
        x = d.array(kinds, special=special)
        given: dict[str, Any] = {"axis": d.axes(x.ndim), "keepdims": d.flag()}
        # Infinities have no integer.
        if dtype == "if" and special and not np.isfinite(x.astype(complex)).all():
            given["dtype"] = d.dtype("f")
        elif dtype and kind_of(x.dtype) != "c":
            given["dtype"] = d.dtype(dtype)
        elif dtype:
            given["dtype"] = d.dtype("c")
        if where:
            given["where"] = d.mask(x.shape)
        if initial:
            given["initial"] = d.pick(1, 2, 3)
        return d.call(x, **d.some(**given))

    for name in names.split():
        yield Subject(name, draw, **options)


def spreads(d: Draw) -> Call:
    x = d.array()
    given: dict[str, Any] = {"axis": d.axes(x.ndim), "keepdims": d.flag()}
    given["ddof"] = d.pick(0, 1, 0.5)
    given["where"] = d.mask(x.shape)
    if kind_of(x.dtype) != "c":
        given["dtype"] = d.dtype("f")
    chosen = d.some(**given)
    if d.whole(0, 4) == 0:
        axis = chosen.get("axis")
        rest = np.sum(x.astype(complex), axis, keepdims=True).shape
        chosen["mean"] = d.values(rest, np.dtype(np.float32))
    return d.call(x, **chosen)


def nothing_left(call: Call) -> str:
    x, given = call[0], call.kwargs
    count = np.broadcast_to(given.get("where", True), x.shape).sum(given.get("axis"))
    if given.get("mean") is not None and np.any(count <= given.get("ddof", 0)):
        return "without degrees of freedom it is NaN, in NumPy infinite beside a mean"
    return ""


def corrections(d: Draw) -> Call:
    return d.call(d.array("iuf"), correction=d.pick(0, 1, 0.5))


def extremes(d: Draw) -> Call:
    """Without an initial value only where there is something to reduce."""
    x = d.array("biufc", special=True)
    axis = d.axes(x.ndim)
    given = {"axis": axis, "keepdims": d.flag()}
    chosen = d.some(**given)
    if d.whole(0, 3) == 0 and kind_of(x.dtype) in "iuf":
        chosen["initial"] = d.pick(0, 1, 3)
        if d.flag():
            chosen["where"] = d.mask(x.shape)
    return d.call(x, **chosen)


def places(d: Draw) -> Call:
    x = d.array("biuf", special=True)
    return d.call(x, **d.some(axis=d.axis_or_none(x.ndim), keepdims=d.flag()))


def all_nan(call: Call) -> str:
    x = np.asarray(call[0])
    if kind_of(x.dtype) == "f" and np.isnan(x.astype(float)).all(call["axis"]).any():
        return "a slice of NaN has no place: -1 in JAX, an error in NumPy"
    return ""


def running(d: Draw) -> Call:
    x = d.array("biufc")
    given: dict[str, Any] = {"axis": d.axis_or_none(x.ndim)}
    given["dtype"] = d.dtype("c" if kind_of(x.dtype) == "c" else "if")
    return d.call(x, **d.some(**given))


def running_standard(d: Draw) -> Call:
    x = d.array("iufc", (1, 3))
    given: dict[str, Any] = {"include_initial": d.flag()}
    given["dtype"] = d.dtype("c" if kind_of(x.dtype) == "c" else "if")
    return d.call(x, axis=d.axis(x.ndim), **d.some(**given))


def weighted(d: Draw) -> Call:
    x = d.array("iufc", empty=False)
    axis: Any = d.axes(x.ndim)
    shape = x.shape
    if isinstance(axis, int):
        shape = d.pick(x.shape, (x.shape[axis],))
    weights = d.values(shape, d.dtype("iuf"), 1, 4)
    options = d.some(returned=d.flag(), keepdims=d.flag(), weights=weights)
    return d.call(x, axis=axis, **options)


METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


def quantiles(scale: float) -> Any:
    def draw(d: Draw) -> Call:
        x = d.array("iuf", empty=False)
        levels = d.pick(0.0, 1.0, 0.25, 0.5, np.array([0.125, 0.75, 1.0]))
        q = np.asarray(levels, np.float32) * np.float32(scale)
        given: dict[str, Any] = {"axis": d.axes(x.ndim), "keepdims": d.flag()}
        given["method"] = d.pick(*METHODS)
        return d.call(x, q, **d.some(**given))

    return draw


def weighted_quantiles(scale: float) -> Any:
    def draw(d: Draw) -> Call:
        x = d.array("f", (1, 3), empty=False)
        axis = d.axis(x.ndim)
        shape = d.pick((x.shape[axis],), x.shape)
        weights = d.values(shape, np.dtype(np.float32), d.pick(0.125, 1), 3)
        levels = d.pick(0.1234, 0.377, 0.711, np.array([0.0, 0.4567, 1.0]))
        q = np.asarray(levels, np.float32) * np.float32(scale)
        options = {"weights": weights, "method": "inverted_cdf"}
        return d.call(x, q, axis=axis, **options)

    return draw


def middles(d: Draw) -> Call:
    x = d.array("iuf", empty=False, special=True)
    return d.call(x, **d.some(axis=d.axes(x.ndim), keepdims=d.flag()))


def axis_and_keepdims(d: Draw) -> Call:
    x = d.array("iuf", empty=False)
    return d.call(x, **d.some(axis=d.axes(x.ndim), keepdims=d.flag()))


def counts(d: Draw) -> Call:
    x = d.array("biufc", low=-1, high=1)
    return d.call(x, **d.some(axis=d.axes(x.ndim), keepdims=d.flag()))


def samples(d: Draw) -> Call:
    count = d.whole(3, 5)
    shape = d.pick((count,), (2, count), (3, count))
    x = d.values(shape, d.dtype("iuf"))
    given: dict[str, Any] = {"bias": d.flag(), "ddof": d.pick(0, 1)}
    if len(shape) == 2:
        given["rowvar"] = d.flag()
    rowvar = given.get("rowvar", True)
    chosen = d.some(**given)
    size = count if chosen.get("rowvar", True) or len(shape) == 1 else shape[0]
    del rowvar
    weights = {
        "fweights": d.values((size,), np.dtype(np.int32), 1, 3),
        "aweights": d.values((size,), np.dtype(np.float32), 1, 3),
        "y": d.values(d.pick(shape, (size,)) if len(shape) == 1 else shape, x.dtype),
        "dtype": d.dtype("f"),
    }
    return d.call(x, **chosen, **d.some(**weights))


def correlated(d: Draw) -> Call:
    x = d.values(d.pick((5,), (2, 5), (3, 5)), np.dtype(np.float32))
    given: dict[str, Any] = {"y": d.like(x), "rowvar": x.ndim < 2 or d.flag()}
    return d.call(x, **d.some(**given))


def trapezoids(d: Draw) -> Call:
    x = d.array("iuf", (1, 3))
    axis = d.axis(x.ndim)
    places = d.pick(x.shape, (x.shape[axis],))
    given: dict[str, Any] = {"dx": d.pick(0.5, 2)}
    if d.flag():
        given = {"x": d.values(places, d.dtype("iuf"))}
    return d.call(x, axis=axis, **d.some(**given))


def gradients(d: Draw) -> Call:
    x = d.values(d.pick((3,), (4,), (3, 3), (3, 4, 3)), d.dtype("f"))
    axis = d.pick(None, d.axis(x.ndim))
    options = d.some(edge_order=d.pick(1, 2))
    if axis is not None:
        options["axis"] = axis
        steps = np.cumsum(d.values((x.shape[axis],), np.dtype(np.float32), 1, 3))
        spacing = d.pick((), (0.5,), (steps.astype(np.float32),))
    else:
        each = tuple(d.pick(0.5, 2.0) for _ in x.shape)
        spacing = d.pick((), (2.0,), each)
    return d.call(x, *spacing, **options)


def differences(d: Draw) -> Call:
    x = d.array("biufc", (1, 3))
    axis = d.axis(x.ndim)
    edge = list(x.shape)
    edge[axis] = d.whole(1, 2)
    given: dict[str, Any] = {"n": d.whole(0, 3), "axis": axis}
    given["prepend"] = d.pick(d.values(edge, x.dtype), 1)
    given["append"] = d.pick(d.values(edge, x.dtype), 1)
    chosen = d.some(**given)
    if {"prepend", "append"} & set(chosen):
        chosen["axis"] = axis
    return d.call(x, **chosen)


def edges_of_differences(d: Draw) -> Call:
    x = d.array("iuf")
    ends = d.some(to_end=d.vector(2, "i"), to_begin=d.vector(1, "i"))
    return d.call(x, **{k: v.astype(x.dtype) for k, v in ends.items()})


NO_NAN = "NumPy's fails with weights on slices of one element; there is no NaN here"

SUBJECTS = [
    *reductions("sum prod", dtype="if", initial=True),
    *reductions("nansum nanprod", dtype="if", initial=True, special=True),
    *reductions("mean", dtype="f"),
    *reductions("nanmean", "iuf", dtype="f", special=True),
    *reductions("all any"),
    Subject("std", spreads, differs=nothing_left),
    Subject("var", spreads, differs=nothing_left),
    Subject("std", corrections),
    Subject("var", corrections),
    Subject("nanstd", spreads, differs=nothing_left),
    Subject("nanvar", spreads, differs=nothing_left),
    *(Subject(name, extremes) for name in ("max", "min", "amax", "amin")),
    *(Subject(name, extremes) for name in ("nanmax", "nanmin")),
    *(Subject(name, places) for name in ("argmax", "argmin")),
    *(
        Subject(name, places, differs=all_nan, lenient=all_nan.__name__)
        for name in ("nanargmax", "nanargmin")
    ),
    *(
        Subject(name, running, typed=False)  # small integers stay so, as in JAX
        for name in ("cumsum", "cumprod", "nancumsum", "nancumprod")
    ),
    Subject("cumulative_sum", running_standard),
    Subject("cumulative_prod", running_standard),
    Subject("ptp", axis_and_keepdims),
    Subject("count_nonzero", counts),
    Subject("average", weighted),
    Subject("median", middles),
    Subject("nanmedian", middles),
    Subject("quantile", quantiles(1), kinds="f", typed=False),
    Subject("percentile", quantiles(100), kinds="f", typed=False),
    Subject("nanquantile", quantiles(1), kinds="f", typed=False),
    Subject("nanpercentile", quantiles(100), kinds="f", typed=False),
    Subject("quantile", weighted_quantiles(1)),
    Subject("percentile", weighted_quantiles(100)),
    Subject("nanquantile", weighted_quantiles(1), np.quantile, why=NO_NAN),
    Subject("nanpercentile", weighted_quantiles(100), np.percentile, why=NO_NAN),
    Subject("cov", samples, typed=False),
    Subject("corrcoef", correlated, typed=False),  # NumPy has no less than 64 bits
    Subject("trapezoid", trapezoids),
    Subject("gradient", gradients),
    Subject("diff", differences, typed=False),  # edges that are numbers are weak
    Subject("ediff1d", edges_of_differences),
]
