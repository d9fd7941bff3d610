"""The subjects with parameters that JAX adds: sizes known while tracing, promises.

One idea: such a parameter says how long NumPy's result is, cut off or filled at its
end, so that the reference is NumPy's function and a length::

    Subject("nonzero", masks, sized("nonzero"), why=SIZES)
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from property_tests.numpy_draws import Call, Draw
from property_tests.numpy_law import Subject

SIZES = "size and fill_value are JAX's: NumPy's result, cut off or filled"


def fitted(x: Any, size: int, fill: Any) -> Any:
    """The first `size` parts of `x`; behind its end there is `fill`."""
    actual = np.full((size, *x.shape[1:]), fill, x.dtype)
    actual[: len(x)] = x[:size]
    return actual


def sized(name: str, default: Any = 0) -> Callable[..., Any]:
    """NumPy's function, with each result of the length `size`."""

    def function(*args: Any, size: int, fill_value: Any = None, **kwargs: Any) -> Any:
        actual = getattr(np, name)(*args, **kwargs)
        parts = actual if isinstance(actual, tuple) else (actual,)
        given = fill_value if isinstance(fill_value, tuple) else [fill_value] * 9
        out = []
        for part, fill in zip(parts, given, strict=False):
            spare = part[0] if default == "first" else default
            out.append(fitted(part, size, spare if fill is None else fill))
        return tuple(out) if isinstance(actual, tuple) else out[0]

    return function


def options(d: Draw) -> dict[str, Any]:
    return {"size": d.whole(0, 5), **d.some(fill_value=d.pick(2, 3))}


def masks(d: Draw) -> Call:
    x = d.array("biufc", (1, 3), low=-1, high=1)
    chosen = options(d)
    if "fill_value" in chosen and d.flag():
        chosen["fill_value"] = tuple(d.whole(0, 3) for _ in x.shape)
    return d.call(x, **chosen)


def flat_masks(d: Draw) -> Call:
    return d.call(d.array("biufc", (1, 3), low=-1, high=1), **options(d))


def compressed(d: Draw) -> Call:
    x = d.array("iufc", (1, 3))
    return d.call(d.values((x.shape[0],), bool), x, axis=0, **options(d))


def extracted(d: Draw) -> Call:
    x = d.array("iufc", (1, 3))
    return d.call(d.values(x.shape, bool), x, **options(d))


def members(d: Draw) -> Call:
    x = d.array("iuf", (1, 3), low=-2, high=2, empty=False)
    return d.call(x, **options(d))


def two_sets(d: Draw) -> Call:
    x = d.array("iuf", (1, 2), low=-2, high=2, empty=False)
    return d.call(x, d.values(d.shape(1), x.dtype, -2, 2), **options(d))


def two_sets_filled(d: Draw) -> Call:
    call = two_sets(d)
    return Call(call.args, {"fill_value": 3, **call.kwargs})


def counted(d: Draw) -> Call:
    x = d.values((d.whole(0, 5),), d.dtype("iu"), 0, 6)
    return d.call(x, length=d.whole(1, 9))


def bincount(x: Any, length: int) -> Any:
    return np.bincount(x.astype(np.int64), minlength=length)[:length]


def repeated(d: Draw) -> Call:
    x = d.array("iufc", (1, 3), empty=False)
    counts = d.values((x.shape[0],), np.dtype(np.int32), 1, 3)
    return d.call(x, counts, axis=0, total_repeat_length=d.whole(1, 9))


def repeat(x: Any, counts: Any, axis: int, total_repeat_length: int) -> Any:
    """The last part goes on to the end, as in JAX."""
    actual = np.repeat(x, counts, axis)
    return fitted(actual, total_repeat_length, actual[-1])


def deleted(d: Draw) -> Call:
    x = d.array("iufc", (1, 3), empty=False)
    places = d.random.permutation(x.shape[0])[: d.whole(0, x.shape[0])]
    return d.call(x, places, axis=0, assume_unique_indices=True)


def delete(x: Any, places: Any, axis: int, assume_unique_indices: bool) -> Any:
    return np.delete(x, places, axis)


def coefficients(d: Draw) -> Call:
    zeros = [0] * d.pick(0, 0, 1, 2)
    middle = [d.pick(1, -2), *d.eighths((d.whole(0, 3),), -4, 4)]
    values = [*zeros, *middle, *d.pick([], [0])]
    return d.call(np.array(values).astype(d.pick("f4", "c8")), strip_zeros=False)


def roots(p: Any, strip_zeros: bool) -> Any:
    """NumPy's roots, and a NaN for each zero that it strips at the front."""
    actual = np.roots(p)
    return np.concatenate([actual, np.full(len(p) - 1 - len(actual), np.nan)])


def polynomial_again(call: Call, result: Any) -> Any:
    """The polynomial of the roots that are numbers, and how many are none."""
    values = np.asarray(result).astype(np.complex128)
    known = values[~np.isnan(values)]
    return [len(values), len(known), np.asarray(np.poly(known), np.complex64)]


def searched(d: Draw) -> Call:
    x = d.array("iuf", (1, 3))
    return d.call(x, axis=d.axis(x.ndim), descending=d.flag())


def order(x: Any, axis: int, descending: bool) -> Any:
    """Equal elements stay in order, in either direction."""
    if not descending:
        return np.argsort(x, axis, kind="stable")
    n = x.shape[axis]
    return np.flip(n - 1 - np.argsort(np.flip(x, axis), axis, kind="stable"), axis)


SUBJECTS = [
    Subject("nonzero", masks, sized("nonzero"), why=SIZES),
    Subject("where", masks, sized("where"), why=SIZES),
    Subject("flatnonzero", flat_masks, sized("flatnonzero"), why=SIZES),
    Subject("argwhere", flat_masks, sized("argwhere"), why=SIZES),
    Subject("compress", compressed, sized("compress"), why=SIZES),
    Subject("extract", extracted, sized("extract"), why=SIZES),
    Subject("unique", members, sized("unique", "first"), why=SIZES),
    Subject("union1d", two_sets, sized("union1d", "first"), why=SIZES),
    Subject("setdiff1d", two_sets, sized("setdiff1d"), why=SIZES),
    Subject("setxor1d", two_sets_filled, sized("setxor1d"), why=SIZES),
    Subject("intersect1d", two_sets_filled, sized("intersect1d"), why=SIZES),
    Subject("bincount", counted, bincount, why="length is JAX's"),
    Subject("repeat", repeated, repeat, why="total_repeat_length is JAX's"),
    Subject("delete", deleted, delete, why="assume_unique_indices is JAX's"),
    Subject("argsort", searched, order, why="descending is JAX's"),
    Subject(
        "roots",
        coefficients,
        roots,
        why="strip_zeros is JAX's",
        seen=polynomial_again,
        slack=512,
    ),
]
