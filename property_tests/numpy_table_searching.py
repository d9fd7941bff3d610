"""The subjects that order, search, count and choose; sets, polynomials, signals, maps.

One idea: an answer about order or membership has one value only, so that it is compared
exactly; where several would do, the law looks at what they pick::

    SUBJECTS = [Subject("sort", sorts), Subject("unique", uniques)]
"""

from typing import Any

import numpy as np

from property_tests.numpy_draws import Call, Draw, Values, kind_of
from property_tests.numpy_law import Subject

# ------------------------------------------------------------------------- orders


def sorts_stably(d: Draw) -> Call:
    x = d.array("biufc", (1, 3), special=True)
    return d.call(x, **d.some(axis=d.pick(d.axis(x.ndim), None)), stable=True)


def backwards(d: Draw) -> Call:
    x = d.array("biuf", (1, 3))
    return d.call(x, axis=d.axis(x.ndim), descending=d.flag())


def numpy_sort(x: Any, axis: int = -1, descending: bool = False) -> Any:
    actual = np.sort(x, axis)
    return np.flip(actual, axis) if descending else actual


def partitions(d: Draw) -> Call:
    x = d.array("iuf", (1, 3), empty=False)
    axis = d.axis(x.ndim)
    n = x.shape[axis]
    return d.call(x, d.whole(-n, n - 1), axis)


def by_pivot(call: Call, result: Any) -> Any:
    """The parts on both sides of the pivot, each in order."""
    x, kth, axis = call.args
    parts = np.split(np.moveaxis(result, axis, -1), [kth % x.shape[axis]], -1)
    return [np.sort(part, -1) for part in parts]


def picked(call: Call, result: Any) -> Any:
    return by_pivot(
        call, np.take_along_axis(call[0].astype(np.float32), result, call[2])
    )


def keys(d: Draw) -> Call:
    x = d.array("iuf", (1, 3), low=0, high=2)
    rest = [d.values(x.shape, d.dtype("iuf"), 0, 2) for _ in range(d.whole(0, 2))]
    return d.call(tuple([x, *rest]), **d.some(axis=d.axis(x.ndim)))


def haystacks(d: Draw) -> Call:
    dtype = d.dtype("iuf")
    row = np.sort(d.values((d.whole(0, 5),), dtype))
    queries = d.values(d.shape(), d.pick(dtype, d.dtype("iuf")), special=False)
    if d.whole(0, 3) == 0:
        order = d.random.permutation(len(row))
        mixed = np.empty_like(row)
        mixed[order] = row
        return d.call(
            mixed, queries, sorter=order, **d.some(side=d.pick("left", "right"))
        )
    options = {"side": d.pick("left", "right")}
    return d.call(row, queries, **d.some(**options))


def search_methods(d: Draw) -> Call:
    row = np.sort(d.vector(5, "f").astype(np.float32))
    method = d.pick("scan", "scan_unrolled", "sort", "compare_all")
    return d.call(
        row, d.array("iuf"), method=method, **d.some(side=d.pick("left", "right"))
    )


def numpy_search(a: Any, v: Any, side: Any = "left", method: str = "") -> Any:
    return np.searchsorted(a, v, side)


def bins_of(d: Draw) -> Call:
    edges = np.sort(d.vector(4, "f").astype(np.float32))
    edges = edges[::-1] if d.flag() else edges
    return d.call(d.array("iuf"), edges, **d.some(right=d.flag()))


def complex_vectors(d: Draw) -> Call:
    return d.call(d.array("biufc", (1, 2)))


# ------------------------------------------------------------------- conditions


def wheres(d: Draw) -> Call:
    x, y = d.operands(2)
    return d.call(d.mask(np.broadcast(x, y).shape), x, y)


def masks(d: Draw) -> Call:
    return d.call(d.array("biufc", (1, 3), low=-1, high=1))


def any_mask(d: Draw) -> Call:
    return d.call(d.array("biufc", low=-1, high=1))


def compressed(d: Draw) -> Call:
    x = d.array("biufc", (1, 3))
    axis = d.axis_or_none(x.ndim)
    n = x.size if axis is None else x.shape[axis]
    return d.call(
        d.values((d.whole(0, n),), bool), x, **({} if axis is None else {"axis": axis})
    )


def extracted(d: Draw) -> Call:
    x = d.array()
    return d.call(d.values(x.shape, d.dtype("bi"), -1, 1), x)


def choices(d: Draw) -> Call:
    count = d.whole(1, 3)
    rows = [np.asarray(x) for x in d.operands(count)] if count > 1 else [d.array()]
    mode = d.pick("raise", "wrap", "clip")
    low, high = (0, count - 1) if mode == "raise" else (-4, 4)
    places = d.values(rows[0].shape, d.dtype("i"), low, high)
    return d.call(
        places,
        d.pick(rows, tuple(rows)),
        **d.some(mode=mode) if mode == "raise" else {"mode": mode},
    )


def selections(d: Draw) -> Call:
    x = d.array("iuf")
    conditions = [d.values(x.shape, bool) for _ in range(2)]
    return d.call(conditions, [x, d.like(x)], **d.some(default=d.pick(0, 5)))


def by_pieces(d: Draw) -> Call:
    x = d.array("iuf", (1, 3))
    conditions = [d.values(x.shape, bool) for _ in range(2)]
    rest = [d.pick(3, lambda v: v)] if d.flag() else []
    return d.call(x, conditions, [lambda v: v * 2, 1, *rest])


def raveled(d: Draw) -> Call:
    mode = d.pick("raise", "wrap", "clip")
    low, high = (0, 2) if mode == "raise" else (-5, 9)
    shape = d.shape()
    parts = tuple(d.values(shape, d.dtype("i"), low, high) for _ in range(2))
    options = d.some(order=d.pick("C", "F"))
    return d.call(
        parts, (3, 4), **({} if mode == "raise" else {"mode": mode}), **options
    )


def unraveled(d: Draw) -> Call:
    return d.call(
        d.values(d.shape(), d.dtype("i"), 0, 11), d.pick((3, 4), (12,), (2, 2, 3), 12)
    )


# --------------------------------------------------------------------------- sets


def members(d: Draw, kinds: str = "biuf") -> Values:
    return d.array(kinds, low=-2, high=2)


def pair_of_sets(d: Draw) -> tuple[Values, Values]:
    x = members(d)
    return x, d.values(d.shape(), d.pick(x.dtype, d.dtype("biuf")), -2, 2)


def two_sets(d: Draw) -> Call:
    return d.call(*pair_of_sets(d))


def without_repeats(d: Draw) -> Call:
    x, y = pair_of_sets(d)
    if d.flag():
        return d.call(np.unique(x), np.unique(y), assume_unique=True)
    return d.call(x, y)


def differences_of_sets(d: Draw) -> Call:
    x, y = pair_of_sets(d)
    return d.call(x, y)


def meetings(d: Draw) -> Call:
    call = without_repeats(d)
    return Call(call.args, call.kwargs | d.some(return_indices=d.flag()))


def memberships(d: Draw) -> Call:
    call = without_repeats(d)
    return Call(call.args, call.kwargs | d.some(invert=d.flag()))


def uniques(d: Draw) -> Call:
    x = members(d, "biufc")
    flags = d.some(return_index=True, return_inverse=True, return_counts=True)
    axis = d.axis_or_none(x.ndim)
    if axis is not None and 0 in x.shape:
        axis = None
    return d.call(x, **flags, **({} if axis is None else {"axis": axis}))


def unique_nans(d: Draw) -> Call:
    x = d.array("f", special=True)
    return d.call(x, **d.some(equal_nan=d.flag(), return_counts=True))


def counted(d: Draw) -> Call:
    x = d.values((d.whole(1, 5),), d.dtype("iu"), 0, 6)
    options = {"weights": d.values(x.shape, d.dtype("if")), "minlength": d.whole(0, 9)}
    return d.call(x, **d.some(**options))


def histograms(d: Draw) -> Call:
    x = d.array("iuf", low=-8, high=8)
    bins = d.pick(d.whole(1, 9), np.array([-4, -1, 0, 2.5, 6], np.float32), 4)
    options: dict[str, Any] = {"bins": bins, "density": d.flag()}
    options["weights"] = d.values(x.shape, np.dtype(np.float32), 1, 3)
    if isinstance(bins, int):
        options["range"] = d.pick((-8, 8), (0.0, 4.0), (-1, 3))
    return d.call(x, **d.some(**options))


def half_edges(call: Call) -> str:
    x = call[0]
    if kind_of(x.dtype) == "f" and x.dtype.itemsize < 4:
        return "edges in half precision are others than NumPy's"
    if call["density"] and not x.size:
        return "0 / 0"
    return ""


def edges_of_bins(d: Draw) -> Call:
    call = histograms(d)
    return Call(
        call.args, {k: v for k, v in call.kwargs.items() if k in ("bins", "range")}
    )


def planes(d: Draw) -> Call:
    x, y = (d.values((6,), np.dtype(np.float32), -4, 4) for _ in range(2))
    edges = np.array([-4, -1, 0.5, 4], np.float32)
    options: dict[str, Any] = {"bins": d.pick(3, (2, 4), edges, [2, edges])}
    options["density"] = d.flag()
    options["weights"] = d.values((6,), np.dtype(np.float32), 1, 3)
    options["range"] = ((-4, 4), (-4, 4))
    return d.call(x, y, **d.some(**options))


def wide_shares(call: Call) -> str:
    return "shares of edges in single precision" if call["density"] else ""


def spaces(d: Draw) -> Call:
    x = d.values((6, 3), np.dtype(np.float32), -4, 4)
    options: dict[str, Any] = {"bins": d.pick(2, (2, 3, 4)), "density": d.flag()}
    options["weights"] = d.values((6,), np.dtype(np.float32), 1, 3)
    options["range"] = ((-4, 4),) * 3
    return d.call(x, **d.some(**options))


# -------------------------------------------------------------------- polynomials


def polynomial(d: Draw, kinds: str = "iufc", low: int = 1) -> Values:
    x = d.values((d.whole(low, 4),), d.dtype(kinds))
    if x.size:
        x[0] = 1
    return x


def one_polynomial(d: Draw) -> Call:
    return d.call(polynomial(d))


def two_polynomials(d: Draw) -> Call:
    return d.call(polynomial(d), polynomial(d))


def divisions(d: Draw) -> Call:
    return d.call(polynomial(d, "f"), polynomial(d, "f"))


def quotient_only(call: Call, result: Any) -> Any:
    """NumPy strips leading zeros of the remainder; sizes are known in JAX."""
    quotient, rest = (np.asarray(x) for x in result)
    return [
        quotient,
        np.asarray(np.polyval(rest.astype(float), 2.0)).astype(rest.dtype),
    ]


def derived(d: Draw) -> Call:
    return d.call(polynomial(d), **d.some(m=d.whole(0, 3)))


def integrated(d: Draw) -> Call:
    m = d.whole(1, 3)
    return d.call(polynomial(d), m=m, **d.some(k=d.pick(2, np.ones(m, np.float32))))


def evaluated(d: Draw) -> Call:
    return d.call(polynomial(d), d.array("iufc"))


def fitted(d: Draw) -> Call:
    x = np.arange(6).astype(np.float32) + d.values((6,), np.dtype(np.float32), 0, 0.5)
    y = d.values(d.pick((6,), (6, 2)), np.dtype(np.float32))
    options = {"w": d.values((6,), np.dtype(np.float32), 1, 3), "rcond": 1e-5}
    return d.call(x, y, d.whole(0, 2), **d.some(**options))


def fitted_with_cov(d: Draw) -> Call:
    x = np.arange(8).astype(np.float32)
    return d.call(
        x, d.values((8,), np.dtype(np.float32)), 2, cov=d.pick(True, "unscaled")
    )


def root_args(d: Draw) -> Call:
    zeros = [0] * d.pick(0, 0, 1, 2)
    middle = [d.pick(1, -2), *d.eighths((d.whole(0, 3),), -4, 4)]
    return d.call(
        np.array([*zeros, *middle, *d.pick([], [0])]).astype(d.pick("f4", "c8"))
    )


def polynomial_again(call: Call, result: Any) -> Any:
    """The polynomial of the roots, which may come in any order."""
    again = np.poly(np.asarray(result).astype(np.complex128))
    return [len(result), np.asarray(again, np.complex64)]


def from_roots(d: Draw) -> Call:
    return d.call(d.values((d.whole(0, 4),), d.dtype("iufc")))


# ------------------------------------------------------------------ signals, maps


def filters(d: Draw) -> Call:
    x = d.values((d.whole(1, 5),), d.dtype("iufc"))
    y = d.values((d.whole(1, 5),), d.dtype("iufc"))
    return d.call(x, y, **d.some(mode=d.pick("full", "same", "valid")))


def interpolated(d: Draw) -> Call:
    places = np.cumsum(d.values((4,), np.dtype(np.float32), 0.5, 2)).astype(np.float32)
    x = d.array("f", low=-2, high=9)
    values = d.values((4,), d.dtype("iufc"))
    options = {"left": -5.0, "right": 7.0}
    if d.whole(0, 3) == 0:
        return d.call(x, places, values, period=d.pick(3.0, 7.5))
    return d.call(x, places, values, **d.some(**options))


def coarse_places(call: Call) -> str:
    if call[2].dtype in (np.int64, np.float64, np.complex128):
        return "places are counted in the dtype of x and xp, the values in 64 bits"
    return ""


def along(d: Draw) -> Call:
    x = d.array("iuf", (1, 3), empty=False)
    function = d.pick(lambda v: v.sum(), lambda v: v * 2, lambda v: v[:1] + 1)
    return d.call(function, d.axis(x.ndim), x)


def packed(d: Draw) -> Call:
    x = d.array("bi", (1, 3), low=0, high=1)
    return d.call(
        x, **d.some(axis=d.pick(None, d.axis(x.ndim)), bitorder=d.pick("big", "little"))
    )


def unpacked(d: Draw) -> Call:
    x = d.values(d.shape(1, empty=False), np.dtype(np.uint8), 0, 255)
    options = {
        "axis": d.pick(None, d.axis(x.ndim)),
        "bitorder": d.pick("big", "little"),
    }
    return d.call(x, **d.some(**options, count=d.pick(None, 3, -2, 9)))


def two_arrays(d: Draw) -> Call:
    x = d.array("biuf", special=True)
    return d.call(x, d.pick(x, d.like(x), d.array()), **d.some(equal_nan=d.flag()))


def equivalents(d: Draw) -> Call:
    x = d.array()
    return d.call(x, d.pick(x, x[None], d.array()))


def over_axes(d: Draw) -> Call:
    x = d.array("iuf", (1, 3))
    axes = tuple(range(d.whole(1, x.ndim)))
    return d.call(lambda v, axis: v.sum(axis, keepdims=d.wide), x, axes)


SUBJECTS = [
    Subject("sort", sorts_stably),
    Subject("sort", backwards, numpy_sort, why="descending is JAX's"),
    Subject("argsort", sorts_stably),
    Subject("partition", partitions, seen=by_pivot),
    Subject("argpartition", partitions, seen=picked),
    Subject("lexsort", keys),
    Subject("searchsorted", haystacks),
    Subject("searchsorted", search_methods, numpy_search, why="method is JAX's"),
    Subject("digitize", bins_of),
    Subject("sort_complex", complex_vectors, typed=False),
    Subject("where", wheres),
    Subject("where", masks),
    *(Subject(name, masks) for name in ("nonzero", "flatnonzero")),
    Subject("argwhere", any_mask),
    Subject("compress", compressed),
    Subject("extract", extracted),
    Subject("choose", choices),
    Subject("select", selections),
    Subject("piecewise", by_pieces),
    Subject("ravel_multi_index", raveled),
    Subject("unravel_index", unraveled, typed=False),  # the dtype of the indices
    *(Subject(name, two_sets) for name in ("union1d",)),
    *(Subject(name, without_repeats) for name in ("setdiff1d", "setxor1d")),
    Subject("intersect1d", meetings),
    Subject("isin", memberships),
    Subject("unique", uniques),
    Subject("unique", unique_nans),
    *(
        Subject(f"unique_{name}", lambda d: d.call(members(d)))
        for name in ("all", "counts", "inverse")
    ),
    Subject(
        "unique_values",
        lambda d: d.call(members(d)),
        seen=lambda call, result: np.sort(result),
    ),
    Subject("bincount", counted, kinds="iu"),
    Subject("histogram", histograms, differs=half_edges, kinds="f", typed=False),
    Subject("histogram_bin_edges", edges_of_bins, differs=half_edges),
    Subject("histogram2d", planes, differs=wide_shares, kinds="iu", typed=False),
    Subject("histogramdd", spaces, differs=wide_shares, kinds="iu", typed=False),
    Subject("poly", from_roots, kinds="fc", typed=False),
    Subject("polyadd", two_polynomials),
    Subject("polysub", two_polynomials),
    Subject("polymul", two_polynomials, kinds="f", typed=False),
    Subject("polydiv", divisions, seen=quotient_only, slack=512),
    Subject("polyder", derived, kinds="f", typed=False),
    Subject("polyint", integrated, typed=False),
    Subject("polyval", evaluated),
    Subject("polyfit", fitted, slack=4096, typed=False),
    Subject("polyfit", fitted_with_cov, slack=4096, typed=False),
    Subject("roots", root_args, seen=polynomial_again, slack=512, typed=False),
    # Integers are read as floats, as in JAX.
    Subject("convolve", filters, kinds="f", typed=False),
    Subject("correlate", filters, kinds="f", typed=False),
    Subject("interp", interpolated, differs=coarse_places, typed=False),
    Subject("apply_along_axis", along),
    Subject("apply_over_axes", over_axes),
    Subject("packbits", packed),
    Subject("unpackbits", unpacked, narrow=True),
    Subject("array_equal", two_arrays),
    Subject("array_equiv", equivalents),
]
